"""Figures for the lessons on training, computed with the code that the lessons show."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn

from components.figures.lines import lines
from components.i18n import t
from components.labels import visible
from components.tabs.lessons.figure import Drawn, Open, computed, words
from components.widgets.chart import Drawing
from gpt.experiments.minimal import AdamW, Config, TiedGPT, held_out_loss, learning_rate, sample, split, train
from gpt.layers import seeded

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
STEPS, EVERY = 400, 20
CONTEXT = 32
VALLEY_STEPS = 40
VALLEY = (1.0, 25.0)  # steepness along each weight
SCHEDULE = (0.006, 0.0006, 200)  # highest and lowest rate, number of updates
_alone = threading.Lock()


@dataclass(frozen=True)
class Recording:
    """The loss at each update, in nats, and a sample and the held-out loss at intervals of EVERY updates."""

    losses: tuple[float, ...]
    held_out: tuple[float, ...]
    samples: tuple[str, ...]
    n_characters: int


@lru_cache(maxsize=1)
def run() -> Recording:
    """Train a tiny character-level model on the sonnet. Takes several seconds."""
    characters = sorted(set(SONNET))
    ids = torch.tensor([characters.index(each) for each in SONNET])
    with seeded(0), torch.enable_grad():
        model = TiedGPT(Config(len(characters), CONTEXT, 1, 2, 48))
        text, end = split(ids)
        losses: list[float] = []
        held_out, samples = [held_out_loss(model, end)], [written(model, characters)]
        for loss in train(model, text, STEPS + 1):
            losses.append(loss)
            if len(losses) % EVERY == 0:
                held_out.append(held_out_loss(model, end))
                samples.append(written(model, characters))
    return Recording(tuple(losses), tuple(held_out), tuple(samples), len(characters))


@torch.no_grad()
def written(model: nn.Module, characters: list[str]) -> str:
    """Generate a full context of text that begins with "S", at a temperature of 0.5 and with a fixed seed."""
    chance = torch.Generator().manual_seed(1)
    ids = [characters.index("S")]
    while len(ids) < CONTEXT:
        ids.append(sample(model(torch.tensor([ids]))[0, -1], 0.5, 0, torch.rand(1, generator=chance).item()))
    return "".join(characters[i] for i in ids)


@computed
def recording(s: Any) -> Recording:
    with _alone:  # once for all visitors
        return run()


def training(s: Any) -> Drawn:
    done, step = s.ready(recording), s[Open].updates // EVERY * EVERY
    if done is None:
        return Drawn(t("lessons.learning"))
    updates = np.arange(len(done.losses))
    held_out = np.interp(updates, np.arange(len(done.held_out)) * EVERY, done.held_out)
    figure = lines(
        updates,
        {words("training.text"): np.array(done.losses), words("training.held_out"): held_out},
        x_title=words("updates"),
        y_title=words("nats"),
        mark=("", step),
    )
    chance = {"n": done.n_characters, "chance": f"{math.log(done.n_characters):.2f}"}
    losses = {"loss": f"{done.losses[step]:.2f}", "held_out": f"{done.held_out[step // EVERY]:.2f}"}
    text = words("training", step=step, best=int(np.argmin(done.held_out)) * EVERY, **chance, **losses)
    return Drawn(words("training.wrote", step=step, text=visible(done.samples[step // EVERY])), chart=(figure, text))


@computed
def descents(s: Any) -> dict[str, list[float]]:
    return {name: valley(name, s[Open].rate) for name in ("descent", "adamw")}


def optimizer(s: Any) -> Drawing:
    """Plot how two optimisers descend a valley that is 25 times as steep along one weight as along the other."""
    found = s[descents]
    figure = lines(
        np.arange(VALLEY_STEPS + 1),
        {words(f"optimizer.{name}"): np.array(losses) for name, losses in found.items()},
        x_title=words("updates"),
        y_title=words("optimizer.loss"),
        log_y=True,
    )
    ends = {name: f"{losses[-1]:.2g}" for name, losses in found.items()}
    return figure, words("optimizer", rate=f"{s[Open].rate:g}", n=VALLEY_STEPS, **ends)


def valley(name: str, rate: float) -> list[float]:
    with torch.enable_grad():
        weights = nn.Parameter(torch.tensor([1.0, 1.0]))
        adamw, losses = AdamW([weights], lr=rate, decay=0), []
        for _ in range(VALLEY_STEPS + 1):
            loss = (torch.tensor(VALLEY) * weights**2).sum() / 2
            losses.append(max(loss.item(), 1e-9))  # the axis is logarithmic
            (gradient,) = torch.autograd.grad(loss, weights)
            weights.grad = gradient
            if name == "adamw":
                adamw.step()
            else:
                weights.data -= rate * gradient
    return losses


def schedule(s: Any) -> Drawing:
    high, low, steps = SCHEDULE
    warmup = s[Open].warmup
    rates = [learning_rate(step, high, low, warmup, steps) for step in range(steps)]
    figure = lines(
        np.arange(steps), {words("schedule.rate"): np.array(rates)}, x_title=words("updates"),
        y_title=words("schedule.rate"), mark=("", warmup),
    )  # fmt: skip
    text = words("schedule", warmup=warmup, first=f"{rates[0]:.2g}", high=f"{high:g}", low=f"{low:g}", steps=steps)
    return figure, text
