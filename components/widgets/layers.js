/**
 * The selected layer, with buttons for the previous and the next one.
 * @typedef {object} Layers
 * @property {number} [layer]
 * @property {number} [n_layer]  if missing or 0, nothing is shown
 */

import { t } from "./i18n.js";
import { drawLayerPick } from "./picks.js";
import { createRequests } from "./requests.js";
import { defineWidget } from "./runtime.js";

/** @type {import("./runtime.js").Mount} */
function mount(group, host) {
  const requests = createRequests(host.send);

  /** @param {Layers} data */
  function draw(data) {
    const { layer = 0, n_layer } = data;
    group.hidden = !n_layer;
    requests.answered(data);
    if (n_layer) drawLayerPick(group, { layer, n_layer }, t("flow.layer"), requests.want);
  }

  return { draw };
}

defineWidget("layers", mount);
