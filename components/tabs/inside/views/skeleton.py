"""The flow for the model's skeleton: its embeddings and its head, without blocks."""

from __future__ import annotations

from torch import Tensor

from components.i18n import t
from components.tabs.inside.pooling import PooledVectors
from components.tabs.inside.recording import BINS
from components.tabs.inside.results import SkeletonPass
from components.tabs.inside.views.captions import next_token_values
from components.tabs.inside.views.flow import STACK_BINS, flow_labels, next_fields, row_fields, strip, top_token
from components.tabs.inside.views.scene import Data, Scene, number
from gpt import Stages

STREAM = ("pre", "mid", "post", "fin")  # columns that show the same vector


def skeleton_flow(scene: Scene, skeleton: SkeletonPass, rows: slice) -> Data:
    """Return the flow data for the skeleton's forward pass over the recorded text. `rows` are the positions shown."""
    n_layer, position = scene.config.n_layer, scene.position
    logits, full = skeleton.logits(position), scene.document.logits(position)
    stages = scene.stages(logits)
    tensors = {"tok": skeleton.token, "pos": skeleton.position, "pre": skeleton.states}
    columns = {
        name: PooledVectors.of(vectors[rows].float().cpu().numpy(), BINS)
        for name, vectors in tensors.items()
        if vectors is not None
    }
    strips = {name: strip(pooled, slice(None)) for name, pooled in columns.items()}
    norms = {name: number(pooled.norm[position - rows.start]) for name, pooled in columns.items()}
    stream = strips.pop("pre")
    return {
        **row_fields(scene, rows),
        "bare": True,
        "title": t("bare.title", n=n_layer),
        "identity": t("bare.identity"),
        "name": t("bare.name"),
        "hint": t("bare.hint"),
        "keys": t("bare.keys"),
        "strips": strips | dict.fromkeys(STREAM, stream),
        "stack": [strip(columns["pre"], slice(None), bins=STACK_BINS)] * n_layer,
        "norms": [norms["pre"]] * n_layer,
        "weights": None,
        "row": [0.0] * (rows.stop - rows.start),
        "scores": None,
        "words": _captions(scene, norms, logits, stages),
        "text": t(
            "bare.says",
            token=scene.placed(position),
            best=top_token(scene, stages),
            full=top_token(scene, scene.stages(full)),
        ),
        **next_fields(scene, stages),
        "labels": flow_labels(),
    }


def _captions(scene: Scene, norms: dict[str, str], logits: Tensor, stages: Stages) -> dict[str, str]:
    """Return a caption for each part, like `flow_captions`."""
    here = {"id": scene.row_of(scene.position), "position": scene.position}
    stream: dict[str, object] = {"norm": norms["pre"]}
    values: dict[str, tuple[str, dict[str, object]]] = {
        "tokens": ("flow.tokens", {"token": scene.placed(scene.position)}),
        **{name: (f"flow.{name}", {**here, "norm": norms[name]}) for name in ("tok", "pos") if name in norms},
        **{name: (f"bare.{name}", stream) for name in ("stack", "pre", "attn", "mid", "mlp", "post", "fin")},
        "next": ("flow.next", next_token_values(scene.document.loaded.tokenizer, logits, stages)),
    }
    return {part: t(key, **filled) for part, (key, filled) in values.items()}
