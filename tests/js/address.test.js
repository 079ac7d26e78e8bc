// The address follows the server, and the server follows Back and Forward. Runs on a fake page.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { followHistory } from "../../components/address.js";
import { Store } from "../../components/widgets/store.js";

const page = { entries: [], states: [], at: 0, sent: [], told: [], remembered: [], listeners: {}, now: 0 };
const parent = { postMessage: (message, to) => page.told.push([message, to]) };
Object.assign(globalThis, {
  window: { parent },
  performance: { timeOrigin: 1000, now: () => page.now },
  addEventListener: (name, listener) => (page.listeners[name] = listener),
  location: {
    pathname: "/app/",
    hash: "",
    hostname: "me.hf.space",
    get search() {
      return page.entries[page.at].replace("/app/", "");
    },
  },
  history: {
    pushState: (state, title, address) => {
      page.entries.splice(page.at + 1, page.entries.length, address);
      page.at += 1;
      page.states[page.at] = state;
    },
    replaceState: (state, title, address) => ([page.entries[page.at], page.states[page.at]] = [address, state]),
    back: () => go(-1),
    get state() {
      return page.states[page.at];
    },
  },
});

let n = 0;
let store = new Store();
const name = (query, at = 0) => store.apply({ n: (n += 1), base: null, views: { address: { shown: { query, at } } } });
const go = (step) => {
  page.at += step;
  page.listeners.popstate();
};

function open(search) {
  Object.assign(page, { entries: [`/app/${search}`], states: [], at: 0, sent: [], told: [], remembered: [], now: 0 });
  store = new Store();
  followHistory(store, (sent) => page.sent.push(sent), () => page.remembered.push(location.search));
}

beforeEach(() => open(""));

test("another tab or selection is an entry of the history, and another text of the same place is none", () => {
  name("");
  name("tab=why&layer=3");
  name("tab=why&layer=3&prompt=a");
  name("tab=why&layer=3&position=4&prompt=a");
  name("tab=why&film=1");
  name("tab=why&film=2");
  assert.deepEqual(page.entries, [
    "/app/",
    "/app/?tab=why&layer=3&prompt=a",
    "/app/?tab=why&layer=3&position=4&prompt=a",
    "/app/?tab=why&film=2",
  ]);
  assert.equal(page.remembered.at(-1), "?tab=why&film=2");
});

test("Back closes the film, and a film that has been left is no entry of the history", () => {
  name("");
  name("film=1");
  name("film=2");
  name("");
  assert.deepEqual([page.at, page.sent], [0, []]); // the server, which may show another tab by now, is asked for nothing
  name("film=1", 9999);
  name("tab=inside", 9999);
  assert.deepEqual(page.entries, ["/app/", "/app/?tab=inside"]);
});

test("what the address was opened with is replaced, and it keeps the language and what is gradio's", () => {
  open("?__theme=dark&lang=zh&prompt=a%20b&junk=1");
  name("tab=why&prompt=a%20b");
  assert.deepEqual(page.entries, ["/app/?tab=why&prompt=a+b&__theme=dark&lang=zh"]);
  store.apply({ n: (n += 1), base: n - 1, views: { voice: { spoken: { language: "en" } } } });
  assert.deepEqual(page.entries, ["/app/?tab=why&prompt=a+b&__theme=dark&lang=en"]);
});

test("an answer from before Back writes nothing", () => {
  name("");
  name("tab=why", 7);
  page.now = 500;
  go(-1);
  assert.deepEqual(page.sent, [{ query: "", at: 1500 }]);
  name("tab=why&position=3", 7);
  assert.deepEqual([page.entries.length, page.at], [2, 0]);
  name("", 1500);
  assert.deepEqual(page.entries, ["/app/", "/app/?tab=why"]);
  go(1);
  name("tab=why&prompt=new", page.sent[1].at);
  assert.deepEqual(page.entries, ["/app/", "/app/?tab=why&prompt=new"]);
});

test("Back is not trapped where a tab opens a page by itself or where not everything can be restored", () => {
  name("");
  name("tab=lessons", 7);
  name("tab=lessons&lesson=model", 7);
  name("tab=lessons&lesson=block", 7);
  name("tab=lessons&lesson=block&position=90", 7);
  page.now = 500;
  go(-1);
  name("tab=lessons&lesson=block&position=3", 1500); // the text has become shorter
  page.now = 600;
  go(-1);
  name("tab=lessons&lesson=block&position=3", 1600); // another page stays open
  const entries = ["/app/", "/app/?tab=lessons&lesson=block&position=3", "/app/?tab=lessons&lesson=block&position=3"];
  assert.deepEqual([page.entries, page.at], [[...entries, "/app/?tab=lessons&lesson=block&position=90"], 1]);
  name("tab=lessons&lesson=block&position=4", 1600);
  assert.deepEqual(page.entries, [...entries.slice(0, 2), "/app/?tab=lessons&lesson=block&position=4"]);
});

test("on a Space the page around it is told, without gradio's own parameters", () => {
  open("?__sign=secret");
  name("tab=why");
  assert.deepEqual(page.told, [[{ queryString: "?tab=why", hash: "" }, "https://huggingface.co"]]);
  location.hostname = "127.0.0.1";
  name("tab=train");
  assert.equal(page.told.length, 1);
});
