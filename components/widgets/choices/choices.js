// Draws props.value, JSON of {name, head, lines: [{cells, sent}]}, as buttons below each other.
const list = element.querySelector(".gb-choices");
const buttons = list.getElementsByTagName("button");
let lines = [];

function cells(made, texts) {
  made.append(...texts.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  return made;
}

function draw() {
  let content = null;
  try {
    content = JSON.parse(props.value);
  } catch {
    // nothing to show
  }
  list.hidden = !content;
  lines = content?.lines ?? [];
  list.setAttribute("aria-label", content?.name ?? "");
  list.replaceChildren();
  let headed = false;
  for (const line of lines) {
    const whole = line.cells.length === 1;
    if (!whole && !headed) list.append(cells(document.createElement("p"), content.head));
    headed ||= !whole;
    const button = cells(Object.assign(document.createElement("button"), { type: "button" }), line.cells);
    button.classList.toggle("gb-whole", whole);
    list.append(button);
  }
}

list.addEventListener("click", (event) => {
  const i = [].indexOf.call(buttons, event.target.closest("button"));
  if (i >= 0) trigger("select", lines[i].sent);
});
list.addEventListener("keydown", (event) => {
  const to = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!to) return;
  buttons[[].indexOf.call(buttons, document.activeElement) + to]?.focus();
  event.preventDefault();
});
watch("value", draw);
draw();
