"""The factories of small widgets, in alphabetical order. Each widget's script has its name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from components.parts import Part
from components.widgets.widget import widget

# A short text as tokens, with arcs from tokens to the tokens that they attend to.

_ARCS = """<div class="gb-arcs"><svg aria-hidden="true"></svg><div class="gb-arcs-text" role="group"></div></div>"""


def arcs(name: str, **wired: Any) -> Part:
    """Return the part that draws `arcs_data`; it is hidden if there are no tokens.

    Clicking a token raises `.select` with the payload {"index": position}.
    """
    return widget("arcs", name, template=_ARCS, **wired)


def arcs_data(
    tokens: Sequence[str],
    name: str,
    *,
    arcs: Sequence[tuple[int, int, float]] = (),
    is_flat: bool = False,
    selectable: bool = False,
    selected: int = -1,
) -> dict[str, Any]:
    """Return the data for an arcs widget.

    tokens: texts of the tokens. name: the text's name for screen readers. arcs: (from, to, weight in 0..1). is_flat:
    whether to reserve no space for arcs. selected: the selected position, or -1.
    """
    return {
        "tokens": list(tokens),
        "name": name,
        "arcs": [[start, end, round(weight, 4)] for start, end, weight in arcs],
        "is_flat": is_flat,
        "selectable": selectable,
        "selected": selected,
    }


# A short list of choices with a few cells each.

_CHOICES = """<div class="gb-choices" role="group" hidden></div>"""


def choices(name: str, **wired: Any) -> Part:
    """Return the list, which is hidden if there are no lines. View data: see `lists.js`.

    A click or Enter raises `.select` with the line's payload; the arrow keys move between lines.
    """
    return widget("choices", name, template=_CHOICES, **wired)


# Sampling one token: the probabilities laid end to end from 0 to 1, and where the random number falls.

_DRAW = """<figure class="gb-draw">
<figcaption class="gb-says"></figcaption>
<div class="gb-fell" aria-hidden="true"><span></span></div>
<div class="gb-pieces" tabindex="0" role="group"></div>
<div class="gb-ends" aria-hidden="true"><span>0</span><p></p><span>1</span></div>
<p class="gb-spoken" aria-live="polite"></p>
</figure>"""


def draw(name: str, **wired: Any) -> Part:
    """Return the strip; it is hidden if there is no text. View data: see `draw.js`.

    The pointer and arrow keys show each piece's description.
    """
    return widget("draw", name, template=_DRAW, empty={"text": ""}, **wired)


# A text, and the features that are active at one of its words. Pointing at a feature tints the text.

_FEATURES = """<div class="gb-features">
<div class="gb-features-text" role="listbox"></div>
<div class="gb-features-list" role="listbox"></div>
</div>"""


def features(name: str, **wired: Any) -> Part:
    """Return a text and its features.

    Clicking a word raises `.input` with {"index": position}; clicking a feature, `.select` with
    {"place": [layer, feature]}.

    View data: see `features.js`.
    """
    return widget("features", name, template=_FEATURES, empty={"tokens": [], "features": []}, **wired)


# The path of one prediction through the model.

_PATH = """<figure class="gb-path"><svg role="group"></svg></figure>"""


def machine_path(name: str, **wired: Any) -> Part:
    """Return the part that draws a path; it is hidden if there are no words. View data: see `path.js`.

    A click on a part raises `.select` with the payload {"layer"} or {"layer", "head"}.
    """
    return widget("path", name, template=_PATH, empty={"words": []}, **wired)


# Text snippets with tinted words.

_SNIPPETS = """<section class="gb-snippets"><h3></h3><ol></ol></section>"""


def snippets(name: str, **wired: Any) -> Part:
    """Return a list of snippets. View data: see `lists.js`."""
    return widget("snippets", name, template=_SNIPPETS, empty={"snippets": []}, **wired)


# The mixing desk for concepts: a slider for each, and the text as it is and with what is turned up or down.

_STEER = """<section class="gb-steer" hidden>
<header><h2></h2><button type="button" class="gb-button"></button></header>
<div class="gb-steer-parts">
<div>
<div class="gb-steer-ends" aria-hidden="true"><span></span><span></span><span></span></div>
<div class="gb-steer-sliders" role="group"></div>
<button type="button" class="gb-steer-more"></button>
</div>
<div class="gb-steer-texts"></div>
<p class="gb-steer-note" role="status"></p>
</div>
</section>"""


def steer(name: str, **wired: Any) -> Part:
    """Return the desk; it is hidden if there are no sliders.

    Raises `.select` with {"on": [[layer, feature, position], ...]} for the sliders that are not in the centre.

    View data: see `steer.js`.
    """
    return widget("steer", name, template=_STEER, latest=True, empty={"sliders": []}, **wired)


# A small table of numbers. The first row and the first column are headers.

_TABLE = '<table class="gb-table"></table>'


def table(name: str, *, words_from: int | None = None, **wired: Any) -> Part:
    """Return a table that shows the view's "rows". Each cell is text, never HTML.

    words_from: the first column with words instead of numbers.
    """
    return widget("table", name, template=_TABLE, options={"words_from": words_from}, empty={"rows": []}, **wired)


# A grid of small switches that turn each head, attention and feed-forward part on and off, or scale them.

_SWITCHES = """<div class="gb-switches">
<div class="gb-switch-grid" role="grid" tabindex="0"></div>
<div class="gb-switch-now">
<span aria-live="polite"></span><input type="range" min="0" max="2" step="0.05"><output></output>
</div>
<p class="gb-note"></p>
</div>"""


def switches(name: str, **wired: Any) -> Part:
    """Return the part that draws `switches_data`; it is hidden if there are no layers.

    A click, Enter or Space toggles a switch; + and − and the slider below scale it. A click on a layer's
    number switches both of its branches; a click on a column's name switches all layers. Every change raises `.select`
    with the payload {"edits": text, "n": number of the change}: all factors other than 1, in the notation of
    `gpt.documents.edit_text`. For a head, the payload also contains "layer", "head" and "on".
    """
    return widget("switches", name, template=_SWITCHES, empty=switches_data(0, 0), **wired)


def switches_data(
    n_layer: int,
    n_head: int,
    edits: str = "",
    *,
    answered: int = 0,
    costs: np.ndarray | None = None,
    measured: int = 0,
    selected: tuple[int, int] | None = None,
    of_heads: bool = False,
    marked: Collection[tuple[int, int]] = (),
) -> dict[str, Any]:
    """Return the data for the switches.

    edits: the factors to show, as text. answered: number of the last change that the
    edits include; the browser keeps later changes. costs: how much removing each head changes the
    predictions, (n_layer, n_head), in bits. measured: number of tokens on which the costs were measured. selected: the
    (layer, head) that the keys and the slider affect, or None for the last one used. of_heads: whether there are only
    heads, which are on or off. marked: heads to frame.
    """
    return {
        "n_layer": n_layer,
        "n_head": n_head,
        "edits": edits,
        "answered": answered,
        "costs": None if costs is None else [float(f"{cost:.3g}") for cost in costs.ravel()],
        "measured": measured,
        "selected": selected,
        "of_heads": of_heads,
        "marked": sorted(marked),
    }


_TREE = """<figure class="gb-tree">
<figcaption></figcaption>
<div class="gb-branches" role="listbox"><svg aria-hidden="true"></svg></div>
</figure>"""


def tree(name: str, **wired: Any) -> Part:
    """Return the branches; they are hidden if there are no lanes. View data: see `tree/tree.js`.

    A click, Enter or Space on a line raises `.select` with its payload; the arrow keys move between lines.
    """
    return widget("tree", name, template=_TREE, empty={"lanes": []}, **wired)


_PREDICTIONS = """<figure class="gb-predictions">
<figcaption><h2></h2><p class="gb-says"></p></figcaption>
<div class="gb-bars" role="listbox"></div>
<p class="gb-others"></p>
</figure>"""


def predictions(name: str, *, selectable: bool = True, **wired: Any) -> Part:
    """Return the part that draws `token_bars` (see `components.next_tokens`); without bars, their space is reserved.

    Without a title and bars, it is hidden. If the bars are selectable, a click, Enter or Space on one raises `.select`
    with its payload.
    """
    options = {"selectable": selectable}
    return widget("predictions", name, template=_PREDICTIONS, options=options, **wired)


_COURSE = """<div class="gb-course" hidden>
<div class="gb-course-head"><h2></h2><details class="gb-contents"><summary></summary>
<div><input type="search"><p class="gb-note"></p><ol></ol></div></details>
<div class="gb-turn"><button type="button" class="gb-back">← <span></span></button>
<button type="button" class="gb-on"><span></span> →</button></div></div>
<p class="gb-course-says"></p>
<button type="button" class="gb-film-link"></button>
</div>"""


def course(
    name: str, of: Literal["lessons", "challenges"], keys: Sequence[str], topics: Sequence[int] = (), **wired: Any
) -> Part:
    """Return the open lesson's or challenge's title and text, with the list of all.

    keys: of all, in order. topics: the number of each lesson's topic.

    Raises `.select` with the payload {"open": key} when one is chosen. If none is open when the widget appears, it
    raises the event for the last one opened in this browser, or else for the first. The button that opens the film
    raises `.input`.

    View data: see `course.js`.
    """
    options = {"list": of, "keys": list(keys), "topics": list(topics)}
    return widget("course", name, template=_COURSE, options=options, **wired)


_FOOT_TEMPLATE = """<div class="gb-challenge-foot" hidden>
<p class="gb-standing" role="status"></p>
<p class="gb-attempts"></p>
<p class="gb-learned"></p>
<details><summary></summary><p></p></details>
<div class="gb-turn"><button type="button" class="gb-again"></button>
<button type="button" class="gb-copy-link"></button><button type="button" class="gb-on"></button></div>
</div>"""


def challenge_foot(name: str, **wired: Any) -> Part:
    """Return the verdict, the hint, the explanation and the link to the next challenge.

    Raises `.select` with the payload {"open": key} or {"again": True}. The browser also stores the best score.

    View data: see `challenge.js`.
    """
    return widget("challenge", name, template=_FOOT_TEMPLATE, **wired)


_TEMPLATE = """<figure class="gb-growth" hidden>
<figcaption><h2></h2><output></output></figcaption>
<p class="gb-growth-text"></p>
<div class="gb-growth-bar"><button type="button">▶</button>
<span><svg preserveAspectRatio="none" viewBox="0 0 100 100" aria-hidden="true"><path/></svg>
<input type="range" min="0" step="1" value="0"></span></div>
</figure>"""


def growth(name: str, **wired: Any) -> Part:
    """Return the picture, which is hidden if there are fewer than two moments.

    `.input` requests a moment with the payload {"moment"}, a 0-based index, if the server shows what belongs to it. The
    next moment is requested once the last one is shown.
    """
    return widget("growth", name, template=_TEMPLATE, latest=True, **wired)


def growth_data(
    title: str, moments: Iterable[tuple[int, str, float]], *, steps: int | None = None, moment: int | None = None
) -> dict[str, Any]:
    """Return the data.

    moments: step, text and validation loss in nats for each. steps: length of the training; defaults to the last step.
    moment: index of the one whose pictures the page shows; None if there are none.
    """
    rows = [[step, text, round(loss, 3)] for step, text, loss in moments]
    return {"title": title, "moments": rows, "steps": steps or (rows[-1][0] if rows else 0), "moment": moment}
