// Frames are applied in order, each exactly once, and missing ones are requested.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Store } from "../../components/widgets/store.js";

/** Creates a store and records its changes and requests. */
function recorded() {
  const store = new Store();
  const told = { changes: [], gaps: 0 };
  store.onChange = (names) => told.changes.push([...names].sort());
  store.onGap = () => (told.gaps += 1);
  return [store, told];
}

const whole = (n, views, more = {}) => ({ n, base: null, views, ...more });
const next = (n, views, more = {}) => ({ n, base: n - 1, views, ...more });

test("a frame changes only the fields that it names", () => {
  const [store, told] = recorded();
  store.apply(whole(1, { bars: { text: "a", note: "b" }, strip: { lines: [] } }));
  store.apply(next(2, { bars: { text: "c" } }));
  assert.deepEqual(store.view("bars"), { text: "c", note: "b" });
  assert.deepEqual(told.changes, [["bars", "strip"], ["bars"]]);
});

test("a list keeps its first entries and grows at its end", () => {
  const [store] = recorded();
  store.apply(whole(1, { strip: { lines: ["a", "b", "c"] } }));
  store.apply(next(2, { strip: { lines: { $lines: 2, add: ["d", "e"] } } }));
  assert.deepEqual(store.view("strip").lines, ["a", "b", "d", "e"]);
  store.apply(next(3, { strip: { lines: { $lines: 4, add: [] } } }));
  assert.deepEqual(store.view("strip").lines, ["a", "b", "d", "e"]);
});

test("data that a widget holds is never changed under it", () => {
  const [store] = recorded();
  store.apply(whole(1, { strip: { lines: ["a"] } }));
  const held = store.view("strip");
  store.apply(next(2, { strip: { lines: { $lines: 1, add: ["b"] } } }));
  assert.deepEqual(held, { lines: ["a"] });
});

test("a whole frame removes what it does not name", () => {
  const [store, told] = recorded();
  store.apply(whole(1, { bars: { text: "a" }, strip: {} }));
  store.apply(whole(2, { strip: { lines: ["x"] } }));
  assert.deepEqual(store.view("bars"), {});
  assert.deepEqual(told.changes.at(-1), ["bars", "strip"]);
});

test("frames that come in another order are applied in theirs", () => {
  const [store, told] = recorded();
  store.apply(whole(1, { strip: { lines: ["a"] } }));
  store.apply(next(3, { strip: { lines: { $lines: 2, add: ["c"] } } }));
  assert.equal(store.number, 1);
  store.apply(next(2, { strip: { lines: { $lines: 1, add: ["b"] } } }));
  assert.equal(store.number, 3);
  assert.deepEqual(store.view("strip").lines, ["a", "b", "c"]);
  assert.equal(told.gaps, 0);
});

test("an old frame is ignored", () => {
  const [store] = recorded();
  store.apply(whole(5, { bars: { text: "new" } }));
  store.apply(next(4, { bars: { text: "old" } }));
  store.apply(next(5, { bars: { text: "again" } }));
  assert.deepEqual(store.view("bars"), { text: "new" });
});

test("a whole frame of the same numbering that is older is ignored", () => {
  const [store] = recorded();
  store.apply(whole(5, { bars: { text: "new" } }, { epoch: "a" }));
  store.apply(whole(4, { bars: { text: "old" } }, { epoch: "a" }));
  assert.deepEqual(store.view("bars"), { text: "new" });
});

test("after a restart of the server the numbers begin again", () => {
  const [store] = recorded();
  store.apply(whole(5, { bars: { text: "before" } }, { epoch: "a" }));
  store.apply(whole(1, { bars: { text: "after" } }, { epoch: "b" }));
  store.apply(next(2, { bars: { note: "more" } }, { epoch: "b" }));
  assert.deepEqual(store.view("bars"), { text: "after", note: "more" });
});

test("a missing frame is waited for, then a whole one is asked for, ever less often", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const [store, told] = recorded();
  store.apply(whole(1, {}));
  store.apply(next(3, {}));
  context.mock.timers.tick(299);
  assert.equal(told.gaps, 0);
  context.mock.timers.tick(1);
  assert.equal(told.gaps, 1);
  store.apply(next(4, {}));
  context.mock.timers.tick(599);
  assert.equal(told.gaps, 1);
  context.mock.timers.tick(1);
  assert.equal(told.gaps, 2);
  store.apply(whole(4, { bars: { text: "all" } }));
  store.apply(next(5, { bars: { note: "on" } }));
  assert.deepEqual(store.view("bars"), { text: "all", note: "on" });
  context.mock.timers.tick(10_000);
  assert.equal(told.gaps, 2);
});

test("what came on top of the missing frame is applied after the whole one", () => {
  const [store] = recorded();
  store.apply(whole(1, {}));
  store.apply(next(4, { bars: { text: "fourth" } }));
  store.apply(whole(3, { bars: { text: "third", note: "kept" } }));
  assert.equal(store.number, 4);
  assert.deepEqual(store.view("bars"), { text: "fourth", note: "kept" });
});

test("the changed fields of a view reach those who listen for them, after all views", () => {
  const [store] = recorded();
  const heard = [];
  store.on("open", ({ tab }) => heard.push(tab, store.view("bars").text));
  store.apply(whole(1, { open: { tab: "why" }, bars: { text: "a" } }));
  store.apply(next(2, {}));
  assert.deepEqual(heard, ["why", "a"]);
});
