"""Measures the snapshots of a run, and writes their card."""

from __future__ import annotations

from gpt.analysis.copying import copying_scores
from gpt.models.loading import LoadedModel
from gpt.models.meta import meta_model
from gpt.training.evaluation import sample, score_stories
from gpt.training.model_card import CardText, front_matter, recipe_section
from gpt.training.process import Process
from gpt.training.recipe import Recipe
from gpt.training.run_corpus import RunCorpus
from gpt.training.run_folder import RunFolder
from gpt.training.snapshots import SnapshotFigures, Snapshots

SAMPLE_TOKENS = 50


def write_snapshot_card(
    folder: RunFolder, recipe: Recipe, command: str, corpus: RunCorpus, text: CardText, process: Process
) -> None:
    """Measure every snapshot of a run; write figures.json and README.md beside them.

    Everything is measured with the weights as saved, computed in float32.
    """
    snapshots = Snapshots(folder.snapshots)
    figures = [_measured(snapshots, step, recipe, corpus, process) for step in snapshots.steps]
    snapshots.save_figures(figures)
    (folder.snapshots / "README.md").write_text(_card(folder, figures, recipe, command, corpus, text), encoding="utf-8")


def _measured(snapshots: Snapshots, step: int, recipe: Recipe, corpus: RunCorpus, process: Process) -> SnapshotFigures:
    model, tokenizer = snapshots.model(step).to(process.device), snapshots.tokenizer
    loaded = LoadedModel("snapshot", model, tokenizer, process.device, "fp32")
    score = score_stories(model, tokenizer, corpus.held_back)
    copying = copying_scores(model, tokenizer.eot_id)
    prompt = corpus.prompts[0]
    return SnapshotFigures(
        step=step,
        tokens=step * recipe.batch_size * recipe.block_size,
        loss=round(score.loss, 4),
        bits_per_byte=round(score.bits_per_byte, 4),
        copy_loss=round(copying.loss, 4),
        induction=[[round(x, 4) for x in row] for row in copying.induction.tolist()],
        previous_token=[[round(x, 4) for x in row] for row in copying.previous_token.tolist()],
        prompt=prompt,
        sample=sample(loaded, prompt, seed=0, max_new_tokens=SAMPLE_TOKENS).removeprefix(prompt),
    )


def _card(
    folder: RunFolder,
    figures: list[SnapshotFigures],
    recipe: Recipe,
    command: str,
    corpus: RunCorpus,
    text: CardText,
) -> str:
    config = Snapshots(folder.snapshots).config
    n_parameters = sum(parameter.numel() for parameter in meta_model(config).parameters())
    rows = "\n".join(
        f"| {each.step:,} | {each.tokens:,} | {each.loss:.3f} | {each.bits_per_byte:.3f} | {each.copy_loss:.3f} "
        f"| {max(map(max, each.induction)):.2f} | {max(map(max, each.previous_token)):.2f} |"
        for each in figures
    )
    return f"""{front_matter(text, recipe)}
# Snapshots of the training of {folder.path.resolve().name}

The weights of one model of {n_parameters:,} parameters ({recipe.n_layer} blocks, {recipe.n_head} heads, width \
{recipe.n_embd},
a context of {recipe.block_size} tokens) after {len(figures)} of its updates, on a log scale of steps.
`<step>.safetensors` holds the matrices in int8 with a float16 scale for each row, and the vectors in float16, see
`gpt.training.snapshots`; `figures.json` what was measured with each, all heads included.

## Data

{text.data}

{corpus.split_text}

Hardware: {text.hardware}.

## Figures

With the weights as saved, computed in float32. Loss in nats per token and bits per byte of the held-back text; loss of
the second copy of random tokens that come twice, and on the same text the highest induction and previous-token
scores of all heads (`gpt.analysis.copying`).

| step | tokens | loss | bits per byte | loss of the copy | induction | previous token |
|---|---|---|---|---|---|---|
{rows}

{recipe_section(recipe, command, vocab_size=Snapshots(folder.snapshots).tokenizer.eot_id is not None)}"""
