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
from components.figures.bars import histogram
from components.i18n import t
from components.labels import listed, percent, quoted, visible, visible_token
from components.next_tokens import best, token_bars
from components.tabs.lessons import figure
from components.tabs.lessons.figure import Drawn, Open, bar_per_token, computed, sentence, text_ids, words
from components.text_views import document_lines
from components.widgets.chart import Drawing
from gpt import DEFAULT_MODEL, Generation, LoadedModel, SamplingParams, distribution, get_model
from gpt.experiments.minimal import WORDS, Merges
from gpt.training.evaluation import TextScore, score_text

SIMILAR = 6  # number of similar tokens
TOP = 20  # bars for next tokens


def tokenizer(s: Any) -> Drawn:
    vocabulary, ids, text = s[Open].loaded.tokenizer, text_ids(s, whole=True), s[Open].text
    rows = [[visible_token(vocabulary, i), str(i), vocabulary.token_bytes(i).hex(" ")] for i in ids]
    head = [words(f"tokenizer.{column}") for column in ("token", "id", "bytes")]
    n_bytes = len(text.encode("utf-8", "replace"))
    return Drawn(words("tokenizer", n=len(ids), characters=len(text), bytes=n_bytes), table=[head, *rows])


@computed
def scored(s: Any) -> TextScore:
    return score_text(s[Open].loaded, text_ids(s, least=2, whole=True))


def loss(s: Any) -> Drawing:
    tokenizer, read = s[Open].loaded.tokenizer, s[scored]
    bits = np.array([loss.surprisal for loss in read.losses])
    most = int(bits.argmax())
    mean = {"nats": f"{read.score.loss:.2f}", "perplexity": f"{read.score.perplexity:.1f}"}
    worst = {"bits": f"{bits[most]:.1f}", "share": percent(2 ** -float(bits[most]))}
    text = words("loss", token=quoted(tokenizer, read.ids[most + 1]), **mean, **worst)
    return bar_per_token(tokenizer, read.ids[1:], bits, words("surprise")), text


def continued(loaded: LoadedModel, ids: list[int], params: SamplingParams, length: int) -> Generation:
    """Continue a text by up to `length` tokens, once the model has time for it."""
    document = Generation(loaded, ids)
    with figure.admitted(loaded):
        for _ in document.steps(params, length):
            pass
    document.read()
    return document


@computed
def greedily(s: Any) -> Generation:
    return continued(s[Open].loaded, text_ids(s), SamplingParams(temperature=0, seed=0), s[Open].steps)


def greedy(s: Any) -> Drawn:
    document = s[greedily]
    written = document.statistics(document.n_prompt).tokens
    share = percent(math.prod(token.probability for token in written))
    return Drawn(words("greedy", n=len(written), share=share), strip=document_lines(document))


@computed
def document_read(s: Any) -> Generation:
    document = Generation(s[Open].loaded, text_ids(s))
    document.read()
    return document


def sampling(s: Any) -> Drawn:
    return bars(s[document_read], SamplingParams(temperature=s[Open].temperature, top_k=s[Open].top_k or None))


def bars(document: Generation, params: SamplingParams) -> Drawn:
    tokenizer, ids = document.tokenizer, document.ids[: document.n_prompt]
    stages = distribution(document.logits(len(ids) - 1), params, previous_ids=ids)
    raw, final, kept = stages.raw.numpy(), stages.final.numpy(), stages.kept.numpy()
    shown = best(final, raw, TOP).tolist()
    text = words(
        "bars",
        token=quoted(tokenizer, ids[-1]),
        best=quoted(tokenizer, shown[0]),
        before=percent(raw[shown[0]]),
        after=percent(final[shown[0]]),
        removed=f"{len(raw) - int(kept.sum()):,}",
        total=f"{len(raw):,}",
        mass=percent(raw[~kept].sum()),
        raw=f"{-float((raw[raw > 0] * np.log2(raw[raw > 0])).sum()):.2f}",
        final=f"{stages.entropy:.2f}",
    )
    return Drawn(text, token_bars(t("bars.question"), tokenizer, shown, raw, final))


@computed
def written(s: Any) -> Generation:
    loaded = get_model(DEFAULT_MODEL if s[Open].weights == "trained" else "untrained")
    params = SamplingParams(temperature=0.8, seed=s[Open].seed)
    return continued(loaded, figure.checked_ids(loaded, s[Open].text), params, 30)


def untrained(s: Any) -> Drawn:
    document = s[written]
    text = words(f"untrained.{s[Open].weights}")
    return replace(bars(document, SamplingParams()), summary=text, strip=document_lines(document))


def merges(s: Any) -> Drawn:
    if not s[Open].text.strip():
        raise PageError("picture.empty")
    learned, rows = Merges(regex.findall(WORDS, s[Open].text)), []
    before = sum(map(len, learned.words))
    for n in range(1, s[Open].rounds + 1):
        counts = Counter(pair for parts in learned.words for pair in pairwise(parts))
        token = learned.learn()
        if token is None:
            break
        rows.append([str(n), visible(token.decode("utf-8", "replace")), str(max(counts.values()))])
    tokens = [visible(part.decode("utf-8", "replace")) for parts in learned.words for part in parts]
    head = [words(f"merges.{column}") for column in ("round", "token", "count")]
    text = words("merges", n=len(rows), before=before, after=len(tokens), tokens=" | ".join(tokens))
    return Drawn(text, table=[head, *reversed(rows)])


@computed
def nearest(s: Any) -> list[int]:
    """Return the tokens whose vectors are most similar to the last token's."""
    weight, token = s[Open].loaded.model.wte.weight.detach().float().cpu(), text_ids(s)[-1]  # (vocab_size, C)
    near = torch.cosine_similarity(weight, weight[token], dim=-1).argsort(descending=True)
    return [i for i in near[: SIMILAR + 1].tolist() if i != token][:SIMILAR]


def embedding(s: Any) -> Drawing:
    token, tokenizer, weight = text_ids(s)[-1], s[Open].loaded.tokenizer, s[Open].loaded.model.wte.weight
    vector, places = weight[token].detach().float().cpu().numpy(), np.arange(weight.shape[1] + 1) - 0.5
    likest = listed(quoted(tokenizer, i) for i in s[nearest])
    text = sentence(s, "embedding", id=token, shape=list(weight.shape), tokens=likest)
    return histogram(vector, places, x_title=words("number"), y_title=words("value")), text


def batches(s: Any) -> Drawn:
    ids, tokenizer = text_ids(s, least=2), s[Open].loaded.tokenizer
    names = [visible_token(tokenizer, token) for token in ids]
    n = min(len(ids) - 1, s[Open].row_length)
    rows = [[str(at), "".join(names[: at + 1]), names[at], names[at + 1]] for at in range(n)]
    head = [words(f"batches.{column}") for column in ("position", "seen", "input", "target")]
    return Drawn(words("batches", n=n, total=len(ids)), table=[head, *rows])
