"""The program that reproduces a document, executed and compared with it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import gpt
from gpt import Edits, Generation, SamplingParams, add_model, add_upload, get_model
from gpt.analysis.patching import patch_from
from gpt.documents.snippets import loading_line, python_snippet
from gpt.models.registry import remove_model
from tests.conftest import randomized
from tests.gpt.fake_models import tiny_model
from tests.parity.reference_models import NanoGPT

NASTY = "a \"quoted\" \\ 'thing'\n# line two\u2028🦊 {x}"


def run(snippet, of="document"):
    """Run a program in this process, with the tiny model in place of a named one, and return its variables."""
    names = {name: getattr(gpt, name) for name in gpt.__all__}
    program = snippet.split("\n", 1)[1]  # without the import
    names |= {"get_model": lambda name: tiny_model(), "load_model": lambda name: tiny_model(), "print": lambda _: None}
    exec(program, names)
    return names if of is None else names[of]


def written():
    document = Generation(tiny_model(), "the cat")
    list(document.steps(SamplingParams(temperature=3.0, top_k=100, seed=5), 4))
    document.append(99)
    document.append(0)
    document.append_text(" a")
    document.step(SamplingParams(temperature=2.0, top_p=0.9, repetition_penalty=1.2, seed=6))
    document.step(SamplingParams(temperature=2.0, top_p=0.9, repetition_penalty=1.2, seed=6))
    return document


@pytest.mark.thorough
def test_the_program_in_a_new_process_prints_the_text_of_the_bundled_model():
    document = Generation(get_model("untrained"), "Once upon a time")
    list(document.steps(SamplingParams(temperature=1.2, top_k=50, seed=7), 3))
    document.append(300)
    document.append_text(' said:\n "')
    list(document.steps(SamplingParams(temperature=0.7, seed=8), 3))
    snippet = python_snippet(document)
    ran = subprocess.run([sys.executable, "-X", "utf8", "-c", snippet], capture_output=True, check=True)
    assert ran.stdout.decode().replace("\r\n", "\n") == document.text + "\n"


def test_the_program_contains_the_current_branch_only():
    document = written()
    document.append(120, after=2)
    document.append_text("xyz")
    snippet = python_snippet(document)
    assert run(snippet).ids == document.ids
    assert "SamplingParams" not in snippet


def test_the_program_also_reads_the_text_without_hidden_tokens():
    document = written()
    visible = run(python_snippet(document, hidden=[1, 9]), "visible")
    kept = [position for position in range(len(document.ids)) if position not in (1, 9)]
    assert visible.ids == [document.ids[position] for position in kept]
    assert [visible.origin(p) for p in range(len(kept))] == [document.origin(p) for p in kept]
    assert visible.n_prompt == document.n_prompt - 1
    fresh = Generation(tiny_model(), visible.ids)
    fresh.read()
    assert torch.equal(visible.logits(len(kept) - 1), fresh.logits(len(kept) - 1))


@pytest.mark.parametrize("prompt", [NASTY, "", [256, 97, 258], [259, 97], [0xF0, 0x9F], "the"])
def test_any_prompt_is_reproduced_by_its_python_literal(prompt):
    document = Generation(tiny_model(block_size=96), prompt)
    if prompt:
        document.append_text(prompt)
    document.append(10)
    document.append(259)
    names = {"get_model": lambda name: tiny_model(block_size=96)}
    names["load_model"] = names["get_model"]
    program = python_snippet(document).split("\n", 1)[1]
    namespace = {"Generation": Generation, "print": lambda _: None, **names}
    exec(program, namespace)
    assert namespace["document"].ids == document.ids


def test_the_program_contains_the_edits_of_the_document():
    edits = Edits({(0, 1): 0.0}, mlp_scale={1: 0.5}, activation="relu", drop_positions=True)
    document = Generation(tiny_model(), "the cat", edits=edits)
    list(document.steps(SamplingParams(temperature=3.0, seed=5), 4))
    again = run(python_snippet(document))
    assert (again.ids, again.edits) == (document.ids, edits)


@pytest.mark.parametrize("trial_ids", [[], [259, 97, 98, 99]])
def test_trial_edits_generate_a_second_text(trial_ids):
    loaded, document = tiny_model(), written()
    patch = patch_from(loaded.model, loaded.tokenizer.encode("the dog"), "attn_out", 1, 2)
    edits = Edits({(0, 1): 0.0}, patches=(patch,))
    space = run(python_snippet(document, edits, trial_ids), of=None)
    assert space["document"].ids == document.ids
    edited = Generation(loaded, trial_ids or document.prompt_ids, edits=edits)
    list(edited.steps(space["params"], 20))
    assert space["edited"].ids == edited.ids
    assert torch.equal(space["edits"].patches[0].value, patch.value)


def test_a_checkpoint_is_loaded_with_its_path_and_n_head(tmp_path):
    path = tmp_path / "weights.pt"
    torch.save(randomized(NanoGPT()).state_dict(), path)
    loaded = get_model(add_model(path, n_head=3))
    assert loading_line(loaded) == ("load_model", f"loaded = load_model({str(path)!r}, n_head=3)")
    name = add_upload([path], n_head=3)
    assert loading_line(get_model(name))[1].endswith("n_head=3)  # the path of that checkpoint")
    remove_model(name)
    remove_model(str(path))


def test_a_listed_model_is_loaded_by_its_name():
    assert loading_line(get_model("stories")) == ("get_model", "loaded = get_model('stories')")
