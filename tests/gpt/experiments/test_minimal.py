"""The short code of the lessons gives what the model's own code gives."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.testing import assert_close
from transformers import GPT2Config, GPT2LMHeadModel

from gpt import GPT, GPTConfig, SamplingParams, Trace, distribution, get_model, gpt2_tokenizer
from gpt.experiments import minimal
from gpt.experiments.random_models import skeleton
from gpt.experiments.shapes import UNTIED_124M, count_parameters
from gpt.experiments.shortcuts import DeepNetwork
from gpt.generate import generate_greedy
from gpt.layers import Dropout
from gpt.rotary import apply_rotary, rotary_angles
from gpt.sampling import inverse_cdf
from gpt.training.recipe import Recipe

CONFIG = GPTConfig(vocab_size=50, block_size=12, n_layer=2, n_head=3, n_embd=24)
IDS = torch.tensor([3, 1, 4, 1, 5, 9])


@pytest.fixture(scope="module")
def model() -> GPT:
    return GPT(CONFIG, generator=torch.Generator().manual_seed(0)).eval()


@pytest.fixture(scope="module")
def trace(model: GPT) -> Trace:
    trace = Trace()
    with torch.inference_mode():
        model(IDS[None], trace=trace)
    return trace


def test_greedy_generation_writes_what_the_engine_writes() -> None:
    loaded = get_model()
    ids = loaded.tokenizer.encode("Once upon a time")
    expected = generate_greedy(loaded.model, torch.tensor([ids]), 8)[0].tolist()
    assert minimal.continue_text(loaded.model, ids, 8) == expected


@pytest.mark.parametrize("word", [" grandmother", "x", "小狗", " indivisibilities"])
def test_a_word_has_the_tokens_of_tiktoken(word: str) -> None:
    tokenizer = gpt2_tokenizer()
    assert minimal.encode_word(word.encode(), tokenizer.encoding._mergeable_ranks) == tokenizer.encode(word)


def test_a_draw_gives_the_token_that_the_engine_draws() -> None:
    logits = torch.randn(50, generator=torch.Generator().manual_seed(0))
    final = distribution(logits, SamplingParams(temperature=0.7, top_k=5)).final
    for u in (0.0, 0.2, 0.5, 0.8, 0.95, 0.999):
        assert minimal.sample(logits, 0.7, 5, u) == inverse_cdf(final, u)


@torch.inference_mode()
def test_each_part_of_the_forward_pass_is_that_of_the_model(model: GPT, trace: Trace) -> None:
    part, seen = model.blocks[1], trace.layers[1]
    head = (seen.attn_q[0, 2], seen.attn_k[0, 2], seen.attn_v[0, 2])
    assert_close(minimal.attention(*head), seen.attn_weights[0, 2] @ head[2])
    x = seen.resid_pre[0]
    normed = minimal.layer_norm(x, part.ln_1)
    assert_close(normed, part.ln_1(x))
    assert_close(minimal.multi_head_attention(normed, part.attn), seen.attn_out[0])
    assert_close(minimal.gelu(seen.mlp_pre), seen.mlp_post)
    assert_close(minimal.feed_forward(part.ln_2(seen.resid_mid[0]), part.mlp), seen.mlp_out[0])
    assert_close(minimal.block(x, part), seen.resid_post[0])
    assert_close(minimal.gpt_logits(IDS, model), model(IDS[None])[0])
    bare = skeleton(CONFIG, generator=torch.Generator().manual_seed(0))
    assert_close(minimal.skeleton_logits(IDS, bare), bare(IDS[None])[0])


@torch.inference_mode()
def test_each_part_of_llama_is_that_of_the_model() -> None:
    config = Recipe(architecture="llama", bias=False, n_layer=2, n_head=4, n_kv_head=2, n_embd=16).model_config(50)
    model, trace = GPT(config, generator=torch.Generator().manual_seed(0)).eval(), Trace()
    model(IDS[None], trace=trace)
    part, seen = model.blocks[1], trace.layers[1]
    x = seen.resid_pre[0]
    assert_close(minimal.rms_norm(x, part.ln_1), part.ln_1(x))
    assert_close(minimal.swiglu(part.ln_2(seen.resid_mid[0]), part.mlp), seen.mlp_out[0])
    heads = minimal.grouped_query_attention(seen.attn_q[0], seen.attn_k[0], seen.attn_v[0])  # (nh, T, hs)
    assert_close(part.attn.c_proj(heads.transpose(0, 1).flatten(1)), seen.attn_out[0])
    assert_close(minimal.llama_block(x, part), seen.resid_post[0])


def test_a_rotated_query_is_that_of_the_model() -> None:
    x = torch.randn(8, generator=torch.Generator().manual_seed(0))
    expected = apply_rotary(x[None, None, None], *rotary_angles(torch.tensor([5]), 8))[0, 0, 0]
    assert_close(minimal.rotate(x, 5), expected)


@pytest.mark.parametrize("shortcuts", [False, True])
def test_a_deep_network_gives_the_output_of_the_experiment(shortcuts: bool) -> None:
    network = DeepNetwork([3, 3, 3, 1], "gelu_tanh", shortcuts, torch.Generator().manual_seed(0))
    x = torch.tensor([[1.0, 0.0, -1.0]])
    assert_close(minimal.deep_network(x, network.layers, shortcuts), network(x))


@torch.inference_mode()
def test_the_loss_is_that_of_the_model(model: GPT) -> None:
    assert_close(minimal.cross_entropy(model(IDS[None, :-1])[0], IDS[1:]), model.loss(IDS[None, :-1], IDS[None, 1:]))


def test_training_lowers_the_loss_and_the_seed_gives_the_weights() -> None:
    one, other = (minimal.untrained_model(CONFIG, seed=7) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    batch = IDS[None, :-1], IDS[None, 1:]
    before = one.loss(*batch).item()
    minimal.train(one, [batch] * 20)
    assert one.loss(*batch).item() < before / 2


def test_dropout_drops_and_scales_as_the_model_does() -> None:
    x = torch.ones(10_000)
    dropped, expected = minimal.dropout(x, 0.1, torch.Generator().manual_seed(0)), Dropout(0.1).train()(x)
    assert dropped.unique().tolist() == expected.unique().tolist()
    assert abs(float(dropped.mean()) - 1) < 0.02
    assert float((dropped == 0).float().mean()) == pytest.approx(0.1, abs=0.02)


@torch.inference_mode()
def test_weights_of_transformers_give_the_logits_of_transformers() -> None:
    torch.manual_seed(0)
    options = {"vocab_size": 50, "n_positions": 12, "n_embd": 24, "n_layer": 2, "n_head": 3}
    theirs = GPT2LMHeadModel(GPT2Config(**options)).eval()
    ours = GPT(CONFIG).eval()
    minimal.load_gpt2(ours, theirs.state_dict())
    assert_close(ours(IDS[None]), theirs(IDS[None]).logits, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_padding_is_hidden_as_in_the_model(model: GPT) -> None:
    is_real = torch.tensor([False, False, True, True, True, True])
    trace = Trace()
    model(IDS[None], attention_mask=is_real[None], trace=trace)
    seen = trace.layers[0]
    q, k, v = (getattr(seen, f"attn_{name}")[0, 0] for name in "qkv")
    causal = (q @ k.T / k.shape[-1] ** 0.5).masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
    expected = seen.attn_weights[0, 0] @ v
    assert_close(minimal.padded_attention(causal, v, is_real)[2:], expected[2:])
    embedded = minimal.embed(IDS, model.wte.weight, model.wpe.weight[minimal.padded_positions(is_real)])
    assert_close(embedded, seen.resid_pre[0])


def test_initial_weights_are_as_large_as_those_of_the_model() -> None:
    config = dataclasses.replace(CONFIG, vocab_size=2000, n_embd=96)
    ours, model = GPT(config), GPT(config)
    minimal.initialise(ours)
    assert ours.lm_head.weight is ours.wte.weight
    for (name, one), other in zip(ours.named_parameters(), model.parameters(), strict=True):
        if one.dim() == 2:
            assert one.std().item() == pytest.approx(other.std().item(), rel=0.05), name


def test_the_number_of_parameters_is_counted() -> None:
    for config in (CONFIG, GPTConfig()):
        assert minimal.n_parameters(config) == count_parameters(config)
    assert minimal.n_parameters(GPTConfig()) == 124_439_808 != count_parameters(UNTIED_124M)


@torch.inference_mode()
def test_attention_with_a_cache_is_the_last_row_of_attention_without(trace: Trace) -> None:
    seen = trace.layers[0]
    q, k, v = (getattr(seen, f"attn_{name}")[0, 1] for name in "qkv")
    cache: minimal.Cache = []
    rows = [minimal.attend_with_cache(*row, cache) for row in zip(q, k, v, strict=True)]
    assert_close(torch.stack(rows), minimal.attention(q, k, v))


def test_the_configuration_has_the_defaults_and_the_rule_of_the_model() -> None:
    for field in dataclasses.fields(minimal.Config):
        assert field.default == getattr(GPTConfig(), field.name)
    for config in (minimal.Config, GPTConfig):
        with pytest.raises(ValueError, match="768"):
            config(n_head=25)
        assert config(n_head=24).n_head == 24
