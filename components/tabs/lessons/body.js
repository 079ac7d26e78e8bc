const root = element.querySelector(".gb-lesson-body");
const part = (name) => root.querySelector(`.gb-${name}`);
const answer = root.querySelector("details");
const [summary, reply] = answer.children;
let index = -1;

function listing({ caption, lines }) {
  const figure = document.createElement("figure");
  const pre = document.createElement("pre");
  const code = document.createElement("code");
  pre.tabIndex = 0; // long lines scroll by keyboard too
  pre.setAttribute("aria-label", caption);
  for (const line of lines) {
    code.append(...line.map(([kind, text]) => node("span", kind ? `gb-c-${kind}` : "", text)), "\n");
  }
  pre.append(code);
  figure.append(node("figcaption", "", caption), pre);
  return figure;
}

function draw() {
  const content = read();
  root.hidden = !content;
  if (!content) return;
  part("code-title").textContent = content.labels.code;
  part("code").replaceChildren(...content.code.map(listing));
  part("try-title").textContent = content.labels.try;
  part("lesson-question").textContent = content.question;
  summary.textContent = content.show;
  reply.textContent = content.answer;
  part("lesson-go").textContent = `${content.open} →`;
  if (content.index !== index) answer.open = false;
  index = content.index;
}

answer.addEventListener("toggle", () => answer.open && index >= 0 && keep(props.keys[index], 2));
part("lesson-go").addEventListener("click", () => trigger("select", { open: true }));
watch("value", draw);
draw();
