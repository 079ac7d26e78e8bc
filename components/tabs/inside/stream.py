"""The residual stream and the neurons at the selected position, and the embeddings that the stream begins with."""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from typing import Any

import numpy as np
import torch

from components.errors import PageError
from components.figures.bars import grouped_bars, signed_bars
from components.figures.lines import lines
from components.figures.maps import similarity_heatmap
from components.i18n import t
from components.kit import Tab, card, layer_select, no_text, picture, question, row, says, section, title_row
from components.labels import decimal, quoted, shortened, token_text, visible_token
from components.parts import slider
from components.state.session import Session
from components.state.settings import checked_number
from components.tabs.inside.machine import ACTIVATIONS
from components.tabs.inside.recording import activation_of
from components.tabs.inside.scene import Scene, has_text, model_of, scene_of, select, traced
from components.text_views import snippet_words, text_strip, token_lines
from components.widgets.chart import Drawing
from components.widgets.simple import snippets, table
from components.widgets.tokens import shade_value
from gpt import LoadedModel, get_model
from gpt.analysis.corpus import CorpusExample, Peaks, activations
from gpt.analysis.embeddings import NearestTokens, nearest_tokens, position_similarity
from gpt.analysis.residual import Neurons, StreamNorms, stream_norms, strongest_neurons
from gpt.background import threads_for
from gpt.inference.packed_weights import multiplications_per_token
from gpt.inputs import ids_of

MAX_NEURONS, MAX_PUSHED = 10, 5  # neurons, and tokens that each neuron promotes or suppresses
SMALLEST_SHARE = 0.005  # smaller shares of what edits add, or of rounding errors, are left out
MAX_NEAREST = 12
N_SNIPPETS = 6
SNIPPET_TOKENS, TOKENS_BEFORE = 24, 15  # shown of an example, of these before the strongest one
EXAMPLE_TOKENS = 100  # read of each example text
CORPUS_WORK = 5e10  # multiplications that reading the example texts may take, if MIN_CORPUS_TOKENS take less
MIN_CORPUS_TOKENS, MAX_CORPUS_TOKENS = 1_000, 12_000
MAX_POSITIONS = 64  # positions shown in the chart

tab = Tab("embeddings")


@tab.state
class Chosen:
    neuron: tuple[int, int] | None = None  # layer and number; None for the strongest one at the token


@tab.computed(while_writing=True)
def stream(s: Any) -> StreamNorms:
    return stream_norms(s[traced])


@tab.computed(while_writing=True)
def strongest(s: Any) -> Neurons:
    scene = s.cached(scene_of)
    model = scene.document.loaded.model
    return strongest_neurons(model, s[traced], scene.layer, 0, k=MAX_NEURONS, n_tokens=MAX_PUSHED)


def tokens(s: Any) -> dict[str, Any]:
    scene = s.cached(scene_of)
    recording, document, norms = scene.recording, scene.document, _norms(scene)
    return {
        "lines": token_lines(scene.tokenizer, recording.ids, n_prompt=document.n_prompt),
        "doc": str(document.key),
        "selected": scene.position,
        "shade": shade_value(norms / max(float(norms.max()), 1e-9)),
    }


def tokens_sentence(s: Any) -> str:
    scene = s.cached(scene_of)
    norms = _norms(scene)
    lengths = {"longest_is": f"{norms.max():.1f}", "shortest_is": f"{norms.min():.1f}"}
    longest, shortest = (scene.placed(int(at)) for at in (norms.argmax(), norms.argmin()))
    return t("stream.tokens.says", layer=scene.layer, longest=longest, shortest=shortest, **lengths)


def norms(s: Any) -> Drawing:
    scene = s.cached(scene_of)
    found = s[stream]
    parts = {"post": found.resid_post, "attn": found.attn_out, "mlp": found.mlp_out}
    series = {name: values[:, 0].float().cpu().numpy() for name, values in parts.items()}
    post, most = series["post"], int(found.added[:, 0].argmax())
    figure = lines(
        np.arange(len(post)),
        {t(f"stream.{name}"): values for name, values in series.items()},
        x_title=t("stream.layer"),
        y_title=t("stream.length"),
        mark=(f"{t('stream.layer')} {scene.layer}", scene.layer),
    )
    ends = {"first": f"{found.resid_pre[0, 0]:.2f}", "last": f"{post[-1]:.2f}"}
    text = t("stream.says", token=_token(scene), **ends, most=most)
    return figure, text, t("stream.note")


def shares(s: Any) -> Drawing:
    scene = s.cached(scene_of)
    layer, found = scene.layer, s[stream]
    parts = {"kept": found.kept_share[:, 0], "attn": found.attn_share[:, 0], "mlp": found.mlp_share[:, 0]}
    if (found.rest_share[:, 0].abs() >= SMALLEST_SHARE).any():
        parts["rest"] = found.rest_share[:, 0]
    figure = grouped_bars(
        [str(number) for number in range(scene.config.n_layer)],
        {t(f"stream.{name}"): values.cpu().numpy() for name, values in parts.items()},
        barmode="relative",
        colours=("before", "attention", "text", "muted"),
        y={"tickformat": ".0%"},
        framed=layer,
        tip=".1%",
        most=24,
        x_title=t("stream.layer"),
        y_title=t("stream.share"),
    )
    percents = whole_percents(np.array([float(values[layer]) for values in parts.values()]))
    key = "stream.shares.says.edits" if "rest" in parts else "stream.shares.says"
    text = t(key, layer=layer, **dict(zip(parts, percents, strict=True)))
    return figure, text, t("stream.shares.note")


def neurons(s: Any) -> Drawing:
    scene = s.cached(scene_of)
    found = s[strongest]
    activation, gated = ACTIVATIONS[activation_of(scene.document)], "" if found.mlp_up is None else ".gated"
    figure = grouped_bars(
        [str(index) for index in found.index.tolist()],
        {
            t("neurons.before", activation=activation): found.pre.cpu().numpy(),
            t(f"neurons.after{gated}"): found.post.cpu().numpy(),
        },
        x_title=t("neurons.neuron"),
        digits=".2f",
    )
    text = t(
        f"neurons.says{gated}",
        token=_token(scene),
        layer=scene.layer,
        first=int(found.index[0]),
        pre=decimal(found.pre[0]),
        post=decimal(found.post[0]),
        factor="" if found.mlp_up is None else decimal(found.mlp_up[0]),
        activation=activation,
        up=_tokens(scene, found.up[0].tolist()[:2]),
        down=_tokens(scene, found.down[0].tolist()[:2]),
    )
    return figure, text, t("neurons.note")


def neurons_table(s: Any) -> dict[str, Any]:
    scene = s.cached(scene_of)
    found = s[strongest]
    columns = {"pre": found.pre, "factor": found.mlp_up, "post": found.post, "length": found.norm}
    shown = {name: values for name, values in columns.items() if values is not None}
    rows = [[t(f"neurons.{name}") for name in ("neuron", *shown, "up", "down")]]
    for i, index in enumerate(found.index.tolist()):
        numbers = [decimal(values[i]) for values in shown.values()]
        rows.append([str(index), *numbers, *(_tokens(scene, ids[i].tolist()) for ids in (found.up, found.down))])
    return {"rows": rows}


def texts_for(loaded: LoadedModel) -> list[list[int]]:
    """Return the beginnings of the texts that come with the page, those that the model's vocabulary can express.

    These are the held-out texts of its concepts or, if it has none, those of the bundled stories.
    """
    source = loaded if loaded.concepts is not None else get_model()
    assert source.concepts is not None
    affordable = CORPUS_WORK / multiplications_per_token(loaded.model)
    left = min(MAX_CORPUS_TOKENS, max(MIN_CORPUS_TOKENS, affordable))
    longest, rows = min(EXAMPLE_TOKENS, loaded.model.config.block_size), []
    for is_end, ids in groupby(source.concepts.text.tolist(), source.tokenizer.special_ids.__contains__):
        if is_end or left <= 0:
            continue
        with suppress(ValueError):  # a character that the vocabulary lacks
            rows.append(ids_of(loaded, source.tokenizer.decode([*ids]))[:longest])
            left -= len(rows[-1])
    if not rows:
        raise PageError("neurons.unreadable")
    return rows


@tab.computed
@torch.inference_mode()
def corpus(s: Any) -> tuple[list[list[int]], int, Peaks]:
    """Return example texts, the layer, and where each of its neurons is strongest in them."""
    loaded, layer = model_of(s), s.selection.layer
    texts = texts_for(loaded)
    with threads_for(sum(map(len, texts)) * multiplications_per_token(loaded.model)):
        return texts, layer, Peaks.of(activations(loaded, f"layers.{layer}.mlp_post", texts), N_SNIPPETS)


@tab.computed
def examples(s: Any) -> tuple[list[CorpusExample], list[list[float]]]:
    """Return the neuron's strongest examples, and its activation on each of their tokens."""
    loaded, (texts, layer, peaks), neuron = model_of(s), s[corpus], s.cached(neuron_of)
    chosen = peaks.examples(neuron, texts)
    values = activations(loaded, f"layers.{layer}.mlp_post", [[*each.ids] for each in chosen])
    return chosen, [each[:, neuron].tolist() for each in values]


def neuron_of(s: Any) -> int:
    layer, chosen = s.selection.layer, s[Chosen].neuron
    return chosen[1] if chosen is not None and chosen[0] == layer else int(s[strongest].index[0])


def choose_neuron(session: Session, neuron: object) -> None:
    """Show the examples of a neuron of the selected layer. neuron: from the browser, unchecked."""
    s = session.snapshot()
    number = checked_number(t("neurons.number"), neuron, 0, last_neuron(s), whole=True)
    session.change(Chosen, neuron=(s.selection.layer, int(number)))


def choose_bar(session: Session, sent: dict[str, Any]) -> None:
    found, bar = strongest.latest(session.snapshot()), sent.get("x")
    if found is not None and type(bar) is int and 0 <= bar < len(found.index):
        choose_neuron(session, int(found.index[bar]))


def last_neuron(s: Any) -> int:
    return 1 if s.text is None else s.text.config.ff_size - 1


def examples_sentence(s: Any) -> str:
    (first, *_), _ = s[examples]
    texts, layer, _ = s[corpus]
    token = quoted(model_of(s).tokenizer, first.ids[first.position])
    values = {"neuron": s.cached(neuron_of), "token": token, "value": decimal(first.value)}
    return t("neurons.examples.says", n=len(texts), layer=layer, **values)


def example_snippets(s: Any) -> dict[str, Any]:
    chosen, values = s[examples]
    shown = []
    for example, its in zip(chosen, values, strict=True):
        start = max(0, min(example.position - TOKENS_BEFORE, len(example.ids) - SNIPPET_TOKENS))
        part = slice(start, start + SNIPPET_TOKENS)
        tint = [max(0.0, value / max(chosen[0].value, 1e-6)) for value in its[part]]
        shown.append(snippet_words(model_of(s).tokenizer, example.ids[part], tint))
    return {"snippets": shown, "name": ""}


def whole_percents(shares: np.ndarray) -> list[str]:
    """Format shares as whole percentages, rounding up the largest remainders to sum to 100. NaN becomes a dash."""
    if not np.isfinite(shares).all():
        return ["–"] * len(shares)
    lower = np.floor(100 * shares)
    missing = round(100 - lower.sum())
    lower[np.argsort(lower - 100 * shares, kind="stable")[:missing]] += 1
    return [f"{decimal(value, 0)}%" for value in lower]


def _norms(scene: Scene) -> np.ndarray:
    return scene.recording.pooled(scene.layer, "resid_post").norm


def _token(scene: Scene) -> str:
    return visible_token(scene.tokenizer, scene.recording.ids[scene.position])


def _tokens(scene: Scene, ids: list[int]) -> str:
    return " ".join(quoted(scene.tokenizer, token_id) for token_id in ids)


def select_token(session: Session, sent: dict[str, Any]) -> None:
    select(session, {"position": sent.get("index")})


def select_layer(session: Session, sent: dict[str, Any]) -> None:
    select(session, {"layer": sent.get("x")})


@tab.computed(while_writing=True)
def similar_tokens(s: Any) -> tuple[int, NearestTokens]:
    """Return the selected token and those whose embeddings have the highest cosine similarity to its own."""
    loaded, token_id = model_of(s), s.watch(lambda now: now.text and now.text.ids[now.position])
    return token_id, nearest_tokens(loaded.model, token_id, MAX_NEAREST)


def nearest(s: Any) -> Drawing:
    token_id, found = s[similar_tokens]
    tokenizer = model_of(s).tokenizer
    ids, cosines = found.token.tolist(), found.cosine.float().cpu().numpy()
    if not ids:  # the vocabulary has only one token
        return None
    figure = signed_bars(
        [shortened(token_text(tokenizer, nearest_id), 14) for nearest_id in ids],
        cosines,
        [decimal(value) for value in cosines],
        title=t("embeddings.cosine"),
        full=1.0,
    )
    named = {"token": visible_token(tokenizer, token_id), "nearest": quoted(tokenizer, ids[0])}
    return figure, t("embeddings.says", **named, cosine=decimal(cosines[0])), t("embeddings.note")


@tab.computed(while_writing=True)
def similar_positions(s: Any) -> np.ndarray | None:
    """Return the similarity of the learned position embeddings, (block_size, block_size); None if there are none."""
    model = model_of(s).model
    return None if model.wpe is None else position_similarity(model).float().cpu().numpy()


def positions(s: Any) -> Drawing:
    cosines = s[similar_positions]
    if cosines is None:
        return None
    n = len(cosines)
    shown = np.unique(np.linspace(0, n - 1, min(n, MAX_POSITIONS)).round().astype(int))
    cells = cosines[np.ix_(shown, shown)]
    figure = similarity_heatmap(cells, shown)
    near, far = (float(np.diagonal(cosines, k).mean()) if k < n else 1.0 for k in (1, n // 2))
    text = t("places.says", near=decimal(near, 2), far=decimal(far, 2))
    return figure, text, t("places.note", shown=len(shown), all=n)


def no_positions(s: Any) -> str | None:
    return t("places.rotary") if model_of(s).model.wpe is None else None


STREAM = card(
    "inside-stream",
    section(
        title_row(question("stream.tokens.question"), layer_select("stream-layer", beside=True)),
        says("stream-tokens-says", tokens_sentence, kind="caption"),
        text_strip("stream-tokens", shade="length", draw=tokens, on=select_token),
    ),
    row(
        section(question("stream.question"), picture("stream-norms", norms, clickable=True, on=select_layer), grow=1),
        section(
            question("stream.shares.question"),
            picture("stream-shares", shares, clickable=True, on=select_layer),
            grow=1,
        ),
        classes="gb-cards",
    ),
    section(
        question("neurons.question"),
        picture("neurons", neurons, clickable=True, on=choose_bar),
        table("neurons-table", draw=neurons_table, words_from=4),
    ),
    section(
        question("neurons.examples"),
        slider("neuron", low=0, high=last_neuron, step=1, label="neurons.number", value=neuron_of, on=choose_neuron),
        says("neurons-examples-says", examples_sentence, kind="caption"),
        snippets("neurons-examples", draw=example_snippets),
    ),
    classes="",
    opened=has_text,
)  # shown in the Activations tab
tab.cards(
    card("embeddings-notice", says("no-embeddings", no_text, kind="notice"), classes=""),
    card(
        "inside-embeddings",
        row(
            section(question("embeddings.question"), picture("nearest-tokens", nearest), grow=1),
            section(
                question("places.question"),
                picture("position-similarity", positions),
                says("no-positions", no_positions, kind="caption"),
                grow=1,
            ),
            classes="gb-cards",
        ),
        classes="",
        opened=has_text,
    ),
)
