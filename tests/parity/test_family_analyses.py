"""Analyses of models of every family match the numbers of transformers' own model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.lens import logit_lens
from gpt.analysis.residual import stream_norms
from gpt.analysis.rollout import rollout
from gpt.analysis.saliency import input_x_gradient, leave_one_out
from gpt.analysis.tracing import trace_text
from gpt.experiments.shapes import cache_numbers, count_parameters
from tests.parity.family_models import Twins, family_twins

IDS = [7, 3, 1, 4, 1, 5, 9, 2, 6, 5]
IDX = torch.tensor([IDS])
TOKEN = 33
CASES = [
    ("gpt_neox", "pythia"),
    ("gpt_neox", "one branch after the other"),
    ("llama", "llama 3"),
    ("llama", "one key head, all biases"),
    ("mistral", "window"),
    ("qwen2", "windows above"),
    ("qwen3", "grouped, biases"),
    ("gemma3_text", "five windows, one without"),
    ("gemma3_text", "biases, another eps"),
    ("gpt2", "untied, narrow"),
    ("gpt_neo", "local layers"),
    ("phi", "grouped, a part of each head"),
    ("phi3", "grouped, window"),
    ("opt", "no biases"),
    ("stablelm", "grouped, biases"),
    ("gemma", "one key head, untied"),
    ("olmo", "grouped, biases"),
    ("starcoder2", "grouped, window"),
    ("gpt_bigcode", "one key head"),
    ("gptj", "six of ten numbers of a head"),
    ("gemma2", "every other layer has a window"),
    ("gemma2", "one key head, untied"),
    ("olmo2", "grouped"),
    ("olmo2", "biases, gelu, another eps"),
    ("smollm3", "windows without rotation"),
]


QUICK = (("gpt2", "untied, narrow"), ("gemma2", "every other layer has a window"))


@pytest.fixture(
    params=[pytest.param(case, marks=() if case in QUICK else pytest.mark.thorough) for case in CASES],
    ids=" - ".join,
    scope="module",
)
def twins(request: pytest.FixtureRequest) -> Twins:
    return family_twins(*request.param)


# In these cases one norm serves both branches, or norms have no weights.
FEWER_NORMS = ("phi", "gptj", "olmo")
NAMES = {
    "layers": ("layers", "h"),
    "final norm": ("norm", "final_layer_norm", "final_layernorm", "ln_f"),
    "output projection": (
        *("attention.dense", "self_attn.o_proj", "self_attn.dense", "self_attn.out_proj"),
        *("attn.attention.out_proj", "attn.out_proj", "attn.c_proj"),
    ),
}


def part(module: nn.Module, kind: str) -> nn.Module:
    """Return the part of a transformers module under its family's name for it."""
    modules = dict(module.named_modules())
    return next(modules[name] for name in NAMES[kind] if name in modules)


def parts_of(reference: nn.Module) -> tuple[nn.ModuleList, nn.Module, nn.Module]:
    """Return the layers, final norm and head of a transformers model."""
    base = getattr(reference.base_model, "decoder", reference.base_model)  # for OPT
    return part(base, "layers"), part(base, "final norm"), reference.get_output_embeddings()


def capped(reference: nn.Module, logits: Tensor) -> Tensor:
    """Return the logits of a transformers model from the output of its head."""
    cap = getattr(reference.config, "final_logit_softcapping", None)
    return logits if cap is None else cap * torch.tanh(logits / cap)


@torch.inference_mode()
def test_the_lens_reads_each_state_through_the_final_norm_and_the_head(twins: Twins) -> None:
    reference = twins.reference(IDX, output_hidden_states=True)
    _, norm, head = parts_of(twins.reference)
    lens = logit_lens(twins.ours, trace_text(twins.ours, IDS), chosen=TOKEN)
    logits = [capped(twins.reference, head(norm(state))[0]) for state in reference.hidden_states[1:-1]]
    logits.append(reference.logits[0])
    p = torch.stack(logits).softmax(dim=-1)  # (n_layer, T, vocab_size)
    assert_close(lens.chosen_probability[:, 1], p[..., TOKEN], atol=1e-5, rtol=1e-3)
    assert_close(lens.probability[:, 1], p.amax(dim=-1), atol=1e-5, rtol=1e-3)


@torch.inference_mode()
def test_the_parts_of_a_logit_sum_to_that_of_transformers_before_a_cap(twins: Twins) -> None:
    reference, trace = twins.reference(IDX, output_hidden_states=True), trace_text(twins.ours, IDS)
    logits = twins.reference.get_output_embeddings()(reference.hidden_states[-1])[0]
    assert_close(capped(twins.reference, logits), reference.logits[0])
    for position in (0, 4, len(IDS) - 1):
        for against in (None, 12):
            parts = direct_logit_attribution(twins.ours, trace, position, TOKEN, against=against)
            expected = logits[position, TOKEN] - (0 if against is None else logits[position, against])
            assert parts.total == pytest.approx(expected.item(), abs=1e-3)


@torch.inference_mode()
def test_norms_of_the_stream_are_those_of_the_hidden_states(twins: Twins) -> None:
    states = twins.reference(IDX, output_hidden_states=True).hidden_states
    norms = stream_norms(trace_text(twins.ours, IDS))
    assert_close(norms.resid_pre, torch.stack([state[0].norm(dim=-1) for state in states[:-1]]), atol=1e-4, rtol=1e-4)
    assert_close(norms.kept_share + norms.attn_share + norms.mlp_share, torch.ones_like(norms.added))


@torch.inference_mode()
def test_the_rollout_is_the_papers_formula_on_the_attentions(twins: Twins) -> None:
    expected = torch.eye(len(IDS))
    for weights in twins.reference(IDX, output_attentions=True).attentions:
        expected = (weights[0].mean(dim=0) @ expected + expected) / 2
    assert_close(rollout(trace_text(twins.ours, IDS)), expected, atol=1e-5, rtol=0)


def test_input_x_gradient_is_that_of_the_embeddings(twins: Twins) -> None:
    with torch.enable_grad():
        x = twins.reference.get_input_embeddings()(IDX).detach().requires_grad_()
        twins.reference(inputs_embeds=x).logits[0, -1].log_softmax(dim=-1)[TOKEN].backward()
        expected = (x * x.grad)[0].sum(dim=-1).detach()
    assert_close(input_x_gradient(twins.ours, IDS, TOKEN), expected, atol=1e-4, rtol=1e-3)


@torch.inference_mode()
def test_leaving_a_token_out_is_reading_the_shorter_text(twins: Twins) -> None:
    def log_p(ids: list[int]) -> Tensor:
        return twins.reference(torch.tensor([ids])).logits[0, -1].log_softmax(dim=-1)[TOKEN]

    positions = [0, 3, 8]
    expected = torch.stack([log_p(IDS) - log_p(IDS[:at] + IDS[at + 1 :]) for at in positions])
    found = torch.cat(list(leave_one_out(twins.ours, IDS, TOKEN, positions)))
    assert_close(found, expected, atol=1e-4, rtol=1e-3)


def norm_parameters(model: nn.Module) -> int:
    """Return the number of parameters in a model's norms."""
    norms = [module for module in model.modules() if "Norm" in type(module).__name__]
    return sum(parameter.numel() for norm in norms for parameter in norm.parameters())


@torch.inference_mode()
def test_parameters_and_cache_are_as_many_as_those_of_transformers(twins: Twins) -> None:
    config, family = twins.ours.config, twins.reference.config.model_type
    added = norm_parameters(twins.ours) - norm_parameters(twins.reference)
    total = sum(parameter.numel() for parameter in twins.reference.parameters())
    total -= 2 * config.n_embd if family == "opt" else 0  # rows of its position table that no text uses
    assert count_parameters(config) == total + added
    assert bool(added) == (family in FEWER_NORMS)
    cache = twins.reference(IDX[:, :1], use_cache=True).past_key_values
    assert sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers) == cache_numbers(config)
