// Sets the page's address to the one the server sends, and asks the server to restore an address on Back and Forward.

const PLACE = ["model", "tab", "lesson", "challenge", "step", "position", "layer", "head"]; // a change adds a history entry
const PAGES = ["lesson", "challenge", "step"];
const SPACES = "https://huggingface.co"; // embeds the app in an iframe and repeats the query in its own address

/** @typedef {{ query: string, at: number }} Address  at: time in ms of the newest Back, Forward or tab click that the server knows */

/** Adds the parameters that belong to the browser: language, followed page, gradio's own. @param {string} query @param {string} search */
function withOwn(query, search) {
  const parameters = new URLSearchParams(query);
  for (const [name, value] of new URLSearchParams(search)) {
    if (name === "lang" || name === "follow" || name.startsWith("__")) parameters.set(name, value);
  }
  return asSearch(parameters);
}

/** @param {URLSearchParams} parameters */
const asSearch = (parameters) => (`${parameters}` ? `?${parameters}` : "");

/** @param {string} search @param {string} name */
const parameter = (search, name) => new URLSearchParams(search).get(name);

/**
 * Returns whether two addresses show different places. Addresses of the same place share one history entry. A tab that
 * opens one of its pages by itself, such as the first lesson, stays the same place.
 * @param {string} before @param {string} after
 */
function areDifferent(before, after) {
  const isSame = (/** @type {string} */ name) => parameter(before, name) === parameter(after, name);
  const opens = (/** @type {string} */ name) => PAGES.includes(name) && parameter(before, name) === null && isSame("tab");
  return !parameter(before, "film") !== !parameter(after, "film") || PLACE.some((name) => !isSame(name) && !opens(name));
}

/** Sends the new address to the surrounding Spaces page. */
function tellParent() {
  if (window.parent === window || !location.hostname.endsWith(".hf.space")) return;
  const own = new URLSearchParams(location.search);
  for (const name of [...own.keys()]) if (name.startsWith("__")) own.delete(name);
  window.parent.postMessage({ queryString: asSearch(own), hash: location.hash }, SPACES);
}

/**
 * @param {import("./widgets/store.js").Store} store
 * @param {(address: Address) => void} send asks the server to restore an address
 * @param {() => void} remember called whenever the address has changed
 */
export function followHistory(store, send, remember) {
  let asked = 0; // time of the last Back or Forward; addresses sent for earlier events are outdated
  // Whether the next address answers the one that opened the page or that Back or Forward restored. It adds no entry, even
  // if not everything could be restored, unless a tab has been clicked since.
  let isAnswer = true;
  let isLeaving = false; // whether the next Back is ours, to a place that the server shows already

  /** @param {string} search @param {"pushState" | "replaceState"} how */
  function write(search, how) {
    const before = how === "pushState" ? location.search : history.state?.before;
    history[how]({ before }, "", `${location.pathname}${search}${location.hash}`); // the full path, because the page has a base address
    remember();
    tellParent();
  }

  store.on("address", ({ shown: address }) => {
    if (!address || address.at < asked) return;
    const search = withOwn(address.query, location.search);
    const isOtherStop = parameter(search, "stop") !== parameter(location.search, "stop"); // the class bar has its own back button for stops
    const isNew = (!isAnswer || address.at > asked) && areDifferent(location.search, search) && !isOtherStop;
    isAnswer = false;
    if (search === location.search) return;
    const leavesFilm = parameter(location.search, "film") && !parameter(search, "film"); // its entry goes, so that Back doesn't open it again
    if (leavesFilm && history.state?.before === search) {
      isLeaving = true;
      return history.back();
    }
    write(search, isNew && !leavesFilm ? "pushState" : "replaceState");
  });
  store.on("voice", ({ spoken: { language } }) => {
    const parameters = new URLSearchParams(location.search);
    if (!store.view("address").shown || !parameters.has("lang") || parameters.get("lang") === language) return;
    parameters.set("lang", language);
    write(asSearch(parameters), "replaceState");
  });
  addEventListener("popstate", () => {
    if (isLeaving) {
      isLeaving = false;
      remember();
      return tellParent();
    }
    asked = performance.timeOrigin + performance.now();
    isAnswer = true;
    remember();
    tellParent();
    send({ query: location.search.slice(1), at: asked });
  });
}
