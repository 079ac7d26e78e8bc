"""Handlers that edit the model or select a token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from components.errors import PageError
from components.state.jobs import result_of
from components.state.session import Session
from components.tabs.change.effect import head_costs
from components.tabs.change.experiments import EXPERIMENTS
from components.tabs.change.handlers.measurement import up_to_date
from components.tabs.change.state import ChangeState, selected_position
from components.tabs.change.views.effect import window
from gpt import Edits
from gpt.background import Cancelled
from gpt.config import Activation
from gpt.documents.edit_text import parse_edits


def edit(session: Session, edits: Edits, **changes: Any) -> None:
    """Replace the edits and clear all messages about the previous ones."""
    session.edits = edits
    session.change(ChangeState, **{"experiment": "", "notice": None, "dropped": None, **changes})


def set_switches(session: Session, sent: dict[str, Any]) -> None:
    """Apply the scale factors that the switches send, and select the switched head."""
    session.select(layer=sent.get("layer"), head=sent.get("head"))
    document, edits, count = session.document, sent.get("edits"), sent.get("n")
    if document is None:
        return
    session.change(ChangeState, n_switched=count if type(count) is int else 0)
    try:
        factors = parse_edits(edits if isinstance(edits, str) else "?")
        if factors.activation or factors.drop_positions:
            raise PageError("error.no_switch", edits=edits)
        factors.check(document.loaded.model.config)
    except ValueError as problem:
        session.change(ChangeState, notice=PageError("change.not_edits", problem=problem))
        return
    scales = {name: getattr(factors, name) for name in ("head_scale", "attn_scale", "mlp_scale")}
    edit(session, replace(session.edits, **scales))


def choose_activation(session: Session, name: object) -> None:
    """Replace the activation function in all layers; choosing the model's own removes the edit."""
    chosen: Activation | None = next((activation for activation in get_args(Activation) if activation == name), None)
    if session.document is not None and chosen is not None:
        own = chosen == session.document.loaded.model.config.activation
        edit(session, replace(session.edits, activation=None if own else chosen))


def drop_positions(session: Session, dropped: object) -> None:
    """Switch the position embeddings on or off."""
    edit(session, replace(session.edits, drop_positions=dropped is True))


def try_experiment(name: str, session: Session) -> None:
    """Replace all edits with an experiment's edits."""
    if session.document is not None:
        edit(session, EXPERIMENTS[name](session.document.loaded.model.config), experiment=name)


def switch_off_costliest(session: Session) -> Iterator[None]:
    """Measure each head's effect on this text and switch off the most influential one."""
    text = yield from up_to_date(session)
    if text is None:
        raise PageError("error.no_text")
    costs = session.state(ChangeState).costs
    if costs is None or costs.text is not text:
        try:
            costs = yield from result_of(
                session, ChangeState, "costing", "change.costs.doing", lambda progress: head_costs(text, progress)
            )
        except Cancelled:
            return
        if session.state(ChangeState).text is not text:
            return
    layer, head = divmod(int(costs.bits.argmax()), text.config.n_head)
    edit(session, Edits(head_scale={(layer, head): 0.0}), costs=costs)


def reset(session: Session) -> None:
    """Remove all edits and return to the text in Write."""
    session.edits_on = ()
    edit(session, Edits(), written=None)


def select_token(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked token. If Write shows the same text, select it in all tabs."""
    _select(session, sent.get("index"))


def select_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked bar's token. For a long text, the chart shows only a window of tokens."""
    state, x = session.state(ChangeState), sent.get("x")
    if state.text is not None and type(x) is int:
        with session.lock.reading():
            start = window(state.text.n_read, selected_position(session.snapshot(), state.text))[0]
        _select(session, start + x)


def _select(session: Session, position: object) -> None:
    state = session.state(ChangeState)
    if state.text is None or state.writing is not None:
        return
    if type(position) is int and 0 <= position < state.text.n_read:
        if state.text.own:
            session.change(ChangeState, position=position)
        else:
            session.select(position=position)
