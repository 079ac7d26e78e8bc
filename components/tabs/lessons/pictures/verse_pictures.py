"""The figure for the lesson on counting heads: heads in the poem model, and its poems with and without a head."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch

from components.labels import percent
from components.tabs.lessons.course import HEADS, POEM
from components.tabs.lessons.pictures.model_pictures import heatmap
from components.tabs.lessons.pictures.picture import Drawn, Picture, Scene
from components.widgets.chart import chart_data
from gpt import Edits, LoadedModel, SamplingParams, generate, get_model
from gpt.models.sources import POEMS_MODEL

VERSE = 5
TITLE, N_WRITTEN, PARAMS = "《春日》\n", 56, SamplingParams(temperature=0.8, seed=30)  # the generated poem


def poems(scene: Scene | None = None) -> LoadedModel:
    """Return the figure's model."""
    return get_model(POEMS_MODEL)


def looked_at(choice: str) -> list[tuple[int, int]]:
    """Return (position, target) pairs: at each position, a head should attend to the target.

    Depending on `choice`, the target is the last punctuation mark, the previous rhyme or the character above the next
    one.
    """
    marks = [i for i, character in enumerate(POEM) if character in "，。\n"]
    if choice == "counts":
        return [(i, max(mark for mark in marks if mark < i)) for i in range(marks[0] + 1, len(POEM)) if i not in marks]
    if choice == "rhymes":
        ends = [i - 1 for i, character in enumerate(POEM) if character == "。"]
        return [(end - 1, before) for before, end in pairwise(ends)]
    commas = (i for i, character in enumerate(POEM) if character == "，")
    return [(comma + i, comma + i - VERSE) for comma in commas for i in range(VERSE)]


@torch.inference_mode()
def verse(scene: Scene) -> Drawn:
    """Show a head's attention weights, and the poem that the model writes with and without that head."""
    loaded, (layer, head) = poems(), HEADS[scene.choice]
    ids = loaded.tokenizer.encode(POEM)
    weights = replace(scene, loaded=loaded, text=POEM).trace().layers[layer].attn_weights[0, head].cpu().numpy()
    share = sum(float(weights[i, j]) for i, j in looked_at(scene.choice)) / len(looked_at(scene.choice))
    text = scene.t(f"verse.{scene.choice}", layer=layer, head=head, share=percent(share))
    rows = [["", TITLE.strip()]]
    for name, edits in (("with", None), ("without", Edits(head_scale={(layer, head): 0.0}))):
        steps = generate(loaded, TITLE, PARAMS, N_WRITTEN, edits=edits)
        rows.append([scene.t(f"verse.{name}"), "".join(step.text for step in steps).strip()])
    return Drawn(chart=chart_data(heatmap(replace(scene, loaded=loaded), weights, ids), text), table=rows)


PICTURES = {"verse": Picture(verse, choices=tuple(HEADS), writes_with=poems)}
