"""Write the model card of a training run (data, scores, recipe, samples and limits) and the card of its snapshots.

python -m tools.model_card runs/stories --data "Made-up stories." --language en
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from gpt.analysis.heads import N_SEQUENCES, copying_heads, copying_scores
from gpt.errors import GPTError
from gpt.model import meta_model
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.loading import LoadedModel
from gpt.models.sources import load_model
from gpt.training.command_line import EVERY, FolderRun, LogRow, chosen_recipe, default_preset, parse_options, read_log
from gpt.training.data import StoryDataset, TextDataset
from gpt.training.evaluation import Score, sample, score_stories
from gpt.training.recipe import RECIPE_PRESETS, Recipe
from gpt.training.snapshots import FIGURES, RecordedRun, SnapshotFigures
from gpt.training.trainer import Process, join_processes

CIRCUIT_LENGTHS = (10, 20, 50, 100)
CHOICE = "The held-back text was used only to choose the checkpoint with the lowest loss."
Data = TextDataset | StoryDataset
SCORE_TEXTS: dict[type[Data], str] = {
    StoryDataset: "Bits per byte: -log2 of the probability of a story's tokens given end-of-text, divided by its UTF-8 "
    "bytes.\nStories longer than the context are read in windows that overlap by half a context.",
    TextDataset: "Bits per byte: -log2 of the probability of the held-back text's characters after the first, divided "
    "by their UTF-8 bytes.\nThe text is read in windows that overlap by half a context.",
}
N_SAMPLES, SAMPLE_TOKENS, TEMPERATURE = 10, 150, 0.8
SNAPSHOT_SAMPLE_TOKENS = 50


@dataclass(frozen=True)
class CardText:
    """Parts of the card that cannot be read from the run's folder.

    data: description of the text, in Markdown. language: language code of the text, such as "en"; None omits it.
    dataset: id of the text on the hub. license: licence of the weights, in the hub's spelling.
    """

    data: str = "Not described."
    language: str | None = None
    hardware: str = "hardware not described"
    dataset: str | None = None
    license: str = "other"


SHAKESPEARE_CARD = CardText(
    data="40,000 lines of Shakespeare's plays, the text of [char-rnn](https://github.com/karpathy/char-rnn); public "
    "domain.",
    language="en",
)


def repeat_command(options: argparse.Namespace, world_size: int) -> str:
    """Return the command that repeats the run, including all differences from the preset but no local folders."""
    words = ["python"] if world_size == 1 else ["torchrun", "--nproc-per-node", str(world_size)]
    words += ["-m", "gpt.training"]
    if options.text:
        words.append(options.text.name)
    elif options.characters:
        words += ["--characters", options.characters.name]
    if options.preset != default_preset(options):
        words += ["--preset", options.preset]
    words += ["--out", options.out.resolve().name]
    if options.init_from:
        words += ["--init-from", Path(options.init_from).name]
    if options.compile:
        words.append("--compile")
    if options.every != EVERY:
        words += ["--every", str(options.every)]
    if options.snapshots:
        words += ["--snapshots", str(options.snapshots)]
    recipe, preset = chosen_recipe(options), RECIPE_PRESETS[options.preset]
    for f in fields(Recipe):
        value = getattr(recipe, f.name)
        if value != getattr(preset, f.name):
            option = "--" + f.name.replace("_", "-")
            words += [option if value else option.replace("--", "--no-")] if f.type == "bool" else [option, str(value)]
    return shlex.join(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, or 1 after an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of a run of gpt.training")
    parser.add_argument("--data", help="description, source and licence of the text, in Markdown")
    parser.add_argument("--language", help='language of the text, such as "en"')
    parser.add_argument("--hardware", help="hardware used for training")
    parser.add_argument("--dataset", help="id of the text on the Hugging Face hub")
    parser.add_argument("--license", help="licence of the weights, in the hub's spelling")
    given = parser.parse_args(arguments)
    try:
        options = parse_options(["--out", str(given.folder), "--resume"])
        run, command = FolderRun(options), repeat_command(options, 1)
        default = CardText() if options.text or options.characters else SHAKESPEARE_CARD
        text = replace(default, **{f.name: x for f in fields(CardText) if (x := getattr(given, f.name)) is not None})
        begun = Path(options.init_from).name if options.init_from else None
        with join_processes(run.recipe.precision) as process:
            score = write_card(run.folder, run.recipe, command, run.data, text, begun)
            if options.snapshots:
                write_snapshot_card(run.folder, run.recipe, command, run.data, text, process)
    except ValueError as error:
        print(f"tools.model_card: {error}", file=sys.stderr)
        return 1
    print(f"{run.folder / 'best'}: {score.bits_per_byte:.4f} bits per byte on the held-back text")
    return 0


def write_card(
    folder: Path, recipe: Recipe, command: str, data: Data, text: CardText, begun_with: str | None = None
) -> Score:
    """Write README.md and curve.png next to a run's best weights, and return their score on the held-back text.

    begun_with: name of the model whose weights the run started from; None for random weights.

    The score is computed in float32 from the saved half-precision weights. Raises ValueError if the run has not been
    evaluated yet.
    """
    if not read_log(folder):
        raise GPTError("training.no_weights", "{folder} has no weights yet to write a model card about", folder=folder)
    loaded = load_model(folder / "best")
    score = score_stories(loaded.model, loaded.tokenizer, data.held_back)
    draw_curve(read_log(folder), folder / "best" / "curve.png")
    prompt = data.prompts[0]
    parts = [
        front_matter(text, recipe),
        _introduction(folder, loaded, vocabulary_text(data, recipe, begun_with), prompt, begun_with),
        f"## Data\n\n{text.data}\n\n{split_text(data, recipe)} {CHOICE}\n",
        _figures(folder, recipe, score, _measure(loaded, score, SCORE_TEXTS[type(data)]), text),
        *([_circuits(loaded)] if recipe.repeats_first or recipe.repeats_last else []),
        recipe_section(recipe, command, vocab_size=loaded.tokenizer.eot_id is not None),
        _samples(loaded, prompt),
        _limits(loaded),
    ]
    (folder / "best" / "README.md").write_text("\n".join(parts), encoding="utf-8")
    return score


def draw_curve(rows: list[LogRow], path: Path) -> None:
    """Plot a run's log as a PNG: both losses against tokens read, and the best evaluation.

    Does nothing if matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed, so there will be no curve.png", file=sys.stderr)
        return
    from matplotlib.figure import Figure  # noqa: PLC0415 - needed only here

    best = min(rows, key=lambda row: row.val_loss)
    tokens = [row.tokens / 1e6 for row in rows]
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.plot(tokens, [row.train_loss for row in rows], "--", color="#6b7280", label="training (mean between points)")
    axes.plot(tokens, [row.val_loss for row in rows], "-o", color="#2563eb", markersize=3, label="held-back text")
    axes.plot(best.tokens / 1e6, best.val_loss, "D", color="#c2410c", label=f"best: {best.val_loss:.3f}")
    axes.set(xlabel="tokens read, in millions", ylabel="loss, nats per token")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, format="png")


def vocabulary_text(data: Data, recipe: Recipe, begun_with: str | None) -> str:
    """Describe the vocabulary."""
    n_vocab = data.vocabulary.n_vocab
    if isinstance(data, TextDataset):
        of_text = "different characters of the text" if begun_with is None else "characters of the initial model"
        return f"a vocabulary of the\n{n_vocab} {of_text}"
    if recipe.vocabulary == "characters":
        return f"a vocabulary of\n{n_vocab:,} tokens: characters of the same text and two special tokens"
    return f"a byte-level BPE vocabulary of\n{n_vocab:,} tokens trained on the same text"


def split_text(data: Data, recipe: Recipe) -> str:
    """Describe the text's training part and its held-back part."""
    if isinstance(data, TextDataset):
        n_training, n_held_back = len(data.training_ids), len(data.validation_ids)
        return (
            f"{n_training + n_held_back:,} characters. Split: the last {n_held_back:,} (a share of {recipe.held_back}) "
            f"are held back, and the {n_training:,}\nbefore them are used for training."
        )
    n_held_back, n_training = len(data.held_back), data.n_stories - len(data.held_back)
    return (
        f"{data.n_stories:,} stories, {data.n_bytes:,} bytes. Split: shuffled with seed {recipe.seed}, with a share of "
        f"{recipe.held_back} held\nback. Weights and vocabulary were trained on {n_training:,} stories "
        f"and not on the {n_held_back:,}\nstories held back."
    )


def front_matter(text: CardText, recipe: Recipe) -> str:
    """Return the card's metadata in the hub's format."""
    lines = [
        f"license: {json.dumps(text.license)}",
        *([f"language: {text.language}"] if text.language else []),
        "library_name: pytorch",
        "pipeline_tag: text-generation",
        f'tags: ["gpt", "{recipe.architecture}", "from-scratch"]',
    ]
    if text.dataset:
        lines.append(f"datasets: [{json.dumps(text.dataset)}]")
    return "---\n" + "\n".join(lines) + "\n---\n"


def _introduction(folder: Path, loaded: LoadedModel, vocabulary: str, prompt: str, begun_with: str | None) -> str:
    config = loaded.model.config
    n_parameters = meta_model(config).n_parameters
    if isinstance(loaded.tokenizer, Characters):
        file = "and `characters.json` the vocabulary, a list\nof characters in the order of their ids."
    else:
        file = "and `vocab.tiktoken` the vocabulary\nin tiktoken's format (end-of-text has the next free id)."
    shape, heads = "Llama" if config.gated else "GPT-2", f"{config.n_head} heads"
    if config.kv_heads != config.n_head:
        heads += f" that share {config.kv_heads} key and value heads"
    call = f"generate(model, {json.dumps(prompt, ensure_ascii=False)}, params, {SAMPLE_TOKENS})"
    return f"""# {folder.resolve().name}

A language model with the shape of {shape} and {n_parameters:,} parameters: {config.n_layer} blocks, {heads},
width {config.n_embd}, a context of {config.block_size} tokens, {vocabulary}.
Trained from {f"the weights of {begun_with}" if begun_with else "random weights"} with this project's own code.

`config.json` contains the shape, `model.safetensors` the weights in half precision, {file}
To use it in Python, with the path of this file's folder:

```python
from gpt import SamplingParams, generate, load_model

model = load_model("path/to/this/folder")
params = SamplingParams(temperature={TEMPERATURE}, seed=0)
for step in {call}:
    print(step.text, end="")
```
"""


def _figures(folder: Path, recipe: Recipe, score: Score, score_text: str, text: CardText) -> str:
    rows = read_log(folder)
    best = min(rows, key=lambda row: row.val_loss)
    picture = "\n![Loss in nats per token over the tokens read, on the training and the held-back text](curve.png)\n"
    return f"""## Figures

On the held-back text, with the weights as saved (half precision, read back and computed in float32):

| bits per byte | nats per token | perplexity | tokens | bytes |
|---|---|---|---|---|
| **{score.bits_per_byte:.4f}** | {score.loss:.4f} | {score.perplexity:.2f} | {score.n_tokens:,} | {score.n_bytes:,} |

{score_text}

The best of {len(rows)} evaluations, after step {best.step:,} of {recipe.steps:,} and {best.tokens:,} tokens; the mean
training loss before it was {best.train_loss:.4f} nats per token. Time: {rows[-1].seconds / 60:,.1f} minutes
({text.hardware}).
{picture if (folder / "best" / "curve.png").is_file() else ""}"""


def _measure(loaded: LoadedModel, score: Score, score_text: str) -> str:
    """Return an explanation of the figures, with bits per character if each token is a character."""
    if not isinstance(loaded.tokenizer, Characters):
        return score_text
    return f"That is {score.loss / math.log(2):.3f} bits per character. {score_text}"


def _circuits(loaded: LoadedModel) -> str:
    """Return the section about repeated random tokens, for a model that was trained on them."""
    rows = []
    for length in CIRCUIT_LENGTHS:
        found = copying_heads(loaded.model, loaded.tokenizer.eot_id, length)
        induction, previous = found.induction, found.previous_token
        rows.append(
            f"| {length} | {induction.layer}, {induction.head} | {induction.score:.2f} "
            f"| {previous.layer}, {previous.head} | {previous.score:.2f} | {found.loss:.3f} |"
        )
    table = "\n".join(rows)
    return f"""## Induction heads

The training data included rows of repeated random tokens. The table shows means over {N_SEQUENCES} sequences of
end-of-text and two copies of random tokens: the head that attends most from a token in the second copy to the
token that followed it in the first copy; the head in an earlier layer that attends most to the previous token; and
the loss on the second copy, starting with its second token.

| tokens per copy | induction: layer, head | score | previous token: layer, head | score | loss in nats |
|---|---|---|---|---|---|
{table}

The scores are mean attention weights from 0 to 1, see `gpt.analysis.heads`.
"""


def recipe_section(recipe: Recipe, command: str, *, vocab_size: bool = True) -> str:
    """Return the section with the command and all hyperparameters in use. vocab_size: whether to list it."""
    unused = set() if recipe.optimizer == "muon" else {"muon_lr", "muon_weight_decay"}
    unused |= set() if vocab_size else {"vocabulary", "vocab_size"}
    unused |= {"n_kv_head"} if recipe.architecture == "gpt2" else set()
    shown = [f for f in fields(recipe) if f.name not in unused]
    table = "\n".join(f"| {f.name} | {getattr(recipe, f.name)} | {f.metadata['help']} |" for f in shown)
    return f"""## Recipe

```
{command}
```

| setting | value | meaning |
|---|---|---|
{table}
"""


def _samples(loaded: LoadedModel, prompt: str) -> str:
    texts = []
    for seed in range(N_SAMPLES):
        text = prompt + sample(loaded, prompt, seed=seed, max_new_tokens=SAMPLE_TOKENS, temperature=TEMPERATURE)
        wrapped = "\n".join(textwrap.fill(line, 100) for line in text.splitlines())
        texts.append(f"Seed {seed}:\n\n" + textwrap.indent(wrapped, "    ", lambda line: True) + "\n")
    begins = (
        f'"{prompt}" and up to {SAMPLE_TOKENS} more tokens'
        if prompt
        else f"Up to {SAMPLE_TOKENS} tokens from an empty prompt"
    )
    return f"""## Ten samples

{begins} at temperature {TEMPERATURE}, not hand-picked:

""" + "\n".join(texts)


def _limits(loaded: LoadedModel) -> str:
    return f"""## Limits

- It writes only the kind of text that it was trained on: no facts, no instructions, no conversation.
- It forgets everything more than {loaded.model.config.block_size} tokens back and contradicts itself in longer texts.
- It reproduces its training data, including stereotypes. The data was not filtered, and the model was not aligned.
- It is a toy for learning. Do not take its text for information or advice.
"""


def write_snapshot_card(
    folder: Path, recipe: Recipe, command: str, data: Data, text: CardText, process: Process
) -> None:
    """Measure every snapshot of a run, and write figures.json and README.md next to the snapshots.

    All measurements are computed in float32 from the saved weights.
    """
    run = RecordedRun(folder / "snapshots")
    figures = [_measured(run, step, recipe, data, process) for step in run.steps]
    rows = ",\n".join(json.dumps(asdict(each), ensure_ascii=False) for each in figures)
    (run.folder / FIGURES).write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    (run.folder / "README.md").write_text(_card(folder, figures, recipe, command, data, text), encoding="utf-8")


def _measured(run: RecordedRun, step: int, recipe: Recipe, data: Data, process: Process) -> SnapshotFigures:
    model, tokenizer = run.model(step).to(process.device), run.vocabulary
    loaded = LoadedModel("snapshot", model, tokenizer, process.device, "fp32")
    score = score_stories(model, tokenizer, data.held_back)
    copying = copying_scores(model, tokenizer.eot_id)
    prompt = data.prompts[0]
    return SnapshotFigures(
        step=step,
        tokens=step * recipe.batch_size * recipe.block_size,
        loss=round(score.loss, 4),
        bits_per_byte=round(score.bits_per_byte, 4),
        copy_loss=round(copying.loss, 4),
        induction=[[round(x, 4) for x in row] for row in copying.induction.tolist()],
        previous_token=[[round(x, 4) for x in row] for row in copying.previous_token.tolist()],
        prompt=prompt,
        sample=sample(loaded, prompt, max_new_tokens=SNAPSHOT_SAMPLE_TOKENS),
    )


def _card(
    folder: Path,
    figures: list[SnapshotFigures],
    recipe: Recipe,
    command: str,
    data: Data,
    text: CardText,
) -> str:
    run = RecordedRun(folder / "snapshots")
    rows = "\n".join(
        f"| {each.step:,} | {each.tokens:,} | {each.loss:.3f} | {each.bits_per_byte:.3f} | {each.copy_loss:.3f} "
        f"| {max(map(max, each.induction)):.2f} | {max(map(max, each.previous_token)):.2f} |"
        for each in figures
    )
    return f"""{front_matter(text, recipe)}
# Snapshots of the training of {folder.resolve().name}

The weights of a model with {run.n_parameters:,} parameters ({recipe.n_layer} blocks, {recipe.n_head} heads, width \
{recipe.n_embd},
a context of {recipe.block_size} tokens) after {len(figures)} of its updates, on a log scale of steps.
`<step>.safetensors` contains the matrices in int8 with a float16 scale per row and the vectors in float16, see
`gpt.training.snapshots`. `figures.json` contains the measurements for each snapshot, including all heads.

## Data

{text.data}

{split_text(data, recipe)}

Hardware: {text.hardware}.

## Figures

Measured with the weights as saved, in float32: the loss on the held-back text in nats per token and in bits per byte;
the loss on the second copy of repeated random tokens; and, on the same tokens, the highest induction and previous-token
scores of all heads (`gpt.analysis.heads`).

| step | tokens | loss | bits per byte | loss on the copy | induction | previous token |
|---|---|---|---|---|---|---|
{rows}

{recipe_section(recipe, command, vocab_size=run.vocabulary.eot_id is not None)}"""


if __name__ == "__main__":
    raise SystemExit(main())
