/**
 * A line of text; an empty one is hidden.
 * @typedef {Record<string, any>} Sentence  text, or whatever the option `field` names; hidden: no line though it has words
 */

import { setWords } from "../glossary.js";
import { defineWidget } from "../runtime.js";

defineWidget(
  "sentence",
  (root, { options }) => ({
    always: true, // a tab that is opened shows at once what it says, and the styles ask whether it says something
    draw: (/** @type {Sentence} */ { hidden = false, ...data }) => {
      const text = data[options.field ?? "text"] ?? "";
      setWords(root, text);
      root.hidden = hidden || (!text && !root.ariaLive); // what is hidden when it changes is not read aloud
    },
  }),
);
