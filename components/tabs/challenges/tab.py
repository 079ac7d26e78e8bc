"""The Challenges tab: one challenge at a time, with the tools that it needs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from torch import Tensor

from components.concepts import concept_name, sliders, strengths
from components.errors import NothingToShow, message_of
from components.i18n import t
from components.kit import Tab, caption, card, column, columns, says
from components.labels import visible_token
from components.next_tokens import best, no_bars, token_bars
from components.parts import Part, choice
from components.state.reads import Pending, is_ready
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.typed_text import offered_text, shown_tokens
from components.tabs.challenges.goals import BY_KEY, CHALLENGES, Challenge, lower_loss, probabilities, strongest
from components.tabs.challenges.reading import Answer, Reading, Tool, Verdict
from components.text_views import short_name
from components.widgets.composer import EMPTY, box_line, composer
from components.widgets.heads import heads, heads_data
from components.widgets.simple import arcs, challenge_foot, course, features, predictions, steer, switches
from components.widgets.widget import to_base64
from gpt import DEFAULT_MODEL, Edits, get_model
from gpt.documents.edit_text import format_edits
from gpt.tokenizer import plain_text

MAX_CHARS = 2_000
MAX_BARS = 8
WITH_TEXT: tuple[Tool, ...] = ("token", "head", "switches", "layer", "place", "concepts")  # others have their own text

tab = Tab("challenges")


@tab.state
class Play:
    """challenge: key of the open challenge; "" if none is open. attempts: number of answers so far.

    edited: time of the last edit by the browser's clock, in milliseconds. switched: number of the last switch.
    """

    challenge: str = ""
    answer: Answer = Answer("")
    edited: float = 0.0
    attempts: int = 0
    switched: int = 0


@dataclass(frozen=True, eq=False)
class Judged:
    """A judged answer. after: next-token probabilities with the visitor's interventions, (vocab_size,)."""

    challenge: Challenge
    reading: Reading
    after: Tensor
    verdict: Verdict

    @property
    def n_bytes(self) -> int:
        return self.reading.trace.n_bytes


def opened(s: Any) -> Challenge | None:
    return BY_KEY.get(s[Play].challenge)


@tab.computed(while_writing=True)
def judged(s: Any) -> Judged | None:
    """Let the bundled model read the text, apply the visitor's interventions and compare the result with the goal.

    Raises the same errors as `Reading.of`.
    """
    challenge, answer = opened(s), s[Play].answer
    if challenge is None:
        return None
    reading = Reading.of(get_model(), challenge.text, answer)
    after = challenge.after(reading)
    return Judged(challenge, reading, after, challenge.judge(reading, after))


def latest(s: Any) -> Judged | None:
    """Return the latest result for the open challenge, which may belong to an earlier answer."""
    with suppress(Pending, ValueError):
        s[judged]  # so that it is computed
    found: Judged | None = s.snapshot[judged]
    return found if found is not None and found.challenge is opened(s) else None


def shown(s: Any) -> Judged:
    found = latest(s)
    if found is None:
        raise NothingToShow
    return found


def note(s: Any) -> str:
    if s.model == DEFAULT_MODEL:
        return ""
    return t("challenges.other", model=short_name(s.model), usual=short_name(DEFAULT_MODEL))


def choose(session: Session, sent: dict[str, Any]) -> None:
    """Open the clicked challenge, or restart the open one. `sent` is an unvalidated browser payload."""
    current = session.state(Play).challenge
    if sent.get("again") is True:
        open_challenge(session, current)
    elif sent.get("open") != current:
        open_challenge(session, sent.get("open"))


def open_challenge(session: Session, key: object) -> bool:
    """Open a challenge. Returns False if there is no challenge with this key."""
    if not isinstance(key, str) or key not in BY_KEY:
        return False
    session.change(Play, challenge=key, answer=Answer(BY_KEY[key].text), attempts=0)
    return True


def challenge_key(s: Snapshot) -> str | None:
    return s.state(Play).challenge or None


def attempt(session: Session, *, edited: float = 0.0, **chosen: Any) -> None:
    """Change the answer. It counts as a new attempt only if the previous answer was judged wrong.

    edited: time of the key press that changed it. No frame may show it with an older text, which the box would take.
    """
    s = session.snapshot()
    before, found = s.state(Play), latest(s)
    answer = replace(before.answer, **chosen)
    is_wrong = is_ready(s, judged) and not (found is not None and found.verdict.done)
    attempts = before.attempts + (is_wrong and answer != before.answer)
    session.change(Play, answer=answer, attempts=attempts, edited=max(before.edited, edited))


def draw_head(s: Any) -> dict[str, Any]:
    challenge = opened(s)
    return {
        "open": None if challenge is None else challenge.key,
        "title": challenge and t(f"challenge.{challenge.key}.title"),
        "says": challenge and t(f"challenge.{challenge.key}.goal"),
        "items": [
            {"title": t(f"challenge.{each.key}.title"), "part": t(f"challenges.{each.group}")} for each in CHALLENGES
        ],
    }


def draw_foot(s: Any) -> dict[str, Any]:
    challenge, found, problem = opened(s), latest(s), None
    if challenge is None:
        return {"open": None}
    try:
        s[judged]
    except (Pending, ValueError) as error:
        problem = error
    later = CHALLENGES[CHALLENGES.index(challenge) + 1 :]
    return {
        "open": challenge.key,
        "verdict": message_of(problem) if isinstance(problem, ValueError) else str(found.verdict if found else ""),
        "solved": found is not None and found.verdict.done,
        "tried": s[Play].answer != Answer(challenge.text),
        "score": None if found is None else found.verdict.values.get("score"),
        "attempts": t("challenges.attempts", n=s[Play].attempts) if s[Play].attempts else "",
        "learned": t(f"challenge.{challenge.key}.learned"),
        "hint": t(f"challenge.{challenge.key}.hint"),
        "next": later[0].key if later else None,
    }


def where(piece: str, tools: tuple[Tool, ...], part: Part, *parts: Part, **layout: Any) -> Part:
    """Return a column that is on the page while the open challenge has one of these tools."""

    def has_tool(s: Any) -> bool:
        challenge = opened(s)
        return challenge is not None and challenge.tool in tools

    return column(part, *parts, name=f"challenge-{piece}", show=has_tool, min_width=300, **layout)


def found_for(session: Session, *tools: Tool) -> Judged | None:
    """Return the latest result if the open challenge has one of these tools."""
    found = latest(session.snapshot())
    return found if found is not None and found.challenge.tool in tools else None


def is_index(value: object, count: int) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < count


def head_of(found: Judged, layer: object, head: object) -> tuple[int, int] | None:
    config = found.reading.loaded.model.config
    return (layer, head) if is_index(layer, config.n_layer) and is_index(head, config.n_head) else None


def type_text(session: Session, sent: dict[str, Any]) -> None:
    """Accept the text in the box, unless newer text has arrived or another challenge has been opened since.

    `sent` is a payload from `components.widgets.composer`; its document is the challenge's key.
    """
    state, text, edited = session.state(Play), sent.get("text"), sent.get("edited")
    challenge = BY_KEY.get(state.challenge)
    if challenge is None or challenge.tool != "text" or sent.get("document") != challenge.key:
        return
    if isinstance(text, str) and isinstance(edited, int | float) and edited > state.edited:
        attempt(session, edited=edited, text=text[:MAX_CHARS])


def append_token(session: Session, sent: dict[str, Any]) -> None:
    text, token, found = session.state(Play).answer.text, sent.get("token"), found_for(session, "text")
    if found is not None and is_index(token, len(found.after)) and found.reading.answer.text == text:
        attempt(session, text=plain_text(found.reading.tokenizer, [*found.reading.ids, token]))


def draw_box(s: Any) -> dict[str, Any]:
    state, found = s[Play], latest(s)
    typed = state.answer.text
    data = EMPTY | {"document": state.challenge, "edited": state.edited, "unwritten": typed}
    if found is None:
        return data
    reading, challenge = found.reading, found.challenge
    tints: list[float | None] = [None] * len(reading.ids)
    if challenge.goal is lower_loss:
        tints = [None, *probabilities(reading).tolist()]
    tokens = shown_tokens(reading.tokenizer, reading.ids)
    offered = offered_text(reading.tokenizer, reading.ids, int(found.after.argmax()), reading.held)
    return data | {
        "lines": [box_line(token, tint) for token, tint in zip(tokens, tints, strict=True)],
        "unwritten": None if typed == reading.answer.text else typed,
        "selected": len(reading.ids) - 1 if challenge.bars else -1,
        "ghost": offered if challenge.bars else "",
        "held": reading.held,
    }


def draw_bars(s: Any) -> dict[str, Any]:
    title, found = t("bars.question"), latest(s)
    if found is None:
        return no_bars(title)
    before, after, tokenizer = found.reading.before.numpy(), found.after.numpy(), found.reading.tokenizer
    writes = found.challenge.tool == "text"
    ids = best(after, before, MAX_BARS).tolist()
    given = {"text": "", "sends": {}} if writes else {"text": t("challenges.bars")}
    return token_bars(title, tokenizer, ids, before, after, "challenges.bar", label=visible_token, **given)


def pick_token(session: Session, sent: dict[str, Any]) -> None:
    index, found = sent.get("index"), found_for(session, "token", "place")
    if found is not None and is_index(index, len(found.reading.ids)):
        attempt(session, token=index)


def draw_text(s: Any) -> dict[str, Any]:
    reading, challenge = shown(s).reading, shown(s).challenge
    picks = challenge.tool in ("token", "place")
    return {
        "tokens": shown_tokens(reading.tokenizer, reading.ids),
        "name": t("challenges.text"),
        "arcs": challenge.arcs(reading) if challenge.arcs else [],
        "is_flat": challenge.arcs is None,
        "selectable": picks,
        "selected": reading.answer.token if picks and reading.answer.token is not None else -1,
    }


def pick_head(session: Session, sent: dict[str, Any]) -> None:
    found = found_for(session, "head")
    if found is not None and (head := head_of(found, sent.get("layer"), sent.get("head"))):
        attempt(session, head=head)


def draw_heads(s: Any) -> dict[str, Any]:
    reading = shown(s).reading
    layers, n = reading.trace.layers, len(reading.ids)
    weights = np.stack([each.attn_weights[0].float().cpu().numpy() for each in layers])  # (n_layer, n_head, T, T)
    levels = np.round(255 * weights).astype(np.uint8)
    layer, head = reading.answer.head or (-1, -1)
    content = {"layer": layer, "head": head, "text": t("challenges.heads")}
    return heads_data([levels[..., row, : row + 1] for row in range(n)], np.zeros((*weights.shape[:2], 3)), content)


def switch_head(session: Session, sent: dict[str, Any]) -> None:
    """Switch a head on or off. `sent` contains "layer", "head", "on", and the number "n" of the change."""
    answer, n = session.state(Play).answer, sent.get("n")
    found = found_for(session, "switches")
    if found is None or (head := head_of(found, sent.get("layer"), sent.get("head"))) is None:
        return
    session.change(Play, switched=n if type(n) is int else 0)
    off = answer.off - {head} if sent.get("on") is True else answer.off | {head}
    attempt(session, off=off, tried=answer.tried | off if len(off) == 1 else answer.tried)


def draw_switches(s: Any) -> dict[str, Any]:
    reading, challenge = shown(s).reading, shown(s).challenge
    config = reading.loaded.model.config
    edits = format_edits(Edits(head_scale=dict.fromkeys(reading.answer.off, 0.0)))
    marked = (reading.circuit.previous_token, reading.circuit.induction) if challenge.arcs else ()
    data = {"n_layer": config.n_layer, "n_head": config.n_head, "edits": edits, "of_heads": True}
    return data | {"answered": s[Play].switched, "marked": sorted(marked)}


def layers(s: Any) -> list[tuple[str, int]]:
    found = latest(s)
    if found is None or found.challenge.tool not in ("layer", "place"):
        return []
    offered = found.challenge.layers or range(found.reading.loaded.model.config.n_layer)
    return [(str(layer), layer) for layer in offered]


def pick_layer(session: Session, layer: object) -> None:
    for _, offered in layers(session.snapshot()):
        if layer == offered:
            attempt(session, layer=offered)


def turn_concept(session: Session, sent: dict[str, Any]) -> None:
    """Turn concepts up or down. `sent` is a payload from `components.widgets.steer`."""
    found, turned = found_for(session, "concepts"), tuple(strengths(sent).items())
    if found is not None:
        for place, strength in turned:
            found.reading.concepts.steering(*place, strength)  # raises if the feature does not exist
        attempt(session, turned=turned)


def draw_concepts(s: Any) -> dict[str, Any]:
    reading = shown(s).reading
    offered = ((each.layer, each.feature) for each in reading.concepts.offered)
    return sliders(reading.loaded, offered, dict(s[Play].answer.turned))


def pick_feature(session: Session, sent: dict[str, Any]) -> None:
    """Pick a token or a listed feature. `sent` is a payload from `components.widgets.features`."""
    found = found_for(session, "feature")
    if found is None:
        return
    match sent:
        case {"index": int(index)} if is_index(index, len(found.reading.ids)):
            session.change(Play, answer=replace(session.state(Play).answer, token=index))
        case {"place": [int(layer), int(feature)]}:
            found.reading.concepts.steering(layer, feature, 0.0)  # raises if the feature does not exist
            attempt(session, feature=(layer, feature))


def draw_features(s: Any) -> dict[str, Any]:
    reading, answer = shown(s).reading, s[Play].answer
    last = len(reading.ids) - 1
    position = last if answer.token is None else min(answer.token, last)
    listed = strongest(reading, position)
    most = max((float(along[position]) for _, along in listed), default=1.0)

    def feature(place: tuple[int, int], along: Tensor) -> dict[str, Any]:
        name = concept_name(reading.loaded, place)
        says = t("concepts.feature", name=name, layer=place[0])
        return {"place": place, "name": name, "value": round(float(along[position]) / most, 3), "says": says}

    return {
        "tokens": shown_tokens(reading.tokenizer, reading.ids),
        "selected": position,
        "first": 0,
        "chosen": answer.feature,
        "features": [feature(place, along) for place, along in listed],
        "tints": {
            ".".join(map(str, place)): to_base64(np.round(255 * along.numpy()).astype(np.uint8))
            for place, along in listed
        },
    }


tab.cards(
    card(
        "challenge-title",
        course("challenge-head", "challenges", list(BY_KEY), on=choose, draw=draw_head),
        says("challenge-note", note, kind="caption"),
        caption("challenges.temperature"),
    ),
    card(
        "challenge",
        where("reading", WITH_TEXT, arcs("challenge-text", on=pick_token, draw=draw_text), grow=0),
        where("typing", ("text",), composer("challenge-box", answers=True, on_input=type_text, draw=draw_box), grow=0),
        columns(
            where("pictures", ("head",), heads("challenge-heads", on=pick_head, draw=draw_heads, empty={}), grow=9),
            where(
                "switches",
                ("switches", "layer", "place"),
                says(
                    "challenge-tool", lambda s: t(f"challenges.tool.{BY_KEY[s[Play].challenge].tool}"), kind="caption"
                ),
                where("grid", ("switches",), switches("challenge-switches-heads", on=switch_head, draw=draw_switches)),
                choice(
                    "challenge-layer",
                    choices=layers,
                    label="challenges.layers",
                    value=lambda s: s[Play].answer.layer,
                    on=pick_layer,
                    show=lambda s: bool(layers(s)),
                ),
                grow=2,
            ),
            where("turning", ("concepts",), steer("challenge-concepts", on=turn_concept, draw=draw_concepts), grow=3),
            where(
                "feature",
                ("feature",),
                features("challenge-features", on=pick_feature, on_input=pick_feature, draw=draw_features),
                grow=9,
            ),
            column(
                predictions("challenge-bars", on=append_token, draw=draw_bars),
                grow=3,
                min_width=300,
                name="challenge-bars-part",
                show=lambda s: s[Play].challenge in BY_KEY and BY_KEY[s[Play].challenge].bars,
            ),
            column(
                challenge_foot("challenge-foot", on=choose, draw=draw_foot),
                grow=3,
                min_width=300,
                classes="gb-challenge-side",
            ),
        ),
    ),
)
