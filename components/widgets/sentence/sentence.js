/** A line of text; an empty one is hidden. @typedef {{ text?: string }} Sentence */

import { setWords } from "../glossary.js";
import { defineWidget } from "../runtime.js";

defineWidget(
  "sentence",
  (root) => ({
    always: true, // a newly opened tab shows its sentences right away, and styles depend on whether they are empty
    draw: (/** @type {Sentence} */ { text = "" }) => {
      setWords(root, text);
      root.hidden = !text && !root.ariaLive; // a hidden element is not read aloud when it changes
    },
  }),
);
