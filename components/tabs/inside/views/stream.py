"""The residual stream and the neurons at the selected position."""

from __future__ import annotations

import numpy as np

from components.figures.bars import grouped_bars, share_bars
from components.figures.lines import lines
from components.i18n import t
from components.labels import decimal, quoted, token_text, visible
from components.state.snapshot import Snapshot
from components.tabs.inside.recording import activation_of
from components.tabs.inside.results import PositionTrace
from components.tabs.inside.state import InsideState
from components.tabs.inside.views.captions import ACTIVATIONS
from components.tabs.inside.views.scene import Data, Draw, Scene, part_view, scene_of
from components.text_views import token_lines
from components.widgets.chart import chart_data
from components.widgets.tokens import shade_value
from gpt import Trace
from gpt.analysis.residual import Neurons, StreamNorms, stream_norms, strongest_neurons

MAX_NEURONS, MAX_PUSHED = 10, 5  # neurons, and tokens that each neuron promotes or suppresses
SMALLEST_SHARE = 0.005  # smaller shares of what edits add, or of rounding errors, are left out
NOTHING = chart_data(None, "")


def trace_of(s: Snapshot, scene: Scene) -> PositionTrace | None:
    """Return all activations at the selected position, or None if they have not been computed yet."""
    trace = s.state(InsideState).position_trace
    return trace if trace is not None and trace.is_at(scene.recording, scene.position) else None


def _traced_scene(s: Snapshot) -> tuple[Scene, Trace]:
    """Return the scene and the trace, for a view that waits for the trace."""
    scene = s.cached(scene_of)
    found = None if scene is None else trace_of(s, scene)
    assert scene is not None and found is not None  # noqa: PT018  see `_traced`
    return scene, found.trace


def norms_of(s: Snapshot) -> StreamNorms:
    """Return the residual stream's norms and shares at the selected position."""
    return stream_norms(_traced_scene(s)[1])


def neurons_of(s: Snapshot) -> Neurons:
    """Return the strongest neurons of the selected layer."""
    scene, trace = _traced_scene(s)
    return strongest_neurons(scene.document.loaded.model, trace, scene.layer, 0, k=MAX_NEURONS, n_tokens=MAX_PUSHED)


def layers(s: Snapshot, scene: Scene) -> Data:
    """List the layers, with the selected one highlighted."""
    return {"layer": scene.layer, "n_layer": scene.config.n_layer}


def tokens(s: Snapshot, scene: Scene) -> Data:
    """Show the recorded text as tokens, shaded by the norm of the residual stream after the selected layer."""
    recording, document, norms = scene.recording, scene.document, _norms(scene)
    unknown = [(None, None)] * recording.length
    return {
        "lines": token_lines(document.loaded.tokenizer, recording.ids, unknown, document.n_prompt),
        "doc": str(document.key),
        "selected": scene.position,
        "shade": shade_value(norms / max(float(norms.max()), 1e-9)),
    }


def tokens_sentence(s: Snapshot, scene: Scene) -> Data:
    """State the largest and the smallest norm after the selected layer."""
    norms = _norms(scene)
    named: dict[str, object] = {}
    for name, at in (("longest", int(norms.argmax())), ("shortest", int(norms.argmin()))):
        named |= {name: scene.placed(at), f"{name}_is": f"{norms[at]:.1f}"}
    return {"text": t("stream.tokens.says", layer=scene.layer, **named)}


def norms(s: Snapshot, scene: Scene) -> Data:
    """Plot the norms of the stream and of the branch outputs at the selected position."""
    found = s.cached(norms_of)
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
    return chart_data(figure, text, t("stream.note"))


def shares(s: Snapshot, scene: Scene) -> Data:
    """Plot each component's contribution to the stream after each layer."""
    layer, found = scene.layer, s.cached(norms_of)
    parts = {"kept": found.kept_share[:, 0], "attn": found.attn_share[:, 0], "mlp": found.mlp_share[:, 0]}
    edited = bool((found.rest_share[:, 0].abs() >= SMALLEST_SHARE).any())
    if edited:
        parts["rest"] = found.rest_share[:, 0]
    figure = share_bars(
        {t(f"stream.{name}"): values.cpu().numpy() for name, values in parts.items()},
        layer=layer,
        x_title=t("stream.layer"),
        y_title=t("stream.share"),
    )
    percents = whole_percents(np.array([float(values[layer]) for values in parts.values()]))
    key = "stream.shares.says.edits" if edited else "stream.shares.says"
    text = t(key, layer=layer, **dict(zip(parts, percents, strict=True)))
    return chart_data(figure, text, t("stream.shares.note"))


def neurons(s: Snapshot, scene: Scene) -> Data:
    """Plot the strongest neurons in the selected layer, before and after the activation function."""
    found = s.cached(neurons_of)
    activation = ACTIVATIONS[activation_of(scene.document)]
    figure = grouped_bars(
        [str(index) for index in found.index.tolist()],
        {
            t("neurons.before", activation=activation): found.pre.cpu().numpy(),
            t("neurons.after" if found.mlp_up is None else "neurons.after.gated"): found.post.cpu().numpy(),
        },
        x_title=t("neurons.neuron"),
        digits=".2f",
        tip=".4f",
        height=340,
    )
    text = t(
        "neurons.says" if found.mlp_up is None else "neurons.says.gated",
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
    return chart_data(figure, text, t("neurons.note"))


def neurons_table(s: Snapshot, scene: Scene) -> Data:
    """List the neurons, with the tokens that each one promotes or suppresses."""
    found = s.cached(neurons_of)
    columns = {"pre": found.pre, "factor": found.mlp_up, "post": found.post, "length": found.norm}
    shown = {name: values for name, values in columns.items() if values is not None}
    rows = [[t(f"neurons.{name}") for name in ("neuron", *shown, "up", "down")]]
    for i, index in enumerate(found.index.tolist()):
        numbers = [decimal(values[i]) for values in shown.values()]
        rows.append([str(index), *numbers, *(_tokens(scene, ids[i].tolist()) for ids in (found.up, found.down))])
    return {"rows": rows}


def whole_percents(shares: np.ndarray) -> list[str]:
    """Format shares as whole percentages, rounding up the largest remainders to sum to 100. NaN becomes a dash."""
    if not np.isfinite(shares).all():
        return ["–"] * len(shares)
    lower = np.floor(100 * shares)
    missing = round(100 - lower.sum())
    lower[np.argsort(lower - 100 * shares, kind="stable")[:missing]] += 1
    return [f"{decimal(value, 0)}%" for value in lower]


def _norms(scene: Scene) -> np.ndarray:
    """Return the norms of the stream after the selected layer, (T,)."""
    return scene.recording.pooled(scene.layer, "resid_post").norm


def _token(scene: Scene) -> str:
    tokenizer = scene.document.loaded.tokenizer
    return visible(token_text(tokenizer, scene.recording.ids[scene.position]))


def _tokens(scene: Scene, ids: list[int]) -> str:
    return " ".join(quoted(scene.document.loaded.tokenizer, token_id) for token_id in ids)


def _traced(draw: Draw) -> Draw:
    """Make a view wait for the trace, so that all views show the same token."""

    def draw_traced(s: Snapshot, scene: Scene) -> Data:
        return {} if trace_of(s, scene) is None else draw(s, scene)

    return draw_traced


_DRAWN: tuple[tuple[str, Draw, Data], ...] = (
    ("stream-layer", layers, {"n_layer": 0}),
    ("stream-tokens", tokens, {"lines": [], "doc": ""}),
    ("stream-tokens-says", tokens_sentence, {"text": ""}),
    ("stream-norms", norms, NOTHING),
    ("stream-shares", shares, NOTHING),
    ("neurons", neurons, NOTHING),
    ("neurons-table", neurons_table, {"rows": []}),
)
VIEWS = tuple(part_view(name, "stream", _traced(draw), nothing) for name, draw, nothing in _DRAWN)
