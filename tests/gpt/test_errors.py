"""Errors, and the docstrings of everything public."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from collections.abc import Iterator

import pytest

import gpt
from gpt.errors import GPTError
from gpt.experiments.random_models import MemoryInUse
from gpt.models.checkpoints.layouts import HeadsUnknown
from tests.error_calls import SENTENCES, called, calls, fields, texts, trees

FULL = GPTError("context.full", "the context of {limit} tokens is full", limit=8)


def test_every_error_has_the_values_of_its_placeholders() -> None:
    for place, call in calls().items():
        placeholders = fields(SENTENCES[texts(call)[0]]).keys()
        if called(call) == "reading":
            assert placeholders <= {"file", "reason"}, place
        else:
            assert {keyword.arg for keyword in call.keywords} == placeholders, place


def test_every_sentence_is_used_and_differs_from_the_others() -> None:
    assert SENTENCES.keys() == {texts(call)[0] for call in calls().values()}
    assert len(set(SENTENCES.values())) == len(SENTENCES)


def test_every_error_states_its_key_in_words_or_in_its_class() -> None:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("GPTError", "require"):
                assert len(texts(node)) == 1 or path.name in ("errors.py", "cluster.py", "untrusted.py"), (
                    f"{path}:{node.lineno}"
                )


def test_every_error_of_gpt_is_a_gpt_error() -> None:
    for path, tree in trees().items():
        raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
        plain = [call for call in raised if isinstance(call, ast.Call) and ast.unparse(call.func) == "ValueError"]
        assert not plain or path.stem == "minimal", path  # code that learners read


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        HeadsUnknown("layout.heads_unknown", n_embd=12, activation="gelu"),
        MemoryInUse(2**30),
        GPTError("file.damaged", "{file} is damaged: {reason}", file="a", reason=FULL),
        GPTError("hook.function", "a hook needs a function, not {value!r}", value=lambda: 0),
    ],
)
def test_pickling_and_copying_keep_class_key_values_and_sentence(error: GPTError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(again), again.key, str(again)) == (type(error), error.key, str(error))
        assert again.values.keys() == error.values.keys()
        assert list(map(str, again.values.values())) == list(map(str, error.values.values()))


def public_objects() -> Iterator[tuple[str, object]]:
    """Yield the exported names, and their methods and properties."""
    for name in gpt.__all__:
        value = getattr(gpt, name)
        yield name, value
        for base in value.__mro__ if inspect.isclass(value) else ():
            if base.__module__.startswith("gpt"):
                members = (member for member in vars(base) if not member.startswith("_"))
                yield from ((f"{base.__name__}.{member}", getattr(base, member)) for member in members)


def test_whatever_is_public_has_a_docstring():
    bare = set()
    for name, value in public_objects():
        documentable = inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property)
        if documentable and not name.rpartition(".")[2].startswith("_") and not inspect.getdoc(value):
            bare.add(name)
    assert bare == set()
