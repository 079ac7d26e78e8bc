// How numbers and tokens are written: as components/labels.py writes them.
function percent(probability) {
  const value = 100 * probability;
  if (value > 0 && value < 0.01) return "< 0.01\u00a0%";
  if (value >= 99.995 && value < 99.9999) return "> 99.99\u00a0%";
  const digits = value === 0 || value >= 99.995 ? 0 : value < 0.95 || value >= 99.95 ? 2 : value < 9.95 || value >= 99.5 ? 1 : 0;
  return `${value.toFixed(digits)}\u00a0%`;
}

function decimal(value, digits = 2) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// With as many digits, or as a power of ten where these would all be zeros.
function small(value, digits = 2) {
  if (value === 0 || Math.abs(value) >= 0.5 * 10 ** -digits) return decimal(value, digits);
  const [lead, exponent] = value.toExponential(1).split("e");
  const raised = [...String(Number(exponent))].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
  return `${lead.replace("-", "−")} × 10${raised}`;
}

const visible = (text) => text.replace(/[ \n\t\r\0]/g, (c) => ({ " ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍", "\0": "␀" })[c]);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
