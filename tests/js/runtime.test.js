// Widgets are drawn together, from the newest data, and only while visible. Runs on a fake page.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

/** The parts of an element that the runtime uses. */
class FakeElement {
  isConnected = true;
  shown = true;
  clientWidth = 300;
  dataset = {};
  style = {};
  firstElementChild = {};
  parentElement = null;
  closest() {
    return null;
  }
  getClientRects() {
    return this.shown ? [{}] : [];
  }
}

const page = { frames: [], sizes: null, class: null, dark: false, lang: "en", now: 0, listeners: {} };
Object.assign(globalThis, {
  window: globalThis,
  performance: { now: () => page.now },
  addEventListener: (type, listener) => (page.listeners[type] = listener),
  Element: FakeElement,
  requestAnimationFrame: (draw) => page.frames.push(draw),
  matchMedia: () => ({ addEventListener() {} }),
  document: {
    body: {},
    documentElement: { style: {}, get lang() { return page.lang; }, set lang(language) { page.lang = language; } },
    dispatchEvent() {},
    querySelector: () => (page.dark ? {} : null),
  },
  MutationObserver: class {
    constructor(look) {
      page.class = look;
    }
    observe() {}
  },
  ResizeObserver: class {
    constructor(look) {
      page.sizes ??= look; // the first one watches widgets
    }
    observe() {}
  },
  glassbox: { waiting: [], options: { probe: { kind: "shared" } } },
});

const { clickOn, defineWidget, mount, properties, receive, start, store } = await import("../../components/widgets/runtime.js");
const { speak, t } = await import("../../components/widgets/i18n.js");
await import("./catalogue.js");
start(() => {});

const drawn = [];
const destroyed = [];
defineWidget("probe", (root, host) => {
  host.gone.addEventListener("abort", () => destroyed.push(host.id));
  return { draw: (data) => drawn.push([host.id, { ...data }]) };
});
defineWidget("broken", () => ({ draw: () => { throw new Error("broken"); } }));
defineWidget("unmountable", () => { throw new Error("unmountable"); });

let number = 0;
const send = (views) => store.apply({ n: (number += 1), base: number === 1 ? null : number - 1, views });

/** Mounts a widget. */
async function add(widget, id, { view = id } = {}) {
  const element = new FakeElement();
  await mount(element, element, { widget, id, view, options: {} }, () => {});
  return { element };
}

/** Runs the requested animation frame callbacks and returns their number. */
function frame() {
  const asked = page.frames.splice(0);
  for (const draw of asked) draw();
  return asked.length;
}

beforeEach(() => {
  frame();
  drawn.length = 0;
});

test("all that a frame changes is drawn in one animation frame, once, and nothing else", async () => {
  await add("probe", "a", { view: "a" });
  await add("probe", "b", { view: "b" });
  await add("probe", "c", { view: "c" });
  frame();
  drawn.length = 0;
  send({ a: { x: 1 }, b: { x: 1 } });
  send({ a: { x: 2 } });
  assert.deepEqual(drawn, []);
  assert.equal(frame(), 1);
  assert.deepEqual(drawn, [["a", { x: 2 }], ["b", { x: 1 }]]);
});

test("after a frame the page rests as long as drawing it took", async (context) => {
  let cost = 40;
  defineWidget("slow", () => ({ draw: () => (page.now += cost) }));
  await add("slow", "slow", { view: "slow" });
  frame();
  context.mock.timers.enable({ apis: ["setTimeout"] });
  send({ slow: { x: 1 } });
  assert.equal(frame(), 0);
  context.mock.timers.tick(40);
  page.now += 40;
  cost = 0;
  assert.equal(frame(), 1);
});

test("nothing is drawn while a button is pressed, because its click would be lost with it", async (context) => {
  await add("probe", "pressed", { view: "pressed" });
  frame();
  drawn.length = 0;
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const button = Object.assign(new FakeElement(), { closest: () => button });
  send({ pressed: { x: 1 } });
  page.listeners.pointerdown({ target: button });
  frame();
  assert.deepEqual(drawn, []);
  page.listeners.pointerup();
  context.mock.timers.tick(20);
  frame();
  assert.deepEqual(drawn, [["pressed", { x: 1 }]]);
});

test("a widget that is mounted later shows what came before", async () => {
  send({ late: { x: 7 } });
  await add("probe", "late", { view: "late" });
  frame();
  assert.deepEqual(drawn, [["late", { x: 7 }]]);
});

test("in a closed tab nothing is drawn; it is when the tab opens", async () => {
  const { element } = await add("probe", "closed", { view: "closed" });
  element.shown = false;
  send({ closed: { x: 1 } });
  frame();
  assert.deepEqual(drawn, []);
  element.shown = true;
  page.sizes([{ target: element }]);
  frame();
  assert.deepEqual(drawn, [["closed", { x: 1 }]]);
});

test("another theme or language draws all again, another class does not", async () => {
  await add("probe", "theme", { view: "theme" });
  frame();
  drawn.length = 0;
  page.class();
  assert.equal(frame(), 0);
  page.dark = true;
  page.class();
  page.lang = "zh";
  page.class();
  frame();
  assert.equal(drawn.filter(([id]) => id === "theme").length, 1);
});

test("an error in one widget does not keep the others from being drawn, and a sentence takes its place", async (context) => {
  const said = context.mock.method(console, "error", () => {});
  store.apply({ n: (number += 1), base: number - 1, views: { onServer: { failed: "failed there" } } });
  const places = [];
  for (const widget of ["broken", "unmountable", "probe"]) places.push(await add(widget, "beside", { view: "beside" }));
  places.push(await add("probe", "onServer", { view: "onServer" }));
  const sentences = () => places.map(({ element }) => element.dataset.failed);
  frame();
  assert.equal(said.mock.callCount(), 2);
  assert.deepEqual(drawn, [["beside", {}]]);
  assert.deepEqual(sentences(), [t("view.failed"), t("view.failed"), undefined, "failed there"]);
  send({ onServer: { failed: "" } });
  frame();
  assert.equal(sentences()[3], undefined);
});

test("a widget that was taken off the page is destroyed", async () => {
  const { element } = await add("probe", "gone", { view: "gone" });
  element.isConnected = false;
  await add("probe", "another", { view: "another" });
  assert.deepEqual(destroyed, ["gone"]);
  frame();
  assert.ok(!drawn.some(([id]) => id === "gone"));
});

test("nothing is drawn until the texts of the chosen language are there; if they cannot be loaded, the last one stays", async (context) => {
  const answers = { fr: { language: "fr", texts: { stop: "Arrêter" }, terms: [], marks: {} } };
  context.mock.method(console, "error", () => {});
  globalThis.fetch = async (url) => ({ json: () => Promise.resolve(answers[/(\w+)\.json$/.exec(url)[1]] ?? Promise.reject(new Error("404"))) });
  await add("probe", "spoken", { view: "spoken" });
  frame();
  drawn.length = 0;
  for (const language of ["fr", "xx"]) {
    const loaded = speak(language);
    send({ spoken: { language } });
    frame();
    assert.deepEqual(drawn.splice(0), []);
    await loaded;
    await null;
    frame();
    assert.deepEqual([drawn.splice(0), page.lang, t("stop")], [[["spoken", { language }]], "fr", "Arrêter"]);
  }
});

test("calls from before the modules were there are made up for", () => {
  const called = [];
  globalThis.glassbox = { waiting: [() => called.push("first"), () => globalThis.glassbox.opened()], options: {} };
  start(() => called.push("opened"));
  assert.deepEqual(called, ["first", "opened"]);
});

test("frames come in by the hidden component, and a gap goes out by it", async (context) => {
  const events = [];
  const props = { value: "" };
  let changed;
  receive((...event) => events.push(event), (_, callback) => (changed = callback), props);
  props.value = JSON.stringify({ n: 1000, base: null, views: { framed: { x: 1 } } });
  changed();
  assert.deepEqual(store.view("framed"), { x: 1 });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  props.value = JSON.stringify({ n: 1002, base: 1001, views: {} });
  changed();
  context.mock.timers.tick(300);
  assert.deepEqual(events, [["retry", { seen: 1000 }]]);
});

test("what frames change in gradio's components is set once, in the order of the components", () => {
  const events = [];
  const props = { value: "" };
  let changed;
  receive((...event) => events.push(event), (_, callback) => (changed = callback), props);
  for (const updates of [{ 0: { label: "a" }, 2: { value: 1 } }, { 2: { value: 2, visible: true } }]) {
    props.value = JSON.stringify({ n: store.number + 1, base: store.number, views: { properties: updates } });
    changed();
  }
  assert.ok(events.some(([type]) => type === "controls"));
  assert.deepEqual(properties(3), [
    { __type__: "update", label: "a" },
    { __type__: "update" },
    { __type__: "update", value: 2, visible: true },
  ]);
  assert.equal(properties(3), undefined);
});

test("a tab that the server opens is left out if another one has been clicked since", () => {
  const props = { value: "" };
  let changed;
  receive(() => {}, (_, callback) => (changed = callback), props);
  const opened = (at) => {
    const updates = { 0: { selected: "shapes", at } };
    props.value = JSON.stringify({ n: store.number + 1, base: store.number, views: { properties: updates } });
    changed();
    return properties(1);
  };
  assert.deepEqual(opened(0), [{ __type__: "update", selected: "shapes" }]);
  globalThis.glassbox.clicked = 20.5;
  assert.equal(clickOn(), "20.5");
  assert.equal(opened(10), undefined);
  assert.deepEqual(opened(20.5), [{ __type__: "update", selected: "shapes" }]);
});
