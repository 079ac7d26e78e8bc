"""Generation: steps, healing of a typed space, texts longer than the context."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import GPT2Config, GPT2LMHeadModel

import gpt
from gpt import (
    Edits,
    Generation,
    Hook,
    SamplingParams,
    Trace,
    generate,
    generate_batch,
    generate_greedy,
    get_model,
    load_model,
    trace_text,
)
from gpt.documents.generation import of_request, stream
from gpt.documents.snippets import python_snippet
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.sources import BUNDLED
from gpt.sampling import sample, uniform_draw
from gpt.tokenizer import hold_back
from tests.gpt.documents.fresh_document import GREEDY, WARM, assert_equals_fresh
from tests.gpt.fake_models import EOT, N_VOCAB, forced_model, tiny_model, tiny_tokenizer


@pytest.fixture
def loaded():
    return tiny_model()


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
    for model in ("stories", str(BUNDLED)):
        assert [step.token_id for step in generate(model, "Once upon a time", GREEDY, 5)] == greedy
    steps = list(generate("stories", "Once upon a time"))
    assert len(steps) == 64 or steps[-1].finish_reason == "end_of_text"
    with pytest.raises(ValueError, match="the result of load_model or get_model, not int"):
        generate(5, "Once upon a time")


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


@pytest.mark.parametrize("prompt", [b"ab", [1.5], ["a"], None, torch.tensor([0.5])], ids=str)
def test_a_prompt_that_is_neither_text_nor_ids_is_refused_at_once(loaded, prompt):
    document = Generation(loaded, [97])
    for read in (lambda: generate(loaded, prompt, GREEDY, 1), lambda: document.append_text(prompt)):
        with pytest.raises(ValueError, match="a prompt must be text, or token ids"):
            read()
    assert document.ids == [97]
    for unreadable, said in (("a" * 25, "25 tokens, 1 more than the context of 24"), ([260], "260"), ([-1], "-1")):
        with pytest.raises(ValueError, match=said):
            generate(loaded, unreadable, GREEDY, 5)


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


def test_a_text_does_not_end_quietly_where_a_hook_raises_stop_iteration(loaded):
    edits = Edits(hooks=(Hook("resid_post", 0, lambda x: next(iter([]))),))
    with pytest.raises(RuntimeError, match="StopIteration"):
        Generation(loaded, "the cat", edits=edits).step(GREEDY)


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
        rows = document.attn_weights(layer, 1, start=2, stop=5)
        torch.testing.assert_close(rows, weights[1, 2:5, :5], atol=1e-6, rtol=0)
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


SPACE, A = 32, 258  # the tokens of the tiny vocabulary that begin with a space: " " and " a"


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
    assert of_request(loaded, document.request(WARM, 1)).held == " "
    for other in (document.copy(), Generation.from_json(document.to_json(), loaded)):
        assert (other.text, other.held) == (document.text, " ")
        assert [other.held_after(i) for i in range(len(other.ids))] == [" ", *[""] * (len(other.ids) - 2), " "]
        other.go_back(0)
        assert other.text == "the "
    with pytest.raises(ValueError, match="not a whole document"):
        Generation.from_json(document.to_json().replace('"held": " "', '"held": "x"'), loaded)


PROMPT = list(b"the cat sat on a mat")


def ids_of(steps) -> list[int]:
    return [step.token_id for step in steps]


@pytest.fixture
def endless():
    """A model with a context of 24 tokens that never predicts end-of-text."""
    endless = tiny_model()
    with torch.no_grad():
        endless.model.lm_head.weight[EOT] = 0
        endless.model.ln_f.bias += 0.1 * torch.randn(16, generator=torch.Generator().manual_seed(1))
    return endless


def test_greedy_generation_past_a_full_context_equals_transformers_on_the_last_tokens(tmp_path):
    torch.manual_seed(5)
    config = GPT2Config(vocab_size=50, n_positions=16, n_embd=24, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=0)
    reference = GPT2LMHeadModel(config).eval()
    reference.save_pretrained(tmp_path)
    model = load_model(tmp_path, device="cpu").model
    ids = expected = torch.tensor([[7, 3, 9], [1, 2, 4]])
    for _ in range(40):
        logits = reference(expected[:, -16:]).logits[:, -1]
        expected = torch.cat((expected, logits.argmax(dim=-1, keepdim=True)), dim=1)
    assert generate_greedy(model, ids, 40).equal(expected)


def test_draws_count_dropped_tokens_and_only_read_ones_are_penalised(endless):
    params = SamplingParams(temperature=1.5, repetition_penalty=1.4, seed=8)
    expected = list(PROMPT)
    for _ in range(30):
        logits = endless.model(torch.tensor([expected[-24:]]))[0, -1]
        expected.append(sample(logits, params, position=len(expected), previous_ids=expected[-24:]).token_id)
    assert ids_of(generate(endless, PROMPT, params, 30, on_full="crop")) == expected[len(PROMPT) :]


def test_each_dropped_token_makes_a_new_document_that_is_read_as_if_it_were_typed(endless):
    first = Generation(endless, PROMPT)
    steps = list(stream(first, WARM, 12, slides=True))
    assert [document is first for document, _ in steps] == [True] * 5 + [False] * 7
    last = steps[-1][0]
    whole = PROMPT + ids_of(step for _, step in steps)
    assert last.dropped + last.ids == whole
    assert (len(last.dropped), last.n_prompt) == (7, 13)
    assert last.draw(24) == uniform_draw(WARM.seed, 31)
    assert first.ids == whole[:25]
    assert_equals_fresh(last)
    saved = Generation.from_json(last.to_json(), endless)
    assert (saved.dropped, saved.ids, saved.draw(24)) == (last.dropped, last.ids, last.draw(24))
    assert last.copy().dropped == last.dropped


@pytest.mark.parametrize("on_full", ["stop", "crop"])
def test_texts_end_before_their_next_token_once_the_engine_is_stopped(endless, on_full):
    steps = generate(endless, PROMPT[:3], WARM, 12, on_full=on_full)
    first = next(steps)
    endless.engine.stopped = True
    assert first.finish_reason is None
    assert list(steps) == []


def test_a_batch_gives_each_prompt_its_own_continuation(endless):
    prompts = ["the cat", PROMPT, "a", [5], "the", "", [7, 8, 9] * 4]
    params = SamplingParams(temperature=1.2, seed=2)
    alone = [ids_of(generate(endless, prompt, params, 18)) for prompt in prompts]
    assert generate_batch(endless, prompts, params, 18) == alone
    assert len({len(ids) for ids in alone}) > 1  # the longest text fills its context first
    assert generate_batch(endless, [], params, 3) == []
    seeds = [2, 3, 9, 2]
    one_by_one = [
        ids_of(generate(endless, prompt, replace(params, seed=seed), 18))
        for prompt, seed in zip(["the cat", "the cat", "a", "a"], seeds, strict=True)
    ]
    assert generate_batch(endless, ["the cat", "a"], params, 18, n=2, seeds=seeds) == one_by_one
    assert generate_batch(endless, ["the cat"], params, 18, n=2) == one_by_one[:2]


def test_the_traces_of_the_steps_are_those_of_the_finished_text(family):
    edits = Edits(head_scale={(0, 1): 0.3})
    steps = list(generate(family, PROMPT[:5], WARM, 6, edits=edits, trace=True))
    assert steps == list(generate(family, PROMPT[:5], WARM, 6, edits=edits))
    whole = trace_text(family, PROMPT[:5] + ids_of(steps), edits)
    for step in steps:
        assert step.trace is not None
        at = step.position - 1
        for name, value in (
            ("final_norm", step.trace.final_norm),
            ("layers.1.mlp_post", step.trace.layers[1].mlp_post),
        ):
            assert_close(value[0, 0], whole[name][0, at], atol=1e-5, rtol=1e-4)
        weights = whole.layers[1].attn_weights[0, :, at, : at + 1]
        assert_close(step.trace.layers[1].attn_weights[0, :, 0], weights, atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match='need on_full="stop"'):
        generate(family, PROMPT, WARM, 6, on_full="crop", trace=True)
    with pytest.raises(ValueError, match="use SamplingParams"):
        generate(family, PROMPT, WARM, 6, edits=Edits(hooks=(Hook("logits", None, abs),)))
