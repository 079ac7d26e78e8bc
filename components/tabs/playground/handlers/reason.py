"""Analysis for the first screen: what the prediction depends on, and how hidden words and concepts change it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from components import concepts
from components.causes import causes_of
from components.render import Analysis
from components.state.hidden import HiddenState, WithoutWords
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.playground.state import Reason, ReasonState
from gpt import Edits, Generation, LoadedModel, SamplingParams
from gpt.analysis.causes import Ablation, predict_without
from gpt.background import run_with_progress
from gpt.inference.packed_weights import multiplications_per_token
from gpt.inference.threads import threads_for
from gpt.sampling import keep_only

MULTIPLICATIONS = 4e9  # budget of about 0.1 to 0.2 s, spent whenever the visitor pauses
GOES_ON_TOKENS = 12
GOES_ON_SEED = 1


def wanted(s: Snapshot) -> tuple[Hashable, ...] | None:
    """Return a key for what remains to be measured at the selected position, or None while the text changes."""
    if s.text is None or s.text.n_read == 0 or s.generating or s.unwritten is not None:
        return None
    lacks = {"concepts": concepts.wanted(s), "hidden": _lacks_hidden(s), "reason": _lacks_reason(s)}
    missing = tuple(name for name, is_missing in lacks.items() if is_missing)
    hidden = s.state(HiddenState).hidden_in(s.text)
    return (s.text, s.position, hidden, *missing) if missing else None


def _lacks_reason(s: Snapshot) -> bool:
    reason = s.state(ReasonState).reason
    return s.text is not None and (reason is None or not reason.belongs_to(s.text, s.text.at(s.selection)))


def _lacks_hidden(s: Snapshot) -> bool:
    """Return whether the prediction without the hidden words, or without attention, must be measured."""
    state = s.state(HiddenState)
    if s.text is None or not (state.attention_off or state.hidden_in(s.text)):
        return False
    found = state.measured
    if found is None or not found.belongs_to(s.text, s.text.at(s.selection)):
        return True
    return found.hidden != state.hidden_in(s.text) or (state.attention_off and found.off is None)


def measure(session: Session) -> Iterator[None]:
    """Measure the prediction without the hidden words, and what the next token depends on.

    The next token is the one that follows the selected token or, at the end of the text, the likeliest one.
    """
    with session.lock.reading():
        s = session.snapshot()
    if s.text is None or wanted(s) is None:
        return
    yield from concepts.measure(session)
    text, position = s.text, s.text.at(s.selection)
    ids, loaded, edits = text.ids[: position + 1], text.loaded, text.document.edits
    with session.lock.reading():
        held = text.document.held_after(position)
    if _lacks_hidden(s):
        state, settings = s.state(HiddenState), replace(s.settings.sampling(), seed=GOES_ON_SEED)
        hidden, is_off = state.hidden_in(text), state.attention_off
        found = yield from run_with_progress(
            lambda _: _without(loaded, ids, held, hidden, edits, settings, is_off), lambda *_: None
        )
        session.change(HiddenState, measured=WithoutWords(text.version, position, hidden, *found))
        yield
    if _lacks_reason(s):
        follows = position + 1 < len(text.ids)
        token = text.ids[position + 1] if follows else int(text.document.logits(position).argmax())
        causes = yield from run_with_progress(
            lambda _: causes_of(loaded.model, loaded.tokenizer, ids, token, edits, MULTIPLICATIONS, held=held),
            lambda *_: None,
        )
        session.change(ReasonState, reason=Reason(text.version, position, token, causes))
        yield


def _without(
    loaded: LoadedModel,
    ids: Sequence[int],
    held: str,
    hidden: frozenset[int],
    edits: Edits | None,
    settings: SamplingParams,
    is_off: bool,
) -> tuple[Tensor, Tensor | None, str, str]:
    """Compute the fields of `WithoutWords`. If `is_off`, also predict without attention and continue both texts.

    held: white space with which the next token begins.
    """
    model, ablation = loaded.model, Ablation(tokens=hidden & {*range(len(ids))})
    off = replace((edits or Edits()).for_any_text(), attn_scale=dict.fromkeys(range(model.config.n_layer), 0.0))
    only = loaded.tokenizer.ids_after(held)
    with threads_for(len(ids) * multiplications_per_token(model)):
        logits = keep_only(predict_without(model, ids, ablation, edits), only)
        if not is_off:
            return logits, None, "", ""
        kept = [token for position, token in enumerate(ids) if position not in hidden]
        on, without = (
            "".join(
                step.text for step in Generation(loaded, kept, edits=each, held=held).steps(settings, GOES_ON_TOKENS)
            )
            for each in (edits, off)
        )
        return logits, keep_only(predict_without(model, ids, ablation, off), only), on, without


ANALYSIS = Analysis(wanted, measure)
