"""The box of Write with each family's vocabulary: start tokens, spaces, composed characters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from unicodedata import normalize

import pytest

from components.state.session import Session
from components.tabs.playground import editing, generation
from gpt import Generation, LoadedModel, add_model, get_model
from gpt.documents.snippets import python_snippet
from gpt.models.registry import remove_model
from gpt.tokenizer import prompt_ids
from tests.components.tabs.playground_session import drawn, ids, run, type_in
from tests.gpt.models.tokenizer_families import FAMILIES, NORMALISE, save_family_model

TEXT = "Hello, naïve 你好"


@pytest.fixture(scope="module", params=FAMILIES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadedModel]:
    folder = tmp_path_factory.mktemp(request.param)
    save_family_model(folder, request.param)
    name = add_model(folder, name=request.param)
    yield get_model(name)
    remove_model(name)


@pytest.fixture
def session(loaded: LoadedModel) -> Session:
    session = Session(None)
    session.model, session.loaded = loaded.name, loaded
    for name, value in {"length": 3, "seed": "1", "pace": 0}.items():
        generation.set_value(name, session, value)
    return session


def shown(session: Session) -> str:
    box = drawn(session, "prompt")
    return "".join(json.loads(line)[0] for line in box["lines"]) + box["held"]


def test_a_typed_text_is_read_after_what_begins_a_text(session: Session, loaded: LoadedModel) -> None:
    for end in range(1, len(TEXT) + 1):
        type_in(session, TEXT[:end])
        assert ids(session) == prompt_ids(loaded.tokenizer, TEXT[:end].rstrip())  # a space waits for its word
        assert shown(session) == TEXT[:end]
        assert drawn(session, "prompt")["typed"] is None
    assert drawn(session, "strip")["lines"][0].startswith(f"[{ids(session)[0]},")
    assert session.document.text == TEXT


def test_what_is_typed_after_other_tokens_keeps_them(session: Session, loaded: LoadedModel) -> None:
    type_in(session, TEXT)
    n_prompt = len(ids(session))
    session.document.append(*loaded.tokenizer.encode_continuation(" 12 34"))
    before = ids(session)
    type_in(session, f"{TEXT} 12 34, and more")
    assert shown(session) == f"{TEXT} 12 34, and more"
    assert ids(session)[: n_prompt + 3] == before[: n_prompt + 3]
    assert session.document.origin(n_prompt).kind == "chosen"


def test_an_inserted_text_has_no_space_put_before_it(session: Session, loaded: LoadedModel) -> None:
    type_in(session, "Hello")
    editing.type_text(session, "ly")
    assert shown(session) == "Helloly"
    assert ids(session) == [*prompt_ids(loaded.tokenizer, "Hello"), *loaded.tokenizer.encode_continuation("ly")]
    program = python_snippet(session.document)
    assert "document.append_text('ly')" in program
    assert "Generation(loaded, 'Hello')" in program


def test_the_box_takes_over_what_the_vocabulary_composes(session: Session, loaded: LoadedModel) -> None:
    decomposed = normalize("NFD", "naïve é")
    type_in(session, decomposed)
    composes = loaded.name in NORMALISE
    assert shown(session) == (normalize("NFC", decomposed) if composes else decomposed)
    assert drawn(session, "prompt")["typed"] == (decomposed if composes else None)


def test_the_end_of_a_long_prompt_fits(session: Session, loaded: LoadedModel) -> None:
    type_in(session, "word 你 " * 200)
    run(generation.prepare_tail(session))
    assert 0 < len(Generation(loaded, session.next_prompt).ids) <= loaded.model.config.block_size
