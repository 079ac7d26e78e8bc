"""The figure for the lesson on counting heads: heads in the poem model, and its poems with and without a head."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from components.labels import percent
from components.tabs.lessons.course import HEADS, POEM
from components.tabs.lessons.figure import Drawn, Open, Picture, admitted, computed, traced, words
from components.tabs.lessons.pictures.model_pictures import heatmap
from gpt import Edits, LoadedModel, SamplingParams, generate, get_model
from gpt.models.sources import POEMS_MODEL

VERSE = 5
TITLE, N_WRITTEN, PARAMS = "《春日》\n", 56, SamplingParams(temperature=0.8, seed=30)  # the generated poem


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


@computed
def weights(s: Any) -> tuple[LoadedModel, np.ndarray]:
    """Return the poem model and the chosen head's attention weights for the poem, (T, T)."""
    loaded, (layer, head) = get_model(POEMS_MODEL), HEADS[s[Open].choice]
    trace = traced(loaded, loaded.tokenizer.encode(POEM))
    return loaded, trace.layers[layer].attn_weights[0, head].cpu().numpy()


@computed
def poems(s: Any) -> dict[str, str]:
    """Return the poem that the model writes with and without the chosen head."""
    loaded, found = get_model(POEMS_MODEL), {}
    with admitted(loaded):
        for name, edits in (("with", None), ("without", Edits(head_scale={HEADS[s[Open].choice]: 0.0}))):
            steps = generate(loaded, TITLE, PARAMS, N_WRITTEN, edits=edits)
            found[name] = "".join(step.text for step in steps).strip()
    return found


def verse(s: Any) -> Drawn:
    """Show a head's attention weights, and the poem that the model writes with and without that head."""
    choice, (loaded, found) = s[Open].choice, s[weights]
    layer, head = HEADS[choice]
    share = sum(float(found[i, j]) for i, j in looked_at(choice)) / len(looked_at(choice))
    text = words(f"verse.{choice}", layer=layer, head=head, share=percent(share))
    rows = [["", TITLE.strip()], *([words(f"verse.{name}"), poem] for name, poem in s[poems].items())]
    return Drawn(chart=(heatmap(loaded, found, loaded.tokenizer.encode(POEM)), text), table=rows)


PICTURES = {"verse": Picture(verse, choices=tuple(HEADS))}
