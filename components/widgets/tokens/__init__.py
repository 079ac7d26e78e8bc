"""The token strip: a text as the model sees it, each token a chip that can be looked at and selected.

Its lines, one per token, only grow while a text streams, so that only the difference travels.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from components.labels import unseen_names, visible
from components.parts import Part
from components.widgets.encoding import to_base64, to_json
from components.widgets.widget import widget

FULL = 65535  # the largest level of a shade

_TEMPLATE = """<div class="gb-tokens">
<p class="gb-empty"></p>
<div class="gb-strip"></div>
<div class="gb-legend">
<span class="gb-scale"><span class="gb-from"></span><span class="gb-ramp"></span><span class="gb-to"></span></span>
<span class="gb-toggles">
<button class="gb-open" type="button" aria-pressed="false" hidden></button>
<button class="gb-marks" type="button" aria-pressed="false"></button>
</span>
</div>
<figure class="gb-curve" hidden>
<div class="gb-curve-names"><span class="gb-is-surprise"></span><span class="gb-is-entropy"></span></div>
<svg role="img" height="88"></svg>
<figcaption></figcaption>
</figure>
<div class="gb-tip" role="tooltip" hidden></div>
</div>"""

TOKEN_LABELS: dict[str, str] = {
    "name": "The text, token by token",  # what a screen reader calls the strip
    "empty": "",  # what stands there before the first token
    "token": "token",
    "id": "id",
    "probability": "probability",
    "rank": "rank",
    "attention": "attention",
    "marks": "Show spaces",
}

Kind = Literal["p", "g", "h"]


def tokens(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    ids: bool = False,
    selectable: bool = True,
    one_line: bool = False,
    **wired: Any,
) -> Part:
    """A token strip. `ids=True, selectable=False` is the small one under a prompt box; with `one_line` it scrolls
    sideways, and only the text is shown. A click, Enter or Space on a chip raises `.select` with a payload of
    {"index": position}.

    Data of its view:
        doc: names the text; another one selects the newest token again.
        lines: of `token_line`.
        selected: a position; -1: the newest, followed as the text grows.
        shade: a `shade_value`.
        by: what the tint stands for while there is no shade: "probability", "rank", "entropy" or "surprisal".
        parted: the position from which on the text is another than the one beside it; -1: nowhere.
        marks: whether spaces are shown.
        labels: all of TOKEN_LABELS' keys. With "surprisal" and "bits" among them the shade stands for -log2 of each
            probability. With "curve" entropy and surprisal can be seen as lines along the text; that takes "entropy",
            "surprise", "unit", "here" and "totals" as well.
    """
    options = {"ids": ids, "selectable": selectable, "one_line": one_line}
    return widget("tokens", name, template=_TEMPLATE, options=options, labels=TOKEN_LABELS | (labels or {}), **wired)


def token_line(
    token_id: int,
    text: str,
    probability: float | None,
    rank: int | None,
    kind: Kind,
    data: bytes = b"",
    entropy: float | None = None,
) -> str:
    """The line of one token: kind "p" for the prompt, "g" for what was generated, "h" for what was put in by hand.

    `probability` in 0..1 and `rank` (1 = best) are what the model gave it before it was there; `entropy`, in bits, is
    of the distribution that they are from. A token that is no whole character has the text "" and its bytes in
    `data`, shown as \\xNN, as everywhere; so has the beginning of one after a text. The line ends with the names of
    the invisible characters of the text, which the tooltip lists.
    """
    rounded = None if probability is None else float(f"{probability:.4g}")
    line: list[object] = [int(token_id), text, rounded, None if rank is None else int(rank), kind]
    unseen = unseen_names(text)
    if data or unseen or entropy is not None:
        line.append(visible(data.decode("utf-8", "backslashreplace")))
    if unseen or entropy is not None:
        line.append(None if entropy is None else float(f"{entropy:.6g}"))
    return _line([*line, unseen] if unseen else line)


def shade_value(weights: np.ndarray) -> str:
    """A value for `shade`: attention weights in 0..1, shape (S,), relative to the largest; "" goes back to
    probabilities. Tokens after the S-th have none."""
    weights = np.asarray(weights, dtype=np.float64)
    largest = float(weights.max(initial=0.0))
    levels = np.round(weights * (FULL / largest)) if largest > 0 else np.zeros_like(weights)
    levels = np.maximum(levels, weights > 0).astype("<u2")  # what is not zero is not shown as zero
    return f"{largest:.6g}:{to_base64(levels)}"


def _line(content: object) -> str:
    return to_json(content) + "\n"
