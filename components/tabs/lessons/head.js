const root = element.querySelector(".gb-course");
const part = (name) => root.querySelector(`.gb-${name}`);
const [steps, back, on] = ["steps", "back", "on"].map(part);
let index = -1; // the lesson that is shown
let asked = -1; // the one that was asked for last

function go(to) {
  if (to < 0 || to >= props.keys.length || to === asked) return;
  asked = to;
  trigger("select", { lesson: to });
}

function mark() {
  const content = read();
  if (!content) return;
  const { done } = kept();
  const levels = props.keys.map((key) => done[key] || 0);
  [...steps.children].forEach((item, i) => {
    const step = item.firstElementChild;
    const state = ["", content.labels.seen, content.labels.answered][levels[i]];
    step.dataset.level = levels[i];
    step.title = `${i + 1} · ${content.titles[i]}${state ? ` (${state})` : ""}`;
    step.setAttribute("aria-label", step.title);
    if (i === index) step.setAttribute("aria-current", "step");
    else step.removeAttribute("aria-current");
  });
  const count = (least) => levels.filter((level) => level >= least).length;
  part("progress").textContent = content.progress
    .replace("{seen}", count(1)).replace("{answered}", count(2)).replace("{total}", levels.length);
}

function draw() {
  const content = read();
  root.hidden = !content;
  if (!content) return;
  const turned = content.index !== index;
  index = asked = content.index;
  root.querySelector("nav").setAttribute("aria-label", content.labels.name);
  if (steps.children.length !== props.keys.length) {
    steps.replaceChildren(...props.keys.map((_, i) => {
      const item = document.createElement("li");
      const link = node("a", "gb-step", String(i + 1));
      link.href = `?lesson=${i + 1}`;
      item.append(link);
      return item;
    }));
  }
  root.querySelector("h2").textContent = `${index + 1} · ${content.title}`;
  part("lesson-says").textContent = content.says;
  back.textContent = `← ${content.labels.previous}`;
  on.textContent = `${content.labels.next} →`;
  back.disabled = index === 0;
  on.disabled = index === props.keys.length - 1;
  if (turned) keep(props.keys[index], 1);
  mark();
}

steps.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return; // another tab of the browser
  event.preventDefault();
  go([...steps.children].indexOf(link.parentNode));
});
back.addEventListener("click", () => go(index - 1));
on.addEventListener("click", () => go(index + 1));
document.addEventListener("glassbox-lessons", mark);
document.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !root.offsetParent) return;
  if (event.target.closest("input, textarea, select, pre, [contenteditable], [role=listbox], [role=slider]")) return;
  go(index + step);
});

watch("value", draw);
draw();
if (index < 0) {
  const wanted = Number(new URLSearchParams(location.search).get("lesson")) - 1;
  const last = props.keys.indexOf(kept().last);
  go(props.keys[wanted] ? wanted : Math.max(last, 0));
}
