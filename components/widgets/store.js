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
function changedField(before, change) {
  if (change === null || typeof change !== "object" || !("$lines" in change)) return change;
  return [...(before ?? []).slice(0, change.$lines), ...change.add];
}

export class Store {
  /** @type {Map<string, Data>} */ #views = new Map();
  /** @type {Map<string, ((value: any, frame: Frame & Data) => void)[]>} */ #listeners = new Map();
  /** @type {Frame[]} */ #waiting = []; // frames that arrived before their base frame
  #number = 0;
  /** @type {string | undefined} */ #epoch = undefined;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer = undefined;
  #retryDelay = RETRY_MS;

  /** Asks the server for a complete frame. @type {() => void} */
  onGap = () => {};

  /** Called with the names of the views whose data changed. @type {(names: Set<string>) => void} */
  onChange = () => {};

  /** The number of the newest applied frame. */
  get number() {
    return this.#number;
  }

  /** Returns a view's newest data, or {} if none has arrived yet. @param {string} name @returns {Data} */
  view(name) {
    return this.#views.get(name) ?? {};
  }

  /**
   * Calls `listener` with the `name` field of each frame that contains it, and with the frame; returns a function that
   * removes the listener. @param {string} name @param {(value: any, frame: Frame & Data) => void} listener
   */
  on(name, listener) {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    return () => void this.#listeners.set(name, (this.#listeners.get(name) ?? []).filter((each) => each !== listener));
  }

  /** Applies a frame once its base frame has been applied; outdated frames are dropped. @param {Frame} frame */
  apply(frame) {
    if (frame.base === null) {
      if (frame.epoch !== undefined && frame.epoch === this.#epoch && frame.n < this.#number) return;
      this.#take(frame);
    } else if (frame.base === this.#number && frame.epoch === this.#epoch) this.#take(frame);
    else if (frame.n > this.#number || frame.epoch !== this.#epoch) this.#wait(frame);
  }

  /**
   * Passes these fields in a frame to their listeners without changing the displayed data.
   * @param {Frame & Data} frame @param {string[]} names
   */
  hear(frame, names) {
    for (const name of names) if (name in frame) this.#tell(name, frame);
  }

  /** Calls a field's listeners; an error in one must not keep the others from being called. @param {string} name @param {Frame & Data} frame */
  #tell(name, frame) {
    for (const tell of this.#listeners.get(name) ?? []) {
      try {
        tell(frame[name], frame);
      } catch (error) {
        console.error(error);
      }
    }
  }

  /** @param {Frame} frame */
  #take(frame) {
    const changed = new Set(Object.keys(frame.views ?? {}));
    if (frame.base === null) {
      for (const name of this.#views.keys()) changed.add(name);
      this.#views.clear();
    }
    for (const [name, fields] of Object.entries(frame.views ?? {})) {
      const data = { ...this.view(name) };
      for (const [field, change] of Object.entries(fields)) data[field] = changedField(data[field], change);
      this.#views.set(name, data);
    }
    [this.#number, this.#epoch] = [frame.n, frame.epoch];
    this.#retryDelay = RETRY_MS;
    if (changed.size) this.onChange(changed);
    for (const name of Object.keys(frame)) this.#tell(name, frame);
    this.#catchUp();
  }

  #catchUp() {
    this.#waiting = this.#waiting.filter((each) => each.epoch === this.#epoch && each.n > this.#number);
    const next = this.#waiting.find((each) => each.base === this.#number);
    if (next) this.#take(next);
    else if (!this.#waiting.length) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  /** @param {Frame} frame */
  #wait(frame) {
    this.#waiting.push(frame);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#retryDelay *= 2; // exponential backoff until a frame arrives
      this.onGap();
    }, this.#retryDelay);
  }
}
