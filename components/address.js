// The query of the page's address: written as the server names it; Back and Forward are sent to the server.

const PLACE = ["model", "tab", "lesson", "challenge", "position", "layer", "head"]; // another one of these is another entry of the history
const SPACES = "https://huggingface.co"; // shows an app in a frame, and its query in its own address

/**
 * @typedef {{ query: string, at: number }} Address  at: time of the newest Back, Forward or click on a tab that the server knows of, in ms
 */

/** The query with those parameters of the address that are the browser's own: the language, the page that it follows, and gradio's. @param {string} query @param {string} search */
function withOwn(query, search) {
  const parameters = new URLSearchParams(query);
  for (const [name, value] of new URLSearchParams(search)) {
    if (name === "lang" || name === "follow" || name.startsWith("__")) parameters.set(name, value);
  }
  return asSearch(parameters);
}

/** @param {URLSearchParams} parameters */
const asSearch = (parameters) => (`${parameters}` ? `?${parameters}` : "");

/** Names what is shown at an address: addresses of one place replace each other. @param {string} search */
function placeOf(search) {
  const parameters = new URLSearchParams(search);
  return JSON.stringify([...PLACE.map((name) => parameters.get(name)), parameters.has("film")]);
}

/** @param {string} search */
const stopOf = (search) => new URLSearchParams(search).get("stop");

/** Tells the page of Spaces around this one. */
function tellParent() {
  if (window.parent === window || !location.hostname.endsWith(".hf.space")) return;
  const own = new URLSearchParams(location.search);
  for (const name of [...own.keys()]) if (name.startsWith("__")) own.delete(name);
  window.parent.postMessage({ queryString: asSearch(own), hash: location.hash }, SPACES);
}

/**
 * Keeps the address and the history.
 * @param {import("./widgets/store.js").Store} store
 * @param {(address: Address) => void} send asks the server to show an address
 * @param {() => void} remember called whenever the address has changed
 */
export function followHistory(store, send, remember) {
  let asked = 0; // time of the last Back or Forward: what the server names before it knows of it is outdated
  let isFirst = true; // the address that the page was opened with is no other place, unless a tab was clicked before

  /** @param {string} search @param {"pushState" | "replaceState"} how */
  function write(search, how) {
    history[how](null, "", `${location.pathname}${search}${location.hash}`); // whole: the page has a base address
    remember();
    tellParent();
  }

  store.on("address", (/** @type {Address | null} */ address) => {
    if (!address || address.at < asked) return;
    const search = withOwn(address.query, location.search);
    const isOtherStop = stopOf(search) !== stopOf(location.search); // has a way back of its own
    const isNew = (!isFirst || address.at > 0) && placeOf(search) !== placeOf(location.search) && !isOtherStop;
    isFirst = false;
    if (search !== location.search) write(search, isNew ? "pushState" : "replaceState");
  });
  store.on("language", (chosen) => {
    const parameters = new URLSearchParams(location.search);
    if (!parameters.has("lang") || parameters.get("lang") === chosen) return;
    parameters.set("lang", chosen);
    write(asSearch(parameters), "replaceState");
  });
  addEventListener("popstate", () => {
    asked = performance.timeOrigin + performance.now();
    remember();
    tellParent();
    send({ query: location.search.slice(1), at: asked });
  });
}
