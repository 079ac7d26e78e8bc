// Where everything stands: columns from left to right, rows from top to bottom.
const [ROW, CHOSEN, FOLDED, BUDGET] = [18, 28, 5, 540]; // px: a row that can be read, the selected, a folded one, all
const [HEAD, FOOT, BAR] = [84, 44, 26];
const [NARROWEST, TARGET] = [1180, 24]; // px: the picture; what a finger or a key can pick
const QKV = ["q", "k", "v"];
const ATTENTION = ["q", "k", "weights", "v", "mix", "z"]; // here the arrow keys change the head

// What attention and the feed-forward part take up; in a skeleton one empty passage each.
const ATTENDS = [
  ["norm1", 46], ["q", 34], ["", 15], ["k", 34], ["", 10], ["weights", 132], ["", 10], ["v", 34], ["mix", 100], ["z", 34],
  ["", 22], ["att", 42], ["plus1", 36],
];
const FEEDS = [["norm2", 34], ["ff", 116], ["", 34], ["out", 42], ["plus2", 36]];
const widthOf = (parts) => parts.reduce((sum, [, size]) => sum + size, 0);

// [name or "" for an empty gap, width]; names of strips and of the gaps where something happens
function sequence(value) {
  const passage = (name, parts) => (value.bare ? [[name, widthOf(parts)]] : parts);
  const thin = Math.max(3, Math.min(15, 132 / value.n_layer));
  const stack = (from, to) => Array.from({ length: to - from }, (_, i) => [[`layer${from + i}`, thin * 0.66], ["", thin * 0.34]]).flat();
  return [
    ["tokens", 92], ["", 10], ["tok", 40], ...(value.strips.pos ? [["", 16], ["pos", 40]] : []), ["", 14],
    ...stack(0, value.layer), ["", 10], ["open", 0], ["", 12], ["pre", 42],
    ...passage("attn", ATTENDS), ["mid", 42], ...passage("mlp", FEEDS), ["post", 42], ["", 12], ["close", 0], ["", 10], ...stack(value.layer + 1, value.n_layer), ["", 14],
    ["fin", 42], ["", 44], ["next", 168],
  ];
}

function columns(value, width) {
  const parts = sequence(value);
  const unit = width / widthOf(parts);
  const placed = {};
  let x = 0;
  for (const [name, size] of parts) {
    if (name) placed[name] = { x, w: size * unit };
    x += size * unit;
  }
  return placed;
}

// Readable rows: the selected one, those it looks at most, and its neighbours, as long as there is room; the others fold.
function rowHeights(value) {
  const count = value.tokens.length;
  const selected = value.selected - value.start;
  const far = [...value.tokens.keys()].sort((a, b) => Math.abs(a - selected) - Math.abs(b - selected));
  const looked = [...value.tokens.keys()].filter((i) => value.row[i] > 0.04).sort((a, b) => value.row[b] - value.row[a]);
  const heights = Array(count).fill(FOLDED);
  let room = BUDGET - count * FOLDED;
  for (const i of [...new Set([...far.slice(0, 7), ...looked.slice(0, 8), ...far])]) {
    if (room < ROW - FOLDED) break;
    heights[i] = ROW;
    room -= ROW - FOLDED;
  }
  heights[selected] = CHOSEN;
  return heights;
}

function rowTops(heights) {
  let y = HEAD;
  return heights.map((height) => (y += height) - height);
}
