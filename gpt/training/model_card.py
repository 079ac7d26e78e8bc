"""The model card of a training run: data, scores, recipe, samples and limits."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, fields

from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.models.meta import meta_model
from gpt.models.sources import load_model
from gpt.training.evaluation import Score, sample, score_stories
from gpt.training.recipe import Recipe
from gpt.training.run_folder import RunFolder

PROMPT, N_SAMPLES, SAMPLE_TOKENS, TEMPERATURE = "Once upon a time", 10, 150, 0.8


@dataclass(frozen=True)
class CardText:
    """The parts of the card that are not in the run's folder.

    data: description of the text in Markdown. dataset: its id on the hub. license: of the weights, in the hub's
    spelling.
    """

    data: str = "Not described."
    hardware: str = "hardware not described"
    dataset: str | None = None
    license: str = "other"


def write_card(
    folder: RunFolder,
    recipe: Recipe,
    command: str,
    training: Sequence[str],
    held_back: Sequence[str],
    text: CardText,
) -> Score:
    """Write README.md and curve.png beside the best weights of a run; returns their score on the held-back stories.

    The score is of the saved weights: half precision, computed in float32.
    Raises ValueError before the first evaluation.
    """
    if not folder.log():
        raise GPTError("training.no_weights", folder=folder.path)
    loaded = load_model(folder.best)
    score = score_stories(loaded.model, loaded.tokenizer, list(held_back))
    parts = [
        _front_matter(text),
        _introduction(folder, loaded),
        _data(recipe, training, held_back, text),
        _figures(folder, recipe, score, text),
        _recipe(recipe, command),
        _samples(loaded),
        _limits(loaded),
    ]
    folder.draw_curve(folder.best / "curve.png")
    (folder.best / "README.md").write_text("\n".join(parts), encoding="utf-8")
    return score


def _front_matter(text: CardText) -> str:
    lines = [
        f"license: {json.dumps(text.license)}",
        "language: en",
        "library_name: pytorch",
        "pipeline_tag: text-generation",
        'tags: ["gpt", "gpt2", "from-scratch"]',
    ]
    if text.dataset:
        lines.append(f"datasets: [{json.dumps(text.dataset)}]")
    return "---\n" + "\n".join(lines) + "\n---\n"


def _introduction(folder: RunFolder, loaded: LoadedModel) -> str:
    config = loaded.model.config
    n_parameters = sum(parameter.numel() for parameter in meta_model(config).parameters())
    return f"""# {folder.path.resolve().name}

A language model of the shape of GPT-2 with {n_parameters:,} parameters: {config.n_layer} blocks, {config.n_head} heads,
width {config.n_embd}, a context of {config.block_size} tokens, a byte-level BPE vocabulary of
{config.vocab_size:,} tokens made from the same text. Trained from random weights by this project's own code.

`config.json` holds the shape, `model.safetensors` the weights in half precision, `vocab.tiktoken` the vocabulary in
tiktoken's format (end-of-text has the id after the last). In Python, for the folder that holds this file:

```python
from gpt import SamplingParams, generate, load_model

model = load_model("path/to/this/folder")
for step in generate(model, "{PROMPT}", SamplingParams(temperature={TEMPERATURE}, seed=0), {SAMPLE_TOKENS}):
    print(step.text, end="")
```
"""


def _data(recipe: Recipe, training: Sequence[str], held_back: Sequence[str], text: CardText) -> str:
    total = len(training) + len(held_back)
    n_bytes = sum(len(story.encode()) for part in (training, held_back) for story in part)
    return f"""## Data

{text.data}

{total:,} stories, {n_bytes:,} bytes. Split: shuffled with seed {recipe.seed}, then a share of {recipe.held_back} held
back: {len(held_back):,} stories that neither the weights nor the vocabulary were trained on, {len(training):,} to
train on. The held-back stories chose the checkpoint (the lowest loss of all evaluations) and nothing else.
"""


def _figures(folder: RunFolder, recipe: Recipe, score: Score, text: CardText) -> str:
    rows = folder.log()
    best = min(rows, key=lambda row: row.val_loss)
    return f"""## Figures

On the held-back stories, with the weights as saved (half precision, read back and computed in float32):

| bits per byte | nats per token | perplexity | tokens | bytes |
|---|---|---|---|---|
| **{score.bits_per_byte:.4f}** | {score.loss:.4f} | {score.perplexity:.2f} | {score.n_tokens:,} | {score.n_bytes:,} |

Bits per byte: -log2 of the probability of a story's tokens given end-of-text, over its UTF-8 bytes; stories longer
than the context by windows that restart with half a context.

The best of {len(rows)} evaluations, after step {best.step:,} of {recipe.steps:,} and {best.tokens:,} tokens; the mean
training loss before it was {best.train_loss:.4f} nats per token. Time: {rows[-1].seconds / 60:.0f} minutes
({text.hardware}).

![Loss in nats per token over the tokens read, on the training and the held-back stories](curve.png)
"""


def _recipe(recipe: Recipe, command: str) -> str:
    table = "\n".join(f"| {f.name} | {getattr(recipe, f.name)} | {f.metadata['help']} |" for f in fields(recipe))
    return f"""## Recipe

```
{command}
```

| setting | value | meaning |
|---|---|---|
{table}
"""


def _samples(loaded: LoadedModel) -> str:
    texts = []
    for seed in range(N_SAMPLES):
        text = sample(loaded, PROMPT, seed=seed, max_new_tokens=SAMPLE_TOKENS, temperature=TEMPERATURE)
        wrapped = "\n".join(textwrap.fill(line, 100) for line in text.splitlines())
        texts.append(f"Seed {seed}:\n\n" + textwrap.indent(wrapped, "    ", lambda line: True) + "\n")
    return f"""## Ten samples

"{PROMPT}" and up to {SAMPLE_TOKENS} tokens after it, at temperature {TEMPERATURE}, not chosen by hand:

""" + "\n".join(texts)


def _limits(loaded: LoadedModel) -> str:
    return f"""## Limits

- It writes the kind of text it was trained on and knows nothing else: no facts, no instructions, no conversation.
- It forgets what is more than {loaded.model.config.block_size} tokens back, and contradicts itself in longer texts.
- It reproduces its data, stereotypes included; nothing was filtered and nothing aligned.
- A toy to learn from: its text should not be taken for information or advice.
"""
