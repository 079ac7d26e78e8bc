// Entropy and surprisal along the text, as lines under the strip: drawn from what the tokens carry, while it is open.
const curve = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const [TOP, BOTTOM, LEFT] = [6, 18, 28]; // px
  const figure = element.querySelector(".gb-curve");
  const button = element.querySelector(".gb-open");
  const svg = figure.querySelector("svg");
  const caption = figure.querySelector("figcaption");
  const shape = (tag, name) => {
    const made = svg.appendChild(document.createElementNS(NS, tag));
    made.setAttribute("class", name);
    return made;
  };
  const grid = [0, 1].map(() => [shape("line", "gb-grid"), shape("text", "gb-tick")]);
  const area = shape("path", "gb-area");
  const line = shape("path", "gb-line");
  const [frameAt, hairline] = [shape("line", "gb-chosen-at"), shape("line", "gb-hairline")];
  let stale = true;
  let pointed = -1;
  let [width, highest] = [0, 1];

  const measured = (record) => known(record?.entropy) && known(record?.probability);
  const height = () => svg.height.baseVal.value;
  const x = (i) => LEFT + ((i - 0.5) * (width - LEFT)) / Math.max(1, records.length - 1);
  const y = (value) => height() - BOTTOM - (Math.min(value, highest) / highest) * (height() - BOTTOM - TOP);
  const set = (node, values) => Object.entries(values).forEach(([key, value]) => node.setAttribute(key, value));

  function place(node, i) {
    node.style.display = i > 0 && i < records.length ? "" : "none";
    if (i > 0) set(node, { x1: x(i), x2: x(i), y1: TOP, y2: height() - BOTTOM });
  }

  function totals() {
    const all = records.filter(measured);
    const mean = all.reduce((sum, record) => sum + surprise(record), 0) / all.length;
    return all.length ? fill(label("totals"), { n: all.length, mean: unit(mean), perplexity: (2 ** mean).toFixed(1) }) : "";
  }

  function say() {
    const record = records[pointed];
    const values = { token: visible(record?.text || record?.bytes || ""), surprise: "", entropy: "" };
    const said = totals();
    svg.setAttribute("aria-label", said);
    if (measured(record)) Object.assign(values, { surprise: unit(surprise(record)), entropy: unit(record.entropy) });
    caption.textContent = measured(record) ? fill(label("here"), values) : said;
  }

  function path() {
    stale = false;
    width = svg.clientWidth;
    const places = records.map((_, i) => i).filter((i) => measured(records[i]));
    const finite = places.flatMap((i) => [surprise(records[i]), records[i].entropy]).filter(Number.isFinite);
    highest = Math.max(4, 2 * Math.ceil(Math.max(0, ...finite) / 2));
    const through = (of) => places.map((i) => `${x(i).toFixed(1)} ${y(of(records[i])).toFixed(1)}`).join("L");
    line.setAttribute("d", places.length ? `M${through(surprise)}` : "");
    const [first, last] = [places[0], places[places.length - 1]];
    area.setAttribute("d", places.length ? `M${x(first)} ${y(0)}L${through((r) => r.entropy)}L${x(last)} ${y(0)}Z` : "");
    grid.forEach(([rule, tick], i) => {
      set(rule, { x1: LEFT, x2: width, y1: y(i * highest), y2: y(i * highest) });
      set(tick, { x: LEFT - 6, y: y(i * highest) + 4, "text-anchor": "end" });
      tick.textContent = i * highest;
    });
  }

  function draw(grown = false) {
    stale ||= grown;
    if (figure.hidden || !svg.clientWidth) return;
    if (stale || width !== svg.clientWidth) {
      path();
      say();
    }
    place(frameAt, framed ? indexOf(framed) : -1);
    place(hairline, pointed);
  }

  function point(i) {
    if (figure.hidden || i === pointed) return;
    pointed = i;
    place(hairline, i);
    say();
  }

  function show(on) {
    button.setAttribute("aria-pressed", String(on));
    figure.hidden = !on;
    draw();
  }

  function relabel() {
    button.hidden = !props.labels?.curve;
    button.textContent = label("curve");
    figure.querySelector(".gb-is-surprise").textContent = label("surprise");
    figure.querySelector(".gb-is-entropy").textContent = `${label("entropy")} (${label("unit")})`;
    if (!figure.hidden) say();
  }

  function under(event) {
    const share = (event.clientX - svg.getBoundingClientRect().left - LEFT) / Math.max(1, width - LEFT);
    const i = 1 + Math.floor(share * (records.length - 1));
    return share >= 0 && i < records.length ? i : -1;
  }

  button.addEventListener("click", () => show(figure.hidden));
  svg.addEventListener("pointermove", (event) => {
    const i = under(event);
    if (i < 0) return hideTip();
    if (chips[i] !== tipped) {
      reveal(chips[i]);
      showTip(chips[i]);
    }
  });
  svg.addEventListener("pointerleave", () => hideTip());
  svg.addEventListener("click", (event) => under(event) > 0 && select(chips[under(event)]));
  new ResizeObserver(() => draw()).observe(svg);
  return { draw, point, show, relabel };
})();

