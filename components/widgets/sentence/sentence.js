/**
 * One line of words; an empty one takes no room.
 * @typedef {object} Sentence
 * @property {string} [text]
 * @property {boolean} [hidden]  hides the line though it has words
 */

import { setText } from "../dom.js";
import { defineWidget } from "../runtime.js";

defineWidget(
  "sentence",
  (root) => ({
    always: true, // a tab that is opened shows at once what it says, and the styles ask whether it says something
    draw: (/** @type {Sentence} */ { text = "", hidden = false }) => {
      setText(root, text);
      root.hidden = hidden || !text;
    },
  }),
  (props) => ({ text: props.value ?? "" }),
);
