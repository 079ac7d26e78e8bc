"""Train the concepts of a model: sparse autoencoders for the residual stream after a few layers.

    python -m tools.concepts stories stories.txt --out runs/concepts

MODEL is a name, a path or a repository on the hub. TEXT is UTF-8, with an <|endoftext|> line after each story. The same
--held-back fraction holds back the same stories as in `gpt.training`. They are used to measure the dictionaries and
to provide the snippets. The command writes to the folder --out:

    concepts.safetensors   the dictionaries with their evidence; the page reads it from the checkpoint's folder
    concepts.md            a card that describes the dictionaries
    last.pt                the state from which --resume continues

Source: Gao et al. (2024), "Scaling and evaluating sparse autoencoders", arXiv 2406.04093.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.concepts import BEFORE, NONE, WINDOW, Concepts, Dictionary
from gpt.analysis.corpus import Peaks, activations
from gpt.analysis.tracing import hidden_states_from
from gpt.edits import Edits, Hook
from gpt.errors import GPTError, check_integer, check_layer
from gpt.model import GPT
from gpt.models.loading import CONCEPTS, LoadedModel, load_concepts, save_concepts
from gpt.models.sources import load_model
from gpt.tokenizer import Vocabulary
from gpt.trace import Trace
from gpt.training.data import read_stories, split_stories
from gpt.training.recipe import Recipe
from tools.autoencoder import Autoencoder

ROWS = 32  # texts per chunk; tokens are shuffled within a chunk
CONTEXT = 256  # maximum tokens per text
BATCH = 1020  # tokens per update
WARMUP, DECAY_FROM = 0.03, 0.5  # fractions of all updates
SAVE_EVERY = 10  # chunks between saves
EVIDENCE_TOKENS = 150_000  # maximum number of tokens taken from the held-back text
SNIPPETS, TOP_TOKENS = 12, 8
CONTEXTS, CONTEXT_TOKENS = 16, 12  # story prefixes used to measure promoted tokens
CARD, STATE = "concepts.md", "last.pt"


@dataclass(frozen=True)
class Options:
    """Options of a run.

    layers: layers after which the stream is read. width: features per layer. active: active features per token. tokens:
    number of training tokens.
    """

    layers: tuple[int, ...]
    width: int = 2048
    active: int = 20
    tokens: int = 4_000_000
    seed: int = 1337


def documents(stories: list[str], tokenizer: Vocabulary) -> list[np.ndarray]:
    """Return the ids of each story, preceded by end-of-text if the vocabulary has this token."""
    start = [] if tokenizer.eot_id is None else [tokenizer.eot_id]
    return [np.array([*start, *tokenizer.encode(story)]) for story in stories]


def chunks(documents: list[np.ndarray], length: int, seed: int) -> Iterator[Tensor]:
    """Yield chunks of ids, (ROWS, length), indefinitely. Each epoch concatenates the stories in a new order."""
    epoch, rest = 0, np.empty(0, dtype=int)
    while True:
        order = np.random.default_rng([seed, epoch]).permutation(len(documents))
        rest = np.concatenate([rest, *(documents[i] for i in order)])
        epoch += 1
        while len(rest) >= ROWS * length:
            yield torch.from_numpy(rest[: ROWS * length]).view(ROWS, length)
            rest = rest[ROWS * length :]


@torch.no_grad()
def streams(model: GPT, idx: Tensor, layers: Sequence[int]) -> list[Tensor]:
    """Return the residual stream after each layer, (N, C), for all tokens except the first of each row."""
    found: list[list[Tensor]] = [[] for _ in layers]
    for rows in idx.to(model.device).split(8):
        trace = Trace(attention=False)
        model.hidden_states(rows, trace=trace)
        for parts, layer in zip(found, layers, strict=True):
            parts.append(trace.layers[layer].resid_post[:, 1:].flatten(0, 1).float().cpu())
    return [torch.cat(parts) for parts in found]


def rate_at(progress: float) -> float:
    """Return the learning-rate factor after a fraction of the updates."""
    return min(1.0, (progress + 1e-3) / WARMUP, (1 - progress) / (1 - DECAY_FROM))


class Run:
    """Trains the dictionaries of one model on one text.

    Raises ValueError for layers that the model lacks and, with `resume`, if the folder has no run or a run with
    different options.
    """

    def __init__(
        self, model: GPT, texts: list[np.ndarray], options: Options, folder: Path, *, resume: bool = False
    ) -> None:
        for layer in options.layers:
            check_layer(layer, model.config.n_layer)
        check_integer("active", options.active, 1, options.width)
        self.model, self.texts, self.options, self.folder = model, texts, options, folder
        generator = torch.Generator().manual_seed(options.seed)
        width, n_embd = options.width, model.config.n_embd
        self.autoencoders = [Autoencoder(n_embd, width, options.active, generator) for _ in options.layers]
        self.chunk, self.seconds = 0, 0.0
        self.norms: list[tuple[Tensor, Tensor]] = []  # mean and scale of the stream after each layer
        if resume:
            self._load()
        else:
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def tokens(self) -> int:
        """Number of tokens trained on so far."""
        return self.chunk * ROWS * (self._length - 1)

    @property
    def _length(self) -> int:
        return min(CONTEXT, self.model.config.block_size)

    def train(self) -> None:
        """Run the remaining updates. Saves the state every SAVE_EVERY chunks and at the end."""
        options, began = self.options, time.monotonic() - self.seconds
        n_chunks = max(1, round(options.tokens / (ROWS * (self._length - 1))))
        rows = chunks(self.texts, self._length, options.seed)
        for number, idx in zip(range(n_chunks), rows, strict=False):
            if number < self.chunk:
                continue
            found = streams(self.model, idx, options.layers)
            if not self.norms:
                self.norms = [(x.mean(0), (x - x.mean(0)).square().mean().sqrt()) for x in found]
            batches = torch.randperm(len(found[0]), generator=torch.Generator().manual_seed(number)).split(BATCH)
            rates = [rate_at((number + i / len(batches)) / n_chunks) for i in range(len(batches))]
            explained = []
            for autoencoder, x, (mean, scale) in zip(self.autoencoders, found, self.norms, strict=True):
                x = (x - mean) / scale
                losses = [autoencoder.update(x[batch], rate) for batch, rate in zip(batches, rates, strict=True)]
                explained.append(1 - sum(losses) / len(losses))
            self.chunk, self.seconds = number + 1, time.monotonic() - began
            dead = [autoencoder.n_dead for autoencoder in self.autoencoders]
            shares = ", ".join(f"{share:.3f}" for share in explained)
            print(f"{self.chunk}/{n_chunks} explained {shares}; dead {dead}; {self.seconds:.0f} s", flush=True)
            if self.chunk % SAVE_EVERY == 0 or self.chunk == n_chunks:
                self._save()

    def dictionaries(self) -> dict[int, dict[str, Any]]:
        """Return the dictionary learned for each layer; see `Autoencoder.dictionary`."""
        each = zip(self.options.layers, self.autoencoders, self.norms, strict=True)
        return {layer: autoencoder.dictionary(*norms) for layer, autoencoder, norms in each}

    def _save(self) -> None:
        state = {
            "autoencoders": [each.state() for each in self.autoencoders],
            "chunk": self.chunk,
            "norms": self.norms,
            "seconds": self.seconds,
            "options": asdict(self.options),
        }
        part = self.folder / f"{STATE}.part"
        torch.save(state, part)
        os.replace(part, self.folder / STATE)

    def _load(self) -> None:
        path = self.folder / STATE
        if not path.is_file():
            raise GPTError("training.nothing_to_resume", path=path.parent, file=path.name)
        state = torch.load(path, weights_only=True)
        if state["options"] != asdict(self.options):
            raise GPTError(
                "concepts.other_options",
                "the run in {path} has other options: {options}",
                path=self.folder,
                options=", ".join(f"{name} {value}" for name, value in state["options"].items()),
            )
        for autoencoder, its in zip(self.autoencoders, state["autoencoders"], strict=True):
            autoencoder.load(its)
        self.chunk, self.norms, self.seconds = state["chunk"], state["norms"], state["seconds"]


def windows(texts: list[np.ndarray], length: int) -> list[Tensor]:
    """Split the texts into parts of at most `length` tokens, up to EVIDENCE_TOKENS in total."""
    parts = [torch.from_numpy(text[at : at + length]) for text in texts for at in range(0, len(text), length)]
    ends = np.cumsum([len(part) for part in parts])
    return [part for part, end in zip(parts, ends, strict=True) if end <= EVIDENCE_TOKENS and len(part) > 1]


@torch.inference_mode()
def evidence(model: GPT, parts: list[Tensor], layer: int, dictionary: Dictionary, n_vocab: int) -> Dictionary:
    """Measure share, tokens, starts, peaks and tints on the parts of a text, and return the completed dictionary."""

    def activity() -> Iterator[Tensor]:
        return activations(model, f"layers.{layer}.resid_post", parts, dictionary)

    found = Peaks.of(activity(), SNIPPETS)
    n, lengths = len(found.values), torch.tensor([len(part) for part in parts])
    ends = (lengths[found.texts] - WINDOW).clamp(min=0)
    at = (found.positions - BEFORE).clamp(min=0).minimum(ends)  # start of each snippet within its part
    offsets = lengths.cumsum(0) - lengths
    least = found.values.median(dim=1).values / 2
    active, tints = torch.zeros(n), torch.zeros(n, found.values.shape[1], WINDOW, dtype=torch.uint8)
    strong: list[tuple[Tensor, Tensor]] = []  # feature x n_vocab + token, and its activity above half the median peak
    for number, (part, values) in enumerate(zip(parts, activity(), strict=True)):
        active += (values > 0).sum(0)
        position, feature = (values > least).nonzero(as_tuple=True)
        strong.append((feature * n_vocab + part[position], values[position, feature]))
        features, places = ((found.texts == number) & (found.values > 0)).nonzero(as_tuple=True)
        rows = at[features, places, None] + torch.arange(WINDOW)
        shown = values[rows.clamp(max=len(part) - 1), features[:, None]].masked_fill(rows >= len(part), 0)
        tints[features, places] = (255 * shown / found.values[features, :1]).round().clamp(max=255).to(torch.uint8)
    return replace(
        dictionary,
        share=active / (lengths - 1).sum(),
        tokens=most_often_strong(strong, n, n_vocab),
        starts=(at + offsets[found.texts]).masked_fill(found.values == 0, NONE).to(torch.int32),
        peaks=found.values,
        tints=tints,
    )


def most_often_strong(found: list[tuple[Tensor, Tensor]], n: int, n_vocab: int) -> Tensor:
    """Return the tokens with the largest sums of activity, (n, TOP_TOKENS). found: feature x n_vocab + token, value."""
    keys, which = torch.unique(torch.cat([keys for keys, _ in found]), return_inverse=True)
    sums = torch.zeros(len(keys)).index_add(0, which, torch.cat([values for _, values in found]))
    tokens = torch.full((n, TOP_TOKENS), NONE, dtype=torch.int32)
    filled = torch.zeros(n, dtype=torch.long)
    for key in keys[sums.argsort(descending=True)].tolist():
        feature, token = divmod(key, n_vocab)
        if filled[feature] < TOP_TOKENS:
            tokens[feature, filled[feature]] = token
            filled[feature] += 1
    return tokens


@torch.inference_mode()
def promoted(model: GPT, parts: list[Tensor], layer: int, dictionary: Dictionary) -> Tensor:
    """Return the next tokens whose probability rises most when a feature is added: (n, TOP_TOKENS).

    Features are added at twice their natural strength, after prefixes of a few texts. The tokens are those that
    contribute most to the divergence from the mean prediction without the feature."""
    starts = [part for part in parts if len(part) >= CONTEXT_TOKENS][:CONTEXTS]
    idx = torch.stack([part[:CONTEXT_TOKENS] for part in starts]).to(model.device)
    trace = Trace(attention=False)
    model.hidden_states(idx, trace=trace)
    stream = trace.layers[layer].resid_post

    def predicted(added: Tensor) -> Tensor:
        states = hidden_states_from(model, stream + added.to(stream), layer + 1)[:, -1]
        return model.logits(states).float().softmax(dim=-1).mean(dim=0)

    before = predicted(torch.zeros(stream.shape[-1]))
    rows = []
    for feature, direction in enumerate(dictionary.decoder):
        after = predicted(2 * dictionary.strengths[feature] * direction)
        rows.append((after * (after / before).log()).topk(TOP_TOKENS).indices.cpu())
    return torch.stack(rows).to(torch.int32)


@dataclass(frozen=True)
class Quality:
    """Reconstruction quality of a dictionary on the held-back text.

    explained: explained fraction of the stream's variance. active: active features per token. dead: number of features
    that are never active. loss: the model's loss with the reconstruction in place of the stream, in nats per token.
    mean_loss: the model's loss with the mean of the stream in its place.
    """

    explained: float
    active: float
    dead: int
    loss: float
    mean_loss: float

    def recovered(self, loss: float) -> float:
        """Return the fraction of the loss that the reconstruction recovers. loss: the unchanged model's loss."""
        return (self.mean_loss - self.loss) / (self.mean_loss - loss)


@torch.inference_mode()
def quality(model: GPT, parts: list[Tensor], layer: int, dictionary: Dictionary) -> Quality:
    """Measure a dictionary on the parts of a text."""
    rest = total = count = n = 0.0
    used = torch.zeros(len(dictionary.bias), dtype=torch.bool)
    found = torch.cat([streams(model, part[None], [layer])[0] for part in parts])
    mean = found.mean(dim=0)
    for x in found.split(BATCH):
        activity = dictionary.activity(x)
        rest += float((dictionary.reconstruction(activity) - x).square().sum())
        total += float((x - mean).square().sum())
        count, n = count + float((activity > 0).sum()), n + len(x)
        used |= (activity > 0).any(dim=0)

    def replaced(x: Tensor) -> Tensor:
        made = dictionary.reconstruction(dictionary.activity(x[:, 1:].float().cpu()))
        return torch.cat([x[:, :1], made.to(x)], dim=1)

    def only_mean(x: Tensor) -> Tensor:
        return torch.cat([x[:, :1], mean.to(x).expand_as(x[:, 1:])], dim=1)

    losses = [loss_with(model, parts, layer, function) for function in (replaced, only_mean)]
    return Quality(1 - rest / total, count / n, int((~used).sum()), *losses)


@torch.inference_mode()
def loss_with(
    model: GPT, parts: list[Tensor], layer: int = 0, function: Callable[[Tensor], Tensor] | None = None
) -> float:
    """Return the mean loss in nats per token, optionally applying a function to the stream after a layer."""
    edits = None if function is None else Edits(hooks=(Hook("resid_post", layer, function),))
    nats = n = 0.0
    for part in parts:
        idx = part[None].to(model.device)
        logits = model(idx, edits=edits)[0, :-1].float()
        nats, n = nats + float(F.cross_entropy(logits, idx[0, 1:], reduction="sum")), n + len(part) - 1
    return nats / n


def write_concepts(run: Run, loaded: LoadedModel, held_back: list[np.ndarray], data: str) -> None:
    """Write the dictionaries with their evidence, and the card that describes them."""
    model, n_vocab, none = loaded.model, loaded.tokenizer.n_vocab, torch.empty(0)
    parts = windows(held_back, min(CONTEXT, model.config.block_size))
    fields = dict.fromkeys(("share", "tokens", "promotes", "starts", "peaks", "tints"), none)
    exact = {
        layer: Dictionary(active=run.options.active, **learned, **fields)
        for layer, learned in run.dictionaries().items()
    }
    found = {layer: evidence(model, parts, layer, each, n_vocab) for layer, each in exact.items()}
    found = {layer: replace(each, promotes=promoted(model, parts, layer, each)) for layer, each in found.items()}
    save_concepts(run.folder, Concepts(found, torch.cat(parts)))
    saved = load_concepts(run.folder, model.config)
    assert saved is not None
    qualities = {
        layer: (quality(model, parts, layer, saved.dictionaries[layer]), quality(model, parts, layer, each))
        for layer, each in exact.items()
    }
    text = card(run, loaded.name, data, sum(map(len, parts)), loss_with(model, parts), qualities)
    (run.folder / CARD).write_text(text, encoding="utf-8")


def card(
    run: Run, name: str, data: str, n_held_back: int, loss: float, qualities: dict[int, tuple[Quality, Quality]]
) -> str:
    """Return the text of the card. qualities: {layer: (as saved, in float32)}. loss: loss on the held-back text."""
    options, size = run.options, (run.folder / CONCEPTS).stat().st_size
    rows = [
        f"| {layer} | {saved.explained:.1%} | {exact.explained:.1%} | {saved.recovered(loss):.1%} | {saved.loss:.3f} "
        f"| {saved.mean_loss:.3f} | {saved.active:.1f} | {saved.dead} |"
        for layer, (saved, exact) in qualities.items()
    ]
    layers = ", ".join(map(str, options.layers))
    lines = [
        f"# Concepts of {Path(name).name}",
        "",
        "TopK sparse autoencoders (Gao et al., [arXiv 2406.04093](https://arxiv.org/abs/2406.04093)) of the residual",
        f"stream after layers {layers}. Each has {options.width:,} features, {options.active} of which are active on a",
        f"token. `{CONCEPTS}` ({size / 1e6:.1f} MB) contains the encoder and the decoder in int8 with a scale per row,",
        f"and evidence for each feature: the tokens and the {SNIPPETS} snippets of held-back text on which it is",
        "strongest, how often it is active, and the next tokens whose probability rises most when it is added.",
        "",
        "## Data",
        "",
        *([data, ""] if data else []),
        f"Trained for {run.seconds / 60:.0f} minutes on {run.tokens:,} tokens, excluding the first token of each text.",
        f"Measured on {n_held_back:,} tokens of the held-back text.",
        "",
        "## Figures",
        "",
        f"There, the model alone has a loss of {loss:.3f} nats per token. The share of the loss recovered is 0% if the",
        "mean replaces the stream, and 100% if nothing is lost.",
        "",
        "| after layer | variance explained | in float32 | loss recovered | loss | loss with the mean "
        "| active per token | dead features |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, or 1 after an error message."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("text", metavar="TEXT", type=Path)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder of the run")
    parser.add_argument("--layers", metavar="L,L,L", help="read the stream after these layers (at a quarter, a half "
                        "and three quarters of the depth)")  # fmt: skip
    parser.add_argument(
        "--width", type=int, default=Options.width, metavar="N", help="features per layer (%(default)s)"
    )
    parser.add_argument(
        "--active", type=int, default=Options.active, metavar="N", help="active features per token (%(default)s)"
    )
    parser.add_argument("--tokens", type=int, default=Options.tokens, metavar="N", help="training tokens (%(default)s)")
    parser.add_argument(
        "--held-back",
        type=float,
        default=Recipe.held_back,
        metavar="SHARE",
        help="share of the text held back for evaluation (%(default)s)",
    )
    parser.add_argument("--resume", action="store_true", help="continue the run in --out from its last save")
    parser.add_argument("--data", default="", help="text, source and licence, in Markdown, for the card")
    given = parser.parse_args(arguments)
    try:
        loaded = load_model(given.model)
        n = loaded.model.config.n_layer
        layers = given.layers.split(",") if given.layers else (n // 4, n // 2, 3 * n // 4)
        options = Options(tuple(sorted({int(layer) for layer in layers})), given.width, given.active, given.tokens)
        training, held_back = split_stories(read_stories(given.text), given.held_back, Recipe.seed)
        run = Run(loaded.model, documents(training, loaded.tokenizer), options, given.out, resume=given.resume)
        run.train()
        write_concepts(run, loaded, documents(held_back, loaded.tokenizer), given.data)
    except (OSError, ValueError) as error:
        print(f"tools.concepts: {error}", file=sys.stderr)
        return 1
    print(f"{given.out / CONCEPTS}: see {CARD} next to it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
