"""Typing and editing in Write: the text becomes the document, and nothing that was written is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from components.labels import percent
from components.session_events import restore_session, saved_session
from components.state.example import example
from components.state.reads import is_ready
from components.state.session import Session
from components.state.typed_text import kept_tokens, shown_tokens
from components.tabs.playground import box as boxes
from components.tabs.playground import editing, generation, prediction
from components.tabs.playground.prediction import reason_falls
from gpt import Generation, SamplingParams, distribution, get_model
from gpt.inference.admission import AdmissionQueue
from tests.components.drawing import as_read, compute_now
from tests.components.tabs.playground_session import box, drawn, ids, new_session, run, type_in, write
from tests.gpt.fake_models import tiny_model

STORY = "Once upon a time, there was a little girl named"


@pytest.fixture(scope="module")
def written() -> Generation:
    return example(get_model())


@pytest.fixture
def session(written: Generation) -> Session:
    return new_session(written)


def shown(session: Session) -> str:
    """Return the text of the box."""
    data = drawn(session, "prompt")
    lines = "".join(json.loads(line)[0] for line in data["lines"]) + data["held"]
    return lines if data["unwritten"] is None else data["unwritten"]


def test_typed_text_is_predicted_as_a_document_of_it_is(session: Session) -> None:
    type_in(session, STORY)
    fresh = as_read(get_model(), STORY)
    assert ids(session) == fresh.ids
    data, bars = drawn(session, "prompt"), drawn(session, "bars")
    final = distribution(fresh.logits(len(fresh.ids) - 1), session.settings.sampling()).final
    assert data["ghost"] == f" {bars['bars'][0][0]}" == " Lily"
    assert [bar[2] for bar in bars["bars"]] == pytest.approx(final.topk(5).values.tolist(), rel=1e-3)
    assert bars["title"] == "What comes next?"
    head = session.selection
    weights = fresh.attn_weights(head.layer, head.head)[-1].tolist()
    assert data["arcs"]
    assert all(weight == pytest.approx(weights[i], abs=1e-4) for i, weight in data["arcs"])
    position = data["arcs"][0][0]
    assert get_model().tokenizer.decode([fresh.ids[position]]).strip() in drawn(session, "reason")["text"]


def test_a_part_of_a_character_is_not_offered_as_text(session: Session) -> None:
    type_in(session, "The dog ran你好")
    document = session.document
    best = int(distribution(document.logits(len(document.ids) - 1), session.settings.sampling()).final.argmax())
    with pytest.raises(UnicodeDecodeError):
        get_model().tokenizer.token_bytes(best).decode()
    assert drawn(session, "prompt")["ghost"] == ""


def test_what_the_prediction_depends_on_is_measured_once_the_text_rests(session: Session) -> None:
    compute_now(session, prediction.reason)
    assert drawn(session, "spoken")["text"] == ""  # the example, not touched by the visitor
    type_in(session, STORY)
    assert not is_ready(session.snapshot(), prediction.reason)
    compute_now(session, prediction.reason)
    assert is_ready(session.snapshot(), prediction.reason)
    said, bars = drawn(session, "reason")["text"], drawn(session, "bars")["bars"]
    word, before = re.fullmatch(
        r"“(\w+)” is the main reason: if you hide it, “Lily” drops from (\d+%) to .*\.", said
    ).groups()
    assert word in STORY
    assert before == percent(bars[0][2])  # same as the bar
    assert re.fullmatch(r"After “named”: “Lily” .*, .*, .*\. ", drawn(session, "spoken")["text"].removesuffix(said))
    turn = session.lock.begin()
    assert drawn(session, "spoken")["text"] == ""
    session.lock.end(turn)
    session.select(position=2)
    assert "It mostly looks back at" in drawn(session, "reason")["text"]
    compute_now(session, prediction.reason)
    assert "“time”" in drawn(session, "reason")["text"]


def test_each_text_on_the_way_is_the_text_of_the_box_and_one_undo_takes_all_of_it_back(session: Session) -> None:
    first = ids(session)
    for end in range(len("The dog"), len("The dog ran home") + 1):
        type_in(session, "The dog ran home"[:end])
        assert ids(session) == get_model().tokenizer.encode("The dog ran home"[:end].rstrip())
        assert shown(session) == "The dog ran home"[:end]
    assert session.prompt == "The dog ran home"
    assert drawn(session, "tree")["lanes"] == []
    editing.undo(session)
    assert ids(session) == first
    editing.redo(session)
    assert shown(session) == "The dog ran home"


LONG = "The dog ran. " * 100  # does not fit into the context


def undone(session: Session) -> list[str]:
    """Undo everything, and redo it. Returns the texts that `undo` shows."""
    texts = [shown(session)]
    while session.can_undo:
        editing.undo(session)
        texts.append(shown(session))
    for text in texts[-2::-1]:
        editing.redo(session)
        assert shown(session) == text
    return texts[1:]


@pytest.mark.parametrize("enter", [type_in, write])
def test_each_run_of_edits_is_one_action_and_none_if_it_restores_the_text(session: Session, enter: Any) -> None:
    enter(session, "The dog")
    base, before = shown(session), undone(session)
    for number, edits in enumerate(([base], [f"{base}x", base], [LONG, base], ["A dog", base], ["", base]), 1):
        for text in edits:
            type_in(session, text, run=number)
        assert undone(session) == before, edits
    typed = [f"{base} ran", f"{base} ran home", base, LONG, base, "A dog", LONG, "", base, LONG]
    for number, text in enumerate(typed, 10):
        type_in(session, text, run=number)
    assert undone(session) == [*typed[-2::-1], base, *before]


def test_runs_that_the_server_has_not_seen_are_undone_one_by_one(session: Session) -> None:
    first = shown(session)
    sent = {"before": [["The dog", 1, 1], [LONG, 2, 2]], "text": "A cat", "edited": 3, "run": 3}
    run(boxes.type_text(session, sent))
    late = sent | {"text": "A cat ran", "edited": 4}
    boxes.take_typed(session, late)  # the last key was pressed just before
    editing.retrace(session, {})
    assert (shown(session), undone(session)) == (LONG, ["The dog", first])
    boxes.take_typed(session, late)
    editing.retrace(session, {"redo": True})
    assert shown(session) == "A cat ran"


def test_after_what_the_model_wrote_typing_is_a_branch_and_the_prompt_stays(session: Session) -> None:
    text = "".join(shown_tokens(get_model().tokenizer, write(session, "The dog")))
    for more in (" and", " and the", " and the cat"):
        type_in(session, text + more)
    assert session.prompt == "The dog"
    assert [session.document.origin(i).kind for i in range(2, 8)] == ["sampled"] * 3 + ["typed"] * 3
    assert len(drawn(session, "tree")["lanes"]) == 0
    type_in(session, text[:-1])
    run(generation.go_on(session))
    assert session.document.n_prompt == 2
    assert len(drawn(session, "tree")["lanes"]) == 2
    editing.undo(session)
    editing.undo(session)
    assert shown(session) == text


def test_an_outdated_or_repeated_text_changes_nothing(session: Session) -> None:
    older = box(session, "The cat")
    session.edited += 1
    newer = box(session, "The dog")
    run(boxes.type_text(session, newer))
    document = session.document
    for late in (older, newer, {}, {"text": 1, "edited": 1e99}, {"text": "x", "edited": "NaN"}):
        run(boxes.type_text(session, late))
    assert session.document is document
    assert shown(session) == "The dog"


@pytest.mark.parametrize("replace", [generation.clear, editing.undo, partial(generation.write_example, "The cat")])
def test_the_box_shows_a_text_that_has_replaced_what_was_typed(session: Session, replace: Any) -> None:
    type_in(session, "The dog")
    run(replace(session) or ())
    assert drawn(session, "prompt")["edited"] == session.edited  # otherwise the page keeps what was typed


def test_typing_waits_its_turn_and_gives_way_to_newer_text(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.document.loaded.engine, "admission", AdmissionQueue(1))
    with session.document.loaded.engine.admission.enter():
        steps = boxes.type_text(session, box(session, "The dog"))
        next(steps)
        assert "1 ahead of you" in drawn(session, "status")["text"]
        session.edited += 1
    run(steps)
    assert shown(session).startswith("It was raining")


def test_a_text_that_is_too_long_is_counted_and_the_pictures_stay_old_until_it_fits(session: Session) -> None:
    first = ids(session)
    type_in(session, "The dog ran. " * 100)
    assert ids(session) == first
    assert "more than the 256" in drawn(session, "prompt-count")["text"]
    assert drawn(session, "prompt")["unwritten"] == "The dog ran. " * 100
    kept = json.dumps(saved_session(session.snapshot()))
    again = new_session(session.document)
    assert restore_session(again, kept, ["why"])
    assert drawn(again, "prompt")["unwritten"] == "The dog ran. " * 100
    type_in(session, "The dog ran.")
    assert drawn(session, "prompt")["unwritten"] is None
    assert drawn(session, "prompt-count")["text"] == "4 of 256 tokens"


def test_an_emptied_box_has_no_text_and_one_letter_has_one_token(session: Session) -> None:
    type_in(session, "")
    assert shown(session) == ""
    assert len(drawn(session, "bars")["bars"]) == 5  # the model's predictions for a beginning
    compute_now(session, prediction.reason)
    assert "no earlier word" in drawn(session, "reason")["text"]
    type_in(session, "O")
    assert drawn(session, "prompt-count")["text"] == "1 of 256 tokens"
    editing.undo(session)
    assert shown(session).startswith("It was raining")


# White space at the end

RAIN = "It was raining, so Lily could not play"


@pytest.mark.parametrize("space", [" ", "   ", "\u00a0"])
def test_a_space_at_the_end_stays_and_begins_the_next_word_in_bars_reason_and_text(
    session: Session, space: str
) -> None:
    session.numbers = session.more_controls = True
    type_in(session, RAIN)
    without = drawn(session, "bars")["bars"]
    type_in(session, RAIN + space)
    data = drawn(session, "prompt")
    assert (shown(session), data["typed"], data["ghost"]) == (RAIN + space, None, "outside")
    bars = drawn(session, "bars")
    possible = [bar for bar in without if bar[0] != "."]  # the other likely tokens begin with a space
    assert [bar[0].strip("·") for bar in bars["bars"][:5]] == [bar[0].strip("·") for bar in possible[:5]]
    share = 1 - possible[0][1] / bars["bars"][0][1]
    assert f"have {percent(share)} together and are left out" in bars["text"]
    compute_now(session, prediction.reason)
    assert reason_falls(session.snapshot()).probability == pytest.approx(bars["bars"][0][2], rel=1e-3)
    session.settings = session.settings.with_value("temperature", 0)
    write(session, None)
    assert shown(session).startswith(f"{RAIN} outside")
    editing.undo(session)
    assert shown(session) == RAIN + space


# Control tokens

NAME = "<|endoftext|>"


@pytest.mark.parametrize("is_prompt", [True, False])
def test_the_name_of_a_control_token_becomes_the_token_while_the_switch_is_on(
    session: Session, is_prompt: bool
) -> None:
    eot, before = get_model().tokenizer.eot_id, "The dog" if is_prompt else shown(session)
    text = f"{before}{NAME}Once"
    type_in(session, text)
    assert eot not in ids(session)
    assert drawn(session, "literal")["text"] == f"“{NAME}” is read as characters, not as the control token."
    for on in (True, False, True):
        run(generation.switch_special(session, on))
        assert shown(session) == text
        assert ids(session)[-2:] == [eot, *get_model().tokenizer.encode("Once")] if on else eot not in ids(session)
        assert bool(drawn(session, "literal")["text"]) == (not on)
    for end in range(len(before) + 1, len(text) + 1):  # letter by letter
        type_in(session, text[:end])
        assert shown(session) == text[:end]
    assert ids(session)[-2:] == [eot, *get_model().tokenizer.encode("Once")]


# Which tokens stay


def test_parts_of_a_character_leave_with_it() -> None:
    document = Generation(tiny_model(), [65, 0xE7, 0x8B, 0x90, 66])
    assert shown_tokens(document.tokenizer, document.ids) == ["A", "", "", "狐", "B"]
    assert kept_tokens(document, "A狐B") == (5, "")
    assert kept_tokens(document, "A狐") == (4, "")
    assert kept_tokens(document, "A")[0] == 1


def test_the_end_of_text_token_is_hidden_where_a_text_begins_and_never_read_as_characters() -> None:
    document = Generation(get_model(), "")
    list(document.steps(SamplingParams(temperature=0), 2))
    document.append(document.tokenizer.eot_id)
    shown = shown_tokens(document.tokenizer, document.ids)
    assert (shown[0], shown[-1]) == ("", "\n")
    keep, rest = kept_tokens(document, "".join(shown) + "The")
    assert (keep, rest) == (4, "The")


def test_characters_that_the_model_has_never_read_stay_as_they_were_typed() -> None:
    session = new_session(example(get_model("poems")))
    for text in ("𰻞Hello明月", "𰻞Hello明月，", "My dog"):
        type_in(session, text)
        assert shown(session) == text == session.next_prompt
    write(session, "Oh，明月")
    assert shown(session).startswith("Oh，明月")
    assert "<unk>" not in shown(session)


def test_undo_goes_back_to_the_text_before_and_redo_forward_again(session: Session) -> None:
    first = ids(session)
    dog, cat = write(session, "The dog"), write(session, "The cat")
    editing.undo(session)  # the generated tokens
    assert ids(session) == cat[:-3]
    editing.undo(session)
    assert (ids(session), session.prompt, session.next_prompt) == (dog, "The dog", "The dog")
    assert session.document.n_read == len(dog)
    editing.undo(session)
    assert ids(session) == dog[:-3]
    editing.undo(session)
    editing.undo(session)  # there is nothing left to undo
    assert ids(session) == first
    assert not session.can_undo
    for expected in (dog[:-3], dog, cat[:-3], cat):
        assert session.can_redo
        editing.redo(session)
        assert ids(session) == expected
    assert not session.can_redo


def test_an_undo_takes_back_what_a_stream_wrote_until_it_stopped(session: Session, monkeypatch: Any) -> None:
    first, changing = ids(session), session.lock.changing

    @contextmanager
    def late() -> Iterator[None]:
        with changing():
            session.document.append(5)
            yield

    monkeypatch.setattr(session.lock, "changing", late)
    editing.undo(session)
    assert ids(session) == first


def test_clear_also_removes_the_branches_of_a_text_that_is_empty_again(session: Session) -> None:
    type_in(session, "")
    write(session, None)
    session.document.go_back(0)
    generation.clear(session)
    assert drawn(session, "tree")["lanes"] == []


@pytest.mark.parametrize("typed", ["The dog ran home", "The dog ran. " * 100])
def test_a_bar_of_an_older_text_changes_nothing(session: Session, typed: str) -> None:
    type_in(session, "The dog")
    place = drawn(session, "bars")["common"]
    type_in(session, typed)
    editing.choose(session, place | {"token": 5})
    editing.choose(session, drawn(session, "bars")["common"] | {"token": 5, "behind": place["behind"], "last": None})
    boxes.hide_words(session, {"hidden": [1], "edited": session.edited - 1})
    assert session.next_prompt == typed
    assert not session.hidden.positions
