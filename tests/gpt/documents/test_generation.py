import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import gpt
from gpt import Edits, Generation, Hook, SamplingParams, Trace, encode_prompt, generate, get_model, load_model
from gpt.documents.snippets import python_snippet
from gpt.models.sources import BUNDLED
from tests.gpt.fake_models import forced_model, tiny_model


@pytest.fixture
def loaded():
    return tiny_model()


GREEDY = SamplingParams(temperature=0)


def test_greedy_steps_are_the_argmax_of_a_full_pass_over_all_that_came_before(family):
    ids = family.tokenizer.encode("the cat")
    for step in generate(family, "the cat", GREEDY, 10):
        with torch.inference_mode():
            logits = family.model(torch.tensor([ids]))[0, -1]
        p = logits.softmax(dim=0)
        assert step.token_id == int(logits.argmax())
        assert step.rank == 1
        assert step.probability == pytest.approx(p.max().item(), rel=1e-4)
        assert step.entropy == pytest.approx(-(p * p.log2()).sum().item(), abs=1e-3)
        assert step.position == len(ids)
        ids.append(step.token_id)


def test_a_model_is_given_loaded_by_name_or_by_path_and_the_rest_has_defaults():
    greedy = [step.token_id for step in generate(get_model("stories"), "Once upon a time", GREEDY, 5)]
    for model in ("stories", BUNDLED, str(BUNDLED)):
        assert [step.token_id for step in generate(model, "Once upon a time", GREEDY, 5)] == greedy
    steps = list(generate("stories", "Once upon a time"))
    assert len(steps) == 64 or steps[-1].finish_reason == "end_of_text"
    with pytest.raises(ValueError, match="the result of load_model or get_model, not int"):
        generate(5, "Once upon a time")
    for on_full in ("stop", "crop"):
        with pytest.raises(ValueError, match=r"params must be SamplingParams\(\.\.\.\), not dict"):
            generate("stories", "Once upon a time", {"temperature": 0}, on_full=on_full)


def test_a_token_of_the_bundled_model_takes_at_most_250_of_our_calls_in_8_files():
    """Count the calls of functions in this package, without those of torch and NumPy."""
    package, calls = str(Path(gpt.__file__).parent), []
    params = SamplingParams(temperature=0.8, top_k=50, top_p=0.9, seed=1)
    steps = generate(load_model("stories", device="cpu"), "Once upon a time", params, 9)
    next(steps), next(steps)

    def count(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(package):
            calls.append(frame.f_code.co_filename)

    sys.setprofile(count)
    next(steps)
    sys.setprofile(None)
    assert 0 < len(calls) <= 250
    assert len(set(calls)) <= 8, set(calls)


def test_each_token_takes_one_forward_pass():
    loaded = forced_model([97] * 24)
    assert len(list(generate(loaded, "abc", GREEDY, 5))) == 5
    assert loaded.model.calls == [3, 1, 1, 1, 1]


def test_the_logits_that_a_token_was_sampled_from_are_not_computed_again(loaded, monkeypatch):
    document = Generation(loaded, "the cat")
    for _ in document.steps(GREEDY, 5):
        exact = loaded.model(torch.tensor([document.ids[:-1]]))[0, -1]
        with monkeypatch.context() as patched:
            patched.setattr(type(document.loaded.engine), "logits", None)
            assert torch.allclose(document.logits(document.n_read - 1), exact, atol=1e-5)
        assert document.n_read == len(document.ids) - 1
    document.undo()
    document.append_text(" sat")
    document.read()
    exact = loaded.model(torch.tensor([document.ids]))[0]
    for position in (document.n_read - 1, 2, document.n_read - 2):
        assert torch.allclose(document.logits(position), exact[position], atol=1e-5)


def test_only_the_last_step_has_a_finish_reason():
    reasons = [step.finish_reason for step in generate(forced_model([97] * 24), "ab", GREEDY, 3)]
    assert reasons == [None, None, "max_new_tokens"]
    steps = list(generate(forced_model([97, 97, 259] + [97] * 20), "ab", GREEDY, 9))
    assert [step.finish_reason for step in steps] == [None, "end_of_text"]
    assert (steps[-1].token_id, steps[-1].text) == (259, "")


@pytest.mark.parametrize("n_prompt", [1, 5, 8])
def test_a_prompt_of_p_tokens_yields_up_to_block_size_minus_p_plus_one_steps(n_prompt):
    loaded = forced_model([97] * 8, block_size=8)
    steps = list(generate(loaded, "a" * n_prompt, GREEDY, 100))
    assert len(steps) == 8 - n_prompt + 1
    assert steps[-1].finish_reason == "context_full"
    assert steps[-1].position == 8


def test_the_same_seed_gives_the_same_text_and_another_seed_another(loaded):
    def text(seed):
        return [step.token_id for step in generate(loaded, "the", SamplingParams(temperature=2.0, seed=seed), 15)]

    assert text(4) == text(4)
    assert len({tuple(text(seed)) for seed in range(5)}) == 5


def test_without_a_seed_two_runs_differ(loaded):
    runs = {tuple(s.token_id for s in generate(loaded, "a", SamplingParams(5.0), 15)) for _ in range(3)}
    assert len(runs) == 3


def test_an_empty_prompt_starts_from_end_of_text_and_another_gets_nothing_prepended(loaded):
    assert encode_prompt(loaded, "") == [259]
    assert encode_prompt(loaded, "the") == [257]
    assert encode_prompt(loaded, [5, 6]) == [5, 6]


@pytest.mark.parametrize(
    ("prompt", "said"), [("a" * 25, "25 tokens, 1 more than the context of 24"), ([260], "260"), ([-1], "-1")]
)
def test_a_prompt_that_cannot_be_read_is_refused_at_once(loaded, prompt, said):
    with pytest.raises(ValueError, match=said):
        generate(loaded, prompt, GREEDY, 5)


@pytest.mark.parametrize("ids", [torch.tensor([97, 98]), np.array([97, 98]), (97, 98)], ids=str)
def test_ids_of_any_integer_type_become_python_integers(loaded, ids):
    document = Generation(loaded, ids)
    assert document.ids == [97, 98]
    assert Generation.from_json(document.to_json(), loaded).ids == [97, 98]


@pytest.mark.parametrize("prompt", [b"ab", [True], [1.5], ["a"], None, 7, torch.tensor([0.5])], ids=str)
def test_a_prompt_that_is_neither_text_nor_ids_is_refused_at_once(loaded, prompt):
    with pytest.raises(ValueError, match="a prompt must be text, or token ids"):
        generate(loaded, prompt, GREEDY, 1)
    document = Generation(loaded, [97])
    with pytest.raises(ValueError, match="a prompt must be text, or token ids"):
        document.append_text(prompt)
    with pytest.raises(ValueError, match="a prompt must be text, or token ids"):
        document.append([97])
    assert document.ids == [97]


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None])
def test_max_new_tokens_must_be_a_positive_whole_number(loaded, count):
    with pytest.raises(ValueError, match="max_new_tokens"):
        generate(loaded, "a", GREEDY, count)


def test_a_steered_text_is_the_same_alone_and_among_others_and_that_of_whole_passes(family):
    config, vector = family.model.config, torch.linspace(-2, 2, family.model.config.n_embd)
    neuron = torch.tensor(3)
    hooks = (
        Hook("resid_post", 0, lambda x: x + vector),
        Hook("mlp_post", config.n_layer - 1, lambda x: x.index_fill(-1, neuron, 0.0)),
        Hook("attn_v", 0, lambda x: 2 * x),
        Hook("attn_weights", 0, lambda x: x.square()),
        Hook("resid_pre", 0, lambda x: -x, position=1),
    )
    steered, params = Edits(hooks=hooks), SamplingParams(temperature=0.8, seed=5)
    start = threading.Barrier(3)

    def written(edits):
        start.wait()
        return [step.probability for step in generate(family, "the cat", params, 12, edits=edits)]

    with ThreadPoolExecutor(3) as pool:
        together, plain, _ = pool.map(written, (steered, None, None))
    document = Generation(family, "the cat", edits=steered)
    steps = list(document.steps(params, 12))
    assert [step.probability for step in steps] == pytest.approx(together, rel=1e-4)
    assert [step.probability for step in steps] != pytest.approx(plain, rel=1e-2)
    document.read()
    trace = Trace()
    with torch.inference_mode():
        states = family.model.hidden_states(torch.tensor([document.ids]), edits=steered, trace=trace)[0]
    assert torch.allclose(document.states(), states, atol=1e-4)
    assert torch.allclose(document.attn_weights(0, 1), trace.layers[0].attn_weights[0, 1], atol=1e-5)


def test_hooks_do_not_leave_this_process(loaded):
    document = Generation(loaded, "the cat", edits=Edits(hooks=(Hook("resid_post", 0, abs),)))
    for leave in (
        document.to_json,
        lambda: pickle.dumps(document.request(GREEDY, 3)),
        lambda: python_snippet(document),
    ):
        with pytest.raises(
            ValueError, match="the hook on resid_post is a Python function, which cannot be saved or sent"
        ):
            leave()


def test_a_document_keeps_exact_logits_and_attention_of_every_position(family):
    document = Generation(family, "the cat sat")
    for _ in range(6):
        document.step(GREEDY)
    document.read()
    trace = Trace()
    with torch.inference_mode():
        logits = family.model(torch.tensor([document.ids]), trace=trace)[0]
    for position in range(document.n_read):
        torch.testing.assert_close(document.logits(position), logits[position], atol=1e-5, rtol=0)
    for layer, traced in enumerate(trace.layers):
        weights = traced.attn_weights[0]
        torch.testing.assert_close(document.attn_weights(layer, 1), weights[1], atol=1e-6, rtol=0)
        torch.testing.assert_close(document.attn_weights(layer), weights.mean(dim=0), atol=1e-6, rtol=0)


def test_a_copy_shares_the_activations_until_either_is_extended(family):
    document = Generation(family, "a b")
    document.read()
    n_bytes, other = document.n_bytes, document.copy()
    assert document.n_bytes < n_bytes
    assert other.n_bytes < n_bytes
    before = other.attn_weights(0, 0)
    for extended in (document, other):
        extended.append(3 if extended is document else 5)
        extended.read()
        alone = Generation(family, extended.ids)
        alone.read()
        torch.testing.assert_close(extended.logits(len(extended.ids) - 1), alone.logits(len(alone.ids) - 1))
        assert extended.n_bytes == alone.n_bytes == n_bytes
    torch.testing.assert_close(other.attn_weights(0, 0)[: len(before), : len(before)], before)
