"""Figures for the lessons on the forward pass: activation, feed-forward part, attention, block, whole model."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from components.figures.bars import grouped_bars, histogram, next_token_bars
from components.figures.maps import attention_heatmap
from components.figures.style import Figure
from components.labels import ACTIVATIONS, decimal, percent, power, quoted, token_text, visible
from components.next_tokens import at_one
from components.panels.activation_curves import curves_chart
from components.tabs.lessons.course import SMALL
from components.tabs.lessons.pictures.picture import EXAMPLE, Drawn, Picture, Scene, SliderSpec, last_head, last_layer
from components.widgets.chart import chart_data
from gpt import GPT
from gpt.experiments.dropout import DroppedPart, dropout_effect
from gpt.experiments.masks import padding_effect
from gpt.experiments.minimal.average import MeanOfThePast
from gpt.experiments.random_models import skeleton as make_skeleton

TOP = 8  # bars for next tokens
# Minimum number of tokens. With fewer, even a head without a preference puts a lot of weight on the second-to-last.
MIN_CHOICE = 5
SHOWN = 3  # numbers from a vector shown before and after dropout
IDS = (2, 16)  # the small model's batch: rows, tokens
STREAM = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")


def next_tokens(scene: Scene, logits: torch.Tensor, text: str) -> Drawn:
    """Plot the most probable next tokens at temperature 1 for one row of logits, (vocab_size,), with a caption."""
    best = at_one(logits).topk(min(TOP, len(logits)))
    labels = [token_text(scene.loaded.tokenizer, i) for i in best.indices.tolist()]
    shares = best.values.numpy()
    figure = next_token_bars(labels, shares, shares)
    return Drawn(chart=chart_data(figure, text, scene.t("at_one")))


def activations(scene: Scene) -> Drawn:
    """Plot the curves from the Activations tab, marked at x."""
    return Drawn(chart=curves_chart(scene.a))


def feed_forward(scene: Scene) -> Drawn:
    """Plot one layer's neuron activations at the last token."""
    layer = int(scene.a)
    ids, part = scene.ids(), scene.trace().layers[layer]
    values = part.mlp_post[0, -1].float().cpu().numpy()  # (n_ff,)
    config = scene.loaded.model.config
    after = scene.t("activation", activation=ACTIVATIONS[config.activation])
    figure, width = (
        histogram(values, np.arange(len(values) + 1) - 0.5, x_title=scene.t("neuron"), y_title=after, height=300),
        config.n_embd,
    )
    text = scene.t(
        "feed_forward",
        token=quoted(scene.loaded.tokenizer, ids[-1]),
        layer=layer,
        shapes=" → ".join(str([1, len(ids), size]) for size in (width, len(values), width)),
        share=percent(float((values > 0.1).mean())),
        strongest=int(values.argmax()),
        value=f"{values.max():.2f}",
    )
    return Drawn(chart=chart_data(figure, text))


def heatmap(scene: Scene, weights: np.ndarray, ids: list[int]) -> Figure:
    """Plot attention weights (T, T) between the tokens in a text, with the last row framed."""
    labels = [token_text(scene.loaded.tokenizer, i) for i in ids]
    return attention_heatmap(
        weights,
        labels,
        labels,
        selected=len(ids) - 1,
        query_title=scene.t("query"),
        key_title=scene.t("key"),
        weight_title=scene.t("weight"),
    )


@torch.inference_mode()
def average(scene: Scene) -> Drawn:
    """Plot the weights of an average over all tokens so far."""
    ids = scene.ids()
    # Applied to one-hot vectors, the average returns its own weights.
    weights = MeanOfThePast()(torch.eye(len(ids))[None])[0].numpy()
    text = scene.t("average", token=quoted(scene.loaded.tokenizer, ids[-1]), n=len(ids), share=percent(1 / len(ids)))
    return Drawn(chart=chart_data(heatmap(scene, weights, ids), text))


@torch.inference_mode()
def dot_products(scene: Scene) -> Drawn:
    """Plot the attention weights given by dot products of the normalised vectors that a layer reads."""
    ids, layer = scene.ids(), int(scene.a)
    x = scene.trace().layers[layer].resid_pre.float().cpu()
    x = torch.nn.functional.layer_norm(x, x.shape[-1:])  # all vectors have the same length
    scores = (x @ x.transpose(-2, -1))[0]  # (T, T)
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    token, to_itself = quoted(scene.loaded.tokenizer, ids[-1]), (scores[-1, -1], weights[-1, -1])
    score, share = map(float, to_itself)
    text = scene.t("dot_products", layer=layer, token=token, score=f"{score:.0f}", share=percent(share))
    return Drawn(chart=chart_data(heatmap(scene, weights.numpy(), ids), text))


def queries(scene: Scene) -> Drawn:
    """Plot one head's scores for the last token's query and each key, before the softmax."""
    layer, head = int(scene.a), int(scene.b)
    ids, part = scene.ids(), scene.trace().layers[layer]
    q, k = part.attn_q[0, head, -1].float().cpu(), part.attn_k[0, head].float().cpu()  # (hs,), (T, hs)
    scores = (k @ q / len(q) ** 0.5).numpy()
    tokenizer = scene.loaded.tokenizer
    names = [visible(token_text(tokenizer, i)) for i in ids]
    figure = grouped_bars(names, {scene.t("score"): scores}, y_title=scene.t("score"))
    most = int(scores.argmax())
    text = scene.t(
        "queries",
        layer=layer,
        head=head,
        token=quoted(tokenizer, ids[-1]),
        target=quoted(tokenizer, ids[most]),
        score=decimal(float(scores[most]), 1),
        size=len(q),
    )
    return Drawn(chart=chart_data(figure, text))


def attention(scene: Scene) -> Drawn:
    """Plot one head's attention weights for a short text."""
    layer, head = int(scene.a), int(scene.b)
    ids, weights = scene.ids(), scene.trace().layers[layer].attn_weights[0, head].float().cpu().numpy()  # (T, T)
    tokenizer = scene.loaded.tokenizer
    figure = heatmap(scene, weights, ids)
    most = int(weights[-1].argmax())
    text = scene.t(
        "attention",
        layer=layer,
        head=head,
        token=quoted(tokenizer, ids[-1]),
        target=quoted(tokenizer, ids[most]),
        share=percent(float(weights[-1, most])),
    )
    on_previous = float(weights[-1, -2]) if len(ids) >= MIN_CHOICE else 0.0
    return Drawn(chart=chart_data(figure, text), values={"on_previous": on_previous})


def block(scene: Scene) -> Drawn:
    """Plot the norms of the last token's vectors in one block: the stream and both branch outputs."""
    layer = int(scene.a)
    ids, part = scene.ids(), scene.trace().layers[layer]
    lengths = {name: float(getattr(part, name)[0, -1].float().norm()) for name in STREAM}
    names = [scene.t(f"block.{name}") for name in STREAM]
    figure = grouped_bars(names, {scene.t("length"): np.array(list(lengths.values()))}, y_title=scene.t("length"))
    written = {name: f"{length:.1f}" for name, length in lengths.items()}
    text = scene.t("block", layer=layer, token=quoted(scene.loaded.tokenizer, ids[-1]), **written)
    return Drawn(chart=chart_data(figure, text))


@torch.inference_mode()
def model(scene: Scene) -> Drawn:
    """Show the shapes in the forward pass, and the prediction after a given number of blocks."""
    network, trace, ids = scene.loaded.model, scene.trace(), scene.ids()
    depth = int(scene.a)
    streams = [trace.layers[0].resid_pre, *(layer.resid_post for layer in trace.layers)]
    stream = streams[depth]
    logits_after = network.logits(
        network.ln_f(torch.stack([each[0, -1] for each in streams]))
    )  # (n_layer + 1, vocab_size)
    logits, top = logits_after[depth], logits_after.argmax(dim=-1)
    best = int(top[depth])
    settled = int((top != top[-1]).nonzero().max()) + 1 if bool((top != top[-1]).any()) else 0
    text = scene.t(
        "model", n=depth, total=network.config.n_layer, best=quoted(scene.loaded.tokenizer, best),
        share=percent(float(at_one(logits)[best])),
    )  # fmt: skip
    embedding = "wte" if network.wpe is None else "wte + wpe"
    shapes = [("idx", [1, len(ids)]), (embedding, list(stream.shape)), (f"h[0:{depth}]", list(stream.shape))]
    shapes += [("ln_f", list(stream.shape)), ("lm_head", [1, len(ids), len(logits)])]
    rows = [["", scene.t("shape")], *([name, str(shape)] for name, shape in shapes)]
    return Drawn(chart=next_tokens(scene, logits, text).chart, table=rows, values={"settled": settled})


def dropout(scene: Scene) -> Drawn:
    """Compare the predictions of two passes in each mode, and list what the first training pass drops in each part."""
    ids, tokenizer = scene.ids(), scene.loaded.tokenizer
    effect = dropout_effect(scene.loaded.model, ids, p=scene.a, seed=int(scene.b))
    modes = {"training": effect.training, "evaluation": effect.evaluation}
    shares = {(mode, n): at_one(row) for mode, rows in modes.items() for n, row in enumerate(rows, 1)}
    first = shares["evaluation", 1]
    best = first.topk(min(5, len(first))).indices  # (5,)
    passes = {scene.t(f"dropout.{mode}", n=n): row[best].numpy() for (mode, n), row in shares.items()}
    names = [visible(token_text(tokenizer, token_id)) for token_id in best.tolist()]
    figure = grouped_bars(names, passes, y_title=scene.t("dropout.probability"))
    one, two, three, four = (percent(float(values[0])) for values in passes.values())
    text = scene.t("dropout", token=quoted(tokenizer, int(best[0])), one=one, two=two, three=three, four=four)
    head = [scene.t(f"dropout.{column}") for column in ("part", "zeros", "before", "after")]
    rows = [head, *(dropped_row(scene, part) for part in effect.parts)]
    return Drawn(scene.t("dropout.scale", scale=f"{1 / (1 - scene.a):.3g}"), chart_data(figure, text), table=rows)


def dropped_row(scene: Scene, part: DroppedPart) -> list[str]:
    """Return a part's name, its number of zeros, and SHOWN values around a dropped one, before and after dropout."""
    zeros = (part.after == 0).nonzero().flatten().tolist()
    first = max(0, min(zeros[0] - 1, len(part.after) - SHOWN)) if zeros else 0
    shown = (
        "  ".join(decimal(x, 2) if x else "0" for x in row[first : first + SHOWN].tolist())
        for row in (part.before, part.after)
    )
    return [scene.t(f"dropout.{part.part}"), f"{part.n_dropped} / {len(part.before)}", *shown]


@torch.inference_mode()
def skeleton(scene: Scene) -> Drawn:
    """Show the prediction of the model, or of a model whose blocks and norms do nothing."""
    real, ids = scene.loaded.model, scene.ids()
    chosen = real if scene.choice == "real" else bare(real)
    logits = chosen(torch.tensor([ids], device=real.device))
    best = quoted(scene.loaded.tokenizer, int(logits[0, -1].argmax()))
    shapes = {"ids": [1, len(ids)], "logits": list(logits.shape)}
    return next_tokens(scene, logits[0, -1], scene.t(f"skeleton.{scene.choice}", best=best, **shapes))


@lru_cache(maxsize=1)
def bare(real: GPT) -> GPT:
    """Return a skeleton with the same configuration and fixed random weights, on the same device."""
    return make_skeleton(real.config, generator=torch.Generator().manual_seed(0)).eval().to(real.device)


@torch.inference_mode()
def small(scene: Scene) -> Drawn:
    """Run a tiny GPT on a batch of random tokens, and show the effect of left padding with and without the mask."""
    gpt, n_padding = tiny(), int(scene.a)
    rows, n_tokens = IDS
    idx = torch.randint(SMALL.vocab_size, IDS, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(rows, n_tokens)
    mask[0, :n_padding] = 0
    logits = gpt(idx, attention_mask=mask)
    effect = padding_effect(gpt, idx[1].tolist(), n_padding)
    names = {scene.t("masked"): effect.with_mask, scene.t("unmasked"): effect.without_mask}
    figure = grouped_bars(
        [str(place) for place in range(n_tokens)],
        {name: values.cpu().numpy() for name, values in names.items()},
        x_title=scene.t("place"),
        y_title=scene.t("moved"),
    )
    text = scene.t(
        "small",
        ids=list(idx.shape),
        logits=list(logits.shape),
        n=n_padding,
        masked=power(float(effect.with_mask.max())),
        unmasked=f"{float(effect.without_mask.max()):.2g}",
    )
    return Drawn(chart=chart_data(figure, text))


@lru_cache(maxsize=1)
def tiny() -> GPT:
    """Return the small model with its initial weights."""
    return GPT(SMALL, generator=torch.Generator().manual_seed(0)).eval()


LAYER = SliderSpec("attention.layer", 0, last_layer, 1, 0)
PICTURES: dict[str, Picture] = {
    "skeleton": Picture(skeleton, text=EXAMPLE, choices=("real", "skeleton")),
    "average": Picture(average, text=EXAMPLE),
    "dot_products": Picture(dot_products, text=EXAMPLE, a=LAYER),
    "queries": Picture(queries, text=EXAMPLE, a=LAYER, b=SliderSpec("attention.head", 0, last_head, 1, 0)),
    "activations": Picture(activations, a=SliderSpec("activations.x", -3, 3, 0.05, 1)),
    "feed_forward": Picture(feed_forward, text=EXAMPLE, a=LAYER),
    "attention": Picture(attention, text=EXAMPLE, a=LAYER, b=SliderSpec("attention.head", 0, last_head, 1, 0)),
    "block": Picture(block, text=EXAMPLE, a=LAYER),
    "model": Picture(model, text=EXAMPLE, a=SliderSpec("picture.depth", 0, lambda config: config.n_layer, 1, 0)),
    "dropout": Picture(
        dropout,
        text=EXAMPLE,
        a=SliderSpec("picture.dropout.share", 0, 0.9, 0.05, 0.1),
        b=SliderSpec("picture.seed", 0, 20, 1, 0),
    ),
    "small": Picture(small, a=SliderSpec("picture.padding", 0, 15, 1, 4)),
}
