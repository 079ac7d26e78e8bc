"""A document as a file: round trips, and rejected files."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from gpt import Edits, Generation, SamplingParams
from gpt.analysis.patching import patch_from
from gpt.documents.edit_text import format_edits
from gpt.documents.saved_document import SavedDocument
from tests.gpt.fake_models import tiny_model


@pytest.fixture(scope="module")
def document():
    document = Generation(tiny_model(), "the cat")
    list(document.steps(SamplingParams(temperature=3.0, top_k=200, seed=5), 6))
    document.append(99, after=4)
    document.append_text(" a")
    document.step(SamplingParams(temperature=2.0, seed=6))
    document.read()
    return document


def changed(document, **changes):
    return json.dumps(json.loads(document.to_json()) | changes)


def changed_token(document, number, **changes):
    data = json.loads(document.to_json())
    data["tokens"][number] |= changes
    return json.dumps(data)


def test_the_round_trip_gives_the_same_tree_text_and_logits(document):
    other = Generation.from_json(document.to_json(), document.loaded)
    assert other.tree.tokens == document.tree.tokens
    assert (other.ids, other.path, other.text) == (document.ids, document.path, document.text)
    assert (other.n_prompt, other.prompt_ids) == (document.n_prompt, document.prompt_ids)
    assert [other.draw(p) for p in range(len(other.ids))] == [document.draw(p) for p in range(len(document.ids))]
    other.read()
    for position in range(document.n_read):
        torch.testing.assert_close(other.logits(position), document.logits(position), atol=1e-5, rtol=0)
    assert other.to_json() == document.to_json()
    assert not other.can_undo


def test_a_file_with_edits_opens_on_every_family_and_goes_on_as_before(family):
    params, edits = SamplingParams(temperature=2.0, seed=5), Edits({(1, 3): 0.0}, {0: 0.5}, activation="relu")
    places = (("attn_out", 1, 2, None), ("head_out", 0, 1, 1))
    patched = replace(edits, patches=tuple(patch_from(family.model, [7, 8, 9], *place) for place in places))
    for each in (None, edits, patched):
        document = Generation(family, "the cat", edits=each)
        list(document.steps(params, 4))
        other = Generation.from_json(document.to_json(), family)
        ids = [[step.token_id for step in which.steps(params, 6)] for which in (document, other)]
        assert ids[0] == ids[1]
        torch.testing.assert_close(document.states(), other.states(), atol=1e-5, rtol=1e-4)


def test_a_file_saved_in_the_middle_of_its_prompt_is_opened_there(document):
    other = document.copy()
    other.go_back(1)
    again = Generation.from_json(other.to_json(), document.loaded)
    assert again.ids == document.ids[:2]
    assert again.prompt_ids == document.prompt_ids


def test_without_a_model_the_one_that_the_file_names_is_opened(document, monkeypatch):
    monkeypatch.setattr("gpt.documents.generation.get_model", {"tiny": document.loaded}.__getitem__)
    assert Generation.from_json(document.to_json()).loaded is document.loaded


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "other"}, "not a document of this program"),
        ({"version": 2}, "version 2, but this program reads version 1"),
        ({"version": None}, "version None"),
        ({"version": True}, "version True"),
        ({"model": 3}, "model must be a name"),
        ({"vocab_size": 0}, '"vocab_size" must be a whole number'),
        ({"vocab_size": 261}, "vocabulary of 261 tokens, but tiny has 260"),
        ({"vocab_size": 200}, '"id" must be a whole number between 0 and 199, not 257'),
        ({"prompt_tokens": 0}, '"prompt_tokens" must be a whole number between 1'),
        ({"prompt_tokens": 6}, "first 6 tokens are the prompt"),
        ({"current": 99}, '"current" must be a whole number between 0 and 13, not 99'),
        ({"current": 1.0}, '"current" must be a whole number'),
        ({"tokens": []}, "1 to 65,536 tokens, not 0"),
        ({"tokens": [0] * 65537}, "1 to 65,536 tokens, not 65,537"),
        ({"tokens": [5]}, "a token must be an object"),
        ({"tokens": None}, 'no list "tokens"'),
        ({"dropped": 5}, 'no list "dropped"'),
        ({"dropped": [3, 260]}, '"dropped" must be a whole number between 0 and 259, not 260'),
        ({"settings": None}, 'no list "settings"'),
        ({"settings": []}, "the file has no settings"),
        ({"settings": [{"seed": 1, "heat": 3}]}, "settings must be an object with"),
        ({"settings": [{"temperature": 1}]}, "these settings have no seed"),
        ({"settings": [{"temperature": -1, "seed": 1}]}, "temperature must be"),
        ({"settings": [{"temperature": float("nan"), "seed": 1}]}, "temperature must be"),
    ],
)
def test_a_file_edited_by_hand_is_checked(document, changes, said):
    with pytest.raises(ValueError, match=said):
        Generation.from_json(changed(document, **changes), document.loaded)


@pytest.mark.parametrize(
    ("number", "changes", "said"),
    [
        (7, {"id": 260}, '"id" must be a whole number between 0 and 259, not 260'),
        (7, {"id": -1}, "not -1"),
        (7, {"id": "a"}, "not 'a'"),
        (7, {"after": 7}, "token number 7 must follow one of 0 to 6, not 7"),
        (7, {"after": 9}, "must follow one of 0 to 6, not 9"),
        (7, {"after": None}, "must follow one of 0 to 6, not None"),
        (7, {"after": 1.5}, '"after" must be the number'),
        (7, {"how": "guessed"}, "typed, sampled or chosen, not 'guessed'"),
        (7, {"settings": 2}, '"settings" must be a whole number between 0 and 1, not 2'),
        (0, {"after": 3}, "first token cannot follow another one"),
        (0, {"how": "chosen"}, "first token must be typed"),
        (2, {"after": 0}, "first 5 tokens are the prompt"),
    ],
)
def test_every_token_of_a_file_is_checked(document, number, changes, said):
    with pytest.raises(ValueError, match=said):
        Generation.from_json(changed_token(document, number, **changes), document.loaded)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_a_file_of_another_kind_is_refused(text):
    with pytest.raises(ValueError, match=r"not JSON|not a document"):
        SavedDocument.from_json(text)


def test_a_text_longer_than_the_context_is_refused(document):
    with pytest.raises(ValueError, match="text in the file has 11 tokens, more than the context of 8"):
        Generation.from_json(document.to_json(), tiny_model(block_size=8))
    with pytest.raises(ValueError, match="prompt in the file has 5 tokens, more than the context of 4"):
        Generation.from_json(Generation(document.loaded, "the cat").to_json(), tiny_model(block_size=4))
    with pytest.raises(ValueError, match="characters"):
        SavedDocument.from_json(" " * (2**24 + 1))


def test_the_round_trip_gives_the_same_edits(document):
    loaded = document.loaded
    patch = patch_from(loaded.model, loaded.tokenizer.encode("a dog"), "resid_pre", 1, 2)
    edits = Edits({(0, 1): 0.3}, {1: 0.0}, {0: -1.5}, "relu", True, (patch,))
    made = Generation(loaded, "the cat", edits=edits)
    list(made.steps(SamplingParams(temperature=2.0, seed=5), 6))
    made.read()
    again = Generation.from_json(made.to_json(), loaded)
    again.read()
    assert again.tree.tokens == made.tree.tokens
    assert format_edits(again.edits) == format_edits(edits)
    assert again.to_json() == made.to_json()
    plain = Generation(loaded, made.ids)
    plain.read()
    torch.testing.assert_close(again.logits(again.n_read - 1), made.logits(made.n_read - 1), atol=1e-5, rtol=0)
    assert (plain.logits(plain.n_read - 1) - made.logits(made.n_read - 1)).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        (3, "edits must be a text in quotes"),
        ("h0.0=0,h0.0=1", "appears twice"),
        ("h9.0=0", "layer 9"),
        ("resid_pre0.0=999", "999"),
        ("a0=99", "beyond 10"),
        ("x" * 40_001, "at most 40,000 characters"),
    ],
)
def test_edits_of_a_file_are_checked(document, edits, said):
    with pytest.raises(ValueError, match=said):
        Generation.from_json(changed(document, edits=edits), document.loaded)
