// What the widget's value holds, as numbers, stage by stage; and one cell worked out.
const STAGES = ["q", "k", "raw", "scaled", "masked", "weights", "v", "z"];
const OF_KEYS = ["k", "v"]; // a row for each key; the others have one for each query

const floats = (text) => new Float32Array(bytes(text).buffer);

function vectors({ scale, data }, width) {
  const levels = new Int16Array(bytes(data).buffer);
  const at = (row, column) => (levels[row * width + column] / 32767) * scale;
  return { at, of: (row) => Array.from({ length: width }, (_, i) => at(row, i)) };
}

// Everything that is looked up later; `later(i, j)`: whether key j comes after query i.
function unpack(value) {
  const { head_size, queries, keys } = value;
  const [n, m] = [queries.tokens.length, keys.tokens.length];
  const [scores, weights, sums] = [value.scores, value.weights, value.sums].map(floats);
  const later = (i, j) => keys.start + j > queries.start + i;
  const root = Math.sqrt(head_size);
  const grid = (at) => ({ rows: n, columns: m, at });
  const rows = (name, count) => ({ rows: count, columns: head_size, ...vectors(value[name], head_size) });
  const stages = {
    q: rows("q", n), k: rows("k", m), v: rows("v", m), z: rows("z", n),
    raw: grid((i, j) => scores[i * m + j] * root),
    scaled: grid((i, j) => scores[i * m + j]),
    masked: grid((i, j) => (later(i, j) ? NaN : scores[i * m + j])),
    weights: grid((i, j) => (later(i, j) ? NaN : weights[i * m + j])),
  };
  for (const [name, stage] of Object.entries(stages)) {
    stage.signed = name !== "weights";
    stage.scale = full(stage, name === "weights");
  }
  return { stages, later, sums, n, m };
}

// The number that gets the full colour: a few outliers must not pale the rest, nor the first rows, which have few tokens
// to look at and so large weights.
function full({ rows, columns, at }, weights) {
  const found = [];
  for (let row = weights ? Math.min(Math.floor(rows / 4), rows - 1) : 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const value = Math.abs(at(row, column));
      if (!Number.isNaN(value)) found.push(value);
    }
  }
  found.sort((a, b) => a - b);
  return found[Math.floor((found.length - 1) * (weights ? 1 : 0.99))] || 1e-6;
}

const length = (vector) => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));

// Lines of [stage, text] for query i and key j of what is shown.
function workedOut(value, numbers, i, j, label) {
  const { stages, later, sums } = numbers;
  const [q, k, v, z] = [stages.q.of(i), stages.k.of(j), stages.v.of(j), stages.z.of(i)];
  const products = q.map((x, d) => x * k[d]);
  const most = [...products.keys()].sort((a, b) => Math.abs(products[b]) - Math.abs(products[a])).slice(0, 2);
  const terms = most.map((d) => `${decimal(q[d])} · ${decimal(k[d])}`).join(" + ");
  const score = stages.scaled.at(i, j);
  const places = { i: value.queries.start + i, j: value.keys.start + j };
  const given = { terms, raw: decimal(stages.raw.at(i, j)), hs: value.head_size, score: decimal(score), ...places };
  const lines = [["raw", fill(label("dot"), given)], ["scaled", fill(label("scale"), given)]];
  if (later(i, j)) lines.push(["masked", fill(label("hidden"), given)], ["weights", fill(label("none"), given)]);
  else {
    const weight = stages.weights.at(i, j);
    const shares = { weight: small(weight, weight < 0.1 ? 4 : 2), total: sums[i] < 0 ? `(${decimal(sums[i])})` : decimal(sums[i]), score: given.score };
    lines.push(["masked", fill(label("kept"), given)], ["weights", fill(label("weight"), shares)]);
    lines.push(["v", fill(label("part"), { ...shares, norm: small(weight * length(v)) })]);
  }
  lines.push(["z", fill(label("output"), { norm: decimal(length(z)) })]);
  return { lines, strips: [q, k, products] };
}
