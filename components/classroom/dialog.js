// The dialog for a class: links and their codes, a sequence's stops, following pages, and progress.

import { make, makeButton, makeShape, setText } from "../widgets/dom.js";
import { fill } from "../widgets/text.js";
import { challenges, lessons } from "../widgets/progress.js";
import { askClass } from "../widgets/runtime.js";
import { encodeProgress, readCodes } from "./progress_code.js";

/**
 * @typedef {{ url: string, qr: { size: number, path: string }, query?: string, code?: string }} Link
 *
 * @typedef {object} Answer  the response to a request from the dialog
 * @property {number} n  unique
 * @property {boolean} open  whether other pages may follow this one
 * @property {string} problem  why no link could be created
 * @property {Link} [page]
 * @property {Link} [stops]
 * @property {Link} [room]
 * @property {string[]} sequences  built-in sequences, each as a text with one line per stop
 * @property {{ lesson: [string, string][], challenge: [string, string][] }} items  (key, title) pairs
 */

const COUNT_MS = 2000; // interval between counts of the following pages
const STOPS = "glassbox-stops"; // key in local storage for the lines of a sequence

export function createDialog() {
  const root = make("dialog", "", "", { id: "class-dialog", "aria-labelledby": "class-title" });
  document.body.append(root);
  const title = make("h2", "", "", { id: "class-title" });
  const close = makeButton("gb-class-close", "×");
  const problem = make("p", "", "", { role: "status" });
  const large = make("div", "gb-class-large"); // a QR code large enough for the whole class to scan
  large.hidden = true;
  const [page, stops, room, progress] = [makeLink(), makeLink(), makeLink(), make("output")];
  const lines = make("textarea", "", "", { rows: "9", spellcheck: "false", wrap: "off" });
  const [add, start, make_link, follow, copyCode] = [1, 2, 3, 4, 5].map(() => makeButton(""));
  const followers = make("p");
  const read = make("textarea", "", "", { rows: "3", spellcheck: "false" });
  const table = make("table");
  const sections = {
    page: section(page.element),
    stops: section(lines, row(start, add, make_link), stops.element),
    room: section(row(follow), room.element, followers),
    progress: section(row(progress, copyCode), read, table),
  };
  root.append(close, title, problem, ...Object.values(sections).map(({ element }) => element), large);
  sections.page.element.open = true;

  /** @type {Answer | null} */ let answer = null;
  /** @type {Record<string, string>} */ let words = {};
  let asks = false; // whether the response opens the dialog
  let handled = 0; // number of the last response
  /** @type {ReturnType<typeof setInterval> | undefined} */ let counting;

  /** @param {...HTMLElement} content */
  function row(...content) {
    const made = make("div", "gb-class-row");
    made.append(...content);
    return made;
  }

  /** @param {...HTMLElement} content */
  function section(...content) {
    const [element, summary, says] = [make("details", "", "", { name: "class" }), make("summary"), make("p")];
    element.append(summary, says, ...content);
    return { element, summary, says };
  }

  /** Builds a field with a link to copy, and the link's QR code. */
  function makeLink() {
    const [element, field, copy, code] = [make("div", "gb-class-link"), make("input", "", "", { readonly: "" }), makeButton(""), makeButton("gb-class-qr")];
    element.append(row(field, copy), code);
    copy.addEventListener("click", () => copyText(field.value, copy));
    code.addEventListener("click", () => {
      large.replaceChildren(...[...code.children].map((each) => each.cloneNode(true)), make("b", "", field.value));
      large.hidden = false;
    });
    return {
      element,
      /** @param {Link | undefined} link */
      set(link) {
        element.hidden = !link;
        if (!link) return;
        field.value = link.url;
        setText(copy, words.copy);
        field.ariaLabel = words.title;
        code.ariaLabel = code.title = words.qr;
        const picture = makeShape("svg", { viewBox: `0 0 ${link.qr.size} ${link.qr.size}`, "shape-rendering": "crispEdges" });
        picture.append(makeShape("path", { d: link.qr.path }));
        code.replaceChildren(picture);
      },
    };
  }

  /** @param {string} text @param {HTMLElement} button */
  async function copyText(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      setText(button, words.copied);
    } catch {
      prompt(words.copy, text); // fallback if the browser blocks the clipboard
    }
  }

  const base = () => `${location.origin}${location.pathname.replace(/\/?$/, "/")}`;

  /** Requests links, including the sequence if one has been typed. @param {Record<string, any>} more */
  function ask(more = {}) {
    const text = lines.value.trim() ? { text: lines.value } : {};
    askClass({ do: "links", base: base(), ...text, ...more });
  }

  const keys = () => (answer ? [...answer.items.lesson, ...answer.items.challenge].map(([key]) => key) : []);

  function levels() {
    const [ofLessons, ofChallenges] = [lessons.read().done, challenges.read().done];
    const { lesson = [], challenge = [] } = answer?.items ?? {};
    return [...lesson.map(([key]) => ofLessons[key] ?? 0), ...challenge.map(([key]) => ofChallenges[key] ?? 0)];
  }

  /** Draws a table of the submitted codes, with a row for each student that lists the remaining items. */
  function drawTable() {
    const { lesson = [], challenge = [] } = answer?.items ?? {};
    const titles = [...lesson, ...challenge].map(([, each]) => each);
    table.replaceChildren();
    for (const { name, levels: found } of readCodes(read.value, keys())) {
      const line = table.insertRow();
      line.insertCell().textContent = name;
      if (!found) {
        const cell = line.insertCell();
        [cell.colSpan, cell.textContent] = [3, words["progress.wrong"]];
        continue;
      }
      const done = (/** @type {number} */ from, /** @type {number} */ to) => found.slice(from, to).filter((level) => level === 2).length;
      const counts = [[done(0, lesson.length), lesson.length], [done(lesson.length, found.length), challenge.length]];
      ["progress.lessons", "progress.challenges"].forEach((key, i) => {
        line.insertCell().textContent = fill(words[key], { n: counts[i][0], total: counts[i][1] });
      });
      const left = titles.filter((_, i) => found[i] === 1);
      const listed = new Intl.ListFormat(document.documentElement.lang).format(left);
      line.insertCell().textContent = left.length ? fill(words["progress.left"], { titles: listed }) : "";
    }
  }

  async function count() {
    const code = answer?.room?.code;
    if (!root.open || !code) return;
    const n = await (await fetch(`glassbox/class/${code}/pages`)).json();
    setText(followers, fill(words["room.pages"], { n }));
  }

  function drawWords() {
    setText(title, words.title);
    close.ariaLabel = words.close;
    for (const [name, { summary, says }] of Object.entries(sections)) {
      setText(summary, words[name]);
      setText(says, words[`${name}.says`]);
    }
    const labels = /** @type {[HTMLElement, string][]} */ ([[add, "stops.add"], [start, "stops.start"], [make_link, "stops.link"], [copyCode, "copy"]]);
    for (const [button, key] of labels) setText(button, words[key]);
    setText(follow, words[answer?.room ? "room.close" : "room.open"]);
    lines.ariaLabel = words.stops;
    read.placeholder = words["progress.names"];
    read.ariaLabel = words["progress.read"];
  }

  close.addEventListener("click", () => root.close());
  root.addEventListener("close", () => clearInterval(counting));
  root.addEventListener("click", ({ target }) => target === root && root.close()); // a click outside the dialog
  large.addEventListener("click", () => (large.hidden = true));
  root.addEventListener("cancel", (event) => {
    if (large.hidden) return;
    event.preventDefault();
    large.hidden = true;
  });
  lines.addEventListener("input", () => localStorage.setItem(STOPS, lines.value));
  add.addEventListener("click", () => {
    lines.value = `${lines.value.trimEnd()}\n${answer?.page?.query ?? ""} | ${document.querySelector("[role=tab][aria-selected=true]")?.textContent?.trim()}`.trimStart();
    localStorage.setItem(STOPS, lines.value);
  });
  start.addEventListener("click", () => {
    askClass({ do: "start", text: lines.value });
    root.close();
  });
  make_link.addEventListener("click", () => ask());
  follow.addEventListener("click", () => ask({ do: "room", on: !answer?.room }));
  read.addEventListener("input", drawTable);
  copyCode.addEventListener("click", () => copyText(progress.value, copyCode));

  return {
    open() {
      asks = true;
      lines.value ||= localStorage.getItem(STOPS) ?? "";
      ask();
    },

    /** @param {Answer} newest @param {Record<string, string>} texts */
    draw(newest, texts) {
      [answer, words] = [newest, texts];
      if (!lines.value) lines.value = answer.sequences[0] ?? "";
      drawWords();
      if (answer.n === handled) return;
      handled = answer.n;
      setText(problem, answer.problem);
      page.set(answer.page);
      stops.set(answer.stops);
      room.set(answer.room);
      setText(followers, "");
      sections.room.element.hidden = !answer.open;
      progress.value = encodeProgress(levels(), keys());
      drawTable();
      if (!asks) return;
      asks = false;
      root.showModal();
      clearInterval(counting);
      counting = setInterval(count, COUNT_MS);
    },
  };
}
