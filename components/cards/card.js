// A card: builds its parts once from the layout that the server describes, and sets what changes. What a person does is
// kept until the server has handled it, and until then the server's older value of a control is not shown.

import { make, makeButton, setText } from "../widgets/dom.js";
import { defineWidget, mountIn } from "../widgets/runtime.js";

/**
 * @typedef {Record<string, any>} Properties  of a control, as the server sends them: value, options, label, low, high, ...
 * @typedef {object} Node
 * @property {string} kind  one of `BUILDERS`
 * @property {string} [name]  id of the element and of its actions
 * @property {Record<string, string>} [words]  keys of the catalogue, by property
 * @property {Record<string, [string, boolean]>} [actions]  by event, its queue and whether only the newest counts
 * @property {Node[]} [children]
 *
 * @typedef {object} Built
 * @property {HTMLElement} element
 * @property {(properties: Properties) => void} [set]  shows its words and what is live
 *
 * @typedef {object} Card  what a builder knows of its card
 * @property {(value: any, event?: string) => void} act  tells the server
 * @property {(node: Node) => HTMLElement} build
 * @property {(element: Element) => void} forget  the parts in it leave the page
 *
 * @typedef {(node: Node & Properties, card: Card) => Built} Builder
 * @typedef {{ name: string, events: Record<string, string> }} Call  events: of the gr.HTML, by queue
 */

/** @type {Record<string, string>} */
const TAGS = { question: "h2" };
let count = 0;

/** A label around or beside a control, and the sentence below it. @param {HTMLElement} element @param {HTMLElement} control */
function labelled(element, control) {
  const label = make("label", "gb-label");
  const info = make("p", "gb-info");
  control.id = `gb-field-${(count += 1)}`;
  label.htmlFor = control.id;
  info.id = `${control.id}-info`;
  element.append(label, info);
  return (/** @type {Properties} */ { label: text = "", info: more = "" }) => {
    setText(label, text);
    label.hidden = !text;
    setText(info, more);
    info.hidden = !more;
    if (more) control.setAttribute("aria-describedby", info.id);
  };
}

/** Whether two values of a control are the same. @param {any} a @param {any} b */
const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** @param {HTMLSelectElement | HTMLDataListElement} list @param {[string, any][]} options */
function setOptions(list, options) {
  const labels = [...list.children].map((each) => each.textContent);
  if (same(labels, options.map(([label]) => label))) return;
  list.replaceChildren(...options.map(([label]) => make("option", "", label)));
}

/** @type {Record<string, Builder>} */
const BUILDERS = {
  box: ({ classes = "", grow, min_width, children = [] }, { build }) => {
    const element = make("div", classes);
    if (grow) element.style.flex = `${grow} 1 ${min_width}px`;
    element.append(...children.map(build));
    return { element };
  },

  fold: ({ open, children = [] }, { build }) => {
    const element = make("details", "gb-fold-card");
    const title = make("summary");
    element.open = open;
    element.append(title, ...children.map(build));
    return { element, set: ({ title: text }) => setText(title, text ?? "") };
  },

  words: ({ as }) => {
    const element = make("div", `gb-sentence gb-${as}`);
    const line = make(/** @type {"p"} */ (TAGS[as] ?? "p"));
    element.append(line);
    return { element, set: ({ text }) => setText(line, text ?? "") };
  },

  case: (_, { build, forget }) => {
    const element = make("div", "gb-case");
    let key = "";
    return {
      element,
      set: ({ opened }) => {
        if (!opened || opened.key === key) return;
        key = opened.key;
        forget(element);
        element.replaceChildren(...(opened.node ? [build(opened.node)] : []));
      },
    };
  },

  widget: ({ widget, view, options, template, classes, name = "" }, { act }) => {
    const element = make("div", classes);
    element.innerHTML = template; // ours, from the module in `components/widgets`
    requestAnimationFrame(() => {
      if (element.parentElement) mountIn(element, element.parentElement, { widget, view, id: name, options }, act);
    });
    return { element };
  },

  button: ({ primary, classes }, { act }) => {
    const element = makeButton(`gb-button ${primary ? "primary" : ""} ${classes}`);
    element.addEventListener("click", () => act(null));
    return {
      element,
      set: ({ label, disabled = false }) => {
        setText(element, label ?? "");
        element.disabled = disabled;
      },
    };
  },

  slider: (node, { act }) => {
    const element = make("div", "gb-field gb-slider");
    const range = make("input", "", "", { type: "range" });
    const box = make("input", "", "", { type: "number" });
    const say = labelled(element, range);
    element.firstElementChild?.after(box, range);
    const take = (/** @type {number} */ value) => {
      const clamped = Math.min(Math.max(value, Number(range.min)), Number(range.max));
      [range.value, box.value] = [String(clamped), String(clamped)];
      act(clamped);
    };
    range.addEventListener("input", () => take(range.valueAsNumber));
    box.addEventListener("input", () => {
      if (!box.validity.valid || !Number.isFinite(box.valueAsNumber)) return; // being typed
      range.value = box.value;
      act(box.valueAsNumber);
    });
    box.addEventListener("change", () => take(Number.isFinite(box.valueAsNumber) ? box.valueAsNumber : range.valueAsNumber));
    return {
      element,
      set: (properties) => {
        const { low, high, step, value, disabled = false, label = "" } = { ...node, ...properties };
        say(properties);
        box.ariaLabel = label;
        for (const input of [range, box]) {
          [input.min, input.max, input.step, input.disabled] = [String(low), String(high), String(step), disabled];
          if (value !== undefined && input.valueAsNumber !== value) input.value = String(value);
        }
      },
    };
  },

  choice: (node, { act }) => {
    const element = make("fieldset", "gb-field gb-choice");
    const legend = make("legend", node.labelled ? "gb-label" : "gb-unseen");
    const list = make("div", "gb-segments");
    const info = make("p", "gb-info");
    const group = `gb-choice-${(count += 1)}`;
    element.append(legend, list, info);
    /** @type {[string, any][]} */ let options = [];
    return {
      element,
      set: (properties) => {
        const { options: now = [], value, disabled = false, label = "", info: more = "" } = { ...node, ...properties };
        setText(legend, label);
        setText(info, more);
        info.hidden = !more;
        element.disabled = disabled;
        if (!same(options, now)) {
          const focused = [...list.children].findIndex((each) => each.contains(document.activeElement));
          list.replaceChildren(
            ...now.map((/** @type {[string, any]} */ [text, sent]) => {
              const line = make("label");
              const radio = make("input", "", "", { type: "radio", name: group, value: String(sent) });
              radio.addEventListener("change", () => {
                mark(sent);
                act(sent);
              });
              line.append(radio, make("span", "", text));
              return line;
            }),
          );
          options = now;
          list.children[focused]?.querySelector("input")?.focus();
        }
        mark(value);
      },
    };
    /** @param {any} value */
    function mark(value) {
      for (const [index, [, sent]] of options.entries()) {
        const radio = /** @type {HTMLInputElement} */ (list.children[index].firstElementChild);
        radio.checked = same(sent, value);
        list.children[index].classList.toggle("selected", radio.checked);
      }
    }
  },

  select: (node, { act }) => {
    const element = make("div", `gb-field gb-select ${node.beside ? "gb-beside" : ""}`);
    const list = make("select");
    const say = labelled(element, list);
    element.firstElementChild?.after(list);
    /** @type {[string, any][]} */ let options = [];
    list.addEventListener("change", () => act(options[list.selectedIndex]?.[1]));
    return {
      element,
      set: (properties) => {
        const { options: now = [], value, disabled = false } = { ...node, ...properties };
        say(properties);
        setOptions(list, now);
        options = now;
        list.selectedIndex = options.findIndex(([, sent]) => same(sent, value));
        list.disabled = disabled;
      },
    };
  },

  token_box: (node, { act }) => {
    const element = make("div", "gb-field gb-token-box");
    const chosen = make("span", "gb-entries");
    const box = make("input", "", "", { type: "text", autocomplete: "off" });
    const list = make("datalist");
    const say = labelled(element, box);
    list.id = `gb-list-${(count += 1)}`;
    box.setAttribute("list", list.id);
    element.firstElementChild?.after(chosen, box, list);
    /** @type {[string, any][]} */ let options = [];
    /** @type {any} */ let value = null;
    const several = () => (Array.isArray(value) ? value : []);
    const labelOf = (/** @type {any} */ sent) => options.find(([, each]) => same(each, sent))?.[0] ?? String(sent ?? "");
    const show = () => {
      const held = node.most > 1 ? several() : [];
      chosen.replaceChildren(
        ...held.map((each) => {
          const chip = makeButton("gb-entry", `${labelOf(each)} ×`);
          chip.addEventListener("click", () => put(held.filter((other) => other !== each)));
          return chip;
        }),
      );
      if (node.most === 1 && document.activeElement !== box) box.value = value === null ? "" : labelOf(value);
    };
    const put = (/** @type {any} */ next) => {
      value = next;
      show();
      act(value);
    };
    box.addEventListener("change", () => {
      const text = box.value;
      if (!text.trim()) return show();
      const found = options.find(([label]) => label === text);
      const sent = found ? found[1] : text;
      if (node.most === 1) return put(sent);
      box.value = "";
      if (!several().some((each) => same(each, sent)) && several().length < node.most) put([...several(), sent]);
    });
    return {
      element,
      set: (properties) => {
        say(properties);
        options = { ...node, ...properties }.options ?? [];
        if ("value" in properties) value = properties.value;
        setOptions(list, options);
        show();
      },
    };
  },

  text_box: (node, { act }) => {
    const element = make("div", "gb-field gb-text-box");
    const box = make("textarea", "", "", { rows: String(node.lines), spellcheck: "false" });
    const say = labelled(element, box);
    element.firstElementChild?.after(box);
    if (node.max_length) box.maxLength = node.max_length;
    box.readOnly = node.read_only;
    if (node.read_only) {
      const copy = makeButton("gb-copy-text", "⧉");
      copy.addEventListener("click", () => navigator.clipboard?.writeText(box.value));
      element.append(copy);
    }
    const fit = () => {
      box.style.height = "auto";
      if (box.scrollHeight) box.style.height = `${box.scrollHeight + 2}px`;
    };
    box.addEventListener("input", () => {
      fit();
      act(box.value);
    });
    return {
      element,
      set: (properties) => {
        const { value, disabled = false, placeholder = "", label = "" } = properties;
        say(properties);
        box.placeholder = placeholder;
        box.disabled = disabled;
        box.ariaLabel = label;
        if (value !== undefined && box.value !== value) box.value = value;
        fit();
      },
    };
  },

  number_box: (_, { act }) => {
    const element = make("div", "gb-field gb-number-box");
    const box = make("input", "", "", { type: "number", step: "1" });
    const say = labelled(element, box);
    element.firstElementChild?.after(box);
    box.addEventListener("input", () => act(Number.isSafeInteger(box.valueAsNumber) ? box.valueAsNumber : null));
    return {
      element,
      set: (properties) => {
        say(properties);
        if (properties.value !== undefined && document.activeElement !== box) box.value = String(properties.value);
      },
    };
  },

  check_box: (_, { act }) => {
    const element = make("div", "gb-field gb-check");
    const box = make("input", "", "", { type: "checkbox" });
    const say = labelled(element, box);
    element.prepend(box);
    box.addEventListener("change", () => act(box.checked));
    return {
      element,
      set: (properties) => {
        say(properties);
        box.checked = Boolean(properties.value);
        box.disabled = Boolean(properties.disabled);
      },
    };
  },
};

/** Actions that the server has not handled yet, in order. @typedef {[number: number, action: string, value: any]} Action */

/**
 * Called by the `js_on_load` of a card's gr.HTML.
 * @param {HTMLElement} element @param {(type: string, payload: object) => void} trigger @param {Record<string, any>} props @param {Call} call
 */
export function card(element, trigger, props, call) {
  /** @type {Record<string, Action[]>} */ const pending = {};
  /** @type {Map<string, [queue: string, number: number]>} */ const newest = new Map(); // by part
  /** @type {Map<Element, { node: Node, built: Built, shown: Properties }>} */ const parts = new Map();
  let number = 0;

  /** @param {Node} node @param {any} value @param {string} event */
  function act(node, value, event) {
    const [queue, latest] = node.actions?.[event] ?? node.actions?.act ?? [];
    if (!queue) return;
    const name = node.actions?.[event] && event !== "act" ? `${node.name}:${event}` : String(node.name);
    number += 1;
    newest.set(String(node.name), [queue, number]);
    const before = (pending[queue] ?? []).filter(([, other]) => !latest || other !== name);
    pending[queue] = [...before, [number, name, value]];
    props.value = { ...props.value, [call.events[queue]]: { pending: pending[queue] } }; // an input of the event
    trigger(call.events[queue], {});
  }

  /** @param {Node} node @returns {HTMLElement} */
  function build(node) {
    const made = BUILDERS[node.kind](/** @type {any} */ (node), {
      act: (value, event = "act") => act(node, value, event),
      build,
      forget: (gone) => {
        for (const each of [...parts.keys()]) if (each !== gone && gone.contains(each)) parts.delete(each);
      },
    });
    if (node.name) made.element.id = node.name;
    parts.set(made.element, { node, built: made, shown: {} });
    return made.element;
  }

  /** @param {Record<string, any>} data  layout, words, seen, and "live.<name>" of each part that has something live */
  function draw(data) {
    const { layout, words = {}, seen = {} } = data;
    if (!layout) return;
    for (const queue of Object.keys(pending)) pending[queue] = pending[queue].filter(([each]) => each > (seen[queue] ?? 0));
    const root = /** @type {HTMLElement} */ (element.firstElementChild);
    if (!root.firstElementChild) root.append(build(layout));
    for (const [part, entry] of parts) set(part, entry, words, data[`live.${entry.node.name}`] ?? {}, seen);
  }

  /** @param {Element} part @param {{ node: Node, built: Built, shown: Properties }} entry @param {Record<string, string>} words @param {Properties} live @param {Record<string, number>} seen */
  function set(part, entry, words, live, seen) {
    const { node, built } = entry;
    const properties = { ...live };
    for (const [name, key] of Object.entries(node.words ?? {})) properties[name] ??= words[key];
    const [queue, last] = newest.get(String(node.name)) ?? ["", 0];
    if (last > (seen[queue] ?? 0)) delete properties.value; // the person's is newer
    if (part instanceof HTMLElement) part.hidden = Boolean(live.hidden);
    if (same(entry.shown, properties)) return;
    built.set?.(properties);
    entry.shown = properties;
  }

  window.glassbox.mount(element, trigger, props, { widget: "card", view: `card.${call.name}`, id: call.name, options: { draw } });
}

defineWidget("card", (_, { options }) => ({ always: true, draw: options.draw }));
