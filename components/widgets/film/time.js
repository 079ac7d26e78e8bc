// Time in the film.

/** The beat at a time, and how much of it is over. @param {number[]} starts of the beats, and the end @param {number} time */
export function beatAt(starts, time) {
  const last = starts.length - 2;
  let beat = 0;
  while (beat < last && time >= starts[beat + 1]) beat += 1;
  const length = starts[beat + 1] - starts[beat];
  return { beat, share: Math.min(1, Math.max(0, (time - starts[beat]) / length)) };
}

/** Slow, fast, slow. @param {number} share */
export const eased = (share) => (share <= 0 ? 0 : share >= 1 ? 1 : share * share * (3 - 2 * share));
