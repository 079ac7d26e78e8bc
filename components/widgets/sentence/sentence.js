/**
 * A line of text; an empty one is hidden.
 * @typedef {Record<string, any>} Sentence  text, or the field that the option `field` names; hidden: hides the line
 *   even if it has text
 */

import { setWords } from "../glossary.js";
import { defineWidget } from "../runtime.js";

defineWidget(
  "sentence",
  (root, { options }) => ({
    always: true, // a newly opened tab shows its sentences right away, and styles depend on whether they are empty
    draw: (/** @type {Sentence} */ { hidden = false, ...data }) => {
      const text = data[options.field ?? "text"] ?? "";
      setWords(root, text);
      root.hidden = hidden || (!text && !root.ariaLive); // a hidden element is not read aloud when it changes
    },
  }),
);
