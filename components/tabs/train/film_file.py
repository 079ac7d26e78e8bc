"""Export a training run's film as an animated GIF, with one frame per evaluation and English labels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from components.figures.palette import PALETTE, SEQUENTIAL
from components.labels import marked
from components.tabs.train.shown import Shown, shares_of_next
from gpt.training.live_run import Evaluation, RunProgress

SIZE = (760, 420)  # pixels
LOSS = (48, 64, 372, 226)  # left, top, right, bottom
HEADS = (412, 64, 564, 226)
PINNED = (586, 64, 738, 216)
SHARE = (452, 262, 738, 396)
TEXT_LINE, TEXT_LINES, TEXT_COLUMNS = 18, 7, 48  # line height in pixels, number of lines, characters per line
FRAME_MS, LAST_MS = 400, 2000
Box = tuple[int, int, int, int]
FILE_NAME = "training.gif"
TEXT, MUTED, LINE, ACCENT, AFTER = (PALETTE[name].light for name in ("text", "muted", "line", "accent", "after"))


def write_film(shown: Shown, folder: Path) -> Path:
    """Write the GIF to a folder, with the selected head enlarged."""
    pictures = [_picture(shown, evaluation) for evaluation in shown.progress.evaluations]
    path = folder / FILE_NAME
    durations = [FRAME_MS] * (len(pictures) - 1) + [LAST_MS]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    return path


def _picture(shown: Shown, evaluation: Evaluation) -> Image.Image:
    run, progress, layer, head = shown.run, shown.progress, shown.layer, shown.head
    picture = Image.new("RGB", SIZE, PALETTE["card"].light)
    draw = ImageDraw.Draw(picture)
    title = f"step {evaluation.step:,} of {progress.steps:,}     loss {evaluation.val_loss:.2f} nats"
    if evaluation.accuracy is not None:
        title += f"     {evaluation.accuracy:.0%} correct"
    draw.text((LOSS[0], 10), title, TEXT, ImageFont.load_default(18))
    guessing = math.log(run.dataset.vocabulary.n_vocab)
    highest = 1.05 * max(guessing, *(each.val_loss for each in progress.evaluations))
    _label(draw, LOSS, "loss on held-out data, steps on a log scale")
    _draw_curve(draw, LOSS, progress, evaluation, [each.val_loss / highest for each in progress.evaluations])
    for loss in range(0, int(highest) + 1, max(1, int(highest) // 4)):
        _draw_tick(draw, LOSS, loss / highest, str(loss))
    _label(draw, SHARE, f"layer {layer}, head {head}: attention on the right token")
    shares = [float(shares_of_next(each, run)[layer, head]) for each in progress.evaluations]
    _draw_curve(draw, SHARE, progress, evaluation, shares)
    for share in (0.0, 0.5, 1.0):
        _draw_tick(draw, SHARE, share, f"{share:.0%}")
    _draw_sample(draw, evaluation)
    _label(draw, HEADS, "attention, one row per layer")
    _draw_heads(picture, draw, evaluation.attn_weights.astype(np.float32), layer, head)
    _label(draw, PINNED, f"layer {layer}, head {head}")
    side = min(PINNED[2] - PINNED[0], PINNED[3] - PINNED[1])
    picture.paste(_heatmap(evaluation.attn_weights[layer, head].astype(np.float32), side), PINNED[:2])
    return picture.quantize(128)


def _draw_curve(
    draw: ImageDraw.ImageDraw, box: Box, progress: RunProgress, shown: Evaluation, values: Sequence[float]
) -> None:
    """Draw values in 0..1 against the evaluations' steps, on a log scale that starts at step 0."""
    left, top, right, bottom = box
    steps = [math.log(max(each.step, 0.5) / 0.5) for each in progress.evaluations]
    points = [
        (left + step / max(steps[-1], 1) * (right - left), bottom - value * (bottom - top))
        for step, value in zip(steps, values, strict=True)
    ]
    draw.line([(left, bottom), (right, bottom)], LINE)
    if len(points) > 1:
        draw.line(points, AFTER, 2)
    x, y = points[progress.evaluations.index(shown)]
    draw.line([(x, top), (x, bottom)], ACCENT)
    draw.ellipse([x - 4, y - 4, x + 4, y + 4], ACCENT)


def _draw_tick(draw: ImageDraw.ImageDraw, box: Box, value: float, text: str) -> None:
    y = box[3] - value * (box[3] - box[1])
    draw.line([(box[0] - 4, y), (box[0], y)], LINE)
    draw.text((box[0] - 8, y), text, MUTED, ImageFont.load_default(12), anchor="rm")


def _draw_sample(draw: ImageDraw.ImageDraw, evaluation: Evaluation) -> None:
    """Draw the text that the model generated."""
    top = LOSS[3] + 18
    draw.text((LOSS[0], top), "it writes", MUTED, ImageFont.load_default(13))
    lines = [line for each in evaluation.samples for line in _wrapped(each.prompt + each.text.removesuffix("\n"))]
    for i, line in enumerate(lines[:TEXT_LINES]):
        draw.text((LOSS[0], top + 20 + i * TEXT_LINE), line, TEXT, ImageFont.load_default(14))


def _wrapped(text: str) -> list[str]:
    return [part for line in text.split("\n") for part in textwrap.wrap(marked(line), TEXT_COLUMNS) or [""]]


def _draw_heads(picture: Image.Image, draw: ImageDraw.ImageDraw, weights: np.ndarray, layer: int, head: int) -> None:
    """Draw all heads' attention weights, (n_layer, n_head, T, T)."""
    n_layer, n_head = weights.shape[:2]
    left, top, right, bottom = HEADS
    gap = 6
    side = min((right - left + gap) // n_head, (bottom - top + gap) // n_layer) - gap
    for i in range(n_layer):
        for j in range(n_head):
            x, y = left + j * (side + gap), top + i * (side + gap)
            picture.paste(_heatmap(weights[i, j], side), (x, y))
            if (i, j) == (layer, head):
                draw.rectangle([x - 3, y - 3, x + side + 2, y + side + 2], outline=ACCENT, width=2)


def _heatmap(weights: np.ndarray, side: int) -> Image.Image:
    """Draw weights (T, T) in 0..1 in the page's colours. Each pixel shows the average of the colours it covers."""
    colours = np.array([[int(pair.light[i : i + 2], 16) for i in (1, 3, 5)] for pair in SEQUENTIAL], np.float32)
    levels = np.sqrt(np.clip(weights, 0, 1)) * (len(colours) - 1)  # the square root keeps small weights visible
    low = np.minimum(levels.astype(int), len(colours) - 2)
    share = (levels - low)[..., None]
    pixels = colours[low] * (1 - share) + colours[low + 1] * share
    return Image.fromarray(np.round(pixels).astype(np.uint8)).resize((side, side), Image.Resampling.BOX)


def _label(draw: ImageDraw.ImageDraw, box: Box, text: str) -> None:
    """Draw a label above a box."""
    draw.text((box[0], box[1] - 20), text, MUTED, ImageFont.load_default(13))
