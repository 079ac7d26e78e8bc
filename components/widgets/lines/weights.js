// Decodes attention weights, and computes the threshold for visible lines.

export const THINNEST = 0.005; // minimum weight of a line
const [USUAL, PER_TOKEN] = [30, 3]; // largest default of the slider, 0..100; number of visible lines per token
const FULL = 65535; // represents 1

/**
 * Returns the weights in 0..1 for each picture, queries x keys, with NaN for masked keys, which are not sent.
 * @param {Uint8Array} data uint16, little-endian
 * @param {{pictures: number, queries: {start: number, tokens: any[]}, keys: {start: number, tokens: any[]}}} of
 */
export function unpackWeights(data, { pictures, queries, keys }) {
  const levels = new Uint16Array(data.buffer);
  const [n, m] = [queries.tokens.length, keys.tokens.length];
  let at = 0;
  return Array.from({ length: pictures }, () => {
    const matrix = new Float32Array(n * m).fill(NaN);
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < m && keys.start + j <= queries.start + i; j += 1) matrix[i * m + j] = levels[at++] / FULL;
    }
    return matrix;
  });
}

/** Returns the slider's default, which shows a few lines per token. @param {Float32Array[]} weights @param {number} count number of tokens */
export function usualThreshold(weights, count) {
  const strongest = weights.flatMap((of) => [...of].filter((weight) => weight > 0)).sort((a, b) => b - a);
  return Math.min(USUAL, 100 * Math.sqrt(strongest[PER_TOKEN * count] ?? 1));
}
