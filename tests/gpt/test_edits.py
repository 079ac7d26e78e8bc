"""An edit is equivalent to changed weights for one pass, and leaves the model unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from gpt.cache import KVCache
from gpt.edits import HOOKABLE, HOOKABLE_OUTSIDE, PATCHABLE, Edits, Hook, Patch
from gpt.model import GPT
from gpt.trace import Trace
from tests.gpt.family_configs import FAMILIES

EXACT = {"atol": 1e-5, "rtol": 0}


def columns(model: GPT, head: int) -> slice:
    """Return the columns of a head in the input of c_proj."""
    size = model.config.head_size
    return slice(head * size, head * size + size)


@pytest.fixture
def idx() -> torch.Tensor:
    return torch.randint(61, (2, 12))


def changed(model: GPT, change) -> GPT:
    """Return a copy with weights changed by `change`."""
    copy = deepcopy(model)
    with torch.no_grad():
        change(copy)
    return copy


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("factor", [0.0, 0.5, -2.0])
@torch.inference_mode()
def test_scaling_a_head_equals_scaling_its_slice_of_the_input_of_c_proj(model, idx, factor, traced):
    weights = changed(model, lambda m: m.h[1].attn.c_proj.weight[:, columns(m, 1)].mul_(factor))
    edited = model(idx, edits=Edits(head_scale={(1, 1): factor}), trace=Trace() if traced else None)
    assert_close(edited, weights(idx), **EXACT)
    assert (edited - model(idx)).abs().max() > 1e-3


@pytest.mark.parametrize(("scale", "branch"), [("attn_scale", "attn"), ("mlp_scale", "mlp")])
@pytest.mark.parametrize("factor", [0.0, 3.0])
@torch.inference_mode()
def test_scaling_a_branch_equals_scaling_its_projection(model, idx, scale, branch, factor):
    def scaled(m: GPT) -> None:
        norm = m.h[1].ln_1_post if branch == "attn" else m.h[1].ln_2_post
        for parameter in (norm or getattr(m.h[1], branch).c_proj).parameters():
            parameter.mul_(factor)

    trace = Trace()
    edits = Edits(**{scale: {1: factor}})
    assert_close(model(idx, edits=edits, trace=trace), changed(model, scaled)(idx), **EXACT)
    layer = trace.layers[1]
    around = (layer.resid_pre, layer.resid_mid) if branch == "attn" else (layer.resid_mid, layer.resid_post)
    assert torch.equal(*around) == (factor == 0)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "silu"])
@torch.inference_mode()
def test_swapping_the_activation_equals_a_model_made_with_it(model, idx, activation):
    other = GPT(replace(model.config, activation=activation)).eval()
    other.load_state_dict(model.state_dict())
    edited = model(idx, edits=Edits(activation=activation))
    assert_close(edited, other(idx), **EXACT)
    assert torch.equal(edited, model(idx)) == (activation == model.config.activation)


@torch.inference_mode()
def test_without_positions_one_layer_ignores_the_order_of_earlier_tokens(model, idx):
    shallow = GPT(replace(model.config.with_layers(1), window=None, full_layers=())).eval()
    shallow.load_state_dict({k: v for k, v in model.state_dict().items() if not k.startswith(("h.1", "h.2"))})
    shuffled = torch.cat((idx[:, :-1].flip(1), idx[:, -1:]), dim=1)
    assert (shallow(idx)[:, -1] - shallow(shuffled)[:, -1]).abs().max() > 1e-2
    dropped = Edits(drop_positions=True)
    assert_close(shallow(idx, edits=dropped)[:, -1], shallow(shuffled, edits=dropped)[:, -1], **EXACT)


@pytest.mark.parametrize("name", PATCHABLE)
@torch.inference_mode()
def test_a_patch_replaces_one_activation_and_changes_only_later_activations(model, idx, name):
    value, before, after = torch.randn(24), Trace(), Trace()
    plain = model(idx, trace=before)
    patched = model(idx, edits=Edits(patches=(Patch(name, 1, 5, value),)), trace=after)
    assert torch.equal(getattr(after.layers[1], name)[:, 5], value.expand(2, -1))
    assert_close(patched[:, :5], plain[:, :5], **EXACT)
    assert (patched[:, 5] - plain[:, 5]).abs().max() > 1e-3
    assert torch.equal(after.layers[0].resid_post, before.layers[0].resid_post)


@torch.inference_mode()
def test_edited_and_cached_equals_edited(model, idx):
    edits = Edits(
        head_scale={(0, 2): 0.0},
        mlp_scale={1: 0.5},
        patches=(Patch("attn_out", 1, 5, torch.randn(24)),),
        activation="relu",
    )
    cache, parts = KVCache(model.config, batch_size=2), []
    for length in (4, 1, 2, 5):
        parts.append(model(idx[:, cache.length : cache.length + length], cache=cache, edits=edits))
    assert_close(torch.cat(parts, dim=1), model(idx, edits=edits), **EXACT)


def refused() -> Iterator[tuple[Callable[[], object], str]]:
    """Yield what cannot be constructed, or does not fit a model of 3 layers, 4 heads and 16 positions, and why."""
    model, idx = GPT(FAMILIES["gpt2"]).eval(), torch.zeros(2, 12, dtype=torch.long)

    def run(**edits: object) -> Callable[[], object]:
        return lambda: model(idx, edits=Edits(**edits))

    def patched(layer: int, position: int, *shape: int) -> Callable[[], object]:
        return run(patches=(Patch("resid_pre", layer, position, torch.zeros(shape)),))

    def hooked(name: str, layer: object, function: object = abs, *position: object) -> Callable[[], object]:
        return lambda: model(idx, edits=Edits(hooks=(Hook(name, layer, function, *position),)))

    for layer in (3, -1):
        said = f"layer {layer} does not exist: the model has layers 0 to 2"
        for change in ({"head_scale": {(layer, 0): 0.0}}, {"attn_scale": {layer: 0.0}}, {"mlp_scale": {layer: 0.0}}):
            yield run(**change), said
        yield patched(layer, 0, 24), said
        yield hooked("resid_pre", layer), said
    yield run(head_scale={(0, -1): 0.0}), "head -1 does not exist: a layer has heads 0 to 3"
    yield patched(0, 16, 24), "position 16 does not exist"
    for shape in ((23,), (2, 25), (), (1, 2, 24)):
        yield patched(0, 0, *shape), "does not fit: each text needs 24 numbers"
    yield patched(0, 0, 3, 24), "a patch for 3 texts does not fit a batch of 2"
    yield lambda: Patch("attn_q", 0, 0, torch.zeros(24)), "resid_post, head_out can be patched, not 'attn_q'"
    for factor in (float("nan"), "0", None):
        yield run(mlp_scale={0: factor}), "a factor must be a finite number, not"
    yield run(activation="swiglu"), "activation must be one of .*, not 'swiglu'"
    yield hooked("resid_pre", 0, abs, 16), "position 16 does not exist"
    yield hooked("mlp_up", 0), "this model has no mlp_up"
    yield hooked("resid_pre", 0, lambda _: None, 3), r"must return a tensor of shape \(2, 24\), not NoneType"
    yield hooked("attn_pattern", 1), "only resid_pre, .*, logits can be hooked, not 'attn_pattern'"
    yield hooked("resid_pre", None), "resid_pre is not in layer None"
    yield hooked("final_norm", 1), "final_norm is not in layer 1"


def test_edits_that_do_not_fit_are_refused_by_name() -> None:
    for call, said in refused():
        with pytest.raises(ValueError, match=said):
            call()


def hooks_of(model: GPT, function, position: int | None = None) -> list[Hook]:
    """Return a hook on every activation of layer 1 and outside the layers."""
    lacking = {"mlp_up": not model.config.gated, "position_embedding": model.wpe is None}
    places = [(name, 1) for name in HOOKABLE] + [(name, None) for name in HOOKABLE_OUTSIDE]
    return [Hook(name, layer, function, position) for name, layer in places if not lacking.get(name, False)]


@torch.inference_mode()
def test_a_function_may_change_its_copy_without_changing_what_was_computed_before(model, idx):
    before, after = Trace(), Trace(full=True)
    model(idx, trace=before)
    for hook in hooks_of(model, lambda x: x.zero_()):
        expected = model(idx, edits=Edits(hooks=(replace(hook, function=torch.zeros_like),)))
        assert_close(model(idx, edits=Edits(hooks=(hook,)), trace=after), expected, **EXACT)
        if hook.layer is not None:
            assert_close(after.layers[0].resid_post, before.layers[0].resid_post, atol=0, rtol=0)
            assert (getattr(after.layers[1], hook.name) == 0).all()


@torch.inference_mode()
def test_hooks_run_in_their_order_after_factors_and_patches(model, idx):
    ones, seen = torch.ones(24), []
    edits = Edits(
        attn_scale={1: 0.0},
        patches=(Patch("attn_out", 1, 3, ones),),
        hooks=(Hook("attn_out", 1, lambda x: x + 2), Hook("attn_out", 1, lambda x: seen.append(x) or 5 * x)),
    )
    trace = Trace()
    model(idx, edits=edits, trace=trace)
    assert (seen[0][:, 3] == 3).all()
    assert (seen[0][:, 4] == 2).all()
    assert torch.equal(trace.layers[1].attn_out, 5 * seen[0])


@torch.inference_mode()
def test_a_result_keeps_the_type_of_the_model(model, idx):
    model.bfloat16()
    edits, trace = Edits(hooks=(Hook("resid_post", 1, lambda x: x.float() + torch.ones(24)),)), Trace()
    assert model(idx, edits=edits, trace=trace).dtype == trace.layers[1].resid_post.dtype == torch.bfloat16


def test_edits_are_equal_where_all_that_they_change_is():
    def edits(value: torch.Tensor, ids: tuple[int, ...] | None = None, function=abs) -> Edits:
        return Edits(
            {(0, 1): 0.5}, patches=(Patch("resid_pre", 1, 2, value, ids),), hooks=(Hook("mlp_out", 1, function),)
        )

    ones = torch.ones(24)
    assert edits(ones) == edits(torch.ones(24))
    assert hash(edits(ones).patches) == hash(edits(torch.ones(24)).patches)
    for other in (edits(torch.zeros(24)), edits(ones.double()), edits(torch.ones(2, 24)), edits(ones, (1, 2, 3))):
        assert edits(ones) != other
    assert edits(ones) != edits(ones, function=torch.relu)
    assert edits(ones).patches[0] != "a patch"
    assert edits(torch.full((24,), torch.nan)) != edits(ones)
