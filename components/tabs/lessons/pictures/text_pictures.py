"""Figures of lessons on text: tokens, loss, greedy decoding, sampling, untrained weights, training."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from components.figures.bars import grouped_bars
from components.figures.lines import lines
from components.labels import percent, quoted, token_text, visible
from components.tabs.lessons.pictures.picture import EXAMPLE, Drawn, Picture, Scene, SliderSpec
from components.text_views import document_lines, next_token_bars
from components.widgets.chart import chart_data
from gpt import DEFAULT_MODEL, GPT, Generation, LoadedModel, SamplingParams, get_model
from gpt.experiments.text_loss import score_text
from gpt.training.recipe import Recipe
from gpt.training.text_dataset import TextDataset
from gpt.training.trainer import Trainer

# William Shakespeare, Sonnet 18 (1609)
SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date:
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade
Nor lose possession of that fair thou owest;
Nor shall Death brag thou wander'st in his shade,
When in eternal lines to time thou growest:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
"""
STEPS, EVERY = 120, 20
RECIPE = Recipe(
    n_layer=1, n_head=2, n_embd=48, block_size=32, batch_size=8, steps=STEPS, warmup=5, muon_lr=0.03, adamw_lr=0.03
)


def tokenizer(scene: Scene) -> Drawn:
    """The tokens of a text, with their ids and bytes."""
    vocabulary, ids = scene.loaded.tokenizer, scene.ids()
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
    """The surprisal of each token of a text."""
    loaded, ids = scene.loaded, scene.ids(least=2)
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
    """A greedy continuation of a text."""
    document = Generation(scene.loaded, scene.ids())
    steps = list(document.steps(SamplingParams(temperature=0, seed=0), int(scene.a)))
    document.read()
    share = percent(math.prod(step.probability for step in steps))
    return Drawn(scene.t("greedy", n=len(steps), share=share), strip=document_lines(document))


def sampling(scene: Scene) -> Drawn:
    """The next-token bars of Write after a text, with a temperature and a top-k."""
    document = Generation(scene.loaded, scene.ids())
    document.read()
    params = SamplingParams(temperature=scene.a, top_k=int(scene.b) or None)
    return Drawn(chart=bars(document, params, scene))


def bars(document: Generation, params: SamplingParams, scene: Scene) -> dict[str, Any]:
    """The next-token bars of a document. The rows are not buttons: there is no text to insert into."""
    return next_token_bars(document, document.n_prompt - 1, params, scene.language) | {"rows": None}


def model_of(scene: Scene) -> LoadedModel:
    """The model with trained or random weights."""
    return get_model(DEFAULT_MODEL if scene.choice == "trained" else "untrained")


def untrained(scene: Scene) -> Drawn:
    """A continuation of the same prompt by random or trained weights."""
    scene = replace(scene, loaded=model_of(scene))
    document = Generation(scene.loaded, scene.ids())
    list(document.steps(SamplingParams(temperature=0.8, seed=int(scene.a)), 30))
    document.read()
    chart = bars(document, SamplingParams(), scene)
    return Drawn(scene.t(f"untrained.{scene.choice}"), chart, document_lines(document))


_alone = threading.Lock()


@dataclass(frozen=True)
class Recording:
    """A recorded training run: the loss of each update in nats, and a sample after every EVERY of them."""

    losses: tuple[float, ...]
    samples: tuple[str, ...]
    n_characters: int


def run() -> Recording:
    """Train a tiny character-level model on the sonnet, once for all visitors; takes two seconds."""
    with _alone:
        return _run()


def is_to_run() -> bool:
    """Whether the run has not been recorded yet."""
    return _run.cache_info().currsize == 0


@lru_cache(maxsize=1)
def _run() -> Recording:
    dataset = TextDataset(SONNET, block_size=RECIPE.block_size, seed=RECIPE.seed)
    trainer = Trainer(RECIPE.new_model(dataset.vocabulary.n_vocab), RECIPE)
    losses: list[float] = []
    samples: list[str] = []
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            samples.append(dataset.vocabulary.decode(written(trainer.model, dataset.vocabulary.encode("S"))))
        losses.append(trainer.update(dataset.batch(step, RECIPE.batch_size)))  # the loss before the update
    return Recording(tuple(losses), tuple(samples), dataset.vocabulary.n_vocab)


@torch.inference_mode()
def written(model: GPT, ids: list[int]) -> list[int]:
    """The ids continued to a full context, at a temperature of 0.5 with a fixed seed."""
    chance = torch.Generator().manual_seed(1)
    idx = torch.tensor([ids])
    while idx.shape[1] < model.config.block_size:
        probabilities = (model(idx)[0, -1] / 0.5).softmax(dim=0)
        idx = torch.cat((idx, probabilities.multinomial(1, generator=chance)[None]), dim=1)
    return idx[0].tolist()


def training(scene: Scene) -> Drawn:
    """The loss of that run, and the sample after a number of updates."""
    done, step = run(), int(scene.a) // EVERY * EVERY
    figure = lines(
        np.arange(len(done.losses)),
        {scene.t("nats"): np.array(done.losses)},
        x_title=scene.t("updates"),
        y_title=scene.t("nats"),
        mark=("", step),
    )
    text = scene.t(
        "training",
        step=step,
        loss=f"{done.losses[step]:.2f}",
        chance=f"{math.log(done.n_characters):.2f}",
        n=done.n_characters,
    )
    return Drawn(
        scene.t("training.wrote", step=step, text=visible(done.samples[step // EVERY])), chart_data(figure, text)
    )


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
    "training": Picture(training, a=SliderSpec("picture.updates", 0, STEPS, EVERY, 0), takes_time=is_to_run),
}
