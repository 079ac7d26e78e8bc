// What a person asks of the server by clicks that may come faster than answers: one question at a time, the newest next.

const LOST = 3000; // ms, after which an answer no longer keeps the next question back

/** @param {(payload: object) => void} send */
export function createRequests(send) {
  /** @type {Record<string, number>} */ let wanted = {}; // and not there yet
  let sent = ""; // what of it the server was asked for
  /** @type {object | null} */ let last = null;

  function ask() {
    const asked = (sent = JSON.stringify(wanted));
    send({ ...wanted });
    setTimeout(() => {
      if (sent === asked) sent = "";
    }, LOST);
  }

  return {
    /** What a person wants to see and does not see yet. */
    wanted: () => wanted,

    /** @param {Record<string, number>} change */
    want(change) {
      Object.assign(wanted, change);
      if (!sent) ask();
    },

    /** Other data than before are an answer: asks again if the person went on meanwhile. @param {object} data */
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
