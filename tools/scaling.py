"""Train small models with two architectures on one text, to plot loss against parameters, tokens and compute.

    python -m tools.scaling stories.txt

The text, vocabulary, held-back part and recipe are the same as for the bundled model, which is also measured.
Run the same command again to resume an interrupted run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.experiments.shapes import SCALING, flops_per_token, parameter_parts
from gpt.models.loading import LoadedModel
from gpt.models.sources import BUNDLED, DEFAULT_MODEL, load_model
from gpt.tokenizer import Vocabulary
from gpt.training.data import encode_stories, read_stories, split_stories, story_batches, train_tokenizer
from gpt.training.evaluation import Score, score_stories
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch, Process, Trainer, join_processes

SIZES = {"2 x 64": (2, 2, 64), "4 x 96": (4, 3, 96), "6 x 128": (6, 4, 128)}  # n_layer, n_head, n_embd
STEPS, BATCH_SIZE = 1024, 8
SAVE_STEPS = 100  # steps between saves
Point = dict[str, float]  # tokens, flops, loss and bits_per_byte


def measure_scaling(
    training: list[str],
    held_back: list[str],
    tokenizer: Vocabulary,
    recipe: Recipe,
    process: Process,
    *,
    sizes: dict[str, tuple[int, int, int]],
    saved: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """Train a model of each size with one recipe, and score it after 1, 2, 4, 8 ... steps and at the end.

    saved: file for saving and resuming the run. Raises ValueError if the file belongs to a different recipe.
    """
    for name, (n_layer, n_head, n_embd) in sizes.items():
        sized = replace(recipe, n_layer=n_layer, n_head=n_head, n_embd=n_embd)
        trainer = Trainer(sized.new_model(tokenizer.n_vocab), sized, process)
        key = f"{recipe.architecture} {name}"
        points = resume(saved, key, trainer)
        documents = encode_stories(training, tokenizer, sized.block_size, "training")
        batches = story_batches(documents, sized, sized.batch_size, trainer.step)
        while trainer.step < sized.steps:
            trainer.update(Batch.of_rows(next(batches)))
            if trainer.step & (trainer.step - 1) == 0 or trainer.step == sized.steps:
                score = trainer.score(tokenizer, held_back)
                points.append(make_point(trainer.model.config, trainer.n_tokens, score))
            if trainer.step % SAVE_STEPS == 0 or trainer.step == sized.steps:
                save(saved, key, trainer, points)
        yield make_curve(name, trainer.model.config, points)


def training_flops(config: GPTConfig) -> float:
    """Return the FLOPs per training token, averaged over a context: three times those of a forward pass.

    The backward pass costs twice as much as the forward pass (Kaplan et al., arXiv 2001.08361, section 2.1).
    """
    total = sum(sum(flops_per_token(config, position)) for position in range(config.block_size))
    return 3 * total / config.block_size


def llama_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe for the Llama architecture, with a single key-value head."""
    return replace(recipe, architecture="llama", bias=False, n_kv_head=1)


def save(path: Path | None, name: str, trainer: Trainer, points: list[Point]) -> None:
    """Save the state of one model. Keeps the states of other models in the file."""
    if path is None:
        return
    state = {"recipe": asdict(trainer.recipe), "points": points, **trainer.state()}
    part = path.with_name(path.name + ".part")
    torch.save({**read_saved(path), name: state}, part)
    os.replace(part, path)


def resume(path: Path | None, name: str, trainer: Trainer) -> list[Point]:
    """Load the state that `save` wrote for a model, if any, and return the points so far."""
    state = read_saved(path).get(name)
    if state is None:
        return []
    if state["recipe"] != asdict(trainer.recipe):
        raise GPTError(
            "experiment.other_recipe", "{path} comes from a different recipe: delete it to start again", path=path
        )
    trainer.load(state)
    return list(state["points"])


def read_saved(path: Path | None) -> dict[str, Any]:
    """Return the states that `save` wrote, as {model name: state}; empty if there is no file."""
    return torch.load(path, weights_only=True) if path is not None and path.is_file() else {}


def measure_bundled(loaded: LoadedModel, held_back: list[str], recipe: Recipe) -> dict[str, Any]:
    """Return a single-point curve for a model that was trained with a recipe."""
    config, n_tokens = loaded.model.config, recipe.steps * recipe.batch_size * recipe.block_size
    score = score_stories(loaded.model, loaded.tokenizer, held_back)
    return make_curve(loaded.name, config, [make_point(config, n_tokens, score)])


def make_point(config: GPTConfig, tokens: int, score: Score) -> Point:
    flops = tokens * training_flops(config)
    return {"tokens": tokens, "flops": flops, "loss": score.loss, "bits_per_byte": score.bits_per_byte}


def make_curve(name: str, config: GPTConfig, points: list[Point]) -> dict[str, Any]:
    """Create a curve with the parameter counts of its model."""
    parts = parameter_parts(config)
    total, outside = sum(parts.values()), parts["token_embedding"] + parts["position_embedding"] + parts["head"]
    return {"name": name, "parameters": total, "block_parameters": total - outside, "points": points}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    description, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m tools.scaling",
        description=description,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", type=Path, help="stories on which the bundled model was trained")
    parser.add_argument("--out", type=Path, default=SCALING, help="file to write")
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"updates per model ({STEPS})")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU cores to use (all)")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    try:
        recipe = Recipe(steps=options.steps, batch_size=BATCH_SIZE)
        training, held_back = split_stories(read_stories(options.text), recipe.held_back, recipe.seed)
        bundled = load_model(DEFAULT_MODEL, device="cpu") if BUNDLED.is_dir() else None
        tokenizer = bundled.tokenizer if bundled is not None else train_tokenizer(training, recipe.vocab_size)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        saved = options.out.with_suffix(".pt")
        curves: list[dict[str, Any]] = []
        llama: list[dict[str, Any]] = []
        with join_processes() as process:
            for found, shape in ((curves, recipe), (llama, llama_recipe(recipe))):
                for curve in measure_scaling(training, held_back, tokenizer, shape, process, sizes=SIZES, saved=saved):
                    found.append(curve)
                    name, n, end = curve["name"], curve["parameters"], curve["points"][-1]["bits_per_byte"]
                    print(f"{shape.architecture} {name}: {n:,} parameters, {end:.4f} bits per byte")
        if bundled is not None:
            curves.append(measure_bundled(bundled, held_back, Recipe()))
            print(f"{bundled.name}: {curves[-1]['points'][-1]['bits_per_byte']:.4f} bits per byte")
        command = f"python -m tools.scaling {options.text.name} --steps {options.steps}"
        results = {"command": command, "curves": curves, "llama": llama}
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        saved.unlink(missing_ok=True)
    except ValueError as error:
        print(f"tools.scaling: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
