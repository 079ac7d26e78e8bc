// Sends requests for clicks one at a time. If several clicks arrive before the response, only the newest is sent next.

const LOST = 3000; // ms after which a request counts as lost

/** @param {(payload: object) => void} send */
export function createRequests(send) {
  /** @type {Record<string, number>} */ let wanted = {}; // requested values that are not shown yet
  let sent = ""; // the request that awaits a response
  /** @type {object | null} */ let last = null;

  function ask() {
    const asked = (sent = JSON.stringify(wanted));
    send({ ...wanted });
    setTimeout(() => {
      if (sent === asked) sent = "";
    }, LOST);
  }

  return {
    /** Returns the selection that has been requested but is not shown yet. */
    wanted: () => wanted,

    /** @param {Record<string, number>} change */
    want(change) {
      Object.assign(wanted, change);
      if (!sent) ask();
    },

    /**
     * Handles new data as a response, and sends the next request if the selection has changed since then.
     * @param {object} data
     */
    answered(data) {
      if (data === last) return;
      last = data;
      const more = sent && sent !== JSON.stringify(wanted);
      sent = "";
      if (more) ask();
      else wanted = {};
    },
  };
}
