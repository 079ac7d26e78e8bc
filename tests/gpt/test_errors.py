import ast
import copy
import pickle
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpt
from gpt.errors import GPTError
from gpt.experiments.random_models import MemoryInUse
from gpt.messages import MESSAGES
from gpt.models.checkpoints.layouts import HeadsUnknown

FOLDER = Path(gpt.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.rglob("*.py"))}


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def family() -> set[str]:
    """The names of GPTError and of the classes that are derived from it."""
    classes = (node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {"GPTError"} | {node.name for node in classes if "GPTError" in map(ast.unparse, node.bases)}


def constructed() -> Iterator[tuple[str, ast.Call]]:
    """Every call in gpt that creates such an error, and its position."""
    names = family()
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
                yield f"{path.relative_to(FOLDER)}:{node.lineno}", node


CALLS = dict(constructed())


def key_of(call: ast.Call) -> str:
    (key,) = call.args
    assert isinstance(key, ast.Constant)
    return key.value


@pytest.mark.parametrize("place", CALLS)
def test_every_error_has_a_key_of_the_table_and_the_values_of_its_placeholders(place: str) -> None:
    call = CALLS[place]
    assert {keyword.arg for keyword in call.keywords} == placeholders(MESSAGES[key_of(call)])


def test_every_key_of_the_table_is_raised_somewhere() -> None:
    assert MESSAGES.keys() == set(map(key_of, CALLS.values()))


def test_no_sentence_is_raised_outside_of_the_table() -> None:
    for path, tree in TREES.items():
        raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
        plain = [call for call in raised if isinstance(call, ast.Call) and ast.unparse(call.func) == "ValueError"]
        assert not plain, path


@pytest.mark.parametrize(
    "error",
    [
        GPTError("context.full", limit=8),
        HeadsUnknown("layout.heads_unknown", n_embd=12, activation="gelu"),
        MemoryInUse("memory.shape_in_use", need="1 GiB"),
        GPTError("file.damaged", file="a", reason=GPTError("beam.none_finished")),
        GPTError("argument.choice", name="activation", choices="relu", value=lambda: 0),
    ],
)
@pytest.mark.parametrize("duplicate", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_pickling_and_copying_keep_class_key_values_and_sentence(error: GPTError, duplicate) -> None:
    again = duplicate(error)
    assert (type(again), again.key, str(again)) == (type(error), error.key, str(error))
    assert again.values.keys() == error.values.keys()
    assert list(map(str, again.values.values())) == list(map(str, error.values.values()))


def test_an_error_is_a_value_error_whose_text_is_the_english_sentence() -> None:
    error = GPTError("context.prompt_too_long", n=9, excess=1, limit=8)
    assert isinstance(error, ValueError)
    assert str(error) == "the prompt has 9 tokens, 1 more than the context of 8"


@pytest.mark.parametrize("value", [object, {"a": 1}, ValueError("no")])
def test_values_that_are_neither_strings_nor_numbers_are_stored_as_strings(value: object) -> None:
    shown = GPTError("edits.layer", value=value).values["value"]
    assert isinstance(shown, str)
    assert repr(shown) == shown == (value.__name__ if isinstance(value, type) else str(value))


def test_an_unknown_key_and_missing_or_additional_values_are_refused() -> None:
    with pytest.raises(KeyError):
        GPTError("context.unknown")
    for values in ({}, {"limit": 8, "n": 9}, {"n": 9}):
        with pytest.raises(TypeError, match=r"context\.full needs the values"):
            GPTError("context.full", **values)
