"""Analysis for the first screen: what the prediction depends on, and how hidden words and concepts change it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from components import concepts
from components.causes import causes_of
from components.render import Analysis
from components.state.hidden import HiddenState, WithoutAttention
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


def wanted(s: Snapshot) -> tuple[Hashable, ...] | None:
    """Return a key for what remains to be measured at the selected position, or None while the text changes."""
    if s.text is None or s.text.n_read == 0 or s.generating or s.unwritten is not None:
        return None
    lacks = {"attention": _lacks_attention(s), "reason": _lacks_reason(s)}
    missing = tuple(name for name, is_missing in lacks.items() if is_missing)
    return (s.text, s.position, s.settings.sampling(), *missing) if missing else None


def _lacks_reason(s: Snapshot) -> bool:
    reason = s.state(ReasonState).reason
    return s.text is not None and (reason is None or not reason.belongs_to(s.text, s.text.at(s.selection)))


def _lacks_attention(s: Snapshot) -> bool:
    """Return whether the prediction without attention must be measured."""
    state, found = s.state(HiddenState), s.state(HiddenState).measured
    if s.text is None or not state.attention_off:
        return False
    is_here = found is not None and found.belongs_to(s.text, s.text.at(s.selection))
    return not is_here or found is None or found.settings != concepts.continuation_settings(s)


def measure(session: Session) -> Iterator[None]:
    """Measure the prediction without attention, if requested, and what the next token depends on.

    The next token is the one that follows the selected token or, at the end of the text, the likeliest one.
    """
    s = session.snapshot()
    if s.text is None or wanted(s) is None:
        return
    text, position = s.text, s.text.at(s.selection)
    ids, loaded, edits = text.ids[: position + 1], text.loaded, text.document.edits
    with session.lock.reading():
        held = text.document.held_after(position)
    if _lacks_attention(s):
        settings = concepts.continuation_settings(s)
        found = yield from run_with_progress(lambda _: _without(loaded, ids, held, edits, settings), lambda *_: None)
        session.change(HiddenState, measured=WithoutAttention(text.version, position, settings, *found))
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
    loaded: LoadedModel, ids: Sequence[int], held: str, edits: Edits | None, settings: SamplingParams
) -> tuple[Tensor, str, str]:
    """Predict the next token without attention, and continue the text with and without it.

    held: white space with which the next token begins.
    """
    model = loaded.model
    off = replace((edits or Edits()).for_any_text(), attn_scale=dict.fromkeys(range(model.config.n_layer), 0.0))
    only = loaded.tokenizer.ids_after(held)
    with threads_for(len(ids) * multiplications_per_token(model)):
        on, without = (
            "".join(
                step.text for step in Generation(loaded, ids, edits=each, held=held).steps(settings, GOES_ON_TOKENS)
            )
            for each in (edits, off)
        )
        return keep_only(predict_without(model, ids, Ablation(), off), only), on, without


ANALYSIS = Analysis(wanted, measure)
