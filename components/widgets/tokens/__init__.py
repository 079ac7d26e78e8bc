"""The token strip: a text as the model sees it, with one chip per token, which can be inspected and selected.

While a text streams, lines (one per token) are only ever appended, so only new ones are sent.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from components.labels import unseen_names, visible
from components.parts import Lines, Part
from components.widgets.widget import to_base64, to_json, widget

FULL = 65535  # the largest level of a shade

_TEMPLATE = """<div class="gb-tokens">
<p class="gb-empty"></p>
<div class="gb-strip"></div>
<div class="gb-legend">
<span class="gb-scale"><span class="gb-from"></span><span class="gb-ramp"></span><span class="gb-to"></span></span>
<span class="gb-toggles">
<button class="gb-marks gb-button" type="button" aria-pressed="false"></button>
</span>
</div>
<div class="gb-tip" role="tooltip" hidden></div>
</div>"""

Kind = Literal["p", "g", "h"]


def tokens(
    name: str,
    *,
    ids: bool = False,
    selectable: bool = True,
    one_line: bool = False,
    of: Literal["left", "right", "original", "edited"] | None = None,
    empty: Literal["page", "pair", "edited", "build"] | None = None,
    shade: Literal["attention", "influence", "length", "surprisal"] = "attention",
    **wired: Any,
) -> Part:
    """Return a token strip.

    `ids=True, selectable=False` is the small strip under a prompt box. With `one_line`, the strip scrolls sideways and
    shows only the text. of: which of two texts this is. empty: the sentence shown before the first token. shade: what
    the shade stands for; for "surprisal", the shade's values are bits.

    A click, Enter or Space on a chip raises `.select` with the payload {"index": position}.

    View data: see `tokens/tokens.js`.
    """
    nothing = {"lines": Lines(), "doc": "", "selected": -1, "shade": ""}
    texts = {"name": of, "empty": empty, "shade": shade}
    options = {"ids": ids, "selectable": selectable, "one_line": one_line, **texts}
    return widget("tokens", name, template=_TEMPLATE, options=options, empty=nothing, **wired)


def token_line(
    token_id: int,
    text: str,
    probability: float | None,
    rank: int | None,
    kind: Kind,
    data: bytes = b"",
    entropy: float | None = None,
) -> str:
    """kind: "p" for the prompt, "g" for generated, "h" for inserted by hand. probability (0..1), rank (1 = best): the
    token's probability and rank in the prediction before it; entropy: that prediction's entropy, in bits. data: bytes
    that do not form a whole character, shown as \\xNN; the text is "" if the token consists only of such bytes. The
    line ends with the names of the text's invisible characters, which the tooltip lists.
    """
    rounded = None if probability is None else float(f"{probability:.4g}")
    line: list[object] = [int(token_id), text, rounded, None if rank is None else int(rank), kind]
    unseen = unseen_names(text)
    if data or unseen or entropy is not None:
        line.append(visible(data.decode("utf-8", "backslashreplace")))
    if unseen or entropy is not None:
        line.append(None if entropy is None else float(f"{entropy:.6g}"))
    return to_json([*line, unseen] if unseen else line) + "\n"


def shade_value(weights: np.ndarray) -> str:
    """Return a value for `shade` from attention weights in 0..1, (S,), relative to the largest; "" is none."""
    weights = np.asarray(weights, dtype=np.float64)
    largest = float(weights.max(initial=0.0))
    levels = np.round(weights * (FULL / largest)) if largest > 0 else np.zeros_like(weights)
    levels = np.maximum(levels, weights > 0).astype("<u2")  # non-zero weights stay non-zero
    return f"{largest:.6g}:{to_base64(levels)}"
