// Draws props.labels as buttons, and does what props.value says: copies a text or saves a file.
const row = element.querySelector(".gb-share-row");
const out = element.querySelector(".gb-share-out");
const says = element.querySelector(".gb-share-says");
const close = element.querySelector(".gb-share-close");
const field = element.querySelector("textarea");
const picker = element.querySelector("input[type=file]");

const openTab = () => document.querySelector("#tabs [role=tab][aria-selected=true]")?.dataset.tabId ?? null;

function made(item) {
  if (item.items) {
    const folded = document.createElement("details");
    const name = document.createElement("summary");
    const list = document.createElement("div");
    name.textContent = item.label;
    list.append(...item.items.map(made));
    list.addEventListener("click", () => (folded.open = false));
    folded.append(name, list);
    return folded;
  }
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = item.label;
  if (item.title) button.title = item.title;
  button.dataset.what = item.what;
  button.addEventListener("click", () => (item.what === "open" ? picker.click() : ask(item.what)));
  return button;
}

function ask(what, more) {
  trigger("select", { what, tab: openTab(), ...more });
}

function label() {
  element.querySelector(".gb-share").setAttribute("aria-label", props.labels.name);
  close.setAttribute("aria-label", props.labels.close);
  row.replaceChildren(...props.labels.items.map(made));
}

picker.addEventListener("change", async () => {
  const file = picker.files[0];
  picker.value = ""; // the same file may be picked again
  if (!file) return;
  ask("open", { name: file.name, size: file.size, text: file.size > props.largest ? "" : await file.text() });
});

function tell(sentence, content) {
  says.textContent = sentence;
  field.hidden = content === undefined;
  field.value = content ?? "";
  field.rows = Math.min(12, (content ?? "").split("\n").length + 1);
  out.hidden = !sentence;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    field.select(); // no clipboard here, as on a plain http address: the older way
    return document.execCommand("copy");
  }
}

function save({ name, mime, content }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: `${mime};charset=utf-8` }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function deliver() {
  if (!props.value) return; // it is taken back once it has arrived
  const got = JSON.parse(props.value);
  if (got.how === "save") save(got);
  if (got.how !== "copy") return tell(got.says);
  const text = got.query ? `${location.origin}${location.pathname}?${got.content}` : got.content;
  tell(got.manual, text);
  if (await copy(text)) says.textContent = got.says;
}

function dismiss(event) {
  out.hidden = true;
  row.querySelector("button, summary")?.focus({ preventScroll: true });
  event.stopPropagation();
}

close.addEventListener("click", dismiss);
element.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const folded of row.querySelectorAll("details")) folded.open = false;
  if (!out.hidden) dismiss(event);
});
document.addEventListener("click", (event) => {
  for (const folded of row.querySelectorAll("details[open]")) folded.open = folded.contains(event.target);
  if (!element.contains(event.target)) out.hidden = true;
});
watch("labels", label);
watch("value", deliver);
label();
