import ast
import copy
import pickle

import pytest

from gpt.errors import GPTError, quoted
from gpt.experiments.random_models import MemoryInUse
from gpt.models.checkpoints.layouts import HeadsUnknown
from tests.error_calls import CALLS, KEYS, SENTENCES, TREES, fields, texts

FULL = GPTError("context.full", "the context of {limit} tokens is full", limit=8)


@pytest.mark.parametrize("place", CALLS)
def test_every_error_has_the_values_of_its_placeholders(place: str) -> None:
    call = CALLS[place]
    assert {keyword.arg for keyword in call.keywords} == fields(SENTENCES[texts(call)[0]]).keys()


def test_every_sentence_is_used_and_differs_from_the_others() -> None:
    assert SENTENCES.keys() == KEYS
    assert len(set(SENTENCES.values())) == len(SENTENCES)


def test_every_error_states_its_key_in_words_or_in_its_class() -> None:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "GPTError":
                assert len(texts(node)) == len(node.args) == 1, f"{path}:{node.lineno}"


def test_every_error_of_gpt_is_a_gpt_error() -> None:
    for path, tree in TREES.items():
        raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
        plain = [call for call in raised if isinstance(call, ast.Call) and ast.unparse(call.func) == "ValueError"]
        assert not plain or {"minimal", "steps"} & set(path.parts), path  # code that learners read


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        HeadsUnknown(12, "gelu"),
        MemoryInUse(2**30),
        GPTError("file.damaged", "{file} is damaged: {reason}", file="a", reason=FULL),
        GPTError("hook.function", "a hook needs a function, not {value!r}", value=lambda: 0),
    ],
)
@pytest.mark.parametrize("duplicate", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_pickling_and_copying_keep_class_key_values_and_sentence(error: GPTError, duplicate) -> None:
    again = duplicate(error)
    assert (type(again), again.key, str(again)) == (type(error), error.key, str(error))
    assert again.values.keys() == error.values.keys()
    assert list(map(str, again.values.values())) == list(map(str, error.values.values()))


def test_an_error_is_a_value_error_whose_text_is_the_english_sentence() -> None:
    error = GPTError("context.no_room", "{n} tokens do not fit: there is room for {room}", n=9, room=8)
    assert isinstance(error, ValueError)
    assert str(error) == "9 tokens do not fit: there is room for 8"


@pytest.mark.parametrize("value", [object, {"a": 1}, ValueError("no")])
def test_values_that_are_neither_strings_nor_numbers_are_stored_as_strings(value: object) -> None:
    shown = GPTError("edits.layer", "not {value}", value=value).values["value"]
    assert isinstance(shown, str)
    assert repr(shown) == shown == (value.__name__ if isinstance(value, type) else str(value))


def test_a_long_value_is_quoted_in_part() -> None:
    error = GPTError("edits.layer", "a layer must be given as a whole number, not {value!r}", value=quoted("x" * 99))
    assert str(error) == f"a layer must be given as a whole number, not '{'x' * 39}"


def test_a_missing_value_is_refused() -> None:
    with pytest.raises(KeyError):
        GPTError("context.full", "the context of {limit} tokens is full")
