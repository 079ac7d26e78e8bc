"""The residual stream and the neurons: how a token's vector grows, and who writes into it."""

from __future__ import annotations

import gradio as gr
import numpy as np

from components.i18n import Language, t
from components.labels import decimal, quoted, token_text, visible
from components.legacy import token_lines
from components.localized import Words
from components.panels.panel_figures import lines, pair_bars
from components.tabs.inside.part import Part, Scene, Values
from components.tabs.inside.stream_figures import share_bars_content
from components.tabs.inside.words import ACTIVATIONS
from components.widgets.chart import chart, chart_value
from components.widgets.layers import layers, layers_value
from components.widgets.sentence import sentence
from components.widgets.table import table, table_value
from components.widgets.tokens import header, selection, shade_value, tokens
from gpt import Trace
from gpt.analysis.residual import Neurons, StreamNorms, stream_norms, strongest_neurons

NEURONS, TOKENS = 10, 5


def build_stream(words: Words) -> Part:
    """Lay the part out."""
    with words.build(gr.Tab, {"label": "inside.stream"}, id="inside-stream") as tab:
        with gr.Column(elem_classes="gb-card"):
            with gr.Row(elem_classes="gb-card-head"):
                words.build(sentence, {"value": "stream.tokens.question"}, kind="question")
                layer = words.build(layers, {"labels": layer_labels}, elem_id="stream-layer")
            says = sentence(kind="caption", elem_id="stream-tokens-says")
            text = words.build(tokens, {"labels": strip_labels}, elem_id="stream-tokens")
        with gr.Row(elem_classes="gb-cards gb-why-cards"):
            with gr.Column(elem_classes="gb-card", min_width=300):
                words.build(sentence, {"value": "stream.question"}, kind="question")
                lengths = chart(elem_id="stream-lengths", clickable=True)
            with gr.Column(elem_classes="gb-card", min_width=300):
                words.build(sentence, {"value": "stream.shares.question"}, kind="question")
                shares = chart(elem_id="stream-shares", clickable=True)
        with gr.Column(elem_classes="gb-card"):
            words.build(sentence, {"value": "neurons.question"}, kind="question")
            bars = chart(elem_id="neurons")
            rows = table(elem_id="neurons-table", words_from=4)

    def show(scene: Scene) -> Values:
        trace = trace_of(scene)
        stream = stream_norms(trace)
        model = scene.record.document.loaded.model
        found = strongest_neurons(model, trace, scene.look.layer, 0, k=NEURONS, n_tokens=TOKENS)
        # An update before the tab was ever open drops what it does not name: labels go with every value.
        return {
            layer: gr.update(value=layer_value(scene), labels=layer_labels(scene.language)),
            says: lengths_say(scene),
            text: strip_update(scene),
            lengths: lengths_value(scene, stream),
            shares: shares_value(scene, stream),
            bars: neurons_value(scene, found),
            rows: neurons_table(scene, found),
        }

    clickable, of_layer = (layer, text, lengths, shares), {"x": "layer"}
    meaning = {text: {"index": "position"}, lengths: of_layer, shares: of_layer}
    return Part("stream", tab, (*clickable, says, bars, rows), show, clickable=clickable, meaning=meaning)


def trace_of(scene: Scene) -> Trace:
    """Every value of the selected position; kept, as another layer needs no other pass."""
    record, position = scene.record, scene.position
    key = (record, record.document.ids[: position + 1])
    if scene.kept.get("traced", (None,))[0] != key:
        scene.kept["traced"] = key, record.trace_at(position)
    return scene.kept["traced"][1]


def layer_value(scene: Scene) -> str:
    """The selected layer among all."""
    return layers_value(scene.look.layer, scene.record.config.n_layer)


def layer_labels(language: Language) -> dict[str, str]:
    """The words of the buttons."""
    return {"layer": t("flow.layer", language)}


def strip_labels(language: Language) -> dict[str, str]:
    """The words of the strip, which is shaded by lengths."""
    keys = ("name", "empty", "token", "id", "probability", "rank", "marks")
    return {key: t(f"strip.{key}", language) for key in keys} | {"attention": t("stream.tokens.share", language)}


def strip_update(scene: Scene) -> Values:
    """The recorded text as chips, shaded by how long each token's vector is after the selected layer."""
    record = scene.record
    document, lengths = record.document, _lengths(scene)
    ids = document.ids[: record.length]
    written = token_lines(document.loaded.tokenizer, ids, [(None, None)] * len(ids), document.n_prompt)
    return gr.update(
        value=header(doc=str(document.key)) + written,
        labels=strip_labels(scene.language),
        shade=shade_value(lengths / max(float(lengths.max()), 1e-9)),
        selected=selection(scene.position),
    )


def lengths_say(scene: Scene) -> str:
    """The longest and the shortest vector after the selected layer."""
    lengths, document = _lengths(scene), scene.record.document
    told = {}
    for name, at in (("longest", int(lengths.argmax())), ("shortest", int(lengths.argmin()))):
        told[name] = quoted(document.loaded.tokenizer, document.ids[at])
        told |= {f"{name}_at": at, f"{name}_is": f"{lengths[at]:.1f}"}
    return t("stream.tokens.says", scene.language, layer=scene.look.layer, **told)


def _lengths(scene: Scene) -> np.ndarray:
    """(T,): of the stream after the selected layer, as the Record has it."""
    return scene.record.strip(scene.look.layer, "resid_post").norm


def lengths_value(scene: Scene, stream: StreamNorms) -> str:
    """Lengths of the stream and of what is added to it at the selected position."""
    language = scene.language
    parts = {"post": stream.resid_post, "attn": stream.attn_out, "mlp": stream.mlp_out}
    series = {name: lengths[:, 0].cpu().numpy() for name, lengths in parts.items()}
    post, most = series["post"], int(stream.added[:, 0].argmax())
    figure = lines(
        np.arange(len(post)),
        {t(f"stream.{name}", language): values for name, values in series.items()},
        x_title=t("stream.layer", language),
        y_title=t("stream.length", language),
        markers=True,
        mark=(f"{t('stream.layer', language)} {scene.look.layer}", scene.look.layer),
    )
    told = {"first": f"{stream.resid_pre[0, 0]:.2f}", "last": f"{post[-1]:.2f}", "most": most}
    says = t("stream.says", language, token=_token(scene), **told)
    return chart_value(figure, says, t("stream.note", language))


def shares_value(scene: Scene, stream: StreamNorms) -> str:
    """What the stream after each layer consists of."""
    language, layer = scene.language, scene.look.layer
    parts = {"kept": stream.kept_share[:, 0], "attn": stream.attn_share[:, 0], "mlp": stream.mlp_share[:, 0]}
    figure = share_bars_content(
        {t(f"stream.{name}", language): values.cpu().numpy() for name, values in parts.items()},
        layer=layer,
        layer_title=t("stream.layer", language),
        share_title=t("stream.share", language),
    )
    told = dict(zip(parts, whole_percents(np.array([float(values[layer]) for values in parts.values()])), strict=True))
    says = t("stream.shares.says", language, layer=layer, **told)
    return chart_value(figure, says, t("stream.shares.note", language))


def neurons_value(scene: Scene, found: Neurons) -> str:
    """The strongest neurons of the selected layer, before and after the activation function."""
    language = scene.language
    activation = ACTIVATIONS[_activation(scene)]
    figure = pair_bars(
        [str(index) for index in found.index.tolist()],
        {
            t("neurons.before", language, activation=activation): found.pre.cpu().numpy(),
            t("neurons.after", language): found.post.cpu().numpy(),
        },
        name_title=t("neurons.neuron", language),
        digits=".2f",
        tip=".4f",
    )
    says = t(
        "neurons.says",
        language,
        token=_token(scene),
        layer=scene.look.layer,
        first=int(found.index[0]),
        pre=decimal(found.pre[0]),
        post=decimal(found.post[0]),
        activation=activation,
        up=_tokens(scene, found.up[0].tolist()[:2]),
        down=_tokens(scene, found.down[0].tolist()[:2]),
    )
    return chart_value(figure, says, t("neurons.note", language))


def neurons_table(scene: Scene, found: Neurons) -> str:
    """The same as rows, with the tokens that each neuron pushes."""
    names = ("neuron", "pre", "post", "length", "up", "down")
    rows = [[t(f"neurons.{name}", scene.language) for name in names]]
    for i, index in enumerate(found.index.tolist()):
        numbers = [decimal(values[i]) for values in (found.pre, found.post, found.norm)]
        pushed = [_tokens(scene, ids[i].tolist()) for ids in (found.up, found.down)]
        rows.append([str(index), *numbers, *pushed])
    return table_value(rows)


def whole_percents(shares: np.ndarray) -> list[str]:
    """Shares of a whole as percents that sum to 100: the largest remainders are the ones rounded up.

    A whole of nothing has none.
    """
    if not np.isfinite(shares).all():
        return ["–"] * len(shares)
    lower = np.floor(100 * shares)
    missing = round(100 - lower.sum())
    lower[np.argsort(lower - 100 * shares, kind="stable")[:missing]] += 1
    return [f"{decimal(value, 0)}\u00a0%" for value in lower]


def _activation(scene: Scene) -> str:
    document = scene.record.document
    swapped = None if document.edits is None else document.edits.activation
    return swapped or document.loaded.model.config.activation


def _token(scene: Scene) -> str:
    document = scene.record.document
    return visible(token_text(document.loaded.tokenizer, document.ids[scene.position]))


def _tokens(scene: Scene, ids: list[int]) -> str:
    tokenizer = scene.record.document.loaded.tokenizer
    return " ".join(quoted(tokenizer, token_id) for token_id in ids)
