"""Activation patching: two prompts, two answers, and a search for the activations that restore the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from components.errors import PageError
from components.labels import Later, quoted
from components.limits import MAX_CHARACTERS
from components.next_tokens import at_one
from components.state.jobs import result_of
from components.state.selection import NEWEST
from components.state.session import Session
from components.tabs.change.effect import read
from components.tabs.change.handlers.editing import edit
from components.tabs.change.state import (
    PATCHED,
    ChangeState,
    PromptPair,
    Sweeps,
)
from components.tabs.change.views.patching import sweeps_of
from gpt import LoadedModel
from gpt.analysis.patching import patch_from, patch_sweep
from gpt.background import Cancelled
from gpt.sampling import keep_only
from gpt.tokenizer import hold_back, prompt_ids

MAX_PROMPT_TOKENS = 64  # limits the number of forward passes per layer
N_CHOICES = 8  # likely next tokens listed for each prompt


def set_prompt(name: str, session: Session, value: object) -> None:
    """Set the clean or the corrupted prompt."""
    session.change(ChangeState, **{name: str(value or "")[:MAX_CHARACTERS]})


def choose_answer(name: str, session: Session, value: object) -> Iterator[None]:
    """Choose the "answer" or "other" token, and start the sweep.

    `value` is a list with one id or text; an empty list selects the default token.
    """
    session.change(ChangeState, **{name: value[0] if isinstance(value, list) and value else None})
    yield from sweep(session)


def choose_activation(session: Session, value: object) -> Iterator[None]:
    """Choose which activation to patch, and start the sweep."""
    if value in PATCHED:
        session.change(ChangeState, patched=value)
        yield from sweep(session)


def take_example(pair: tuple[str, str], session: Session) -> Iterator[None]:
    """Load an example pair of prompts, and start the sweep."""
    clean, corrupted = pair
    session.change(ChangeState, clean=clean, corrupted=corrupted)
    yield from sweep(session)


def sweep(session: Session) -> Iterator[None]:
    """Patch each layer and position, unless this has already been done for these prompts and answers."""
    try:
        if session.document is None:
            raise PageError("error.no_text")
        yield from _sweep(session, session.document.loaded)
    except ValueError as problem:
        session.change(ChangeState, trouble=problem)


def _sweep(session: Session, loaded: LoadedModel) -> Iterator[None]:
    session.change(ChangeState, trouble=None)
    state = session.state(ChangeState)
    before = state.sweeps if state.sweeps is not None and state.sweeps.loaded is loaded else None
    sweeps, name = _prepare(loaded, state, before), state.patched
    if before is not None and before.pair == sweeps.pair:
        sweeps = replace(sweeps, by_name=before.by_name)
    else:
        session.change(ChangeState, cell=None)
    pair = sweeps.pair
    session.change(ChangeState, sweeps=sweeps, answer=pair.answer, other=pair.other)
    yield
    if name in sweeps.by_name:
        return
    arguments = (loaded.model, pair.clean, pair.corrupted, pair.answer, pair.other)
    try:
        found = yield from result_of(
            session,
            ChangeState,
            "sweeping",
            "change.patch.doing",
            lambda progress: patch_sweep(*arguments, name=name, progress=progress),
        )
    except Cancelled:
        return
    except ValueError as problem:
        answer, other = (Later(quoted, loaded.tokenizer, i) for i in (pair.answer, pair.other))
        raise PageError("change.patch.flat", answer=answer, other=other) from problem
    newest = session.state(ChangeState).sweeps
    if newest is not None and (newest.loaded, newest.pair) == (loaded, pair):
        session.change(ChangeState, sweeps=replace(newest, by_name={**newest.by_name, name: found}))


def choose_cell(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked cell in the map."""
    s = session.snapshot()
    position, layer, sweeps = sent.get("x"), sent.get("y"), sweeps_of(s)
    found = None if sweeps is None else sweeps.by_name.get(s.state(ChangeState).patched)
    if found is None or type(position) is not int or type(layer) is not int:
        return
    n_layer, n = found.recovered.shape
    if 0 <= layer < n_layer and 0 <= position < n:
        session.change(ChangeState, cell=(layer, position))


def keep(session: Session) -> None:
    """Add the selected cell's patch to the edits, and try them on prompt B."""
    s = session.snapshot()
    state, sweeps = s.state(ChangeState), sweeps_of(s)
    if s.text is None or sweeps is None or state.cell is None or state.patched not in sweeps.by_name:
        return
    patch = patch_from(sweeps.loaded.model, sweeps.pair.clean, state.patched, *state.cell)
    session.edits_on = sweeps.pair.corrupted
    tried_on = sweeps.pair.corrupted, s.text.version
    edit(session, replace(session.edits, patches=(patch,)), tried_on=tried_on, written=None, position=NEWEST)


def _prepare(loaded: LoadedModel, state: ChangeState, before: Sweeps | None) -> Sweeps:
    """Prepare the prompts, the answers and the answer choices.

    Keeps the chosen answers if the prompts are the same as in `before`. Raises ValueError if the prompts or answers
    cannot be compared.
    """
    texts = [hold_back(loaded.tokenizer, text) for text in state.prompts(loaded.name)]
    clean, corrupted = (tuple(prompt_ids(loaded.tokenizer, text)) for text, _ in texts)
    limit = min(MAX_PROMPT_TOKENS, loaded.model.config.block_size)
    if not clean or not corrupted:
        raise PageError("change.patch.empty")
    if len(clean) != len(corrupted):
        raise PageError("change.patch.lengths", a=len(clean), b=len(corrupted))
    if len(clean) > limit:
        raise PageError("change.patch.long", n=len(clean), limit=limit)
    if clean == corrupted:
        raise PageError("change.patch.same")
    with torch.inference_mode():
        logits = [
            keep_only(loaded.model.logits(read(loaded, ids)[-1]), loaded.tokenizer.ids_after(held))
            for ids, (_, held) in zip((clean, corrupted), texts, strict=True)
        ]
    p, q = map(at_one, logits)
    answer, other = int((p - q).argmax()), int((q - p).argmax())
    if before is not None and (before.pair.clean, before.pair.corrupted) == (clean, corrupted):
        answer, other = _token(loaded, state.answer, answer), _token(loaded, state.other, other)
        if answer == other:
            raise PageError("change.patch.alike")
    n = min(N_CHOICES, len(p))
    ids = dict.fromkeys([answer, other, *p.topk(n).indices.tolist(), *q.topk(n).indices.tolist()])
    pair = PromptPair(clean, corrupted, answer, other)
    return Sweeps(loaded, pair, (logits[0], logits[1]), tuple(ids))


def _token(loaded: LoadedModel, chosen: object, default: int) -> int:
    """Return the id of a listed token, or of a typed token with or without a leading space."""
    if chosen is None or chosen == "":
        return default
    if type(chosen) is int and 0 <= chosen < loaded.model.config.vocab_size:
        return chosen
    for text in (f" {chosen}", str(chosen)):
        try:
            ids = loaded.tokenizer.encode_continuation(text[:MAX_CHARACTERS])
        except ValueError:
            continue
        if len(ids) == 1:
            return ids[0]
    raise PageError("change.patch.token", text=str(chosen)[:40])
