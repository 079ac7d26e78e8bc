"""The skeleton of the shown model in the machine's place: its embeddings and its head, and nothing between them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from components.i18n import Language, t
from components.labels import percent, quoted
from components.state.selection import Selection
from components.tabs.inside.record import Record, Strip
from components.tabs.inside.views import THIN, chosen_bars, next_tokens, shown_head, shown_rows, strip_content
from components.tabs.inside.words import next_words, number
from components.widgets.flow import flow_value
from gpt import Trace
from gpt.experiments.random_models import skeleton_of

STREAM = ("pre", "mid", "post", "fin")  # columns of one vector: nothing is added to it


def skeleton_flow(record: Record, look: Selection, language: Language) -> str:
    """What the flow draws and says of the skeleton's pass over the recorded text."""
    config, document = record.config, record.document
    position = min(look.at(document), record.length - 1)
    content, rows = shown_rows(record, position)
    vectors, logits = skeleton_pass(record, position)
    strips = {name: Strip.of(vector[rows]) for name, vector in vectors.items()}
    drawn = {name: strip_content(strip, slice(None)) for name, strip in strips.items()}
    thin = strip_content(strips["pre"], slice(None), bins=THIN)
    at = position - rows.start
    lengths = {name: number(strip.norm[at]) for name, strip in strips.items()}
    best = next_tokens(logits)
    content |= {
        "bare": True,
        "title": t("bare.title", language, n=config.n_layer),
        "identity": t("bare.identity", language),
        "name": t("bare.name", language),
        "keys": t("bare.keys", language),
        "layer": look.layer,
        "head": shown_head(look),
        "strips": {name: strip for name, strip in drawn.items() if name != "pre"} | dict.fromkeys(STREAM, drawn["pre"]),
        "stack": [thin] * config.n_layer,
        "norms": [lengths["pre"]] * config.n_layer,
        "row": [0.0] * len(content["tokens"]),
        "words": _words(record, position, lengths, logits, language),
        "text": _says(record, position, best[0], language),
    }
    return flow_value(content | chosen_bars(record, position, best))


@torch.inference_mode()
def skeleton_pass(record: Record, position: int) -> tuple[dict[str, np.ndarray], Tensor]:
    """A pass of the skeleton over the recorded text: its vectors by column, (T, n_embd) each, and the logits of what
    may follow `position`, (vocab_size,) float32. "pre" is the whole residual stream, "pos" only with learned positions.
    """
    document = record.document
    model, trace = skeleton_of(document.loaded.model), Trace(attention=False)
    idx = torch.tensor([document.ids[: record.length]], device=model.device)
    states = model.hidden_states(idx, trace=trace, edits=document.edits)[0]
    found = {"tok": trace.token_embedding, "pos": trace.position_embedding, "pre": states}
    vectors = {name: value.reshape(-1, value.shape[-1]) for name, value in found.items() if value is not None}
    logits = model.lm_head(states[position : position + 1])[0].float()
    return {name: value.float().cpu().numpy() for name, value in vectors.items()}, logits


def _words(
    record: Record, position: int, lengths: dict[str, str], logits: Tensor, language: Language
) -> dict[str, str]:
    """By the part's name: three lines, as `components.tabs.inside.words.part_words`."""
    document = record.document
    tokenizer, token_id = document.loaded.tokenizer, document.ids[position]
    here = {"id": token_id, "position": position}
    values: dict[str, tuple[str, dict[str, object]]] = {
        "tokens": ("flow.tokens", {"token": quoted(tokenizer, token_id), **here}),
        **{name: (f"flow.{name}", {**here, "norm": lengths[name]}) for name in ("tok", "pos") if name in lengths},
        **{name: (f"bare.{name}", {"norm": lengths["pre"]}) for name in ("stack", "pre", "attn", "mid")},
        **{name: (f"bare.{name}", {"norm": lengths["pre"]}) for name in ("mlp", "post", "fin")},
        "next": ("flow.next", next_words(tokenizer, logits)),
    }
    return {part: t(key, language, **filled) for part, (key, filled) in values.items()}


def _says(record: Record, position: int, best: tuple[int, float, float], language: Language) -> str:
    document = record.document
    tokenizer = document.loaded.tokenizer

    def expected(token_id: int, p: float) -> str:
        return f"{quoted(tokenizer, token_id)} ({percent(p)})"

    full = next_tokens(document.logits(position))[0]
    return t(
        "bare.says",
        language,
        token=quoted(tokenizer, document.ids[position]),
        position=position,
        n=record.length,
        best=expected(*best[:2]),
        full=expected(*full[:2]),
    )
