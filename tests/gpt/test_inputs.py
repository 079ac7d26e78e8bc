"""Public functions accept a model in any form, and a text or token ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from gpt import (
    Edits,
    Generation,
    Hook,
    LoadedModel,
    Patch,
    SamplingParams,
    encode_prompt,
    generate,
    generate_batch,
    get_model,
    logit_lens,
    trace_text,
)
from gpt.analysis import (
    direct_logit_attribution,
    head_roles,
    input_x_gradient,
    leave_one_out,
    patch_from,
    patch_sweep,
)

CAT, DOG = "Lily had a cat", "Lily had a dog"
GREEDY = SamplingParams(temperature=0)
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "trace_text": lambda model, text: trace_text(model, text).final_norm,
    "logit_lens": lambda model, text: logit_lens(model, text, positions=[-1]).probability,
    "direct_logit_attribution": lambda model, text: direct_logit_attribution(model, text).heads,
    "head_roles": lambda model, text: head_roles(model, text).previous_token,
    "input_x_gradient": lambda model, text: input_x_gradient(model, text, 5),
    "leave_one_out": lambda model, text: torch.cat([*leave_one_out(model, text, 5, [0, 1])]),
    "patch_from": lambda model, text: patch_from(model, text, "resid_post", 2, 1).value,
    "patch_sweep": lambda model, text: patch_sweep(model, text, other(text), 5, 6).recovered,
    "generate": lambda model, text: torch.tensor([step.token_id for step in generate(model, text, GREEDY, 3)]),
    "generate_batch": lambda model, text: torch.tensor(generate_batch(model, [text], GREEDY, 3)),
    "Generation": lambda model, text: torch.tensor(Generation(model, text).ids),
    "encode_prompt": lambda model, text: torch.tensor(encode_prompt(model, text)),
}


def other(text: str | list[int]) -> str | list[int]:
    return DOG if isinstance(text, str) else get_model().tokenizer.encode(DOG)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return get_model("stories")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_model_is_loaded_a_name_or_a_gpt_and_a_text_may_be_ids(loaded: LoadedModel, call: Callable[..., Any]) -> None:
    ids = loaded.tokenizer.encode(CAT)
    expected = call(loaded, CAT)
    for model, text in ((loaded, ids), ("stories", CAT), (loaded.model, ids), (loaded.model, torch.tensor(ids))):
        if isinstance(text, torch.Tensor) and call is CALLS["patch_sweep"]:
            continue
        assert_close(call(model, text), expected)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_cannot_be_read_is_a_sentence(loaded: LoadedModel, call: Callable[..., Any]) -> None:
    for model, text, said in (
        (loaded.model, CAT, "^a GPT has no tokenizer"),
        (loaded.model, "5 6", "^a GPT has no tokenizer"),
        (loaded, [5, 4096], "token id 4096 does not exist: the vocabulary has ids 0 to 4095"),
        (loaded, [-1], "token id -1 does not exist"),
        (loaded, [1.5], "token ids, which are whole numbers"),
        (5, CAT, "a model must be a name, a path, a GPT"),
        ("no such model", CAT, "there is no model, file or folder 'no such model'"),
    ):
        with pytest.raises(ValueError, match=said):
            call(model, text)


def test_texts_become_a_padded_batch_with_a_mask(loaded: LoadedModel) -> None:
    texts = [CAT, "Once", "Once upon a time there was a"]
    tokens = loaded.to_tokens(texts)
    logits = loaded.model(tokens.idx, attention_mask=tokens.attention_mask)
    for row, text in enumerate(texts):
        alone = loaded.to_tokens(text)
        assert alone.attention_mask.all()
        assert tokens.attention_mask[row].sum() == alone.idx.numel()
        assert_close(logits[row, -1], loaded.model(alone.idx)[0, -1], atol=1e-4, rtol=1e-4)
    assert torch.equal(loaded.to_tokens([3, 4]).idx, torch.tensor([[3, 4]]))
    assert torch.equal(loaded.to_tokens([[3, 4], [5]]).idx, torch.tensor([[3, 4], [0, 5]]))


def test_a_loaded_model_traces_a_text_with_everything(loaded: LoadedModel) -> None:
    trace = loaded.trace(CAT)
    assert_close(trace.logits, loaded.model(loaded.to_tokens(CAT).idx))
    kept = loaded.trace(CAT, gradients=True)
    kept.logits[0, -1, 5].backward()
    expected = input_x_gradient(loaded, CAT, 5)
    assert kept["layers.0.resid_pre"].grad.shape == (1, *trace.final_norm.shape[1:])
    assert len(expected) == trace.final_norm.shape[1]


def test_a_gpt_without_a_tokenizer_writes_numbers(loaded: LoadedModel) -> None:
    steps = list(generate(loaded.model, [5, 6], GREEDY, 3))
    assert "".join(step.text for step in steps) == "".join(f" {step.token_id}" for step in steps)


def test_a_patch_or_hook_at_a_position_that_does_not_exist_is_refused(loaded: LoadedModel) -> None:
    patch = Patch("resid_post", 2, 9, torch.zeros(loaded.model.config.n_embd))
    for edits in (Edits(patches=(patch,)), Edits(hooks=(Hook("resid_post", 2, lambda x: x, position=9),))):
        with pytest.raises(ValueError, match="position 9 does not exist: the text has positions 0 to 3"):
            loaded.trace(CAT, edits)
