// Time in the film.

/**
 * Returns the beat at a time, and its elapsed fraction.
 * @param {number[]} starts the beats' start times, then the end @param {number} time
 */
export function beatAt(starts, time) {
  const last = starts.length - 2;
  let beat = 0;
  while (beat < last && time >= starts[beat + 1]) beat += 1;
  const length = starts[beat + 1] - starts[beat];
  return { beat, share: Math.min(1, Math.max(0, (time - starts[beat]) / length)) };
}

/** Eases in and out: slow, fast, slow. @param {number} share */
export const eased = (share) => (share <= 0 ? 0 : share >= 1 ? 1 : share * share * (3 - 2 * share));

/**
 * Returns the elapsed fraction of part of a beat, eased.
 * @param {number} share elapsed fraction of the beat @param {number} from @param {number} to
 */
export const within = (share, from, to) => eased((share - from) / (to - from));

/** @param {number} a @param {number} b @param {number} share */
export const between = (a, b, share) => a + (b - a) * share;

const [FIRST_VISIT, LAST_SCORE] = [0.06, 0.72]; // as fractions of the beat

/**
 * Returns the times at which the followed token's query visits each of n keys, as fractions of the beat. The query
 * leaves and arrives; then the score leaves and lands beside the others.
 * @param {number} n
 */
export function visits(n) {
  const each = (LAST_SCORE - FIRST_VISIT) / n;
  return Array.from({ length: n }, (_, i) => {
    const leaves = FIRST_VISIT + i * each;
    return { leaves, arrives: leaves + 0.5 * each, answers: leaves + 0.6 * each, lands: leaves + each };
  });
}
