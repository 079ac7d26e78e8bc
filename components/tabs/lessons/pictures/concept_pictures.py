"""The figure for the lesson on concepts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from components.concepts import LIMIT, STEP, quoted_concept
from components.figures.bars import grouped_bars
from components.labels import percent, quoted, token_text, visible
from components.next_tokens import at_one
from components.tabs.lessons.pictures.picture import Drawn, Picture, Scene, SliderSpec
from components.widgets.chart import chart_data
from gpt import DEFAULT_MODEL, Edits, LoadedModel, get_model
from gpt.analysis.concepts import NO_ACTIVITY, trace_activity


def model_of(scene: Scene) -> LoadedModel:
    """Return the scene's model, or the bundled model if the scene's has no concepts."""
    concepts = scene.loaded.concepts
    return scene.loaded if concepts is not None and concepts.offered else get_model(DEFAULT_MODEL)


def concepts(scene: Scene) -> Drawn:
    """Plot the activity of the first offered concept on a text, and describe its effect on the next token."""
    scene = replace(scene, loaded=model_of(scene))
    loaded, ids = scene.loaded, scene.ids(least=2)
    assert loaded.concepts is not None
    each = loaded.concepts.offered[0]
    activity = trace_activity(loaded.concepts, scene.trace(), each.layer)[:, each.feature].numpy()
    names = [visible(token_text(loaded.tokenizer, token)) for token in ids]
    figure = grouped_bars(names, {scene.t("concepts.activity"): activity}, y_title=scene.t("concepts.activity"))
    steering = loaded.concepts.steering(each.layer, each.feature, scene.a)
    idx = torch.tensor([ids], device=loaded.model.device)
    with torch.inference_mode():
        before, after = (at_one(loaded.model(idx, edits=edits)[0, -1]) for edits in (None, Edits(steering=(steering,))))
    token = int((after - before).argmax()) if scene.a else int(before.argmax())
    text = scene.t(
        "concepts" if scene.a >= 0 else "concepts.weakened",
        share=percent(-scene.a),
        name=quoted_concept(loaded, (each.layer, each.feature)),
        layer=each.layer,
        most=quoted(loaded.tokenizer, ids[int(np.argmax(activity))]),
        token=quoted(loaded.tokenizer, token),
        before=percent(before[token].item()),
        after=percent(after[token].item()),
    )
    return Drawn(chart=chart_data(figure, text), values={"after": after[token].item()})


PICTURES: dict[str, Picture] = {
    "concepts": Picture(
        concepts,
        text="Tom saw a cat and a dog. The dog ran to the big",
        a=SliderSpec("picture.concepts.strength", NO_ACTIVITY, LIMIT, STEP, 1.5),
    ),
}
