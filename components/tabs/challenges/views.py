"""Views for the Challenges tab."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from components.concepts import concept_name, slider_of, steer_labels
from components.errors import localize_error
from components.frame import short_name
from components.i18n import has_text, t
from components.labels import percent, quoted, token_text, visible
from components.next_tokens import best
from components.render import View
from components.state.example import language_of_model
from components.state.snapshot import Snapshot
from components.state.typed_text import offered_text, shown_tokens
from components.tabs.challenges.goals.concepts import strongest
from components.tabs.challenges.goals.goal import Tool
from components.tabs.challenges.goals.text import LowerLoss, probabilities
from components.tabs.challenges.state import ChallengesState, Judged, latest, shown
from components.tabs.challenges.table import BY_KEY, CHALLENGES
from components.widgets.arcs import arcs_data
from components.widgets.composer import box_line, composer_data
from components.widgets.encoding import to_base64
from components.widgets.heads import heads_data
from components.widgets.predictions import Bar, predictions_data
from components.widgets.toggle_grid import toggle_grid_data
from gpt import DEFAULT_MODEL

MAX_BARS = 8


def head(s: Snapshot) -> dict[str, Any]:
    """Show the list of challenges and the open challenge's goal."""
    challenge = BY_KEY.get(s.state(ChallengesState).challenge)
    return {
        "open": None if challenge is None else challenge.key,
        "title": "" if challenge is None else t(f"challenge.{challenge.key}.title"),
        "goal": "" if challenge is None else t(f"challenge.{challenge.key}.goal"),
        "groups": [
            {
                "name": t(f"challenges.{group}"),
                "items": [
                    {"key": each.key, "title": t(f"challenge.{each.key}.title")}
                    for each in CHALLENGES
                    if each.group == group
                ],
            }
            for group in dict.fromkeys(each.group for each in CHALLENGES)
        ],
        "labels": _labels("name", "seen", "solved", "progress"),
    }


def foot(s: Snapshot) -> dict[str, Any]:
    """Show the verdict on the answer, and the hint."""
    state = s.state(ChallengesState)
    challenge, judged = BY_KEY.get(state.challenge), latest(state)
    if challenge is None:
        return {"open": None}
    later = CHALLENGES[CHALLENGES.index(challenge) + 1 :]
    problem = None if state.result is None else state.result.problem
    verdict = "" if judged is None else t(f"challenge.now.{judged.verdict.key}", **judged.verdict.values)
    return {
        "open": challenge.key,
        "verdict": verdict if problem is None else localize_error(problem),
        "solved": judged is not None and judged.verdict.done,
        "score": None if judged is None else judged.verdict.score,
        "attempts": t("challenges.attempts", n=state.attempts) if state.attempts else "",
        "learned": t(f"challenge.{challenge.key}.learned"),
        "hint": t(f"challenge.{challenge.key}.hint"),
        "next": later[0].key if later else None,
        "labels": _labels("hint", "again", "link", "copied", "next", "record"),
    }


def _labels(*names: str) -> dict[str, str]:
    return {name: t(f"challenges.{name}") for name in names}


def note(s: Snapshot) -> dict[str, Any]:
    """Explain which model judges the answers if the chosen model is not the bundled one."""
    if s.loaded is None or s.loaded.name == DEFAULT_MODEL:
        return {"text": ""}
    names = {"model": short_name(s.loaded.name), "usual": short_name(DEFAULT_MODEL)}
    key = "challenges.model" if language_of_model(s.loaded.name) == "en" else "challenges.other"
    return {"text": t(key, **names)}


def box(s: Snapshot) -> dict[str, Any]:
    """Show the text box of a writing goal, shaded by probability if the goal is about the loss."""
    state, found = s.state(ChallengesState), shown(s)
    labels = {"name": t("challenges.text"), "placeholder": t("prompt.placeholder")}
    if found is None or found[0].goal.tool != "text":
        unwritten = state.answer.text if state.challenge else None
        return composer_data([], labels, unwritten=unwritten, document=state.challenge, edited=state.edited)
    challenge, judged = found
    ids, tokenizer = judged.reading.ids, judged.reading.tokenizer
    tints: list[float | None] = [None] * len(ids)
    if isinstance(challenge.goal, LowerLoss):
        tints = [None, *probabilities(judged.reading).tolist()]
    lines = [box_line(token, tint) for token, tint in zip(shown_tokens(tokenizer, ids), tints, strict=True)]
    typed, read = state.answer.text, judged.reading.answer.text
    shows_next = challenge.goal.shows_bars
    return composer_data(
        lines,
        labels,
        unwritten=None if typed == read else typed,
        selected=len(ids) - 1 if shows_next else -1,
        ghost=offered_text(tokenizer, ids, int(judged.after.argmax()), judged.reading.held) if shows_next else "",
        document=challenge.key,
        held=judged.reading.held,
        edited=state.edited,
    )


def text(s: Snapshot) -> dict[str, Any]:
    """Show the text and its arcs, unless the goal uses the text box or the feature list."""
    found = shown(s)
    if found is None or found[0].goal.tool in ("text", "feature"):
        return arcs_data([], "")
    challenge, judged = found
    reading, picks = judged.reading, challenge.goal.tool in ("token", "place")
    return arcs_data(
        shown_tokens(reading.tokenizer, reading.ids),
        t("challenges.text"),
        arcs=challenge.goal.arcs(reading),
        is_flat=not challenge.goal.has_arcs,
        n_head=reading.loaded.model.config.n_head,
        selectable=picks,
        selected=reading.answer.token if picks and reading.answer.token is not None else -1,
    )


def heads(s: Snapshot) -> dict[str, Any]:
    """Show a thumbnail of each head's attention if the goal is to pick a head."""
    found = shown(s)
    if found is None or found[0].goal.tool != "head":
        return {}
    reading = found[1].reading
    trace, T = reading.trace, len(reading.ids)
    weights = np.stack(
        [layer.attn_weights[0].float().cpu().numpy() for layer in trace.layers]
    )  # (n_layer, n_head, T, T)
    levels = np.round(255 * weights).astype(np.uint8)
    picked = reading.answer.head or (-1, -1)
    content = {"layer": picked[0], "head": picked[1], "tokens": T, "text": t("challenges.heads")}
    labels = {key: t(f"heads.{key}") for key in ("name", "title", "axis")}
    data = heads_data([levels[..., row, : row + 1] for row in range(T)], np.zeros((*weights.shape[:2], 3)), content)
    return data | {"closer": None, "labels": labels}


def toggles(s: Snapshot) -> dict[str, Any]:
    """Show the head switches, or the layers to choose from."""
    found = shown(s)
    tool = None if found is None else found[0].goal.tool
    if found is None or tool not in ("switches", "layer", "place"):
        return toggle_grid_data("")
    challenge, judged = found
    config, answer = judged.reading.loaded.model.config, judged.reading.answer
    if tool == "switches":
        every = {(layer, head) for layer in range(config.n_layer) for head in range(config.n_head)}
        return toggle_grid_data(
            t("challenges.switches"),
            [str(layer) for layer in range(config.n_layer)],
            [str(head) for head in range(config.n_head)],
            on=every - answer.off,
            marked=challenge.goal.marked(judged.reading),
            cell=t("challenges.switch"),
        )
    layers = challenge.goal.layers(config.n_layer)
    on = [(0, layers.index(answer.layer))] if answer.layer in layers else []
    return toggle_grid_data(
        t("challenges.layers"),
        [""],
        [str(layer) for layer in layers],
        on=on,
        cell=t("challenges.layer"),
    )


def tool(s: Snapshot) -> dict[str, Any]:
    """Explain how to use the goal's controls."""
    found = shown(s)
    key = "" if found is None else f"challenges.tool.{found[0].goal.tool}"
    return {"text": t(key) if has_text(key) else ""}


def bars(s: Snapshot) -> dict[str, Any]:
    """Show the most likely next tokens before and after the visitor's interventions."""
    title, found = t("bars.question"), shown(s)
    if found is None or not found[0].goal.shows_bars:
        return predictions_data(title, "", [])
    challenge, judged = found
    before, after = judged.reading.before.numpy(), judged.after.numpy()
    writes = challenge.goal.tool == "text"
    listed = [_bar(judged, i, before, after, writes) for i in best(after, before, MAX_BARS).tolist()]
    return predictions_data(title, "" if writes else t("challenges.bars"), listed)


def _bar(judged: Judged, i: int, before: np.ndarray, after: np.ndarray, writes: bool) -> Bar:
    tokenizer = judged.reading.tokenizer
    values = {"token": quoted(tokenizer, i), "before": percent(before[i]), "after": percent(after[i])}
    says = t("challenges.bar", **values)
    token = visible(token_text(tokenizer, i))
    return Bar(token, float(before[i]), float(after[i]), says, {"token": i} if writes else {})


def concepts(s: Snapshot) -> dict[str, Any]:
    """Show the concepts that can be turned up."""
    found = shown(s)
    if found is None or found[0].goal.tool != "concepts":
        return {"chips": []}
    loaded, turned = found[1].reading.loaded, s.state(ChallengesState).answer.turned
    offered = () if loaded.concepts is None else loaded.concepts.offered
    strengths = {place: strength for place, strength in turned if strength}
    chips = [
        {"place": place, "name": concept_name(loaded, place), "on": place in strengths}
        for place in ((each.layer, each.feature) for each in offered)
    ]
    data: dict[str, Any] = {"chips": chips, "slider": None, "labels": steer_labels()}
    if turned:
        data |= slider_of(loaded, *turned[-1])
    return data


def features(s: Snapshot) -> dict[str, Any]:
    """Show the text and the features active at the picked token."""
    found = shown(s)
    if found is None or found[0].goal.tool != "feature" or found[1].reading.loaded.concepts is None:
        return {"tokens": [], "features": []}
    reading, answer = found[1].reading, s.state(ChallengesState).answer
    position = len(reading.ids) - 1 if answer.token is None else min(answer.token, len(reading.ids) - 1)
    listed = strongest(reading, position)
    most = max((float(along[position]) for _, along in listed), default=1.0)
    return {
        "tokens": shown_tokens(reading.tokenizer, reading.ids),
        "selected": position,
        "first": 0,
        "chosen": answer.feature,
        "features": [
            {
                "place": place,
                "name": concept_name(reading.loaded, place),
                "value": round(float(along[position]) / most, 3),
                "says": t(
                    "concepts.feature",
                    name=concept_name(reading.loaded, place),
                    layer=place[0],
                ),
            }
            for place, along in listed
        ],
        "tints": {
            ".".join(map(str, place)): to_base64(np.round(255 * along.numpy()).astype(np.uint8))
            for place, along in listed
        },
        "labels": {name: t(f"concepts.{name}") for name in ("text", "list")},
    }


Piece = Literal["typing", "pictures", "switches", "bars", "turning", "features"]
PIECES: dict[Tool, Piece] = {
    "text": "typing",
    "head": "pictures",
    "switches": "switches",
    "layer": "switches",
    "place": "switches",
    "concepts": "turning",
    "feature": "features",
}


def shows(piece: Piece, s: Snapshot) -> bool:
    """Return whether the open challenge needs this piece of the tab."""
    challenge = BY_KEY.get(s.state(ChallengesState).challenge)
    if challenge is None:
        return False
    return challenge.goal.shows_bars if piece == "bars" else PIECES.get(challenge.goal.tool) == piece


VIEWS = (
    View("challenge-head", head),
    View("challenge-note", note),
    View("challenge-box", box),
    View("challenge-text", text),
    View("challenge-heads", heads),
    View("challenge-tool", tool),
    View("challenge-toggles", toggles),
    View("challenge-concepts", concepts),
    View("challenge-features", features),
    View("challenge-bars", bars),
    View("challenge-foot", foot),
)
