// Parses a beam search from lines: its candidates, the best text so far, and the active candidates.

/**
 * @typedef {"kept" | "pruned" | "finished"} Outcome
 *
 * @typedef {object} Candidate
 * @property {number} parent  index of its parent; -1 for the prompt
 * @property {string} text  its token's text
 * @property {number} depth  its step, 1-based
 * @property {number} logProbability  nats
 * @property {number} total  sum of log-probabilities over all tokens in the search up to this one
 * @property {number} score
 * @property {Outcome} outcome
 * @property {number} row  its position among its step's candidates
 */

export class Search {
  /** @type {Candidate[]} */ candidates = [];
  /** @type {number[]} */ rows = []; // number of candidates in each step
  best = -1; // last candidate of the best text so far
  done = false;

  /**
   * Parses a line built by `candidate_line` or `step_line`; returns the candidate, or null for the end of a step.
   * @param {string} line
   */
  read(line) {
    const content = JSON.parse(line);
    if (!Array.isArray(content)) {
      ({ best: this.best, done: this.done } = content);
      return null;
    }
    const [parent, text, depth, logProbability, total, score, outcome] = content;
    const row = this.rows[depth] ?? 0;
    this.rows[depth] = row + 1;
    const candidate = { parent, text, depth, logProbability, total, score, outcome, row };
    this.candidates.push(candidate);
    return candidate;
  }

  /** The number of the newest step. */
  get depth() {
    return Math.max(0, this.rows.length - 1);
  }

  /** The number of candidates in the largest step. */
  get height() {
    return Math.max(1, ...this.rows.filter(Boolean));
  }

  /** Returns the numbers of the candidates on the path from the first step to this one. @param {number} number */
  path(number) {
    const found = [];
    for (let i = number; this.candidates[i]; i = this.candidates[i].parent) found.unshift(i);
    return found;
  }

  /** Returns the active and finished candidates with their ancestors. */
  alive() {
    const alive = new Set();
    this.candidates.forEach(({ outcome, depth }, i) => {
      const goesOn = outcome === "kept" && depth === this.depth && !this.done;
      if (goesOn || outcome === "finished") for (const each of this.path(i)) alive.add(each);
    });
    return alive;
  }

  /** Returns the index of the candidate that an arrow key moves to, or -1 for none. @param {string} key @param {number} from */
  next(key, from) {
    const { depth, row, parent } = this.candidates[from];
    const beside = (/** @type {number} */ step) => this.candidates.findIndex((each) => each.depth === depth && each.row === row + step);
    if (key === "ArrowLeft") return parent;
    if (key === "ArrowRight") return this.candidates.findIndex((each) => each.parent === from);
    if (key === "ArrowDown") return beside(1);
    if (key === "ArrowUp") return beside(-1);
    if (key === "Home") return 0;
    return key === "End" ? this.best : -1;
  }
}
