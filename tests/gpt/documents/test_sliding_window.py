from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close
from transformers import GPT2Config, GPT2LMHeadModel

from gpt import (
    Edits,
    Generation,
    Hook,
    SamplingParams,
    generate,
    generate_batch,
    generate_greedy,
    load_model,
    trace_text,
)
from gpt.documents.generation import sliding_steps
from gpt.sampling import sample_token, uniform_draw
from tests.gpt.documents.fresh_document import GREEDY, WARM, assert_equals_fresh
from tests.gpt.fake_models import EOT, tiny_model

PROMPT = list(b"the cat sat on a mat")


def ids_of(steps) -> list[int]:
    return [step.token_id for step in steps]


@pytest.fixture
def loaded():
    """A model with a context of 24 tokens that never predicts end-of-text."""
    loaded = never_ending(tiny_model())
    with torch.no_grad():
        loaded.model.ln_f.bias += 0.1 * torch.randn(16, generator=torch.Generator().manual_seed(1))
    return loaded


def never_ending(loaded):
    """Make the model never predict end-of-text."""
    with torch.no_grad():
        loaded.model.lm_head.weight[EOT] = 0
    return loaded


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


@pytest.mark.thorough
@pytest.mark.parametrize("prompt", [PROMPT[:3], PROMPT, PROMPT * 3], ids=["short", "nearly full", "longer than it"])
def test_cropping_equals_the_loop_without_a_cache(family, prompt):
    loaded = never_ending(family)
    expected = generate_greedy(loaded.model, torch.tensor([prompt]), 60)[0, len(prompt) :].tolist()
    steps = list(generate(loaded, prompt, GREEDY, 60, on_full="crop"))
    assert ids_of(steps) == expected
    assert [step.position for step in steps] == list(range(len(prompt), len(prompt) + 60))
    assert [step.finish_reason for step in steps] == [None] * 59 + ["max_new_tokens"]
    assert "".join(step.text for step in steps) == loaded.tokenizer.decode(expected)


def test_draws_count_dropped_tokens_and_only_read_ones_are_penalised(loaded):
    params = SamplingParams(temperature=1.5, repetition_penalty=1.4, seed=8)
    expected = list(PROMPT)
    for _ in range(30):
        logits = loaded.model(torch.tensor([expected[-24:]]))[0, -1]
        expected.append(sample_token(logits, params, uniform_draw(8, len(expected)), previous_ids=expected[-24:]))
    assert ids_of(generate(loaded, PROMPT, params, 30, on_full="crop")) == expected[len(PROMPT) :]


def test_each_dropped_token_makes_a_new_document_that_is_read_as_if_it_were_typed(loaded):
    first = Generation(loaded, PROMPT)
    steps = list(sliding_steps(first, WARM, 12))
    assert [document is first for document, _ in steps] == [True] * 5 + [False] * 7
    last = steps[-1][0]
    whole = PROMPT + ids_of(step for _, step in steps)
    assert last.dropped + last.ids == whole
    assert (len(last.dropped), last.n_prompt) == (7, 13)
    assert last.draw(24) == uniform_draw(WARM.seed, 31)
    assert first.ids == whole[:25]
    assert_equals_fresh(last)
    saved = Generation.from_json(last.to_json(), loaded)
    assert (saved.dropped, saved.ids, saved.draw(24)) == (last.dropped, last.ids, last.draw(24))
    assert last.copy().dropped == last.dropped


@pytest.mark.parametrize("on_full", ["stop", "crop"])
def test_texts_end_before_their_next_token_once_the_engine_is_stopped(loaded, on_full):
    steps = generate(loaded, PROMPT[:3], WARM, 12, on_full=on_full)
    first = next(steps)
    loaded.engine.stopped = True
    assert first.finish_reason is None
    assert list(steps) == []


def test_what_to_do_when_full_is_checked(loaded):
    with pytest.raises(ValueError, match="on_full"):
        generate(loaded, PROMPT, GREEDY, 5, on_full="wrap")


def test_a_batch_gives_each_prompt_its_own_continuation(loaded):
    prompts = ["the cat", PROMPT, "a", [5], "the", "", [7, 8, 9] * 4]
    params = SamplingParams(temperature=1.2, seed=2)
    alone = [ids_of(generate(loaded, prompt, params, 18)) for prompt in prompts]
    assert generate_batch(loaded, prompts, params, 18) == alone
    assert len({len(ids) for ids in alone}) > 1  # the longest text fills its context first
    assert generate_batch(loaded, [], params, 3) == []
    seeds = [2, 3, 9, 2]
    one_by_one = [
        ids_of(generate(loaded, prompt, replace(params, seed=seed), 18))
        for prompt, seed in zip(["the cat", "the cat", "a", "a"], seeds, strict=True)
    ]
    assert generate_batch(loaded, ["the cat", "a"], params, 18, n=2, seeds=seeds) == one_by_one
    assert generate_batch(loaded, ["the cat"], params, 18, n=2) == one_by_one[:2]
    with pytest.raises(ValueError, match="one seed for each continuation, 4, not 1"):
        generate_batch(loaded, ["a", "b"], params, 3, n=2, seeds=[1])


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


def test_a_batch_with_a_wrong_prompt_is_refused_before_any_token(loaded):
    with pytest.raises(ValueError, match="500"):
        generate_batch(loaded, ["the", [500]], GREEDY, 5)
    with pytest.raises(ValueError, match="prompts must be a list"):
        generate_batch(loaded, "the", GREEDY, 5)
