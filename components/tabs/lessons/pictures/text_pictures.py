"""Figures for the lessons on text: tokens, batches, loss, greedy decoding, sampling, untrained weights."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import regex
import torch

from components.errors import PageError
from components.figures.bars import grouped_bars, histogram
from components.labels import listed, percent, quoted, token_text, visible
from components.tabs.lessons.pictures.picture import (
    EXAMPLE,
    MAX_TEXT_CHARS,
    MAX_TOKENS,
    Drawn,
    Picture,
    Scene,
    SliderSpec,
)
from components.text_views import document_lines, next_token_bars
from components.widgets.chart import chart_data
from gpt import DEFAULT_MODEL, Generation, LoadedModel, SamplingParams, get_model
from gpt.experiments.minimal.merges import Merges
from gpt.experiments.minimal.tokenizer import WORDS as WORD
from gpt.experiments.text_loss import score_text

SIMILAR = 6  # number of similar tokens


def tokenizer(scene: Scene) -> Drawn:
    """Show the tokens in a text, with their ids and bytes."""
    vocabulary, ids = scene.loaded.tokenizer, scene.ids(whole=True)
    rows = [
        [visible(token_text(vocabulary, i)), str(i), " ".join(f"{byte:02x}" for byte in vocabulary.token_bytes(i))]
        for i in ids
    ]
    text = scene.t(
        "tokenizer", n=len(ids), characters=len(scene.text), bytes=len(scene.text.encode("utf-8", "replace"))
    )
    head = [scene.t(f"tokenizer.{column}") for column in ("token", "id", "bytes")]
    return Drawn(text, table=[head, *rows])


def loss(scene: Scene) -> Drawn:
    """Plot the surprisal of each token in a text."""
    loaded, ids = scene.loaded, scene.ids(least=2, whole=True)
    read = score_text(loaded, ids)
    bits = np.array([loss.surprisal for loss in read.losses])
    names = [visible(token_text(loaded.tokenizer, token_id)) for token_id in ids[1:]]
    figure = grouped_bars(names, {scene.t("surprise"): bits}, y_title=scene.t("surprise"))
    most = int(bits.argmax())
    text = scene.t(
        "loss",
        nats=f"{read.score.loss:.2f}",
        perplexity=f"{read.score.perplexity:.1f}",
        token=quoted(loaded.tokenizer, ids[most + 1]),
        bits=f"{bits[most]:.1f}",
        share=percent(2 ** -float(bits[most])),
    )
    return Drawn(chart=chart_data(figure, text))


def greedy(scene: Scene) -> Drawn:
    """Continue a text greedily."""
    document = Generation(scene.loaded, scene.ids())
    steps = list(document.steps(SamplingParams(temperature=0, seed=0), int(scene.a)))
    document.read()
    share = percent(math.prod(step.probability for step in steps))
    return Drawn(scene.t("greedy", n=len(steps), share=share), strip=document_lines(document))


def sampling(scene: Scene) -> Drawn:
    """Show Write's next-token bars after a text at a given temperature and top-k."""
    document = Generation(scene.loaded, scene.ids())
    document.read()
    params = SamplingParams(temperature=scene.a, top_k=int(scene.b) or None)
    return Drawn(chart=bars(document, params, scene))


def bars(document: Generation, params: SamplingParams, scene: Scene) -> dict[str, Any]:
    """Return the next-token bars for a document. The rows are not buttons, since there is no text to insert into."""
    return next_token_bars(document, document.n_prompt - 1, params) | {"rows": None}


def model_of(scene: Scene) -> LoadedModel:
    """Return the model with trained or random weights."""
    return get_model(DEFAULT_MODEL if scene.choice == "trained" else "untrained")


def untrained(scene: Scene) -> Drawn:
    """Continue the same prompt with random or trained weights."""
    scene = replace(scene, loaded=model_of(scene))
    document = Generation(scene.loaded, scene.ids())
    list(document.steps(SamplingParams(temperature=0.8, seed=int(scene.a)), 30))
    document.read()
    chart = bars(document, SamplingParams(), scene)
    return Drawn(scene.t(f"untrained.{scene.choice}"), chart, document_lines(document))


WORDS = "low low lower lowest slow slow slower slowest"
MAX_ROUNDS = 20


def merges(scene: Scene) -> Drawn:
    """Show a text's tokens after a given number of merges learned from it."""
    if not scene.text.strip():
        raise PageError("picture.empty")
    learned = Merges(regex.findall(WORD, scene.text[:MAX_TEXT_CHARS]))
    before = sum(map(len, learned.words))
    rows = []
    for n in range(1, int(scene.a) + 1):
        counts = Counter(pair for parts in learned.words for pair in pairwise(parts))
        token = learned.learn()
        if token is None:
            break
        rows.append([str(n), visible(token.decode("utf-8", "replace")), str(max(counts.values()))])
    tokens = [visible(part.decode("utf-8", "replace")) for parts in learned.words for part in parts]
    head = [scene.t(f"merges.{column}") for column in ("round", "token", "count")]
    text = scene.t("merges", n=len(rows), before=before, after=len(tokens), tokens=" | ".join(tokens))
    return Drawn(text, table=[head, *reversed(rows)])


def embedding(scene: Scene) -> Drawn:
    """Plot the last token's vector, and list the tokens with the most similar vectors."""
    tokenizer, weight = scene.loaded.tokenizer, scene.loaded.model.wte.weight.detach().float().cpu()  # (vocab_size, C)
    token = scene.ids()[-1]
    near = torch.cosine_similarity(weight, weight[token], dim=-1).argsort(descending=True)
    likest = [quoted(tokenizer, i) for i in near[: SIMILAR + 1].tolist() if i != token][:SIMILAR]
    name = quoted(tokenizer, token)
    figure = histogram(
        weight[token].numpy(),
        np.arange(weight.shape[1] + 1) - 0.5,
        x_title=scene.t("number"),
        y_title=scene.t("value"),
        height=300,
    )
    text = scene.t("embedding", token=name, id=token, shape=list(weight.shape), tokens=listed(likest))
    return Drawn(chart=chart_data(figure, text))


def batches(scene: Scene) -> Drawn:
    """Show the input and the target at each position in a row of a batch."""
    ids, tokenizer = scene.ids(least=2), scene.loaded.tokenizer
    names = [visible(token_text(tokenizer, token)) for token in ids]
    rows = [
        [str(at), "".join(names[: at + 1]), names[at], names[at + 1]] for at in range(min(len(ids) - 1, int(scene.a)))
    ]
    head = [scene.t(f"batches.{column}") for column in ("position", "seen", "input", "target")]
    return Drawn(scene.t("batches", n=len(rows), total=len(ids)), table=[head, *rows])


PICTURES: dict[str, Picture] = {
    "tokenizer": Picture(tokenizer, text="The dog said hello to grandmother."),
    "loss": Picture(loss, text="Once upon a time, there was a little dragon named Lily."),
    "greedy": Picture(
        greedy,
        text="Once upon a time",
        a=SliderSpec("picture.steps", 1, 60, 1, 12),
        writes_with=lambda scene: scene.loaded,
    ),
    "sampling": Picture(
        sampling, text=EXAMPLE, a=SliderSpec("temperature", 0, 2, 0.05, 1), b=SliderSpec("picture.top_k", 0, 50, 1, 0)
    ),
    "untrained": Picture(
        untrained,
        text=EXAMPLE,
        a=SliderSpec("picture.seed", 0, 20, 1, 1),
        choices=("untrained", "trained"),
        writes_with=model_of,
    ),
    "merges": Picture(merges, text=WORDS, a=SliderSpec("picture.merges.rounds", 0, MAX_ROUNDS, 1, 3)),
    "embedding": Picture(embedding, text="The little dog"),
    "batches": Picture(batches, text=EXAMPLE, a=SliderSpec("picture.batches.length", 1, MAX_TOKENS - 1, 1, 8)),
}
