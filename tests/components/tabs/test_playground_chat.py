"""A chat in Write, and the box with each family's vocabulary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from unicodedata import normalize

import pytest

from components.state.session import Session
from components.state.settings import Settings
from components.tabs.playground import editing, generation
from components.tabs.playground.box import switch_chat
from gpt import LoadedModel, add_model, get_model
from gpt.documents.snippets import python_snippet
from gpt.models.registry import remove_model
from gpt.tokenizer import prompt_ids
from tests.components.tabs.playground_session import drawn, ids, run, type_in, write
from tests.gpt.models.tokenizer_families import FAMILIES, NORMALISE, save_family_model

USER, ASSISTANT, END = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>"


@pytest.fixture
def loaded(chat_model: str) -> LoadedModel:
    return get_model(chat_model)


@pytest.fixture
def session(loaded: LoadedModel) -> Session:
    """An empty chat with short answers."""
    session = Session(None)
    session.model, session.loaded = loaded.name, loaded
    session.settings = replace(Settings(), length=3, seed="1")
    run(switch_chat(session, True))
    return session


def chat(loaded: LoadedModel, *contents: str) -> list[int]:
    """Return the ids of a chat in which these messages alternate."""
    roles = ("user", "assistant") * len(contents)
    messages = [{"role": role, "content": text} for role, text in zip(roles, contents, strict=False)]
    return loaded.tokenizer.encode_chat(messages)


def shown(session: Session) -> str:
    box = drawn(session, "prompt")
    return "".join(json.loads(line)[0] for line in box["lines"]) + box["held"]


def answer(session: Session, text: str) -> None:
    """Write the beginning of an answer in the model's place."""
    session.document.append(*session.loaded.tokenizer.encode_continuation(text))


def end_turn(session: Session) -> None:
    """End the model's answer."""
    session.document.append(min(session.loaded.tokenizer.eot_ids - {session.loaded.tokenizer.eot_id}))
    session.document.read()


def test_a_typed_message_is_shown_as_the_model_reads_it(session: Session, loaded: LoadedModel) -> None:
    type_in(session, "Hello, you")
    assert ids(session) == chat(loaded, "Hello, you")
    data = drawn(session, "prompt")
    assert shown(session) == f"{USER}Hello, you{ASSISTANT}"
    control = [json.loads(line)[0] for line in data["lines"] if len(json.loads(line)) == 3]
    assert control == ["<|im_start|>", "<|im_end|>", "<|im_start|>"]
    assert (data["typed"], data["n_after"]) == ("Hello, you", len(ASSISTANT))
    assert json.loads(drawn(session, "strip")["lines"][0])[1] == "<|im_start|>"
    assert session.document.n_read == len(ids(session))


def test_the_switch_turns_the_prompt_into_a_message_and_back(session: Session, loaded: LoadedModel) -> None:
    run(switch_chat(session, False))
    type_in(session, "Once upon")
    assert ids(session) == loaded.tokenizer.encode("Once upon")
    run(switch_chat(session, True))
    assert session.snapshot().is_chat
    assert ids(session) == chat(loaded, "Once upon")
    write(session, None)
    run(switch_chat(session, False))
    assert not session.snapshot().is_chat
    assert ids(session) == loaded.tokenizer.encode("Once upon")
    editing.undo(session)
    assert session.snapshot().is_chat


def test_an_edit_inside_a_message_keeps_the_control_tokens(session: Session, loaded: LoadedModel) -> None:
    type_in(session, "Hello")
    type_in(session, f"{USER}Hello, world{ASSISTANT}")
    assert ids(session) == chat(loaded, "Hello, world")
    assert session.next_prompt == "Hello, world"
    assert drawn(session, "prompt")["typed"] is None


@pytest.mark.parametrize("name", ["<|im_end|>", "<|im_start|>", "<|endoftext|>"])
def test_a_typed_name_of_a_control_token_stays_characters(session: Session, loaded: LoadedModel, name: str) -> None:
    special = loaded.tokenizer.special_ids
    control = [i for i in chat(loaded, "a") if i in special]
    type_in(session, f"a {name}")
    assert [i for i in ids(session) if i in special] == control
    type_in(session, f"{USER}a {name} b{ASSISTANT}")
    assert [i for i in ids(session) if i in special] == control
    assert shown(session) == f"{USER}a {name} b{ASSISTANT}"


def test_what_is_typed_after_an_answer_is_the_next_message(session: Session, loaded: LoadedModel) -> None:
    type_in(session, "Hello")
    answer(session, "Fine.")
    end_turn(session)
    before, answered = shown(session), ids(session)
    for text in ("A", "And", "And now"):
        type_in(session, before + text)
    assert shown(session) == f"{before}\n{USER}And now{ASSISTANT}"
    assert drawn(session, "prompt")["n_after"] == len(ASSISTANT)
    assert ids(session)[: len(answered)] == answered
    whole = chat(loaded, "Hello", "Fine.", "And now")
    assert loaded.tokenizer.decode(ids(session)) == loaded.tokenizer.decode(whole)
    assert ids(session)[len(answered) :] == loaded.tokenizer.encode_message("And now", first=False)[1:]
    n = len(ids(session))
    write(session, None)
    assert len(ids(session)) > n
    run(generation.write_again(session))
    editing.undo(session)
    assert len(ids(session)) == n


TEXT = "Hello, naïve 你好"


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadedModel]:
    folder = tmp_path_factory.mktemp(request.param)
    save_family_model(folder, request.param)
    name = add_model(folder, name=request.param)
    yield get_model(name)
    remove_model(name)


@pytest.fixture
def typist(family: LoadedModel) -> Session:
    typist = Session(None)
    typist.model, typist.loaded = family.name, family
    for name, value in {"length": 3, "seed": "1", "pace": 0}.items():
        generation.set_value(name, typist, value)
    return typist


def test_a_typed_text_is_read_after_what_begins_a_text(typist: Session, family: LoadedModel) -> None:
    for end in range(1, len(TEXT) + 1):
        type_in(typist, TEXT[:end])
        assert ids(typist) == prompt_ids(family.tokenizer, TEXT[:end].rstrip())  # a space waits for its word
        assert shown(typist) == TEXT[:end]
        assert drawn(typist, "prompt")["typed"] is None
    assert drawn(typist, "strip")["lines"][0].startswith(f"[{ids(typist)[0]},")
    assert typist.document.text == TEXT


def test_what_is_typed_after_other_tokens_keeps_them(typist: Session, family: LoadedModel) -> None:
    type_in(typist, TEXT)
    n_prompt = len(ids(typist))
    typist.document.append(*family.tokenizer.encode_continuation(" 12 34"))
    before = ids(typist)
    type_in(typist, f"{TEXT} 12 34, and more")
    assert shown(typist) == f"{TEXT} 12 34, and more"
    assert ids(typist)[: n_prompt + 3] == before[: n_prompt + 3]
    assert typist.document.origin(n_prompt).kind == "chosen"


def test_an_inserted_text_has_no_space_put_before_it(typist: Session, family: LoadedModel) -> None:
    type_in(typist, "Hello")
    editing.type_text(typist, "ly")
    assert shown(typist) == "Helloly"
    assert ids(typist) == [*prompt_ids(family.tokenizer, "Hello"), *family.tokenizer.encode_continuation("ly")]
    program = python_snippet(typist.document)
    assert "document.append_text('ly')" in program
    assert "Generation(loaded, 'Hello')" in program


def test_the_box_takes_over_what_the_vocabulary_composes(typist: Session, family: LoadedModel) -> None:
    decomposed = normalize("NFD", "naïve é")
    type_in(typist, decomposed)
    composes = family.name in NORMALISE
    assert shown(typist) == (normalize("NFC", decomposed) if composes else decomposed)
    assert drawn(typist, "prompt")["typed"] == (decomposed if composes else None)
