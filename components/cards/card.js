// Builds the parts of a card once, from the layout that the server describes, and then updates only what changes. A
// person's actions are kept until the server has handled them; until then, the control's older values from the server
// are ignored.

import { copyFrom, make, makeButton, setText } from "../widgets/dom.js";
import { setWords } from "../widgets/glossary.js";
import { attempt, defineWidget, isFollowing, mount, reveal } from "../widgets/runtime.js";

/** @typedef {Record<string, any>} Node  a part, as returned by `Part.described` */
/** @typedef {Record<string, any>} Properties  a part's fixed properties, words and live properties */
/** @typedef {{element: HTMLElement, set?: (all: Properties) => void}} Built */
/** @typedef {[label: string, value: any][]} Choices */
/** @typedef {[number: number, action: string, value: any]} Action  an action that the server has not handled yet */
/**
 * @typedef {object} Card  a card's interface for its builders
 * @property {(value: any, event?: string) => void} act  sends an action to the server
 * @property {(node: Node) => HTMLElement} build
 */

// The event after which a control shows the server's value again, even if it has not changed.
/** @type {Record<string, string>} */ const SETTLED_BY = { slider: "act", choice: "act", select: "act", pick_list: "act", check_box: "act", text_box: "enter" };

let count = 0;

/**
 * Adds a label before a control and a sentence after it.
 * @param {string} kind @param {HTMLElement[]} controls the label belongs to the first one
 * @param {(properties: Properties) => void} set @returns {Built}
 */
function labelled(kind, controls, set) {
  const [control] = controls;
  control.id = `gb-field-${(count += 1)}`;
  const label = make("label", "gb-label", "", { for: control.id, id: `${control.id}-label` });
  const info = make("p", "gb-info", "", { id: `${control.id}-info` });
  control.setAttribute("aria-describedby", info.id);
  return {
    element: make("div", `gb-field gb-${kind}`, [label, ...controls, info]),
    set: (properties) => {
      const { label: text = "", info: more = "" } = properties;
      setText(label, text);
      label.hidden = !text;
      setWords(info, more);
      info.hidden = !more;
      set(properties);
    },
  };
}

/** Returns whether two values of a control are equal. @param {any} a @param {any} b */
const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** @param {HTMLSelectElement | HTMLDataListElement} list @param {Choices} choices */
function setChoices(list, choices) {
  const labels = choices.map(([label]) => label);
  if (!same(labels, [...list.children].map((each) => each.textContent))) {
    list.replaceChildren(...labels.map((label) => make("option", "", label)));
  }
}

/** @type {Record<string, (node: Node, card: Card) => Built>} */ const BUILDERS = {
  box: ({ classes = "", grow, min_width, children = [] }, { build }) => {
    const element = make("div", classes, children.map(build));
    if (grow) element.style.flex = `${grow} 1 ${min_width}px`;
    return { element };
  },

  fold: ({ children = [], classes = "" }, { build, act }) => {
    const title = make("summary");
    const element = make("details", `gb-fold-card ${classes}`, [title, ...children.map(build)]);
    element.addEventListener("toggle", () => act(element.open));
    return { element, set: ({ title: text }) => setText(title, text) };
  },

  words: ({ look }) => {
    const line = make(look === "page-title" ? "h1" : look === "question" ? "h2" : "p");
    return { element: make("div", `gb-sentence gb-${look}`, [line]), set: ({ text }) => setWords(line, text) };
  },

  case: (_, { build }) => {
    const element = make("div", "gb-case");
    let key = "";
    return {
      element,
      set: ({ opened }) => {
        if (opened.key === key) return;
        key = opened.key;
        element.replaceChildren(...(opened.node ? [build(opened.node)] : []));
      },
    };
  },

  widget: ({ widget, options, template, classes, name = "" }, { act }) => {
    const element = make("div", classes);
    element.innerHTML = template; // our own, from the module in `components/widgets`
    requestAnimationFrame(() => {
      if (element.parentElement) mount(element, element.parentElement, { widget, view: name, id: name, options }, act);
    });
    return { element };
  },

  button: ({ primary }, { act }) => {
    const element = makeButton(primary ? "gb-button gb-primary" : "gb-button", "", {}, () => act(null));
    return {
      element,
      set: ({ label, disabled = false }) => {
        setText(element, label);
        element.disabled = disabled;
      },
    };
  },

  code_text: () => {
    const label = make("span", "gb-label");
    const text = make("pre", "", "", { tabindex: "0" }); // allows scrolling with the keyboard
    const copy = makeButton("gb-button", "", {}, () => copyFrom(copy, text.textContent ?? ""));
    return {
      element: make("div", "gb-field gb-code-text", [make("div", "gb-row", [label, copy]), text]),
      set: (properties) => {
        setText(label, properties.label);
        setText(copy, properties.copy);
        setText(text, properties.text);
      },
    };
  },

  timer: ({ seconds }, { act }) => {
    const element = make("span");
    element.hidden = true;
    const tick = () => {
      if (!element.isConnected) clearInterval(timer);
      else if (element.parentElement?.checkVisibility()) act(null);
    };
    /** @type {ReturnType<typeof setInterval> | undefined} */ let timer;
    return {
      element,
      set: ({ active }) => {
        clearInterval(timer);
        timer = active ? setInterval(tick, 1000 * seconds) : undefined;
      },
    };
  },

  slider: (_, { act }) => {
    const range = make("input", "", "", { type: "range" });
    const box = make("input", "", "", { type: "number" });
    /** @param {HTMLInputElement} from @param {HTMLInputElement} to */
    const follow = (from, to) => {
      to.value = from.value;
      act(from.valueAsNumber);
    };
    range.addEventListener("input", () => follow(range, box));
    box.addEventListener("input", () => box.value && box.validity.valid && follow(box, range));
    box.addEventListener("change", () => {
      if (box.validity.valid && box.value) return; // already sent while typing
      if (box.value) range.value = box.value; // a range input clamps to its ends and steps
      follow(range, box);
    });
    return labelled("slider", [range, box], ({ label, low: min, high: max, step, typed_step, value }) => {
      box.ariaLabel = label;
      for (const input of [range, box]) {
        const limits = { min, max, step: (input === box && typed_step) || step };
        for (const [name, limit] of Object.entries(limits)) input.setAttribute(name, limit);
        if (input.valueAsNumber !== value) input.value = value;
      }
    });
  },

  choice: ({ labelled: isSeen }, { act }) => {
    const list = make("div", "gb-segments", "", { role: "radiogroup" });
    const group = `gb-choice-${(count += 1)}`;
    /** @type {Choices} */ let shown = [];
    /** @param {[string, any]} choice */
    const makeLine = ([label, value]) => {
      const radio = make("input", "", "", { type: "radio", name: group, value: String(value) });
      radio.addEventListener("change", () => {
        mark(value);
        act(value);
      });
      return make("label", "", [radio, make("span", "", label)]);
    };
    /** @param {any} value */
    const mark = (value) => {
      shown.forEach(([, each], i) => {
        const radio = /** @type {HTMLInputElement} */ (list.children[i].firstElementChild);
        radio.checked = same(each, value);
        list.children[i].classList.toggle("selected", radio.checked);
      });
    };
    const made = labelled(isSeen ? "choice" : "choice gb-unlabelled", [list], ({ choices, value }) => {
      if (!same(shown, choices)) {
        shown = choices;
        const focused = [...list.children].findIndex((each) => each.contains(document.activeElement));
        list.replaceChildren(...shown.map(makeLine));
        list.children[focused]?.querySelector("input")?.focus();
      }
      mark(value);
    });
    list.setAttribute("aria-labelledby", `${list.id}-label`);
    return made;
  },

  select: ({ beside }, { act }) => {
    const list = make("select");
    /** @type {Choices} */ let shown = [];
    list.addEventListener("change", () => act(shown[list.selectedIndex][1]));
    return labelled(`select ${beside ? "gb-beside" : ""}`, [list], ({ choices, value }) => {
      shown = choices;
      setChoices(list, shown);
      list.selectedIndex = shown.findIndex(([, each]) => same(each, value));
    });
  },

  pick_list: ({ most }, { act }) => {
    const box = make("input", "", "", { type: "text", autocomplete: "off" });
    const list = make("datalist");
    const entries = make("span", "gb-entries");
    list.id = `gb-list-${(count += 1)}`;
    box.setAttribute("list", list.id);
    /** @type {Choices} */ let choices = [];
    /** @type {any[]} */ let held = [];
    const draw = () => {
      const buttons = held.map((each) => {
        const label = choices.find(([, value]) => value === each)?.[0] ?? String(each);
        return makeButton("gb-entry", `${label} ×`, {}, () => put(held.filter((other) => other !== each)));
      });
      entries.replaceChildren(...buttons);
    };
    /** @param {any[]} now */
    const put = (now) => {
      held = now;
      draw();
      act(held);
    };
    box.addEventListener("change", () => {
      const text = box.value.trim() && box.value;
      const entry = choices.find(([label]) => label === text)?.[1] ?? text;
      box.value = "";
      if (!text || held.includes(entry)) return;
      if (most === 1) put([entry]);
      else if (held.length < most) put([...held, entry]);
    });
    return labelled("pick-list", [box, list, entries], (properties) => {
      ({ choices, value: held } = /** @type {any} */ (properties));
      setChoices(list, choices);
      draw();
    });
  },

  text_box: ({ max_length, one_line, actions }, { act }) => {
    const box = make("textarea", "", "", { rows: "1", spellcheck: "false", maxlength: max_length });
    const fit = () => {
      box.style.height = "auto";
      if (box.scrollHeight) box.style.height = `${box.scrollHeight + 2}px`;
    };
    box.addEventListener("input", () => {
      fit();
      act(box.value);
    });
    box.addEventListener("keydown", (event) => {
      if (!(actions?.enter || one_line) || event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      if (actions?.enter) act(box.value, "enter");
    });
    return labelled("text-box", [box], ({ placeholder = "", value }) => {
      box.placeholder = placeholder;
      if (value !== undefined && box.value !== value) box.value = value;
      fit();
    });
  },

  number_box: ({ whole }, { act }) => {
    const box = make("input", "", "", { type: "number", step: whole ? "1" : "any" });
    const isUsable = whole ? Number.isSafeInteger : Number.isFinite;
    box.addEventListener("input", () => act(isUsable(box.valueAsNumber) ? box.valueAsNumber : null));
    return labelled("number-box", [box], ({ value }) => {
      if (document.activeElement !== box) box.value = value; // keeps an invalid value during typing
    });
  },

  check_box: (_, { act }) => {
    const box = make("input", "", "", { type: "checkbox" });
    box.addEventListener("change", () => act(box.checked));
    return labelled("check", [box], ({ value }) => {
      box.checked = value;
    });
  },
};

/**
 * Called by the `js_on_load` of a card's gr.HTML.
 * @param {HTMLElement} element @param {(type: string, payload: object) => void} trigger @param {Record<string, any>} props
 * @param {{ name: string, events: Record<string, string>, early: string[] }} call see `Card` in card.py
 */
export function card(element, trigger, props, call) {
  /** @type {Record<string, Action[]>} */ const pending = {}; // actions by queue, oldest first
  /** @type {Map<HTMLElement, { node: Node, built: Built, shown: Properties | null, value?: any }>} */ const parts = new Map();
  let number = 0;

  /** Stores them here and in the gr.HTML's value, which every event sends. @param {string} queue @param {Action[]} actions */
  function setPending(queue, actions) {
    pending[queue] = actions;
    const early = Object.fromEntries(call.early.map((each) => [each, pending[each] ?? []]));
    const sent = Object.entries(call.events).map(([each, event]) => [event, { ...early, [each]: pending[each] ?? [] }]);
    props.value = Object.fromEntries(sent);
  }

  /** @param {Node} node @param {any} value @param {string} event */
  function act(node, value, event) {
    const [queue, latest] = node.actions?.[event] ?? [];
    if (!queue || (isFollowing() && !node.always)) return;
    const name = `${node.name}:${event}`;
    const before = (pending[queue] ?? []).filter(([, other]) => !latest || other !== name);
    setPending(queue, [...before, [(number += 1), name, value]]);
    trigger(call.events[queue], {});
    if (node.answer && event !== "input") reveal(node.answer);
  }

  /** @param {Node} node @returns {HTMLElement} */
  function build(node) {
    const built = BUILDERS[node.kind](node, { act: (value, event = "act") => act(node, value, event), build });
    if (node.name) built.element.id = node.name;
    parts.set(built.element, { node, built, shown: null });
    return built.element;
  }

  /** @param {Record<string, any>} data see `Card._draw` in card.py */
  function draw({ layout, words, seen, ...live }) {
    if (!layout) return;
    for (const [queue, actions] of Object.entries(pending)) {
      const left = actions.filter(([each]) => each > seen[queue]);
      if (left.length < actions.length) setPending(queue, left);
    }
    const root = /** @type {HTMLElement} */ (element.firstElementChild);
    if (!root.firstElementChild) root.append(build(layout));
    for (const [part, entry] of parts) {
      if (!root.contains(part)) {
        parts.delete(part);
        continue;
      }
      const { node, built } = entry;
      const now = live[`live.${node.name}`] ?? {};
      if (node.live && !Object.keys(now).length) { // inside a hidden part, so its properties are unknown
        if (part instanceof HTMLButtonElement) part.disabled = false; // a presenter's keys press it
        entry.shown = null;
        continue;
      }
      if ("hidden" in now) part.hidden = now.hidden;
      const texts = Object.entries(node.words ?? {}).map(([name, key]) => [name, words[key]]);
      const ended = seen[`${node.name}:${SETTLED_BY[node.kind]}`];
      const properties = { ...node, ...Object.fromEntries(texts), ...now, ...unhandled(node), ended };
      // A text box keeps what has been typed, valid or not, until the server's value changes.
      if (node.kind === "text_box" && entry.shown?.ended === ended && entry.value === now.value) delete properties.value;
      entry.value = now.value;
      if (same(entry.shown, properties)) continue;
      entry.shown = properties;
      attempt(part, now.failed, () => built.set?.(properties));
    }
  }

  /** Returns a person's value that the server has not handled yet; it overrides the server's. @param {Node} node @returns {Properties} */
  function unhandled(node) {
    const [queue] = node.actions?.act ?? [];
    const [, , value] = (pending[queue] ?? []).findLast(([, name]) => name === `${node.name}:act`) ?? [];
    return value === undefined ? {} : { value };
  }

  const place = element.parentElement?.closest(".gb-widget")?.parentElement ?? element; // outside gradio's block
  mount(element, place, { widget: "card", view: `card.${call.name}`, id: call.name, options: { draw } }, () => {});
}

defineWidget("card", (_, { options }) => ({ always: true, draw: options.draw }));
