"""Generating past a full context in Write: dropped tokens are shown, and Undo restores them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from components.share.document_link import document_values
from components.state.session import Session
from components.tabs.playground import editing, generation
from components.tabs.playground.editing import dropped
from components.tabs.playground.prediction import without_attention
from gpt import GPT, Generation, GPTConfig, SamplingParams, generate_greedy, get_model
from gpt.documents.snippets import python_snippet
from gpt.models.checkpoints import save_model
from gpt.models.checkpoints.token_table import Characters
from gpt.models.registry import add_model, remove_model
from tests.components.drawing import compute_now
from tests.components.tabs.playground_session import PICTURES, drawn

PROMPT = "a rat on a road"


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Session]:
    """A text that fills the 16-token context of its model."""
    model = GPT(GPTConfig(7, 16, n_layer=1, n_head=1, n_embd=8), generator=torch.Generator().manual_seed(2))
    save_model(tmp_path, model, Characters(list(" adnort")))
    name = add_model(tmp_path)
    session = Session(Generation(get_model(name), PROMPT))
    list(session.document.steps(SamplingParams(temperature=0), 99))
    assert session.document.full
    for setting, value in {"length": 6, "temperature": 0, "seed": "1", "pace": 0}.items():
        generation.set_value(setting, session, value)
    yield session
    remove_model(name)


def go_on(session: Session) -> None:
    list(generation.prepare_here(session))
    list(generation.generate(session))
    generation.finish(session)


def test_continue_drops_a_token_for_each_new_one_and_shows_it(full):
    before = full.document
    model, ids = before.loaded.model, list(before.ids)
    assert dropped(full.snapshot()) == ""
    go_on(full)
    expected = generate_greedy(model, torch.tensor([ids]), 6)[0].tolist()
    assert full.document.dropped + full.document.ids == expected
    assert full.document.n_read == 16
    assert full.finish_reason == "max_new_tokens"
    assert before.ids == ids
    shown = dropped(full.snapshot())
    assert before.tokenizer.decode(expected[:6]) in shown
    assert "dropped: 6" in shown
    assert "16 tokens" in shown
    compute_now(full, without_attention)
    for name in PICTURES:
        drawn(full, name)


def test_undo_brings_the_whole_text_back(full):
    ids = list(full.document.ids)
    go_on(full)
    while full.document.dropped:
        editing.undo(full)
    assert full.document.ids == ids


def test_the_text_cannot_become_a_link_or_a_program(full):
    go_on(full)
    for of in (lambda: document_values(full.document, SamplingParams()), lambda: python_snippet(full.document)):
        with pytest.raises(ValueError, match="have been dropped from the context"):
            of()
