// Keeps each view's newest data, assembled from incremental frames. Independent of the page.

/**
 * @typedef {Record<string, any>} Data  one view's data
 * @typedef {object} Frame
 * @property {number} n  this frame's number
 * @property {number | null} base  number of the frame that it builds on; null if it is complete and replaces everything
 * @property {string} [epoch]  identifies the numbering, which starts again when the server restarts
 * @property {Record<string, Data>} [views]  changed fields by view; a list that changed only at its end is sent as
 *   {"$lines": number of entries to keep, "add": [the entries after them]}
 */

const RETRY_MS = 300; // how long a frame first waits for its base frame

/** @param {any} before @param {any} change */
const changedField = (before, change) => (change?.$lines === undefined ? change : [...(before ?? []).slice(0, change.$lines), ...change.add]);

export class Store {
  /** @type {Map<string, Data>} */ #views = new Map();
  /** @type {Map<string, ((fields: Data) => void)[]>} */ #listeners = new Map();
  /** @type {Frame[]} */ #waiting = []; // frames that arrived before their base frame
  /** @type {string | undefined} */ #epoch;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #retryDelay = RETRY_MS;

  number = 0; // of the newest applied frame

  /** Asks the server for a complete frame. @type {() => void} */
  onGap = () => {};

  /** Called with the names of the views whose data changed. @type {(names: Set<string>) => void} */
  onChange = () => {};

  /** Returns a view's newest data, or {} if none has arrived yet. @param {string} name @returns {Data} */
  view(name) {
    return this.#views.get(name) ?? {};
  }

  /**
   * Calls `listener` with the changed fields of a view, after each frame that contains some.
   * @param {string} view @param {(fields: Data) => void} listener
   */
  on(view, listener) {
    this.#listeners.set(view, [...(this.#listeners.get(view) ?? []), listener]);
  }

  /** Applies a frame once its base frame has been applied; outdated frames are dropped. @param {Frame} frame */
  apply(frame) {
    const isOld = frame.base === null ? frame.epoch !== undefined && frame.n < this.number : frame.n <= this.number;
    if (isOld && frame.epoch === this.#epoch) return;
    this.#waiting.push(frame);
    const isNext = (/** @type {Frame} */ { base, epoch }) => base === null || (base === this.number && epoch === this.#epoch);
    for (let next = this.#waiting.find(isNext); next; next = this.#waiting.find(isNext)) {
      this.#take(next);
      this.#waiting = this.#waiting.filter((each) => each !== next && each.epoch === this.#epoch && each.n > this.number);
    }
    if (this.#waiting.length) {
      this.#timer ??= setTimeout(() => this.#retry(), this.#retryDelay);
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #retry() {
    this.#timer = undefined;
    this.#retryDelay *= 2; // exponential backoff until a frame arrives
    this.onGap();
  }

  /**
   * Passes these views of a frame to their listeners without changing the displayed data. An error in one must not keep
   * the others from being called. @param {Frame} frame @param {string[]} names
   */
  hear({ views = {} }, names) {
    for (const name of names.filter((each) => each in views)) {
      for (const tell of this.#listeners.get(name) ?? []) {
        try {
          tell(views[name]);
        } catch (error) {
          console.error(error);
        }
      }
    }
  }

  /** @param {Frame} frame */
  #take(frame) {
    const { views = {} } = frame;
    const changed = new Set(Object.keys(views));
    if (frame.base === null) {
      for (const name of this.#views.keys()) changed.add(name);
      this.#views.clear();
    }
    for (const [name, fields] of Object.entries(views)) {
      const data = { ...this.view(name) };
      for (const [field, change] of Object.entries(fields)) data[field] = changedField(data[field], change);
      this.#views.set(name, data);
    }
    [this.number, this.#epoch] = [frame.n, frame.epoch];
    this.#retryDelay = RETRY_MS;
    if (changed.size) this.onChange(changed);
    this.hear(frame, Object.keys(views));
  }
}
