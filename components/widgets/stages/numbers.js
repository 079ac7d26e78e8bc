// Decodes a head's stages, and computes one cell step by step.

import { bytes, decimal, floats, small } from "../labels.js";

/** @typedef {"q" | "k" | "raw" | "scaled" | "masked" | "weights" | "v" | "z"} StageName */
/** @typedef {{scale: number, data: string}} Vectors  data: base64 of int16; scale: the number that 32767 stands for */
/** @typedef {{start: number, tokens: string[]}} Side  the first position, and the tokens starting there */
/** @typedef {import("../matrix.js").Numbers} Numbers */
/** @typedef {ReturnType<typeof unpack>} Unpacked */
/**
 * @typedef {{
 *   head_size: number, scale: number, cap: number | null, window: number | null, ahead: boolean, queries: Side, keys: Side,
 *   q: Vectors, k: Vectors, v: Vectors, z: Vectors, scaled: string, weights: string, sums: string,
 * }} Packed
 *   scale: factor applied to the product of query and key. cap: limit on a score, applied as cap * tanh(score / cap); null for none.
 *   window: number of tokens that the layer sees; null for all. ahead: whether a query sees later keys. scaled, weights: base64 of
 *   float32, queries x keys; scores are those before the cap. sums: base64 of float32, log of the sum of exp(score) for each query.
 */

/** @type {StageName[]} */
export const STAGES = ["q", "k", "raw", "scaled", "masked", "weights", "v", "z"];

/** Returns whether a stage has one row per key rather than one per query. @param {StageName} stage */
export const isOfKeys = (stage) => stage === "k" || stage === "v";

/** Returns whether a stage's columns are vector components rather than keys. @param {StageName} stage */
export const isVector = (stage) => ["q", "k", "v", "z"].includes(stage);

/**
 * Returns the number at the top of the colour scale. It is limited so that outliers and the first rows, which have few
 * keys and large weights, do not make the rest pale.
 * @param {number} rows @param {number} columns @param {(row: number, column: number) => number} at @param {boolean} weights
 */
export function fullScale(rows, columns, at, weights) {
  const first = weights ? Math.min(Math.floor(rows / 4), rows - 1) : 0;
  const all = Array.from({ length: (rows - first) * columns }, (_, i) => Math.abs(at(first + Math.floor(i / columns), i % columns)));
  const found = all.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  return found[Math.floor((found.length - 1) * (weights ? 1 : 0.99))] || 1e-6;
}

/** Returns the numbers of each stage, and whether key j comes after query i or before its window. @param {Packed} packed */
export function unpack(packed) {
  const { head_size, scale: factor, cap, window, ahead, queries, keys } = packed;
  const [n, m] = [queries.tokens.length, keys.tokens.length];
  const [scaled, weights, sums] = [packed.scaled, packed.weights, packed.sums].map(floats);
  const scores = cap === null ? scaled : scaled.map((score) => cap * Math.tanh(score / cap));

  /** @param {number} i @param {number} j @returns {"later" | "far" | null} */
  const hidden = (i, j) => {
    const back = queries.start + i - (keys.start + j);
    if (back < 0) return ahead ? null : "later";
    return window !== null && back >= window ? "far" : null;
  };

  /** @param {number} rows @param {number} columns @param {(row: number, column: number) => number} at @returns {Numbers} */
  const numbers = (rows, columns, at, signed = true) => ({ rows, columns, at, signed, scale: fullScale(rows, columns, at, !signed) });

  /** @param {Vectors} vectors @param {number} rows */
  const ofVectors = ({ scale, data }, rows) => {
    const levels = new Int16Array(bytes(data).buffer);
    return numbers(rows, head_size, (row, column) => (levels[row * head_size + column] / 32767) * scale);
  };
  const stages = {
    q: ofVectors(packed.q, n),
    k: ofVectors(packed.k, m),
    v: ofVectors(packed.v, m),
    z: ofVectors(packed.z, n),
    raw: numbers(n, m, (i, j) => scaled[i * m + j] / factor),
    scaled: numbers(n, m, (i, j) => scores[i * m + j]),
    masked: numbers(n, m, (i, j) => (hidden(i, j) ? NaN : scores[i * m + j])),
    weights: numbers(n, m, (i, j) => (hidden(i, j) ? NaN : weights[i * m + j]), false),
  };
  return { stages, hidden, sums };
}

/** @param {Numbers} stage @param {number} row */
const vector = ({ columns, at }, row) => Array.from({ length: columns }, (_, column) => at(row, column));

/**
 * Returns the computation for query i and key j: a sentence per stage, and q, k and their products.
 * @param {Packed} packed @param {Unpacked} unpacked @param {[number, number]} cell @param {(key: string, values?: Record<string, any>) => string} t
 */
export function workedOut(packed, { stages, hidden, sums }, [i, j], t) {
  const [q, k, v, z] = [vector(stages.q, i), vector(stages.k, j), vector(stages.v, j), vector(stages.z, i)];
  const products = q.map((x, d) => x * k[d]);
  const most = [...products.keys()].sort((a, b) => Math.abs(products[b]) - Math.abs(products[a])).slice(0, 2);
  const weight = stages.weights.at(i, j);
  const values = {
    terms: most.map((d) => `${decimal(q[d])} · ${decimal(k[d])}`).join(" + "),
    raw: decimal(stages.raw.at(i, j)),
    hs: packed.head_size,
    scale: small(packed.scale, 4),
    cap: packed.cap,
    window: packed.window,
    score: decimal(stages.scaled.at(i, j)),
    i: packed.queries.start + i,
    j: packed.keys.start + j,
    weight: small(weight, weight < 0.1 ? 4 : 2),
    total: sums[i] < 0 ? `(${decimal(sums[i])})` : decimal(sums[i]),
    norm: small(weight * Math.hypot(...v)),
  };
  const why = hidden(i, j);
  const masked = [["masked", why === "later" ? "hidden" : "outside"], ["weights", "none"]];
  const keys = [["raw", "dot"], ["scaled", "scale"], ...(why ? masked : [["masked", "kept"], ["weights", "weight"], ["v", "part"]])];
  const lines = keys.map(([stage, key]) => /** @type {[StageName, string]} */ ([stage, t(key, values)]));
  lines.push(["z", t("output", { norm: decimal(Math.hypot(...z)) })]);
  return { lines, strips: [q, k, products] };
}
