"""A learner's GPT as a model: it computes the same numbers as the bundled model, or its own where it is broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gpt import Edits, Generation, LoadedModel, SamplingParams, Trace
from gpt.course import reference
from gpt.course.learner import BROKEN, open_broken, open_program
from gpt.course.process import LearnerProcess
from gpt.course.steps import PROGRAM, solution
from gpt.errors import GPTError


@pytest.fixture(scope="module", autouse=True)
def shared() -> Iterator[None]:
    """Share one process between the programs of several models, since importing torch makes a new one slow to start."""
    with closing(LearnerProcess()) as process, pytest.MonkeyPatch.context() as patch:
        shared = SimpleNamespace(ask=process.ask, close=lambda: None)
        patch.setattr("gpt.course.learner.LearnerProcess", lambda: shared)
        yield


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """Open the solution as a model."""
    tmp_path = tmp_path_factory.mktemp("mine")
    (tmp_path / PROGRAM).write_text(solution(), encoding="utf-8")
    return open_program("my-gpt", tmp_path / PROGRAM)


def test_a_trace_has_every_activation_of_the_bundled_model(mine: LoadedModel) -> None:
    ours, theirs = Trace(), Trace()
    with torch.no_grad():
        logits = mine.model(reference.idx()[:2], trace=ours)
        expected = reference.bundled().model(reference.idx()[:2], trace=theirs)
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
    names = theirs.keys()
    assert len(names) > 90
    for name in names:
        torch.testing.assert_close(ours[name], theirs[name], atol=1e-4, rtol=1e-4)


def test_it_writes_the_text_of_the_bundled_model_and_has_its_attention(mine: LoadedModel) -> None:
    documents = [Generation(loaded, reference.idx()[0].tolist()) for loaded in (mine, reference.bundled())]
    for document in documents:
        assert len(list(document.steps(SamplingParams(temperature=0), 8))) == 8
        document.read()
    assert documents[0].ids == documents[1].ids
    torch.testing.assert_close(*(document.attn_weights(2, 1) for document in documents), atol=1e-4, rtol=1e-4)
    document = documents[0]
    with torch.inference_mode():
        weights = document.attn_weights(0, 0).mul_(40)
    torch.testing.assert_close(document.attn_weights(0, 0), weights / 40)
    document.go_back(5)
    document.read()
    assert document.attn_weights(0, 0).shape == (6, 6)


def test_heads_and_parts_can_be_switched_off(mine: LoadedModel) -> None:
    edits = Edits(head_scale={(1, 2): 0.0}, attn_scale={3: 0.5}, mlp_scale={0: 0.0})
    with torch.no_grad():
        ours, theirs = (model(reference.idx()[:1], edits=edits) for model in (mine.model, reference.bundled().model))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_what_it_cannot_do_is_said(mine: LoadedModel) -> None:
    with pytest.raises(GPTError, match="can only switch off words, heads"):
        mine.model(reference.idx()[:1], edits=Edits(activation="relu"))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_variant_shows_its_own_attention(name: str) -> None:
    broken = open_broken(name)
    document = Generation(broken, reference.idx()[0].tolist())
    document.read()
    last = len(document.ids) - 1
    usual = reference.logits().log_softmax(-1)
    assert (document.logits(last).log_softmax(-1) - usual).abs().max() > 0.1
    assert bool(document.attn_weights(0, 0).triu(1).any()) == (name == "no-mask")


CHANGES = (
    ("self.lm_head(self.ln_f(x))", "2 * self.lm_head(self.ln_f(x))", "not the output of its lm_head"),
    ("y, self.weights = attention(q, k, v)", "y, _ = attention(q, k, v)", "has no h.0.attn.weights"),
    ("x = embed(idx, self.wte, self.wpe)", "x = embed(idx, self.wte, self.wpe).nothing", "AttributeError"),
)


@pytest.mark.parametrize(("right", "wrong", "problem"), CHANGES)
def test_a_program_that_lacks_something_is_not_opened(right: str, wrong: str, problem: str, tmp_path: Path) -> None:
    program = tmp_path / PROGRAM
    program.write_text(solution().replace(right, wrong), encoding="utf-8")
    with pytest.raises(GPTError, match=problem):
        open_program("my-gpt", program)
