// What the two flows show: words through attention heads, and words through concepts, to the predicted token.

import { t } from "../i18n.js";
import { percent } from "../numbers.js";

const WIDTH_ALL = 150; // total width in px of all ribbons into the target
const WIDEST = 64; // maximum width in px of one head's ribbon

/**
 * @typedef {object} Answer  what both flows end in
 * @property {string} [target] @property {string} [name]  the target in a sentence
 * @property {number} [before]  its probability @property {number | null} [after]
 * @property {string} [says]
 *
 * @typedef {object} OfHeads
 * @property {[position: number, word: string, without: number][]} [tokens]  without: the probability without the token
 * @property {[layer: number, head: number, without: number][]} [heads]
 * @property {number[][]} [weights]  [head][token] @property {number} [n_head]  number of heads in a layer
 * @property {{tokens: number[][], heads: number[][], reads: number[][]}} [off]  the places that are switched off
 * @property {boolean} [is_pending]  whether the heads are still being computed; their space is reserved
 *
 * @typedef {{key: string | null, name: string, adds: number, off: boolean, says: string}} Step
 * @typedef {object} OfConcepts
 * @property {{title: string, nodes: Step[]}[]} [columns]
 * @property {[column: number, from: number, to: number, size: number][]} [edges]
 *
 * @typedef {object} Look  how a node or a ribbon looks, and what a click on it does
 * @property {boolean} isOff @property {string} [style] @property {string} [css]
 * @property {object} [sends]  the payload of a click, for parts that can be switched @property {string} [says]
 * @property {boolean} [isSwitched]  whether the part itself is off
 *
 * @typedef {object} Contents
 * @property {string} name
 * @property {{title: string, width?: number, nodes: (Look & {text: string, size: number, writes: Look | null})[]}[]} columns
 *   size: px of its ribbons; writes: the ribbon into the target, in the last column
 * @property {{edge: import("./layout.js").Edge, look: Look}[]} edges
 */

/** @param {OfHeads & Answer} data @param {boolean} isNarrow @returns {Contents} */
export function ofHeads({ tokens = [], heads = [], weights = [], before = 0, off, name }, isNarrow) {
  const falls = heads.map(([, , without]) => 1 - without / before);
  const unit = Math.min(WIDTH_ALL / (falls.reduce((sum, fall) => sum + fall, 0) || 1), WIDEST / Math.max(...falls, 1e-9));
  const widths = falls.map((fall) => Math.max(2, fall * unit));
  const reads = weights.map((row, h) => [...row, Math.max(0, 1 - row.reduce((a, b) => a + b, 0))].map((weight) => weight * widths[h]));
  /** @param {"tokens" | "heads" | "reads"} part @param {number[]} place */
  const has = (part, place) => (off?.[part] ?? []).some((each) => String(each) === String(place));
  const shortened = (/** @type {string} */ word, most = isNarrow ? 7 : 12) => (word.length > most ? `${word.slice(0, most - 1)}…` : word);

  const words = [...tokens, null].map((token, i) => {
    const size = reads.reduce((sum, row) => sum + row[i], 0);
    if (!token) return { text: t("why.flow.others"), size, css: "gb-ribbon-others", isOff: false, writes: null };
    const [position, word, without] = token;
    const says = t("why.flow.token.off", { token: word, before: percent(before), after: percent(without) });
    const sends = { part: "tokens", place: [position] };
    const isOff = has("tokens", [position]);
    return { text: `${shortened(word)} ${isNarrow ? "" : "→ "}${percent(without)}`, size, css: "gb-ribbon-token", isOff, sends, says, writes: null };
  });
  const nodes = heads.map(([layer, head, without], h) => {
    const title = t(isNarrow ? "why.flow.head.short" : "why.flow.head", { layer, head });
    const look = {
      isOff: has("heads", [layer, head]),
      sends: { part: "heads", place: [layer, head] },
      says: t("why.flow.head.off", { layer, head, before: percent(before), after: percent(without) }),
    };
    return { ...look, text: `${title} ${isNarrow ? "" : "→ "}${percent(without)}`, size: widths[h], css: "gb-ribbon-head", writes: look };
  });
  const edges = heads.flatMap(([layer, head], h) =>
    reads[h].map((width, i) => {
      const edge = /** @type {import("./layout.js").Edge} */ ([0, i, h, width]);
      const { isOff: isHeadOff } = nodes[h];
      if (!tokens[i]) return { edge, look: { isOff: isHeadOff, css: "gb-ribbon-rest" } };
      const [position, token] = tokens[i];
      const isSwitched = has("reads", [layer, head, position]);
      const says = t("why.flow.read.off", { layer, head, token, p: percent(weights[h][i]) });
      const sends = { part: "reads", place: [layer, head, position] };
      return { edge, look: { isOff: isSwitched || isHeadOff || words[i].isOff, isSwitched, sends, says } };
    }),
  );
  const columns = [
    { title: t("why.flow.tokens"), width: isNarrow ? 104 : 160, nodes: words },
    { title: t("why.flow.heads"), width: isNarrow ? 106 : 190, nodes },
  ];
  return { name: t("why.flow.name", { token: name ?? "" }), columns, edges };
}

/** @param {OfConcepts & Answer} data @returns {Contents} */
export function ofConcepts({ columns = [], edges = [], name }) {
  const last = columns.length - 1;
  const unit = WIDTH_ALL / (columns[last].nodes.reduce((sum, { adds }) => sum + Math.abs(adds), 0) || 1);
  const isOff = (/** @type {number} */ column, /** @type {number} */ node) => columns[column].nodes[node].off;
  return {
    name: t("why.paths.name", { token: name ?? "" }),
    columns: columns.map(({ title, nodes }, c) => ({
      title,
      nodes: nodes.map(({ key, name: text, adds, off, says }) => ({
        text,
        size: Math.abs(adds) * unit,
        css: `gb-path-node gb-path-${c}${key === null ? " gb-path-rest" : ""}`,
        isOff: off,
        says,
        sends: key === null ? undefined : { node: key },
        writes: c < last ? null : { isOff: off, css: adds < 0 ? "gb-against" : key === null ? "gb-ribbon-rest" : "" },
      })),
    })),
    edges: edges.map(([column, from, to, size]) => ({
      edge: [column, from, to, Math.max(0, size) * unit],
      look: { isOff: isOff(column, from) || isOff(column + 1, to) },
    })),
  };
}
