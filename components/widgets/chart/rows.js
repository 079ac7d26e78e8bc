// A button over each row of a bar chart whose value has rows, {name, names, sent, common}: the whole row is a target, and
// the arrow keys, Enter and Space do what the pointer does. A click survives a drawing between its down and its up.
const rows = (() => {
  const list = document.createElement("div");
  list.className = "gb-rows";
  let [value, current, placed] = [null, 0, ""];
  const buttons = list.children;

  function turn(to) {
    buttons[current]?.setAttribute("tabindex", "-1");
    current = Math.max(0, Math.min(buttons.length - 1, to));
    buttons[current]?.setAttribute("tabindex", "0");
  }

  function draw(given) {
    value = given ?? null;
    list.hidden = !value;
    if (!value) return;
    if (!list.isConnected) plot.after(list);
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", value.name);
    while (buttons.length > value.names.length) list.lastChild.remove();
    while (buttons.length < value.names.length) {
      list.append(Object.assign(document.createElement("button"), { type: "button", tabIndex: -1 }));
    }
    value.names.forEach((name, i) => buttons[i].setAttribute("aria-label", name));
    turn(current);
  }

  // Over the bars, wherever plotly has put them: a legend of two lines moves them down.
  function place() {
    if (!value || !plot._fullLayout) return;
    const { t, h } = plot._fullLayout._size;
    const tall = h / value.names.length;
    const shape = `${t} ${tall} ${buttons.length}`;
    if (shape === placed) return;
    placed = shape;
    [...buttons].forEach((button, i) => Object.assign(button.style, { top: `${t + i * tall}px`, height: `${tall}px` }));
  }

  list.addEventListener("click", (event) => {
    const row = [].indexOf.call(buttons, event.target.closest("button"));
    if (row >= 0) trigger("select", { ...value.common, ...value.sent[row] });
  });
  list.addEventListener("pointerover", ({ target }) => (target.title = target.getAttribute("aria-label") ?? ""));
  list.addEventListener("focusin", (event) => turn([].indexOf.call(buttons, event.target)));
  list.addEventListener("keydown", (event) => {
    const to = { ArrowUp: current - 1, ArrowDown: current + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    turn(to);
    buttons[current].focus();
    event.preventDefault();
  });
  return { draw, place };
})();

