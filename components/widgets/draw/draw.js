// Draws props.value, JSON of {text, pieces: [[end, says]], number, place, mark}.
const root = element.querySelector(".gb-draw");
const part = (name) => root.querySelector(`.gb-${name}`);
const [strip, fell, says] = [part("pieces"), part("fell"), root.querySelector(".gb-ends p")];
const boxes = strip.children;
let value = null;
let shown = -1; // the piece that is told of; -1: the one that was drawn

function parsed() {
  try {
    return JSON.parse(props.value);
  } catch {
    return null;
  }
}

function tell(i) {
  shown = i;
  const at = i < 0 ? value.place : i;
  [...boxes].forEach((box, j) => box.classList.toggle("gb-told", i === j));
  says.textContent = value.pieces[at]?.[1] ?? "";
}

function draw() {
  value = parsed();
  root.hidden = !value;
  if (!value) return;
  part("says").textContent = value.text;
  root.classList.toggle("gb-no-strip", value.pieces.length === 0);
  strip.setAttribute("aria-label", `${value.text} ${value.mark}`);
  while (boxes.length > value.pieces.length) strip.lastChild.remove();
  while (boxes.length < value.pieces.length) strip.append(document.createElement("i"));
  let start = 0;
  value.pieces.forEach(([end], i) => {
    const width = end - start;
    boxes[i].style.width = `${100 * width}%`;
    boxes[i].style.setProperty("--p", Math.min(1, 1.6 * width).toFixed(3));
    boxes[i].classList.toggle("gb-drawn", i === value.place);
    start = end;
  });
  const share = `${100 * value.number}%`;
  fell.style.setProperty("--at", share);
  fell.querySelector("span").textContent = value.mark;
  tell(-1);
}

strip.addEventListener("pointermove", (event) => tell([].indexOf.call(boxes, event.target)));
strip.addEventListener("pointerleave", () => tell(-1));
strip.addEventListener("blur", () => value && tell(-1));
strip.addEventListener("keydown", (event) => {
  const from = shown < 0 ? value.place : shown;
  const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: boxes.length - 1, Escape: -1 }[event.key];
  if (to === undefined) return;
  tell(event.key === "Escape" ? -1 : Math.max(0, Math.min(boxes.length - 1, to)));
  event.preventDefault();
});
watch("value", draw);
draw();
