"""The handlers of activation patching: two prompts, a pair of answers, and where the answer of one is on its way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr
import torch

from components.api import MAX_CHARACTERS
from components.errors import PageError, localize_error
from components.i18n import Language, t
from components.labels import quoted
from components.tabs.change import patch_views as change_patch_views
from components.tabs.change.answers import edit, everything
from components.tabs.change.effect import read, text_of_ids
from components.tabs.change.memory import Memory, Pair
from components.tabs.change.work import watched
from gpt import LoadedModel
from gpt.analysis.patching import patch_from, patch_sweep

if TYPE_CHECKING:
    from components.tabs.change.tab import Change

Values = dict[Any, Any]
NAMES = ("resid_pre", "attn_out", "mlp_out")
MAX_TOKENS = 64  # of a prompt: as many passes for each layer
CHOICES = 8  # likely tokens of either prompt
EXAMPLES = {
    "names": ("Lily was sad. Tom gave a hug to", "Tom was sad. Lily gave a hug to"),
    "animals": ("Tom saw a big dog. He wanted to play with the", "Tom saw a big cat. He wanted to play with the"),
}


def sweep(ui: Change, values: Values) -> Iterator[Values]:
    """Measure every layer and position, unless that was done for these prompts and answers."""
    memory, language = values[ui.memory], values[ui.playground.frame.language]
    if memory.text is None:
        yield {ui.trouble: t("error.no_text", language)}
        return
    loaded, name = memory.text.loaded, values[ui.name] if values[ui.name] in NAMES else NAMES[0]
    yield {ui.patch_stop: gr.update(interactive=True), ui.trouble: ""}
    try:
        pair, choices = _pair(loaded, memory, values, ui)
    except ValueError as problem:
        yield {
            ui.trouble: localize_error(problem, language),
            ui.map: "",
            ui.cell: "",
            ui.keep: gr.update(visible=False),
        }
        return
    if pair != memory.pair:
        memory.pair, memory.cell = pair, None
        memory.sweeps.clear()
    yield {
        ui.answer: gr.update(choices=choices, value=pair.answer),
        ui.other: gr.update(choices=choices, value=pair.other),
    }
    if name not in memory.sweeps:

        def told(n: int, total: int) -> Values:
            return {ui.patch_status: t("change.patch.doing", language, n=n, total=total)}

        arguments = (loaded.model, pair.clean, pair.corrupted, pair.answer, pair.other)
        work = watched(lambda progress: patch_sweep(*arguments, name=name, progress=progress), told)
        try:
            found = yield from work
        except ValueError:
            answer, other = (quoted(loaded.tokenizer, i) for i in (pair.answer, pair.other))
            flat = t("change.patch.flat", language, answer=answer, other=other)
            yield {ui.trouble: flat, ui.map: "", ui.cell: "", ui.keep: gr.update(visible=False)}
            return
        if memory.pair is not pair:
            return
        memory.sweeps[name] = found
    yield show(ui, memory, name, language)


def swept(ui: Change, values: Values) -> Values:
    """After a sweep, however it ended."""
    return {ui.patch_stop: gr.update(interactive=False), ui.patch_status: ""}


def show(ui: Change, memory: Memory, name: str, language: Language) -> Values:
    """The map, and the cell that was clicked."""
    loaded, found, pair = memory.text.loaded, memory.sweeps[name], memory.pair
    cell = "" if memory.cell is None else change_patch_views.cell(loaded, pair, found, name, memory.cell, language)
    return {
        ui.map: change_patch_views.sweep_map(loaded, pair, found, name, memory.cell, language),
        ui.cell: cell,
        ui.keep: gr.update(visible=memory.cell is not None),
    }


def retell(ui: Change, values: Values) -> Values:
    """The map in the language chosen just now."""
    memory, name = values[ui.memory], values[ui.name]
    if memory.text is None or name not in memory.sweeps:
        return {ui.trouble: ""}
    return show(ui, memory, name, values[ui.playground.frame.language]) | {ui.trouble: ""}


def choose_cell(ui: Change, values: Values, sent: Values) -> Values:
    """A click on the map. The browser may have sent anything."""
    memory, name = values[ui.memory], values[ui.name]
    position, layer = sent.get("x"), sent.get("y")
    if memory.text is None or name not in memory.sweeps or type(position) is not int or type(layer) is not int:
        return gr.skip()
    n_layer, n = memory.sweeps[name].recovered.shape
    if not (0 <= layer < n_layer and 0 <= position < n):
        return gr.skip()
    memory.cell = layer, position
    return show(ui, memory, name, values[ui.playground.frame.language])


def keep(ui: Change, values: Values) -> Values:
    """The patch of the chosen cell among the edits, with prompt B as the text."""
    memory, name = values[ui.memory], values[ui.name]
    if memory.text is None or memory.cell is None or memory.pair is None or name not in NAMES:
        return gr.skip()
    (layer, position), loaded = memory.cell, memory.text.loaded
    patch = patch_from(loaded.model, memory.pair.clean, name, layer, position)
    edit(ui, values, replace(memory.edits, patches=(patch,)))
    values[ui.playground.session].edits_on = memory.pair.corrupted
    memory.written = None
    memory.look_at(text_of_ids(loaded, list(memory.pair.corrupted)), own=True)
    return everything(ui, memory, values[ui.playground.frame.language])


def _pair(loaded: LoadedModel, memory: Memory, values: Values, ui: Change) -> tuple[Pair, list[tuple[str, int]]]:
    """Both prompts and answers, and the answers to choose from. Raises ValueError with a sentence."""
    texts = [str(values[box] or "")[:MAX_CHARACTERS] for box in (ui.clean, ui.corrupted)]
    clean, corrupted = (tuple(loaded.tokenizer.encode(text)) for text in texts)
    limit = min(MAX_TOKENS, loaded.model.config.block_size)
    if not clean or not corrupted:
        raise PageError("change.patch.empty")
    if len(clean) != len(corrupted):
        raise PageError("change.patch.lengths", a=len(clean), b=len(corrupted))
    if len(clean) > limit:
        raise PageError("change.patch.long", n=len(clean), limit=limit)
    if clean == corrupted:
        raise PageError("change.patch.same")
    with torch.inference_mode():
        p, q = (loaded.model.lm_head(read(loaded, ids)[-1]).float().softmax(dim=0).cpu() for ids in (clean, corrupted))
    answer, other = int((p - q).argmax()), int((q - p).argmax())
    before = memory.pair
    if before is not None and (before.clean, before.corrupted) == (clean, corrupted):
        chosen = (values[ui.answer], answer), (values[ui.other], other)
        answer, other = (_token(loaded, value, default) for value, default in chosen)
        if answer == other:
            raise PageError("change.patch.alike")
    likely = [*p.topk(min(CHOICES, len(p))).indices.tolist(), *q.topk(min(CHOICES, len(q))).indices.tolist()]
    tokens = dict.fromkeys([answer, other, *likely])
    return Pair(clean, corrupted, answer, other), change_patch_views.choices(loaded, tokens, p, q)


def _token(loaded: LoadedModel, chosen: object, default: int) -> int:
    """An id of the list, or a token that was typed, with or without its space."""
    if chosen is None or chosen == "":
        return default
    if type(chosen) is int and 0 <= chosen < loaded.model.config.vocab_size:
        return chosen
    for text in (f" {chosen}", str(chosen)):
        try:
            ids = loaded.tokenizer.encode(text)
        except ValueError:
            continue
        if len(ids) == 1:
            return ids[0]
    raise PageError("change.patch.token", text=str(chosen)[:40])
