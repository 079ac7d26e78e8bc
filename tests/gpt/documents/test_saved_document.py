"""A document as a file, as a program, and its edits as text."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import get_args

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import gpt
from gpt import Edits, Generation, SamplingParams, Steering, add_model, add_upload, distribution, get_model
from gpt.analysis.patching import is_patch_of_model, patch_from
from gpt.config import Activation
from gpt.documents.edit_text import MAX_FACTOR, edits_as_python, format_edits, parse_edits
from gpt.documents.saved_document import SavedDocument
from gpt.documents.snippets import engine_snippet, loading_line, python_snippet
from gpt.edits import PATCHABLE
from gpt.models.registry import remove_model
from tests.gpt.analysis.concept_dictionary import axis_concepts
from tests.gpt.fake_models import tiny_model
from tests.gpt.family_configs import randomized
from tests.parity.named_models import NanoGPT


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


DAMAGED = "not a whole document"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "other"}, "not a document of this program"),
        ({"version": 2}, "version 2, but this program reads version 1"),
        ({"vocab_size": 261}, "vocabulary of 261 tokens, but tiny has 260"),
        ({"settings": [{"temperature": -1, "seed": 1}]}, "temperature must be"),
        ({"model": 3}, DAMAGED),
        ({"vocab_size": 200}, DAMAGED),
        ({"prompt_tokens": 6}, DAMAGED),
        ({"current": 99}, DAMAGED),
        ({"tokens": []}, DAMAGED),
        ({"tokens": [5]}, DAMAGED),
        ({"dropped": [3, 260]}, DAMAGED),
        ({"held": [[0, "a"]]}, DAMAGED),
        ({"settings": []}, DAMAGED),
        ({"settings": [{"seed": 1, "heat": 3}]}, DAMAGED),
    ],
)
def test_a_file_edited_by_hand_is_checked(document, changes, said):
    with pytest.raises(ValueError, match=said):
        Generation.from_json(changed(document, **changes), document.loaded)


@pytest.mark.parametrize(
    ("number", "changes", "said"),
    [
        (7, {"id": 260}, DAMAGED),
        (7, {"id": "7"}, DAMAGED),
        (7, {"id": 2**61, "after": 7}, DAMAGED),  # before the tree is built, whose nodes are found by their hashes
        (7, {"after": 7}, "token number 7 must follow one of 0 to 6, not 7"),
        (7, {"after": None}, "must follow one of 0 to 6, not None"),
        (7, {"how": "guessed"}, "typed, sampled, chosen, not 'guessed'"),
        (7, {"settings": 2}, DAMAGED),
        (0, {"after": 3}, "must follow"),
        (0, {"how": "chosen"}, DAMAGED),
        (2, {"after": 0}, DAMAGED),
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
    with pytest.raises(ValueError, match="prompt has 5 tokens, 1 more than the context of 4"):
        Generation.from_json(Generation(document.loaded, "the cat").to_json(), tiny_model(block_size=4))
    with pytest.raises(ValueError, match="characters"):
        SavedDocument.from_json(" " * (2**24 + 1))


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ("h0.0=0,h0.0=1", "appears twice"),
        ("resid_pre0.0=999", "999"),
        ("a0=99", "beyond 10"),
        ("x" * 40_001, "at most 40,000 characters"),
    ],
)
def test_edits_of_a_file_are_checked(document, edits, said):
    with pytest.raises(ValueError, match=said):
        Generation.from_json(changed(document, edits=edits), document.loaded)


NASTY = "a \"quoted\" \\ 'thing'\n# line two\u2028🦊 {x}"


def run(snippet, of="document"):
    """Run a program in this process, with the tiny model in place of a named one, and return its variables."""
    names = {name: getattr(gpt, name) for name in gpt.__all__}
    program = snippet.split("\n", 1)[1]  # without the import
    names |= {"get_model": lambda name: tiny_model(), "load_model": lambda name: tiny_model(), "print": lambda _: None}
    exec(program, names)
    return names if of is None else names[of]


AGAIN = SamplingParams(2.0, top_p=0.9, repetition_penalty=1.2, seed=6, temperature_last=True, repetition_window=5)


def written():
    document = Generation(tiny_model(), "the cat")
    list(document.steps(SamplingParams(temperature=3.0, top_k=100, seed=5), 4))
    document.append(99)
    document.append(0)
    document.append_text(" a")
    document.step(AGAIN)
    document.step(AGAIN)
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


def test_a_listed_model_is_loaded_by_its_name_and_a_checkpoint_with_its_path_and_n_head(tmp_path):
    assert loading_line(get_model("stories")) == "loaded = get_model('stories')"
    path = tmp_path / "weights.pt"
    torch.save(randomized(NanoGPT()).state_dict(), path)
    loaded = get_model(add_model(path, n_head=3))
    assert loading_line(loaded) == f"loaded = load_model({str(path)!r}, n_head=3)"
    name = add_upload([path], n_head=3)
    assert loading_line(get_model(name)).endswith("n_head=3)  # the path of that checkpoint")
    remove_model(name)
    remove_model(str(path))


numbers = st.integers(0, 99)

factors = st.floats(-MAX_FACTOR, MAX_FACTOR)

all_edits = st.builds(
    Edits,
    head_scale=st.dictionaries(st.tuples(numbers, numbers), factors, max_size=6),
    attn_scale=st.dictionaries(numbers, factors, max_size=3),
    mlp_scale=st.dictionaries(numbers, factors, max_size=3),
    activation=st.none() | st.sampled_from(get_args(Activation)),
    drop_positions=st.booleans(),
)


@given(all_edits)
def test_text_and_python_of_edits_round_trip(edits):
    text = format_edits(edits)
    assert parse_edits(text) == edits
    assert parse_edits(",".join(reversed(text.split(",")))) == edits
    assert eval(edits_as_python(edits), {"Edits": gpt.Edits}) == edits


def test_format_edits_of_each_kind():
    edits = Edits({(3, 2): 0.0}, {1: 0.0}, {0: 0.5}, activation="relu", drop_positions=True)
    assert format_edits(edits) == "h3.2=0,a1=0,f0=0.5,act=relu,nopos"
    assert format_edits(Edits()) == ""


@pytest.mark.parametrize(
    "text", ["h1=0", "a1.2=0", "h1.1=11", "a0=nan", "a0=1e9", "f0=0,f0=1", "nopos,nopos", "act=tanh", "a-1=0", "a٣=0"]
)
def test_an_invalid_part_is_named(text):
    with pytest.raises(ValueError, match=text.split(",")[-1].replace(".", r"\.")):
        parse_edits(text)


TINY = tiny_model()

places = st.tuples(st.sampled_from(PATCHABLE), st.integers(0, 1), st.integers(0, 3))


@settings(max_examples=5)
@given(st.lists(places, max_size=3, unique=True), st.lists(st.integers(0, 255), min_size=4, max_size=6))
def test_a_patch_from_a_text_is_recomputed_from_it(chosen, ids):
    patches = tuple(patch_from(TINY.model, ids, *place) for place in chosen)
    edits = Edits({(0, 1): 0.5}, drop_positions=True, patches=patches)
    text = format_edits(edits)
    space = {"Edits": gpt.Edits, "patch_from": patch_from, "loaded": TINY}
    for again in (parse_edits(text, TINY.model), eval(edits_as_python(edits), space)):
        assert replace(again, patches=()) == replace(edits, patches=())
        for ours, theirs, place in zip(again.patches, patches, chosen, strict=True):
            assert (ours.name, ours.layer, ours.position, ours.ids) == (*place, tuple(ids))
            assert torch.equal(ours.value, theirs.value)
            assert is_patch_of_model(TINY.model, ours)
            assert not is_patch_of_model(tiny_model(seed=9).model, ours)
    if patches:
        with pytest.raises(ValueError, match="is not an edit"):
            parse_edits(text)  # without a model


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("resid_pre2.0=1", "layer 2 does not exist"),
        ("resid_pre0.2=1-2", "position 2 does not exist"),
        ("attn_out0.0=99999", "token id 99999 does not exist"),
        ("attn_out0.0=" + "-".join(["1"] * 200), "200"),
        ("mlp_out0.0=1,mlp_out0.0=2", "twice"),
        (",".join(f"mlp_out0.{n}=" + "-".join(["1"] * 20) for n in range(17)), "exceeds the limit of 16"),
        ("attn_weights0.0=1", "is not an edit"),
        ("resid_pre0.0=", "is not an edit"),
    ],
)
def test_an_invalid_patch_is_refused_with_the_reason(text, why):
    with pytest.raises(ValueError, match=why):
        parse_edits(text, TINY.model)


def test_concepts_that_are_turned_up_are_read_from_the_dictionary_of_the_model():
    concepts = axis_concepts()
    edits = Edits({(0, 1): 0.0}, steering=(concepts.steering(0, 3, -0.5), concepts.steering(0, 0, 2.0)))
    text = format_edits(edits)
    assert text == "h0.1=0,c0.3=-0.5,c0.0=2"
    assert parse_edits(text, concepts=concepts) == edits
    loaded = replace(tiny_model(), concepts=concepts)
    assert eval(edits_as_python(edits), {"Edits": gpt.Edits, "loaded": loaded}) == edits
    for part in ("c1.0=1", "c0.16=1", "c0.0=11", "c0.0=1,c0.0=1"):
        with pytest.raises(ValueError, match=r"must be|appears twice"):
            parse_edits(part, concepts=concepts)
    with pytest.raises(ValueError, match="not an edit"):
        parse_edits(text)


def test_vectors_of_no_concept_have_no_text_and_must_fit_the_model():
    config = tiny_model().model.config
    vector = Steering(1, torch.ones(16))
    with pytest.raises(ValueError, match="only a vector made from one of the model's concepts"):
        format_edits(Edits(steering=(vector,)))
    for wrong in (Steering(2, torch.ones(16)), Steering(1, torch.ones(15))):
        assert Edits(steering=(wrong, vector)).fitting(config) == Edits(steering=(vector,))


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.8, seed=3),  # generate() alone would keep 50
        SamplingParams(temperature=0.7, top_k=20, top_p=0.9, min_p=0.05, repetition_penalty=1.3),
        SamplingParams(temperature=1.5, top_k=90, top_p=0.8, min_p=0.05, temperature_last=True),
        SamplingParams(temperature=0, repetition_penalty=1.3),
    ],
)
@torch.inference_mode()
def test_the_program_for_transformers_has_the_same_distribution(twins, params):
    reference, _ = twins(vocab_size=97, n_positions=16, n_layer=1, n_head=2, n_embd=8)
    reference.lm_head.weight.mul_(20)
    generate, scores = reference.generate, []

    def one_step(ids, **options):
        options |= {"max_new_tokens": 1, "return_dict_in_generate": True, "output_scores": True}
        scores.append(generate(ids, **options).scores[0][0])
        return ids

    ids = [5, 6, 7, 5]
    program = engine_snippet("transformers", ids, params, 9)
    reference.generate = one_step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda path: reference)
        exec(program, {"print": lambda _: None})
    expected = distribution(reference(torch.tensor([ids])).logits[0, -1], params, previous_ids=ids)
    if params.temperature == 0:
        assert scores[0].argmax() == expected.final.argmax()
    else:
        assert_close(scores[0].softmax(dim=0), expected.final, atol=1e-6, rtol=0)


def test_the_settings_for_other_engines_have_their_orders_and_names():
    params = SamplingParams(0.8, top_k=40, top_p=0.9, repetition_penalty=1.1, seed=3, repetition_window=64)
    request = json.loads(engine_snippet("llama_cpp", [5, 6], params, 9))
    assert request["samplers"] == ["penalties", "temperature", "top_k", "top_p", "min_p"]
    assert (request["repeat_penalty"], request["repeat_last_n"], request["seed"]) == (1.1, 64, 3)
    request = json.loads(engine_snippet("llama_cpp", [5, 6], replace(params, temperature_last=True), 9))
    assert request["samplers"][-1] == "temperature"
    greedy = SamplingParams(0)
    assert "sampling_topk=1," in engine_snippet("ctranslate2", [5], greedy, 9)
    assert "temperature=0, top_k=0" in engine_snippet("vllm", [5], greedy, 9)


@pytest.mark.parametrize(
    ("engine", "params", "named"),
    [
        ("transformers", SamplingParams(repetition_penalty=1.1, repetition_window=64), "repetition_window"),
        ("vllm", SamplingParams(top_p=0.9, min_p=0.1), "top_p \\+ min_p"),
        ("vllm", SamplingParams(1.5, top_p=0.9, temperature_last=True), "temperature_last"),
        ("ctranslate2", SamplingParams(repetition_penalty=1.1), "repetition_penalty"),
        ("ctranslate2", SamplingParams(min_p=0.1), "min_p"),
    ],
)
def test_what_an_engine_cannot_compute_is_named(engine, params, named):
    with pytest.raises(ValueError, match=f"^{engine} cannot .* its {named} differs"):
        engine_snippet(engine, [5], params, 9)
