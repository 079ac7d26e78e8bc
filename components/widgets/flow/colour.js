// The colours of the theme as numbers, and bytes from base64.
const probe = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
const css = (name) => getComputedStyle(element).getPropertyValue(`--gb-${name}`).trim();
const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

const pixel = (r, g, b) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

function rgb(colour) {
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

// 256 colours along a line through the given ones, each as one number: a pixel of ImageData.
function ramp(colours) {
  const points = colours.map(rgb);
  const last = points.length - 1;
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * last;
    const i = Math.min(last - 1, Math.floor(at));
    const [r, g, b] = points[i].map((from, c) => Math.round(from + (points[i + 1][c] - from) * (at - i)));
    return pixel(r, g, b);
  });
}

// One hue per head, evenly around the circle but for the orange of the selection.
function headColour(head, count) {
  const hue = (100 + (275 * (head + 0.5)) / count) % 360;
  return `oklch(${element.closest(".dark") ? 0.77 : 0.56} 0.14 ${hue.toFixed(1)})`;
}

function parsed(value) {
  try {
    return JSON.parse(value);
  } catch {
    return null;
  }
}

// Draw again when the theme changes.
function onTheme(action) {
  const seen = new MutationObserver(action);
  for (const node of [document.documentElement, document.body]) seen.observe(node, { attributes: true, attributeFilter: ["class"] });
}
