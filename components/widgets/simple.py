"""The factories of small widgets. Each widget's script has its name, and describes the data that its view returns.

A factory takes the widget's name and the options of `components.widgets.widget.widget`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from components.parts import Part
from components.widgets.widget import widget

# A short text as tokens, with arcs from tokens to the tokens that they attend to. A click on a token raises `.select`
# with {"index": position}.
arcs = partial(
    widget,
    "arcs",
    template="""<div class="gb-arcs"><svg aria-hidden="true"></svg>
<div class="gb-arcs-text" role="group"></div></div>""",
    empty={},
)

# A short list of choices with a few cells each. A click or Enter raises `.select` with the line's payload; the arrow
# keys move between lines.
choices = partial(widget, "choices", template="""<div class="gb-choices" role="group" hidden></div>""")

# Sampling one token: the probabilities laid end to end from 0 to 1, and where the random number falls. The pointer and
# arrow keys show each piece's description.
draw = partial(
    widget,
    "draw",
    template="""<figure class="gb-draw">
<figcaption class="gb-says"></figcaption>
<div class="gb-fell" aria-hidden="true"><span></span></div>
<div class="gb-pieces" tabindex="0" role="group"></div>
<div class="gb-ends" aria-hidden="true"><span>0</span><p></p><span>1</span></div>
<p class="gb-spoken" aria-live="polite"></p>
</figure>""",
    empty={"text": ""},
)

# A text, and the features that are active at one of its words. Pointing at a feature tints the text. Clicking a word
# raises `.input` with {"index": position}; clicking a feature, `.select` with {"place": [layer, feature]}.
features = partial(
    widget,
    "features",
    template="""<div class="gb-features">
<div class="gb-features-text" role="listbox"></div>
<div class="gb-features-list" role="listbox"></div>
</div>""",
    empty={"tokens": [], "features": []},
)

# The path of one prediction through the model. A click on a part raises `.select` with {"layer"} or {"layer", "head"}.
machine_path = partial(
    widget, "path", template="""<figure class="gb-path"><svg role="group"></svg></figure>""", empty={"words": []}
)

# Text snippets with tinted words.
snippets = partial(
    widget, "snippets", template="""<section class="gb-snippets"><h3></h3><ol></ol></section>""", empty={"snippets": []}
)

# The mixing desk for concepts: a slider for each, and the text as it is and with what is turned up or down. Raises
# `.select` with {"on": [[layer, feature, position], ...]} for the sliders that are not in the centre.
steer = partial(
    widget,
    "steer",
    template="""<section class="gb-steer" hidden>
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
</section>""",
    latest=True,
    empty={"sliders": []},
)


def table(name: str, *, words_from: int | None = None, **wired: Any) -> Part:
    """Return a table that shows the view's "rows". The first row and column are headers. Each cell is text, never HTML.

    words_from: the first column with words instead of numbers.
    """
    template = '<table class="gb-table"></table>'
    return widget("table", name, template=template, options={"words_from": words_from}, empty={"rows": []}, **wired)


# A grid of small switches that turn each head, attention and feed-forward part on and off, or scale them. A click,
# Enter or Space toggles a switch; + and − and the slider below scale it. A click on a layer's number switches both of
# its branches; a click on a column's name switches all layers. Every change raises `.select` with {"edits": text, "n":
# number of the change}: all factors other than 1, in the notation of `gpt.documents.edit_text`. For a head, the payload
# also contains "layer", "head" and "on".
switches = partial(
    widget,
    "switches",
    template="""<div class="gb-switches">
<div class="gb-switch-grid" role="grid" tabindex="0"></div>
<div class="gb-switch-now">
<span aria-live="polite"></span><input type="range" min="0" max="2" step="0.05"><output></output>
</div>
<p class="gb-note"></p>
</div>""",
    empty={},
)

# The branches of a text. A click, Enter or Space on a line raises `.select` with its payload; the arrow keys move
# between lines.
tree = partial(
    widget,
    "tree",
    template="""<figure class="gb-tree">
<figcaption></figcaption>
<div class="gb-branches" role="listbox"><svg aria-hidden="true"></svg></div>
</figure>""",
    empty={"lanes": []},
)

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
<div class="gb-course-head"><h2></h2><details class="gb-contents gb-drop"><summary></summary>
<div><input type="search"><p class="gb-note"></p><ol></ol></div></details>
<div class="gb-turn"><button type="button" class="gb-back gb-button">← <span></span></button>
<button type="button" class="gb-on gb-button"><span></span> →</button></div></div>
<p class="gb-course-says"></p>
<button type="button" class="gb-film-link gb-button"></button>
</div>"""


def course(
    name: str, of: Literal["lessons", "challenges"], keys: Sequence[str], topics: Sequence[int] = (), **wired: Any
) -> Part:
    """Return the open lesson's or challenge's title and text, with the list of all.

    keys: of all, in order. topics: the number of each lesson's topic.

    Raises `.select` with {"open": key} when one is chosen or, if none is open when the widget appears, for the last one
    opened in this browser or else for the first. The button that opens the film raises `.input`.
    """
    options = {"list": of, "keys": list(keys), "topics": list(topics)}
    return widget("course", name, template=_COURSE, options=options, **wired)


# The verdict on a challenge, the hint, the explanation and the link to the next one. Raises `.select` with
# {"open": key} or {"again": True}. The browser also stores the best score.
challenge_foot = partial(
    widget,
    "challenge",
    template="""<div class="gb-challenge-foot" hidden>
<p class="gb-standing" role="status"></p>
<p class="gb-attempts"></p>
<p class="gb-learned"></p>
<details><summary></summary><p></p></details>
<div class="gb-turn"><button type="button" class="gb-again gb-button"></button>
<button type="button" class="gb-copy-link gb-button"></button>
<button type="button" class="gb-on gb-button"></button></div>
</div>""",
)

# What a model wrote at moments of its training; it is hidden if there are fewer than two. `.input` requests a moment
# with {"moment"}, a 0-based index, if the server shows what belongs to it; the next once the last one is shown.
growth = partial(
    widget,
    "growth",
    template="""<figure class="gb-growth" hidden>
<figcaption><h2></h2><output></output></figcaption>
<p class="gb-growth-text"></p>
<div class="gb-growth-bar"><button type="button">▶</button>
<span><svg preserveAspectRatio="none" viewBox="0 0 100 100" aria-hidden="true"><path/></svg>
<input type="range" min="0" step="1" value="0"></span></div>
</figure>""",
    latest=True,
)


def growth_data(
    title: str, moments: Iterable[tuple[int, str, float]], *, steps: int | None = None, moment: int | None = None
) -> dict[str, Any]:
    """moments: step, text and validation loss in nats for each. steps: length of the training; defaults to the last
    step. moment: index of the one whose pictures the page shows; None if there are none.
    """
    rows = [[step, text, round(loss, 3)] for step, text, loss in moments]
    return {"title": title, "moments": rows, "steps": steps or (rows[-1][0] if rows else 0), "moment": moment}
