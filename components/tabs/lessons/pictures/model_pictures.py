"""Figures for the lessons on the forward pass: activation, feed-forward part, heads, block, whole model, concepts."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from components.concepts import quoted_concept
from components.figures.bars import grouped_bars, histogram
from components.figures.style import Figure
from components.labels import ACTIVATIONS, decimal, percent, power, quoted, visible_token
from components.next_tokens import at_one, best, token_bars
from components.panels.activation_curves import curves_chart
from components.tabs.lessons import figure
from components.tabs.lessons.course import HEADS, POEM, SMALL
from components.tabs.lessons.figure import Drawn, Open, bar_per_token, computed, here, sentence, text_ids, words
from components.text_views import attention_map
from components.widgets.chart import Drawing
from gpt import DEFAULT_MODEL, GPT, Edits, LoadedModel, SamplingParams, generate, get_model, trace_text
from gpt.analysis.concepts import trace_activity
from gpt.experiments.layers import dropout_effect
from gpt.experiments.masks import MaskEffect, padding_effect
from gpt.experiments.minimal import mean_of_the_past
from gpt.models.sources import POEMS_MODEL

TOP = 8  # bars for next tokens
# Minimum number of tokens. With fewer, even a head without a preference puts a lot of weight on the second-to-last.
MIN_CHOICE = 5
SHOWN = 3  # numbers from a vector shown before and after dropout
IDS = (2, 16)  # the small model's batch: rows, tokens
STREAM = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")


def activations(s: Any) -> Drawing:
    return curves_chart(s[Open].x)


def feed_forward(s: Any) -> Drawing:
    values = here(s).mlp_post[0, -1].float().cpu().numpy()  # (n_ff,)
    config, places = s[Open].loaded.model.config, np.arange(len(values) + 1) - 0.5
    after = words("activation", activation=ACTIVATIONS[config.activation])
    sizes = (config.n_embd, len(values), config.n_embd)
    shapes = " → ".join(str([1, len(text_ids(s)), size]) for size in sizes)
    strongest = {"strongest": int(values.argmax()), "value": f"{values.max():.2f}"}
    text = sentence(s, "feed_forward", shapes=shapes, share=percent(float((values > 0.1).mean())), **strongest)
    return histogram(values, places, x_title=words("neuron"), y_title=after), text


def heatmap(loaded: LoadedModel, weights: np.ndarray, ids: list[int]) -> Figure:
    """Plot attention weights (T, T) between the tokens in a text, with the last row framed."""
    return attention_map(loaded.tokenizer, ids, weights, selected=len(ids) - 1)


@torch.inference_mode()
def average(s: Any) -> Drawing:
    ids = text_ids(s)
    # Applied to one-hot vectors, the average returns its own weights.
    weights = mean_of_the_past(torch.eye(len(ids))[None])[0].numpy()
    text = sentence(s, "average", n=len(ids), share=percent(1 / len(ids)))
    return heatmap(s[Open].loaded, weights, ids), text


@torch.inference_mode()
def dot_products(s: Any) -> Drawing:
    """Plot the attention weights given by dot products of the normalised vectors that a layer reads."""
    x = here(s).resid_pre[0].float().cpu()
    x = torch.nn.functional.layer_norm(x, x.shape[-1:])  # all vectors have the same length
    scores = x @ x.T  # (T, T)
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    to_itself = {"score": f"{scores[-1, -1].item():.0f}", "share": percent(weights[-1, -1].item())}
    return heatmap(s[Open].loaded, weights.numpy(), text_ids(s)), sentence(s, "dot_products", **to_itself)


def queries(s: Any) -> Drawing:
    """Plot one head's scores for the last token's query and each key, before the softmax."""
    head, ids, tokenizer = s[Open].head, text_ids(s), s[Open].loaded.tokenizer
    q, k = here(s).attn_q[0, head, -1].float().cpu(), here(s).attn_k[0, head].float().cpu()  # (hs,), (T, hs)
    scores = (k @ q / len(q) ** 0.5).numpy()
    most = int(scores.argmax())
    best = {"target": quoted(tokenizer, ids[most]), "score": decimal(float(scores[most]), 1)}
    return bar_per_token(tokenizer, ids, scores, words("score")), sentence(s, "queries", size=len(q), **best)


def attention(s: Any) -> Drawing:
    head, ids, loaded = s[Open].head, text_ids(s), s[Open].loaded
    weights = here(s).attn_weights[0, head].float().cpu().numpy()  # (T, T)
    most = int(weights[-1].argmax())
    best = {"target": quoted(loaded.tokenizer, ids[most]), "share": percent(float(weights[-1, most]))}
    return heatmap(loaded, weights, ids), sentence(s, "attention", **best)


def attends_to_previous(s: Any) -> bool:
    """Return whether the head's last token puts more than half its attention on the previous token."""
    if figure.known(s, figure.trace) is None:
        return False
    weights = here(s).attn_weights[0, s[Open].head]
    return len(weights) >= MIN_CHOICE and bool(weights[-1, -2] > 0.5)


def block(s: Any) -> Drawing:
    """Plot the norms of the last token's vectors in one block: the stream and both branch outputs."""
    norms = {name: getattr(here(s), name)[0, -1].float().norm().item() for name in STREAM}
    names = [words(f"block.{name}") for name in STREAM]
    chart = grouped_bars(names, {words("length"): np.array([*norms.values()])}, y_title=words("length"))
    return chart, sentence(s, "block", **{name: f"{norm:.1f}" for name, norm in norms.items()})


@computed
@torch.inference_mode()
def after_blocks(s: Any) -> torch.Tensor:
    """Return the logits after the last token, read after each number of blocks, (n_layer + 1, vocab_size)."""
    network, layers = s[Open].loaded.model, s[figure.trace].layers
    streams = [layers[0].resid_pre, *(layer.resid_post for layer in layers)]
    return network.logits(network.ln_f(torch.stack([each[0, -1] for each in streams])))


def settled(s: Any) -> float | None:
    """Return the number of blocks after which the best token stays the same, or None until it is computed."""
    logits = figure.known(s, after_blocks)
    if logits is None:
        return None
    top = logits.argmax(dim=-1)
    return int((top != top[-1]).nonzero().max()) + 1 if bool((top != top[-1]).any()) else 0


def model(s: Any) -> Drawn:
    """Show the shapes in the forward pass, and the prediction after a given number of blocks."""
    network, ids, depth = s[Open].loaded.model, text_ids(s), s[Open].depth
    logits = s[after_blocks][depth]
    shares = at_one(logits).numpy()
    most = best(shares, shares, TOP).tolist()
    tokenizer, total = s[Open].loaded.tokenizer, network.config.n_layer
    text = words("model", n=depth, total=total, best=quoted(tokenizer, most[0]), share=percent(shares[most[0]]))
    bars = token_bars(words("at_one"), tokenizer, most, shares, shares, "bars.row.one")
    embedding = "wte" if network.wpe is None else "wte + wpe"
    stream = [1, len(ids), network.config.n_embd]
    shapes = [("idx", [1, len(ids)]), (embedding, stream), (f"h[0:{depth}]", stream)]
    shapes += [("ln_f", stream), ("lm_head", [1, len(ids), len(logits)])]
    rows = [["", words("shape")], *([name, str(shape)] for name, shape in shapes)]
    return Drawn(text, bars, table=rows)


@computed
def dropped(s: Any) -> tuple[torch.Tensor, torch.Tensor, dict[str, tuple[torch.Tensor, torch.Tensor]]]:
    return dropout_effect(s[Open].loaded.model, text_ids(s), p=s[Open].share, seed=s[Open].seed)


def dropout(s: Any) -> Drawn:
    """Compare the predictions of two passes in each mode, and list what the first training pass drops in each part."""
    (training, evaluation, parts), tokenizer = s[dropped], s[Open].loaded.tokenizer
    modes = {"training": training, "evaluation": evaluation}
    shares = {(mode, n): at_one(row) for mode, rows in modes.items() for n, row in enumerate(rows, 1)}
    first = shares["evaluation", 1]
    top = first.topk(min(5, len(first))).indices  # (5,)
    passes = {words(f"dropout.{mode}", n=n): row[top].numpy() for (mode, n), row in shares.items()}
    names = [visible_token(tokenizer, token_id) for token_id in top.tolist()]
    chart = grouped_bars(names, passes, y_title=words("dropout.probability"))
    one, two, three, four = (percent(float(values[0])) for values in passes.values())
    text = words("dropout", token=quoted(tokenizer, int(top[0])), one=one, two=two, three=three, four=four)
    head = [words(f"dropout.{column}") for column in ("part", "zeros", "before", "after")]
    rows = [head, *(dropped_row(part, *values) for part, values in parts.items())]
    return Drawn(words("dropout.scale", scale=f"{1 / (1 - s[Open].share):.3g}"), chart=(chart, text), table=rows)


def dropped_row(part: str, before: torch.Tensor, after: torch.Tensor) -> list[str]:
    """Return a part's name, its number of zeros, and SHOWN values around a dropped one, before and after dropout."""
    zeros = (after == 0).nonzero().flatten().tolist()
    first = max(0, min(zeros[0] - 1, len(after) - SHOWN)) if zeros else 0
    shown = (
        "  ".join(decimal(x, 2) if x else "0" for x in row[first : first + SHOWN].tolist()) for row in (before, after)
    )
    n_dropped = int(((after == 0) & (before != 0)).sum())
    return [words(f"dropout.{part}"), f"{n_dropped} / {len(before)}", *shown]


@computed
@torch.inference_mode()
def padded(s: Any) -> tuple[torch.Tensor, MaskEffect]:
    """Run a tiny GPT on a batch of random tokens, one row of which has padding on the left.

    Returns its logits, and the effect of such padding on the other row with and without the mask.
    """
    gpt, n_padding = tiny(), s[Open].padding
    idx = torch.randint(SMALL.vocab_size, IDS, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(IDS)
    mask[0, :n_padding] = 0
    return gpt(idx, attention_mask=mask), padding_effect(gpt, idx[1].tolist(), n_padding)


def small(s: Any) -> Drawing:
    logits, (with_mask, without_mask) = s[padded]
    chart = grouped_bars(
        [str(place) for place in range(IDS[1])],
        {words("masked"): with_mask.cpu().numpy(), words("unmasked"): without_mask.cpu().numpy()},
        x_title=words("place"),
        y_title=words("moved"),
    )
    moved = {"masked": power(with_mask.max().item()), "unmasked": f"{without_mask.max().item():.2g}"}
    return chart, words("small", ids=list(IDS), logits=list(logits.shape), n=s[Open].padding, **moved)


@lru_cache(maxsize=1)
def tiny() -> GPT:
    return GPT(SMALL, generator=torch.Generator().manual_seed(0)).eval()


def with_concepts(s: Any) -> tuple[Any, list[int], tuple[int, int]]:
    """Return the lessons' model or, if that has no concepts, the bundled one, with the text and the first concept."""
    loaded = s[Open].loaded
    if loaded.concepts is None or not loaded.concepts.offered:
        loaded = get_model(DEFAULT_MODEL)
    offered = loaded.concepts.offered[0]
    return loaded, figure.checked_ids(loaded, s[Open].text, least=2), (offered.layer, offered.feature)


@computed
@torch.inference_mode()
def steered(s: Any) -> tuple[np.ndarray, torch.Tensor, torch.Tensor]:
    """Return the concept's activity, (T,), and the next token's probabilities without and with it, (vocab_size,)."""
    loaded, ids, place = with_concepts(s)
    activity = trace_activity(loaded.concepts, trace_text(loaded.model, ids), place[0])[:, place[1]].numpy()
    edits = Edits(steering=(loaded.concepts.steering(*place, s[Open].strength),))
    idx = torch.tensor([ids], device=loaded.model.device)
    before, after = (at_one(loaded.model(idx, edits=each)[0, -1]) for each in (None, edits))
    return activity, before, after


def concepts(s: Any) -> Drawing:
    (loaded, ids, place), (activity, before, after) = with_concepts(s), s[steered]
    strength, tokenizer = s[Open].strength, loaded.tokenizer
    token = int((after - before).argmax()) if strength else int(before.argmax())
    return bar_per_token(tokenizer, ids, activity, words("concepts.activity")), words(
        "concepts" if strength >= 0 else "concepts.weakened",
        share=percent(-strength),
        name=quoted_concept(loaded, place),
        layer=place[0],
        most=quoted(tokenizer, ids[int(np.argmax(activity))]),
        token=quoted(tokenizer, token),
        before=percent(before[token].item()),
        after=percent(after[token].item()),
    )


VERSE = 5
TITLE, N_WRITTEN, PARAMS = "《春日》\n", 56, SamplingParams(temperature=0.8, seed=30)  # the generated poem


def looked_at(choice: str) -> list[tuple[int, int]]:
    """Return (position, target) pairs: at each position, a head should attend to the target.

    Depending on `choice`, the target is the last punctuation mark, the previous rhyme or the character above the next
    one.
    """
    marks = [i for i, character in enumerate(POEM) if character in "，。\n"]
    if choice == "counts":
        return [(i, max(mark for mark in marks if mark < i)) for i in range(marks[0] + 1, len(POEM)) if i not in marks]
    if choice == "rhymes":
        ends = [i - 1 for i, character in enumerate(POEM) if character == "。"]
        return [(end - 1, before) for before, end in pairwise(ends)]
    commas = (i for i, character in enumerate(POEM) if character == "，")
    return [(comma + i, comma + i - VERSE) for comma in commas for i in range(VERSE)]


@computed
def weights(s: Any) -> tuple[LoadedModel, np.ndarray]:
    """Return the poem model and the chosen head's attention weights for the poem, (T, T)."""
    loaded, (layer, head) = get_model(POEMS_MODEL), HEADS[s[Open].verse]
    layers = trace_text(loaded.model, loaded.tokenizer.encode(POEM)).layers
    return loaded, layers[layer].attn_weights[0, head].cpu().numpy()


@computed
def poems(s: Any) -> dict[str, str]:
    loaded, found = get_model(POEMS_MODEL), {}
    with figure.admitted(loaded):
        for name, edits in (("with", None), ("without", Edits(head_scale={HEADS[s[Open].verse]: 0.0}))):
            steps = generate(loaded, TITLE, PARAMS, N_WRITTEN, edits=edits)
            found[name] = "".join(step.text for step in steps).strip()
    return found


def verse(s: Any) -> Drawn:
    choice, (loaded, found) = s[Open].verse, s[weights]
    layer, head = HEADS[choice]
    shares = [float(found[pair]) for pair in looked_at(choice)]
    text = words(f"verse.{choice}", layer=layer, head=head, share=percent(sum(shares) / len(shares)))
    rows = [["", TITLE.strip()], *([words(f"verse.{name}"), poem] for name, poem in s[poems].items())]
    return Drawn(chart=(heatmap(loaded, found, loaded.tokenizer.encode(POEM)), text), table=rows)
