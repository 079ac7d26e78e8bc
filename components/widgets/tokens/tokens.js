// Draws props.value, a header line and one JSON line per token, as chips; touches only what is new.
const root = element.querySelector(".gb-tokens");
const part = (name) => root.querySelector(`.gb-${name}`);
const [empty, strip, marks, tip] = ["empty", "strip", "marks", "tip"].map(part);
const chips = strip.children;
const selectable = props.selectable !== false;
const indexOf = (target) => [].indexOf.call(chips, target);

const FULL = 65535; // the largest level of a shade
const lines = []; // the lines of the tokens
const records = []; // what they say
let seen = ""; // the value as far as it is drawn
let head = ""; // its first line, the header
let chosen = -1; // the selected position; -1: the newest
let applied = "-1"; // the last `selected` of the server that was obeyed
let shade = ""; // the last `shade` that was drawn
let levels = null; // its weights, 0..FULL
let framed = null; // the chip that is framed
let parting = null; // the chip from which on the text is another than the one beside it
let tipped = null; // the chip whose tooltip is open
let atEnd = true; // whether the person looks at the end of the text
let frame = 0;

root.classList.toggle("gb-ids", Boolean(props.ids));
root.classList.toggle("gb-selectable", selectable);
strip.setAttribute("role", selectable ? "listbox" : "group");
tip.id = `gb-tip-${Math.random().toString(36).slice(2)}`;
const label = (name) => props.labels?.[name] ?? name;
const surprisal = () => props.labels?.surprisal; // what the shade is, where it is not attention
const bits = (value) => `${value.toFixed(1)} ${label("bits")}`;
let by = "probability"; // what the tint stands for while there is no shade

function read(line) {
  try {
    const [id, text, probability, rank, kind, bytes, entropy = null] = JSON.parse(line);
    return { id, text: String(text), probability, rank, kind, bytes, entropy };
  } catch {
    return { id: "", text: "", probability: null, rank: null, kind: "g", entropy: null };
  }
}

function node(tag, name, text) {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  return made;
}

function chip(record, index) {
  const made = node("span", "gb-chip", "");
  if (selectable) {
    made.setAttribute("role", "option");
    made.setAttribute("aria-selected", "false");
    made.tabIndex = -1;
  }
  const spaces = record.text.match(/^[ \t]+/);
  if (spaces) made.dataset.spaces = visible(spaces[0]);
  if (!record.text.trim()) made.setAttribute("aria-label", `${label("token")} ${record.id}`);
  if (record.text) {
    const [, inside, end] = record.text.match(/^([^]*?)(\n*)$/);
    const line = props.ids ? made.appendChild(node("span", "", "")) : made; // a column would leave out a bare space
    line.append(inside);
    if (record.bytes) line.append(node("i", "gb-bytes", record.bytes)); // the beginning of the next character
    if (end) made.append(node("i", "gb-newline", "⏎".repeat(end.length)));
    record.after = end; // breaks the line, so it stands after the chip
  } else {
    made.append(node("i", "gb-bytes", record.bytes || "∎"));
  }
  if (record.kind === "h") made.classList.add("gb-by-hand");
  tint(made, record);
  if (props.ids) {
    made.append(node("small", "", record.id));
    made.dataset.hue = index % 4;
  }
  return made;
}

function readValue() {
  const value = props.value || "";
  if (value === seen) return false;
  let fresh;
  if (seen && value.startsWith(seen)) {
    fresh = value.slice(seen.length).split("\n").filter(Boolean);
  } else {
    fresh = value.split("\n").filter(Boolean);
    const first = fresh.shift() ?? "";
    if (first !== head) chosen = -1;
    head = first;
    let kept = 0;
    while (kept < fresh.length && fresh[kept] === lines[kept]) kept += 1;
    while (chips.length > kept) strip.lastChild.remove();
    lines.length = records.length = kept;
    fresh = fresh.slice(kept);
    atEnd = true;
    hideTip();
  }
  seen = value;
  const added = document.createDocumentFragment();
  for (const line of fresh) {
    const record = read(line);
    added.append(chip(record, lines.length), ...(record.after ? [record.after] : []));
    lines.push(line);
    records.push(record);
  }
  strip.append(added);
  return true;
}

function readShade(grown) {
  if (props.shade === shade && !grown) return;
  const before = levels;
  shade = props.shade || "";
  const [largest, bytes] = shade.split(":");
  levels = shade ? new Uint16Array(Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0)).buffer) : null;
  root.classList.toggle("gb-shaded", Boolean(levels));
  if (levels || before) {
    records.forEach((record, i) => {
      const level = levels?.[i] ?? 0;
      if (record.level === level) return;
      record.level = level;
      chips[i].style.setProperty("--s", (level / FULL).toFixed(3));
    });
  }
  const inBits = levels && surprisal();
  const scale = scales[by].ends();
  part("from").textContent = inBits ? `${surprisal()} 0` : levels ? `${label("attention")} 0 %` : scale[0];
  part("scale").style.visibility = levels && !Number(largest) ? "hidden" : ""; // nothing is shaded
  part("to").textContent = inBits ? bits(Number(largest)) : levels ? percent(Number(largest)) : scale[1];
}

function readBy() {
  const wanted = scales[props.by] ? props.by : "probability";
  if (wanted === by) return;
  by = wanted;
  records.forEach((record, i) => tint(chips[i], record));
  readShade(true);
  if (by === "entropy" || by === "surprisal") curve.show(true);
}

function mark() {
  const last = chips.length - 1;
  const now = selectable && last >= 0 ? chips[chosen < 0 ? last : Math.min(chosen, last)] : null;
  if (now === framed) return;
  for (const [target, on] of [[framed, false], [now, true]]) {
    if (!target) continue;
    target.setAttribute("aria-selected", String(on));
    target.tabIndex = on ? 0 : -1;
  }
  framed = now;
}

function reveal(target) {
  const view = strip.getBoundingClientRect();
  const place = target.getBoundingClientRect();
  if (place.top < view.top) strip.scrollTop -= view.top - place.top + 8;
  else if (place.bottom > view.bottom) strip.scrollTop += place.bottom - view.bottom + 8;
}

function showParting() {
  const now = chips[Number(props.parted ?? -1)] ?? null;
  if (now === parting) return;
  parting?.classList.remove("gb-parted");
  now?.classList.add("gb-parted");
  parting = now;
}

function relabel() {
  empty.textContent = props.labels?.empty ?? "";
  marks.textContent = label("marks");
  strip.setAttribute("aria-label", label("name"));
  curve.relabel();
}

function draw() {
  frame = 0;
  const grown = readValue();
  readShade(grown);
  readBy();
  if (props.selected !== applied) {
    applied = props.selected;
    chosen = Number.parseInt(applied, 10);
    if (Number.isNaN(chosen)) chosen = -1;
    mark();
    if (chosen >= 0 && framed) reveal(framed);
  } else {
    mark();
  }
  showParting();
  root.classList.toggle("gb-nothing", chips.length === 0);
  if (root.closest("#strip")) document.body.dataset.text = chips.length ? "some" : "none"; // `:has` asks at every change
  if (grown && atEnd) strip.scrollTop = strip.scrollHeight;
  curve.draw(grown);
}

function schedule() {
  if (!frame) frame = requestAnimationFrame(draw);
}

function select(target) {
  chosen = indexOf(target);
  mark();
  trigger("select", { index: chosen });
}

function showTip(target) {
  const record = records[indexOf(target)];
  if (!record) return;
  const rows = [[label("id"), String(record.id)]];
  if (record.probability !== null) rows.push([label("probability"), percent(record.probability)]);
  if (record.rank !== null) rows.push([label("rank"), String(record.rank)]);
  if (record.entropy !== null && props.labels?.entropy) {
    rows.push([label("surprise"), unit(surprise(record))], [label("entropy"), unit(record.entropy)]);
  }
  if (surprisal()) {
    if (record.probability !== null) rows.push([surprisal(), bits(-Math.log2(record.probability))]);
  } else if (levels) rows.push([label("attention"), percent((record.level / FULL) * Number(shade.split(":")[0]))]);
  tip.replaceChildren(node("strong", "", visible(record.text) + (record.bytes || "") || "∎"));
  for (const [name, text] of rows) tip.append(node("span", "", name), node("b", "", text));
  tip.hidden = false;
  tipped?.removeAttribute("aria-describedby");
  target.setAttribute("aria-describedby", tip.id);
  tipped = target;
  placeTip();
  curve.point(indexOf(target));
}

function placeTip() {
  const place = tipped.getBoundingClientRect();
  const around = root.getBoundingClientRect();
  const left = place.left + place.width / 2 - tip.offsetWidth / 2 - around.left;
  tip.style.left = `${Math.max(0, Math.min(left, around.width - tip.offsetWidth))}px`;
  const above = place.top - tip.offsetHeight - 8;
  tip.style.top = `${(above < 0 ? place.bottom + 8 : above) - around.top}px`;
}

function hideTip() {
  tip.hidden = true;
  tipped?.removeAttribute("aria-describedby");
  tipped = null;
  curve.point(-1);
}

// The chip nearest to `from` on the line above (step -1) or below (step 1).
function beside(from, step) {
  const middle = (target) => target.offsetLeft + target.offsetWidth / 2;
  const line = (target) => target.offsetTop;
  let i = indexOf(from) + step;
  while (chips[i] && Math.abs(line(chips[i]) - line(from)) < 4) i += step;
  if (!chips[i]) return from;
  const there = line(chips[i]);
  let best = chips[i];
  for (; chips[i] && Math.abs(line(chips[i]) - there) < 4; i += step) {
    if (Math.abs(middle(chips[i]) - middle(from)) < Math.abs(middle(best) - middle(from))) best = chips[i];
  }
  return best;
}

const MOVES = {
  ArrowRight: (from) => from.nextElementSibling ?? from,
  ArrowLeft: (from) => from.previousElementSibling ?? from,
  ArrowDown: (from) => beside(from, 1),
  ArrowUp: (from) => beside(from, -1),
  Home: () => strip.firstElementChild,
  End: () => strip.lastElementChild,
};

const at = (event) => event.target.closest?.(".gb-chip");
strip.addEventListener("pointerover", (event) => at(event) && showTip(at(event)));
strip.addEventListener("pointerleave", hideTip);
strip.addEventListener("focusin", (event) => at(event) && showTip(at(event)));
strip.addEventListener("focusout", hideTip);
strip.addEventListener("scroll", () => {
  atEnd = strip.scrollTop + strip.clientHeight >= strip.scrollHeight - 8;
  if (tipped) placeTip();
});
if (selectable) {
  strip.addEventListener("click", (event) => at(event) && select(at(event)));
  strip.addEventListener("keydown", (event) => {
    const target = at(event);
    if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return hideTip();
    if (event.key === "Enter" || event.key === " ") select(target);
    else if (MOVES[event.key]) MOVES[event.key](target).focus();
    else return;
    event.preventDefault();
  });
}

function showMarks(on) {
  marks.setAttribute("aria-pressed", String(on));
  root.classList.toggle("gb-marked", on);
}
marks.addEventListener("click", () => showMarks(marks.getAttribute("aria-pressed") !== "true"));

watch(["value", "selected", "shade", "parted", "by"], schedule);
watch("labels", () => { relabel(); readShade(true); if (tipped) showTip(tipped); });
watch("marks", () => showMarks(Boolean(props.marks)));
relabel();
showMarks(Boolean(props.marks));
readShade(true);
draw();
