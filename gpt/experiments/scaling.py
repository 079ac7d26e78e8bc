"""Three small models on one text: the loss against parameters, tokens and compute.

    python -m gpt.experiments.scaling stories.txt --out gpt/assets/scaling.json

The text is that of gpt.train, and so is the part of it that is held back: the bundled model, which has not seen it
either, is measured beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpt.checkpoints.vocabularies import Vocabulary
from gpt.config import GPTConfig
from gpt.evaluation import score_stories
from gpt.experiments.shapes import count_parameters, flops_per_token, parameter_parts
from gpt.loading import LoadedModel
from gpt.registry import BUNDLED, DEFAULT_MODEL, load_model
from gpt.train.corpus import Rows, learn_tokenizer, read_stories, split_stories
from gpt.train.recipe import Recipe
from gpt.train.trainer import Process, Trainer, joined

SCALING = Path(__file__).parent.parent / "assets" / "scaling.json"  # what the recorded run wrote
SIZES = {"2 x 64": (2, 2, 64), "4 x 96": (4, 3, 96), "6 x 128": (6, 4, 128)}  # n_layer, n_head, n_embd
STEPS = 1500
TESTED = 100  # held-back stories


@dataclass(frozen=True)
class ScalingPoint:
    """How good a model was after so much training: tokens read, operations spent, nats a token, bits a byte."""

    tokens: int
    flops: float
    loss: float
    bits_per_byte: float


@dataclass(frozen=True)
class ScalingCurve:
    """One model on its way. parameters: all; block_parameters: without embeddings and head."""

    name: str
    parameters: int
    block_parameters: int
    points: tuple[ScalingPoint, ...]


def load_scaling(path: Path | str = SCALING) -> tuple[ScalingCurve, ...]:
    """What the command wrote, the smallest model first. Raises ValueError if it was not run."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path.name}: python -m gpt.experiments.scaling writes it")
    curves = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        ScalingCurve(**{**curve, "points": tuple(ScalingPoint(**point) for point in curve["points"])})
        for curve in curves
    )


def training_flops(config: GPTConfig) -> float:
    """Operations for each token of training, mean over a context: three times those of reading it.

    Going backwards costs twice as much as going forwards (Kaplan et al., arXiv 2001.08361, section 2.1).
    """
    total = sum(flops_per_token(config, position).total for position in range(config.block_size))
    return 3 * total / config.block_size


def measure_scaling(
    training: list[str],
    held_back: list[str],
    tokenizer: Vocabulary,
    recipe: Recipe,
    process: Process,
    *,
    sizes: dict[str, tuple[int, int, int]],
) -> Iterator[ScalingCurve]:
    """Train a model of each size by one recipe; measured after 1, 2, 4, 8 ... steps and at the end."""
    for name, (n_layer, n_head, n_embd) in sizes.items():
        sized = replace(recipe, n_layer=n_layer, n_head=n_head, n_embd=n_embd)
        trainer = Trainer(sized, tokenizer.n_vocab, process)
        batches = Rows(training, tokenizer, sized.block_size, sized.seed).batches(sized.batch_size)
        points = []
        while trainer.step < sized.steps:
            trainer.update(next(batches))
            if trainer.step & (trainer.step - 1) == 0 or trainer.step == sized.steps:
                score = trainer.score(tokenizer, held_back)
                flops = trainer.n_tokens * training_flops(trainer.model.config)
                points.append(ScalingPoint(trainer.n_tokens, flops, score.loss, score.bits_per_byte))
        yield make_curve(name, trainer.model.config, points)


def measure_bundled(loaded: LoadedModel, held_back: list[str], recipe: Recipe) -> ScalingCurve:
    """Where a model stands that was trained by a recipe: one point."""
    config, n_tokens = loaded.model.config, recipe.steps * recipe.batch_size * recipe.block_size
    score = score_stories(loaded.model, loaded.tokenizer, held_back)
    point = ScalingPoint(n_tokens, n_tokens * training_flops(config), score.loss, score.bits_per_byte)
    return make_curve(loaded.name, config, [point])


def make_curve(name: str, config: GPTConfig, points: Sequence[ScalingPoint]) -> ScalingCurve:
    """A curve with the counts of its model."""
    parts = parameter_parts(config)
    outside = parts["token_embedding"] + parts["position_embedding"] + parts["head"]
    return ScalingCurve(name, count_parameters(config), count_parameters(config) - outside, tuple(points))


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """The command line; returns the exit code."""
    about, _, usage = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m gpt.experiments.scaling",
        description=about,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", type=Path, help="the stories that the bundled model was trained on")
    parser.add_argument("--out", type=Path, default=SCALING, help="the file to write")
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"updates of each model ({STEPS})")
    parser.add_argument("--stories", type=int, default=TESTED, metavar="N", help=f"held-back stories ({TESTED})")
    options = parser.parse_args(arguments)
    try:
        recipe = Recipe(steps=options.steps)
        training, held_back = split_stories(read_stories(options.text), recipe.held_back, recipe.seed)
        held_back = held_back[: options.stories]
        bundled = load_model(DEFAULT_MODEL, device="cpu") if BUNDLED.is_dir() else None
        tokenizer = bundled.tokenizer if bundled is not None else learn_tokenizer(training, recipe.vocab_size)
        curves = []
        with joined("fp32") as process:
            for curve in measure_scaling(training, held_back, tokenizer, recipe, process, sizes=SIZES):
                curves.append(curve)
                say(f"{curve.name}: {curve.parameters:,} parameters, {curve.points[-1].bits_per_byte:.4f} bits a byte")
        if bundled is not None:
            curves.append(measure_bundled(bundled, held_back, Recipe()))
            say(f"{bundled.name}: {curves[-1].points[-1].bits_per_byte:.4f} bits a byte")
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps([asdict(curve) for curve in curves], indent=1) + "\n", encoding="utf-8")
    except ValueError as error:
        print(f"gpt.experiments.scaling: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
