"""The figure for the lesson on concepts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from components.concepts import LIMIT, STEP, quoted_concept
from components.figures.bars import grouped_bars
from components.labels import percent, quoted, token_text, visible
from components.next_tokens import at_one
from components.tabs.lessons.figure import Open, Picture, SliderSpec, checked_ids, computed, traced, words
from components.widgets.chart import Drawing
from gpt import DEFAULT_MODEL, Edits, LoadedModel, get_model
from gpt.analysis.concepts import NO_ACTIVITY, trace_activity


class Steered(NamedTuple):
    """A concept's activity on a text, (T,), and the next token's logits without and with it, (vocab_size,)."""

    loaded: LoadedModel
    ids: list[int]
    place: tuple[int, int]
    activity: np.ndarray
    before: torch.Tensor
    after: torch.Tensor


@computed
@torch.inference_mode()
def steered(s: Any) -> Steered:
    """Turn the first offered concept up or down, in the bundled model if the lessons' model has no concepts."""
    loaded = s[Open].loaded
    if loaded.concepts is None or not loaded.concepts.offered:
        loaded = get_model(DEFAULT_MODEL)
    ids = checked_ids(loaded, s[Open].text, least=2)
    assert loaded.concepts is not None
    each = loaded.concepts.offered[0]
    activity = trace_activity(loaded.concepts, traced(loaded, ids), each.layer)[:, each.feature].numpy()
    edits = Edits(steering=(loaded.concepts.steering(each.layer, each.feature, s[Open].a),))
    idx = torch.tensor([ids], device=loaded.model.device)
    before, after = (loaded.model(idx, edits=each)[0, -1] for each in (None, edits))
    return Steered(loaded, ids, (each.layer, each.feature), activity, before, after)


def concepts(s: Any) -> Drawing:
    """Plot the activity of the concept, and describe its effect on the next token."""
    found, strength = s[steered], s[Open].a
    tokenizer = found.loaded.tokenizer
    names = [visible(token_text(tokenizer, token)) for token in found.ids]
    figure = grouped_bars(names, {words("concepts.activity"): found.activity}, y_title=words("concepts.activity"))
    before, after = at_one(found.before), at_one(found.after)
    token = int((after - before).argmax()) if strength else int(before.argmax())
    return figure, words(
        "concepts" if strength >= 0 else "concepts.weakened",
        share=percent(-strength),
        name=quoted_concept(found.loaded, found.place),
        layer=found.place[0],
        most=quoted(tokenizer, found.ids[int(np.argmax(found.activity))]),
        token=quoted(tokenizer, token),
        before=percent(before[token].item()),
        after=percent(after[token].item()),
    )


PICTURES: dict[str, Picture] = {
    "concepts": Picture(
        concepts,
        text="Tom saw a cat and a dog. The dog ran to the big",
        a=SliderSpec("picture.concepts.strength", NO_ACTIVITY, LIMIT, STEP, 1.5),
    ),
}
