// Draws props.value, JSON of {text, lanes}: a row for each lane, with its line on the left and its words beside it.
const root = element.querySelector(".gb-tree");
const list = root.querySelector(".gb-branches");
const svg = list.querySelector("svg");
const [ROW, EDGE, BEND] = [28, 10, 8]; // px
const rows = list.getElementsByClassName("gb-branch");
let lanes = [];

function parsed() {
  try {
    return JSON.parse(props.value);
  } catch {
    return null;
  }
}

function path(name, d) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "path");
  made.setAttribute("class", name);
  made.setAttribute("d", d);
  svg.append(made);
}

function row(lane) {
  const made = document.createElement("div");
  made.className = "gb-branch";
  made.setAttribute("role", "option");
  made.setAttribute("aria-selected", String(lane.here));
  made.tabIndex = lane.here ? 0 : -1;
  const words = document.createElement("span");
  words.textContent = lane.label;
  made.append(words);
  return made;
}

function lines() {
  svg.replaceChildren();
  const width = svg.clientWidth;
  if (!width || !lanes.length) return;
  svg.setAttribute("height", ROW * lanes.length);
  const deepest = Math.max(1, ...lanes.map((lane) => lane.end));
  const x = (depth) => EDGE + (depth / deepest) * (width - 2 * EDGE);
  const y = (i) => ROW * (i + 0.5);
  const line = (lane, i, end) => {
    const from = x(lane.start);
    if (lane.parent === null) return `M${x(0)} ${y(i)}H${x(end)}`;
    const bend = Math.min(BEND, Math.max(0, x(lane.end) - from));
    return `M${from} ${y(lane.parent)}V${y(i) - BEND}Q${from} ${y(i)} ${from + bend} ${y(i)}H${Math.max(from + bend, x(end))}`;
  };
  lanes.forEach((lane, i) => path("gb-branch-line", line(lane, i, lane.end)));
  lanes.forEach((lane, i) => lane.reached >= lane.start && path("gb-branch-line gb-current", line(lane, i, lane.reached)));
  lanes.forEach((lane, i) => lane.here && path("gb-branch-tip", `M${x(Math.max(lane.reached, lane.start))} ${y(i)}h0`));
}

function draw() {
  const content = parsed();
  root.hidden = !content;
  lanes = content?.lanes ?? [];
  if (!content) return list.replaceChildren(svg);
  const focused = [...rows].indexOf(document.activeElement);
  root.querySelector("figcaption").textContent = content.text;
  list.setAttribute("aria-label", content.text);
  list.replaceChildren(svg, ...lanes.map(row));
  if (focused >= 0) [...rows].find((each) => each.tabIndex === 0)?.focus();
  lines();
}

const at = (event) => [...rows].indexOf(event.target.closest(".gb-branch"));
const choose = (i) => i >= 0 && trigger("select", lanes[i].sent);
list.addEventListener("click", (event) => choose(at(event)));
list.addEventListener("keydown", (event) => {
  const i = at(event);
  if (i < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const to = { ArrowUp: i - 1, ArrowDown: i + 1, Home: 0, End: rows.length - 1 }[event.key];
  if (event.key === "Enter" || event.key === " ") choose(i);
  else if (to !== undefined) rows[Math.max(0, Math.min(rows.length - 1, to))].focus();
  else return;
  event.preventDefault();
});
new ResizeObserver(lines).observe(svg);
watch("value", draw);
draw();
