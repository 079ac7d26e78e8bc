/**
 * A line of text; an empty one is hidden.
 * @typedef {{ text?: string, hidden?: boolean }} Sentence  hidden: hides the line even if it has text
 */

import { setWords } from "../glossary.js";
import { defineWidget } from "../runtime.js";

defineWidget(
  "sentence",
  (root) => ({
    always: true, // a newly opened tab shows its sentences right away, and styles depend on whether they are empty
    draw: (/** @type {Sentence} */ { text = "", hidden = false }) => {
      setWords(root, text);
      root.hidden = hidden || (!text && !root.ariaLive); // a hidden element is not read aloud when it changes
    },
  }),
);
