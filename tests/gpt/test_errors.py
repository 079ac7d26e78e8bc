import ast
import copy
import pickle

import pytest

from gpt.errors import GPTError
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
