"""White space at the end of a typed text begins the next token (token healing)."""

from __future__ import annotations

from functools import partial

import pytest
import tiktoken
import torch

from gpt import Generation, SamplingParams, generate
from gpt.documents.comparison import Comparison
from gpt.documents.remote import StreamRequest
from gpt.models.checkpoints.vocabularies import Characters
from gpt.tokenizer import GPT2_PATTERN, Tokenizer, hold_back
from tests.gpt.documents.fresh_document import WARM
from tests.gpt.fake_models import N_VOCAB, tiny_model, tiny_tokenizer

SPACE, A = 32, 258  # the tokens of the tiny vocabulary that begin with a space: " " and " a"
GREEDY = SamplingParams(temperature=0, seed=0)


def with_tabs() -> Tokenizer:
    """Return a vocabulary in which a word begins with a tab, as in Llama 3's."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"\ta": 256}
    return Tokenizer(tiktoken.Encoding("tabs", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={}))


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("the ", " "),
        ("the   ", "   "),
        ("the\u00a0", "\u00a0"),
        (" ", " "),
        ("the\n  ", " "),  # indentation: only the last space can belong to a word
        ("the\t ", " "),
        ("the\t", ""),
        ("the\n", ""),
        ("the", ""),
        ("", ""),
    ],
)
def test_spaces_at_the_end_are_held_back_if_words_begin_with_a_space(text: str, held: str) -> None:
    assert hold_back(tiny_tokenizer(), text) == (text.removesuffix(held), held)
    assert hold_back(Characters([" ", "t", "h", "e"]), text) == (text, "")


def test_a_tab_is_held_back_if_a_word_begins_with_a_tab() -> None:
    assert hold_back(with_tabs(), "the\t") == ("the", "\t")
    assert hold_back(with_tabs(), "the ") == ("the ", "")


@torch.inference_mode()
def test_the_next_token_is_drawn_from_those_that_begin_with_the_space() -> None:
    loaded = tiny_model()
    typed, bare = (Generation(loaded, text) for text in ("the  ", "the"))
    assert (typed.ids, typed.text, bare.held) == (bare.ids, "the  ", "")
    probs = loaded.model(torch.tensor([bare.ids]))[0, -1].softmax(0)
    share = probs[[SPACE, A]].sum()
    typed.read()
    expected = torch.zeros(N_VOCAB).index_copy(0, torch.tensor([SPACE, A]), probs[[SPACE, A]] / share)
    torch.testing.assert_close(typed.logits(typed.n_read - 1).softmax(0), expected)
    assert typed.impossible_share(typed.n_read - 1) == pytest.approx(1 - share.item())
    step = typed.step(GREEDY)
    assert step.token_id == expected.argmax()
    assert (step.text, step.rank) == ("a" if step.token_id == A else "", 1)
    assert step.probability == pytest.approx(expected.max().item(), rel=1e-6)
    assert typed.statistics(len(bare.ids)).tokens[0].probability == pytest.approx(step.probability)
    typed.undo()
    assert typed.text == "the  "


def test_only_a_text_is_healed_and_only_if_asked_to() -> None:
    loaded = tiny_model()
    run = partial(generate, loaded, params=WARM, max_new_tokens=4)
    healed = [step.token_id for step in run("the ")]
    assert healed[0] in (SPACE, A)
    assert healed == [step.token_id for step in run("the ", on_full="crop")]
    as_it_stands = [step.token_id for step in run(loaded.tokenizer.encode("the "))]
    assert as_it_stands == [step.token_id for step in run("the ", heal=False)] != healed


def test_a_token_that_does_not_begin_with_the_space_comes_after_it() -> None:
    document = Generation(tiny_model(), "the ")
    document.append(A)
    assert document.text == "the a"
    document.undo()
    document.append(257)
    assert document.text == "the the"
    document.undo()
    assert (document.append_text("a "), document.text) == ("a ", "the a ")
    assert document.ids[-1] == A


def test_a_saved_document_and_a_copy_keep_the_space_and_what_was_drawn_after_it() -> None:
    loaded = tiny_model()
    document = Generation(loaded, "the ")
    document.step(WARM)
    document.append_text("x ")
    assert Generation.of_request(loaded, StreamRequest.from_json(document.request(WARM, 1))).held == " "
    for other in (document.copy(), Generation.from_json(document.to_json(), loaded)):
        assert (other.text, other.held) == (document.text, " ")
        assert [other.held_after(i) for i in range(len(other.ids))] == [" ", *[""] * (len(other.ids) - 2), " "]
        other.go_back(0)
        assert other.text == "the "
    with pytest.raises(ValueError, match='"held" must be spaces or a tab'):
        Generation.from_json(document.to_json().replace('"held": " "', '"held": "x"'), loaded)


def test_texts_that_differ_in_the_space_are_not_compared() -> None:
    typed, bare = (Generation(tiny_model(), text) for text in ("the ", "the"))
    assert not Comparison(typed, bare, WARM, WARM).comparable
