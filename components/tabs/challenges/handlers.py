"""Event handlers for the Challenges tab, and the analysis that judges an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from components.concepts import on_slider
from components.panels.panel import computed
from components.state.example import language_of_model
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.challenges.reading import Answer, Reading
from components.tabs.challenges.state import ChallengesState, Judged, JudgeInputs, latest
from components.tabs.challenges.table import BY_KEY
from gpt import LoadedModel, get_model
from gpt.tokenizer import plain_text

MAX_CHARS = 2_000


def choose(session: Session, sent: dict[str, Any]) -> None:
    """Open the clicked challenge, or restart the open one. `sent` is an unvalidated browser payload."""
    if sent.get("again") is True:
        _begin(session, session.state(ChallengesState).challenge)
    elif sent.get("challenge") != session.state(ChallengesState).challenge:
        open_challenge(session, sent.get("challenge"))


def open_challenge(session: Session, key: object) -> bool:
    """Open a challenge. Returns False if there is no challenge with this key."""
    if not isinstance(key, str) or key not in BY_KEY:
        return False
    _begin(session, key)
    return True


def challenge_key(s: Snapshot) -> str | None:
    """Return the key of the open challenge."""
    return s.state(ChallengesState).challenge or None


def _begin(session: Session, key: str) -> None:
    if key in BY_KEY:
        session.change(ChallengesState, challenge=key, answer=Answer(BY_KEY[key].text), attempts=0, result=None)


def type_text(session: Session, sent: dict[str, Any]) -> None:
    """Accept the text in the box, unless newer text has arrived or another challenge has been opened since.

    `sent` is a payload from `components.widgets.composer`; its document is the challenge's key.
    """
    state, text, edited = session.state(ChallengesState), sent.get("text"), sent.get("edited")
    if sent.get("document") != state.challenge or _tool(state) != "text":
        return
    if isinstance(text, str) and isinstance(edited, int | float) and edited > state.edited:
        answer = replace(state.answer, text=text[:MAX_CHARS])
        _try(session, answer, edited=edited)


def append_token(session: Session, sent: dict[str, Any]) -> None:
    """Append the clicked bar's token to the text."""
    state, token = session.state(ChallengesState), sent.get("token")
    judged = latest(state)
    if judged is None or _tool(state) != "text" or type(token) is not int or not 0 <= token < len(judged.after):
        return
    if judged.reading.answer.text != state.answer.text:
        return  # the bar belongs to an older text
    text = plain_text(judged.reading.tokenizer, [*judged.reading.ids, token])
    _try(session, replace(state.answer, text=text))


def pick_token(session: Session, sent: dict[str, Any]) -> None:
    """Pick the clicked token."""
    state, index = session.state(ChallengesState), sent.get("index")
    judged = latest(state)
    if judged is not None and _tool(state) in ("token", "place") and _within(index, len(judged.reading.ids)):
        _try(session, replace(state.answer, token=index))


def pick_head(session: Session, sent: dict[str, Any]) -> None:
    """Pick the clicked head."""
    state = session.state(ChallengesState)
    if _tool(state) == "head" and (head := _head(state, sent.get("layer"), sent.get("head"))):
        _try(session, replace(state.answer, head=head))


def turn_concept(session: Session, sent: dict[str, Any]) -> None:
    """Turn a concept up or off. `sent` is a payload from `components.widgets.steer`."""
    state, judged = session.state(ChallengesState), latest(session.state(ChallengesState))
    concepts = None if judged is None else judged.reading.loaded.concepts
    if concepts is None or _tool(state) != "concepts":
        return
    strengths = dict(state.answer.turned)
    match sent:
        case {"reset": True}:
            strengths = {}
        case {"place": [int(layer), int(feature)]}:
            place = layer, feature
            strength = sent.get("strength")
            if not isinstance(strength, int | float):
                strength = 0.0 if strengths.get(place) else 1.0
            concepts.steering(*place, on_slider(strength))  # raises if the feature does not exist
            strengths.pop(place, None)
            strengths[place] = on_slider(strength)
    _try(session, replace(state.answer, turned=tuple(strengths.items())))


def pick_feature(session: Session, sent: dict[str, Any]) -> None:
    """Pick a token to list its features, or pick a listed feature.

    `sent` is a payload from `components.widgets.features`.
    """
    state, judged = session.state(ChallengesState), latest(session.state(ChallengesState))
    concepts = None if judged is None else judged.reading.loaded.concepts
    if judged is None or concepts is None or _tool(state) != "feature":
        return
    match sent:
        case {"index": int(index)} if _within(index, len(judged.reading.ids)):
            session.change(ChallengesState, answer=replace(state.answer, token=index))
        case {"place": [int(layer), int(feature)]}:
            concepts.steering(layer, feature, 0.0)  # raises if the feature does not exist
            _try(session, replace(state.answer, feature=(layer, feature)))


def toggle(session: Session, sent: dict[str, Any]) -> None:
    """Switch a head on or off, or pick a layer. `sent` contains "row", "column" and "on"."""
    state, row, column = session.state(ChallengesState), sent.get("row"), sent.get("column")
    answer, tool = state.answer, _tool(state)
    if tool == "switches" and (head := _head(state, row, column)):
        off = answer.off - {head} if sent.get("on") is True else answer.off | {head}
        tried = answer.tried | off if len(off) == 1 else answer.tried
        _try(session, replace(answer, off=off, tried=tried))
    elif tool in ("layer", "place") and (judged := latest(state)) is not None:
        layers = BY_KEY[state.challenge].goal.layers(judged.reading.loaded.model.config.n_layer)
        if _within(column, len(layers)):
            _try(session, replace(answer, layer=layers[column]))


def _try(session: Session, answer: Answer, **changes: Any) -> None:
    """Set an answer. It counts as a new attempt only if the previous answer was judged wrong."""
    state = session.state(ChallengesState)
    result, judged = state.result, latest(state)
    is_judged = result is not None and isinstance(result.request, JudgeInputs) and result.request.answer == state.answer
    is_new = is_judged and answer != state.answer and not (judged is not None and judged.verdict.done)
    session.change(ChallengesState, answer=answer, attempts=state.attempts + is_new, **changes)


def _tool(state: ChallengesState) -> str | None:
    challenge = BY_KEY.get(state.challenge)
    return None if challenge is None else challenge.goal.tool


def _head(state: ChallengesState, layer: object, head: object) -> tuple[int, int] | None:
    """Return the head if the model has it, else None."""
    judged = latest(state)
    if judged is None:
        return None
    config = judged.reading.loaded.model.config
    return (layer, head) if _within(layer, config.n_layer) and _within(head, config.n_head) else None


def _within(value: object, count: int) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < count


def _request(s: Snapshot) -> JudgeInputs | None:
    """Return the inputs to judge, or None if no challenge is open."""
    state = s.state(ChallengesState)
    if state.challenge not in BY_KEY or s.loaded is None:
        return None
    return JudgeInputs(state.challenge, state.answer, s.loaded.name, s.loaded)


def judge_of(loaded: LoadedModel) -> LoadedModel:
    """Return the model to judge with: the chosen one if it is an English model, otherwise the bundled one."""
    return loaded if language_of_model(loaded.name) == "en" else get_model()


def judge(request: JudgeInputs) -> Judged:
    """Read the text, apply the visitor's interventions and compare the result with the goal.

    Raises the same errors as `Reading.of`.
    """
    challenge = BY_KEY[request.challenge]
    reading = Reading.of(judge_of(request.loaded), challenge.text, request.answer)
    after = challenge.goal.after(reading)
    return Judged(reading, after, challenge.goal.judge(reading, after))


ANALYSIS = computed(ChallengesState, _request, judge)
