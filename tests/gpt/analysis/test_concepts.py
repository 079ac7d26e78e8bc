"""Concepts and their graph; the dictionaries bundled with the models."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from benchmarks.concepts import measure
from components.concepts import LIMIT
from gpt import Edits, Trace, get_model
from gpt.analysis.concept_graph import _Linear, concept_graph
from gpt.analysis.concepts import Concepts, NamedConcept, trace_activity
from gpt.analysis.saliency import Ablation, predict_without
from gpt.edits import Hook, Patch, Steering
from gpt.models.loading import CONCEPTS, NAMES, load_concepts, save_concepts
from gpt.models.sae_lens import load_sae, save_sae
from tests.gpt.analysis.concept_dictionary import axis_concepts, axis_dictionary
from tests.gpt.fake_models import family_model, tiny_model, tiny_tokenizer

DOG = NamedConcept(0, 1, {"en": "dog", "zh": "狗"}, 1.5, ("dog",))


def test_the_features_of_a_trace_leave_out_the_first_token_of_the_text():
    loaded, concepts, trace = tiny_model(), axis_concepts(1), Trace()
    loaded.model(torch.tensor([[97, 98, 99]]), trace=trace)
    stream = trace.layers[1].resid_post[0]
    activity = trace_activity(concepts, trace, 1)
    assert activity[0].count_nonzero() == 0
    assert (activity[1:] > 0).sum(1).max() <= 3
    assert activity[1:].max(dim=1).values == pytest.approx(stream[1:].max(dim=1).values)
    assert trace_activity(concepts, trace, 1, first=5)[0].count_nonzero() > 0
    with pytest.raises(ValueError, match="layer must be one of 1"):
        trace_activity(concepts, trace, 0)


def test_a_concept_that_is_turned_up_is_added_at_every_position_with_and_without_a_cache():
    loaded = tiny_model()
    steering = axis_concepts().steering(0, 0, 1.5)
    edits, idx = Edits(steering=(steering,)), torch.tensor([[97, 98, 99]])
    plain, steered = Trace(), Trace()
    loaded.model(idx, trace=plain)
    logits = loaded.model(idx, trace=steered, edits=edits)
    added = steered.layers[0].resid_post - plain.layers[0].resid_post
    assert added[..., 0].tolist() == [pytest.approx([3.0] * 3)]  # 1.5 times the natural strength of 2
    assert added[..., 1:].abs().max() == 0
    assert torch.allclose(stepwise(loaded.model, idx, edits), logits[0], atol=1e-5)


def stepwise(model, idx, edits):
    """Return the logits of a text read token by token."""
    cache = model.new_cache(1)
    return torch.stack([model(idx[:, i : i + 1], cache=cache, edits=edits)[0, -1] for i in range(idx.shape[1])])


@pytest.mark.parametrize(("strength", "left"), [(-0.25, 0.75), (-1, 0), (-3, 0)])
def test_a_concept_that_is_turned_down_keeps_a_share_of_its_activity_and_changes_nothing_elsewhere(strength, left):
    loaded, idx, plain, steered = tiny_model(), torch.tensor([[97, 98, 99, 100, 101, 102]]), Trace(), Trace()
    axes = axis_dictionary(active=6)
    # Each step changes the activity by half.
    concepts = Concepts({0: replace(axes, encoder=axes.encoder / 2)}, torch.zeros(1))
    loaded.model(idx, trace=plain)
    before = trace_activity(concepts, plain, 0)
    feature = int(((before > 0).sum(0) % 5).argmax())  # active at some positions
    edits = pickle.loads(pickle.dumps(Edits(steering=(concepts.steering(0, feature, strength),))))
    logits = loaded.model(idx, trace=steered, edits=edits)
    is_active = before[:, feature] > 0
    assert 0 < is_active.sum() < 5
    added = (steered.layers[0].resid_post - plain.layers[0].resid_post)[0]
    assert added[is_active, feature].tolist() == pytest.approx((2 * (left - 1) * before[is_active, feature]).tolist())
    added[is_active, feature] = 0
    assert added.count_nonzero() == 0
    after = concepts.dictionaries[0].activity(steered.layers[0].resid_post[0])[is_active, feature]
    assert torch.all((after == 0) | torch.isclose(after, left * before[is_active, feature]))
    assert torch.allclose(stepwise(loaded.model, idx, edits), logits[0], atol=1e-5)


def test_a_word_finds_names_first_then_where_features_are_strongest_then_what_they_promote():
    concepts = axis_concepts(named=(NamedConcept(0, 5, {"en": "apple", "zh": "苹果"}),))
    assert concepts.search(tiny_tokenizer(), "a") == [(0, 5), (0, 0), (0, 1)]
    assert concepts.search(tiny_tokenizer(), "苹果") == [(0, 5)]
    assert concepts.search(tiny_tokenizer(), " ") == []


def test_concepts_are_read_again_from_their_files(tmp_path):
    concepts = axis_concepts(1, (DOG,))
    save_concepts(tmp_path, concepts)
    (tmp_path / NAMES).write_text(
        '[{"layer": 1, "feature": 1, "names": {"en": "dog", "zh": "狗"}, "strength": 1.5, "words": ["dog"]}]'
    )
    config = tiny_model().model.config
    again = load_concepts(tmp_path, config)
    x = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(again.dictionaries[1].activity(x), concepts.dictionaries[1].activity(x), atol=0.02)
    assert again.by_place[1, 1].names == DOG.names
    assert [each.strength for each in again.offered] == [1.5]
    assert load_concepts(tmp_path / "none", config) is None
    with pytest.raises(ValueError, match=CONCEPTS):
        load_concepts(tmp_path, tiny_model(n_layer=1).model.config)
    (tmp_path / CONCEPTS).write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=CONCEPTS):
        load_concepts(tmp_path, config)


def test_the_graph_of_a_logit_sums_to_it_and_its_edges_to_its_nodes():
    loaded, ids, token = tiny_model(), [97, 98, 99, 100], 120
    concepts = Concepts({0: axis_dictionary(16, 16), 1: axis_dictionary(16, 16)}, torch.zeros(1))
    graph = concept_graph(loaded.model, concepts, ids, token, [(0,), (1, 2), (3,)], lambda *place: place)
    logit = loaded.model(torch.tensor([ids]))[0, -1, token].item()
    assert graph.logit == pytest.approx(logit, abs=1e-4)
    # The later dictionary belongs to the last layer, so that only the final norm and the head follow it.
    trace = Trace()
    loaded.model(torch.tensor([ids]), trace=trace)
    x, weight = trace.layers[1].resid_post[0], loaded.model.lm_head.weight[token]
    parts = loaded.model.ln_f.contribution(torch.eye(16) * x[-1], loaded.model.ln_f.scale(x[-1])) @ weight
    positive = x[-1] > 0  # the rest is negative, and is the error
    expected = sorted((part.item() for part in parts[positive] if part > 0), reverse=True)[:3]
    assert [node.adds for node in graph.late] == pytest.approx(expected, abs=1e-4)
    assert graph.error == pytest.approx(parts[~positive].sum().item(), abs=1e-4)
    rest = parts[positive].sum().item() - sum(expected) + (loaded.model.ln_f.bias @ weight).item()
    assert graph.others == pytest.approx(rest, abs=1e-4)
    assert [len(nodes) for nodes in (graph.words, graph.early, graph.late)] == [3, 3, 3]


def test_features_with_equal_names_are_one_node_with_their_sum_before_the_strongest_are_chosen():
    loaded, ids, token = tiny_model(), [97, 98, 99, 100], 130
    concepts = Concepts({0: axis_dictionary(16, 16), 1: axis_dictionary(16, 16)}, torch.zeros(1))

    def graph_of(name):
        graph = concept_graph(loaded.model, concepts, ids, token, [(i,) for i in range(4)], name)
        named = sum(node.adds for node in graph.late)
        assert named + graph.others + graph.error == pytest.approx(graph.logit, abs=1e-4)
        assert graph.to_late.sum(1).tolist() == pytest.approx([node.adds for node in graph.early], abs=1e-4)
        return graph

    trace = Trace()
    loaded.model(torch.tensor([ids]), trace=trace)
    x, weight = trace.layers[1].resid_post[0, -1], loaded.model.lm_head.weight[token]
    adds = (loaded.model.ln_f.contribution(torch.eye(16) * x.relu(), loaded.model.ln_f.scale(x)) @ weight).tolist()
    first, second, third, fourth = sorted(range(16), key=adds.__getitem__, reverse=True)[:4]
    pair = graph_of(lambda layer, feature: "pair" if feature in (third, fourth) else feature)
    assert [[feature for feature, _ in node.places] for node in pair.late] == [[first], [third, fourth], [second]]
    assert pair.late[1].adds == pytest.approx(adds[third] + adds[fourth], abs=1e-4)

    whole = graph_of(lambda layer, feature: layer)  # all features of a layer at all positions
    (late,), (early,) = whole.late, whole.early
    assert late.adds == pytest.approx(sum(adds), abs=1e-4)
    assert early.adds == pytest.approx(whole.to_late.item(), abs=1e-4)
    assert {position for _, position in early.places} == {1, 2, 3}
    apart = graph_of(lambda *place: place)
    assert whole.error == pytest.approx(apart.error, abs=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "llama", "gpt_neox"])
def test_a_block_is_linear_once_its_nonlinear_parts_are_kept_also_with_the_edits_of_the_text(name):
    loaded, ids = family_model(name), [97, 98, 99, 100]
    width = loaded.model.config.n_embd
    concepts, vector = Concepts({1: axis_dictionary(width)}, torch.zeros(1)), torch.linspace(-1, 1, width)
    down = tuple(concepts.steering(1, feature, -0.5) for feature in range(width // 2))
    for edits in (
        Edits(),
        Edits(steering=(*down, Steering(1, vector))),
        Edits(head_scale={(1, 0): 0.0}, attn_scale={1: 0.5}, mlp_scale={1: 2.0}, activation="relu"),
        Edits(drop_positions=True, patches=(Patch("resid_mid", 1, 2, vector),)),
        Edits(hooks=tuple(Hook(each, 1, lambda x: 2 * x + 1) for each in ("resid_pre", "attn_v", "mlp_pre"))),
        Edits(hooks=tuple(Hook(each, 1, lambda x: 2 * x + 1) for each in ("attn_out", "mlp_post", "mlp_out"))),
    ):
        trace = Trace()
        loaded.model(torch.tensor([ids]), trace=trace, edits=edits)
        x = trace.layers[0].resid_post[0]
        linear = _Linear(loaded.model, trace, edits)
        whole = linear.block(loaded.model.blocks[1], x[None])[0]
        assert torch.allclose(whole, trace.layers[1].resid_post[0], atol=1e-4)


def test_what_is_switched_off_in_the_graph_is_missing_in_the_pass():
    loaded, ids = tiny_model(), [97, 98, 99]
    concepts = axis_concepts(1)
    stream = Trace()
    loaded.model(torch.tensor([ids]), trace=stream)
    x = stream.layers[1].resid_post[0, -1]
    feature = int(x.argmax())
    found = predict_without(loaded.model, ids, Ablation(features=frozenset({(1, feature, 2)})), concepts=concepts)
    changed = x.clone()
    changed[feature] = 0
    expected = loaded.model.logits(loaded.model.ln_f(changed))
    assert torch.allclose(found, expected, atol=1e-4)
    without_word = predict_without(loaded.model, ids, Ablation(frozenset({1})))
    assert torch.allclose(without_word, loaded.model(torch.tensor([[97, 99]]))[0, -1], atol=1e-4)
    alone = concepts.dictionaries[1]
    without_error = predict_without(loaded.model, ids, Ablation(error=True), concepts=concepts)
    kept = loaded.model.ln_f(alone.reconstruction(alone.activity(x)))
    assert torch.allclose(without_error, loaded.model.logits(kept), atol=1e-4)


@pytest.fixture(params=["stories", "poems"])
def loaded(request):
    return get_model(request.param)


def test_bundled_concepts_have_names_in_both_languages_evidence_and_strengths_that_the_slider_has(loaded):
    concepts = loaded.concepts
    places = [(each.layer, each.feature) for each in concepts.named]
    assert len(places) == len(set(places))
    for each in concepts.named:
        assert set(each.names) == {"en", "zh"}
        assert all(each.names.values())
        assert len(concepts.snippets(each.layer, each.feature, loaded.tokenizer)) >= 8, each.names
    assert len(concepts.offered) >= 20
    assert all(0 < each.strength <= LIMIT for each in concepts.offered)
    for dictionary in concepts.dictionaries.values():  # a feature is less active without its direction
        assert ((dictionary.encoder * dictionary.decoder).sum(1) > 0.1).all()


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1])
def test_texts_mention_a_concept_that_is_turned_up_and_are_still_texts(loaded, number):
    assert measure(loaded, loaded.concepts.offered[number]).passes


SAE_LENS = (
    Path(__file__).parents[1] / "models" / "sae_lens"
)  # written by sae-lens 6.54.12, with values that it computed


@pytest.mark.parametrize(("name", "place"), [("standard", 0), ("topk", 1), ("jumprelu", 1)])
def test_a_dictionary_of_sae_lens_has_its_values_and_is_written_back(tmp_path, name, place):
    expected = load_file(SAE_LENS / name / "expected.safetensors")
    layer, dictionary = load_sae(SAE_LENS / name)
    assert layer == place
    save_sae(dictionary, tmp_path, layer=layer)
    concepts = Concepts({1: dictionary}, torch.arange(9))
    save_concepts(tmp_path, concepts)
    config = replace(tiny_model().model.config, n_embd=4, n_head=1)
    kept = load_concepts(tmp_path, config).dictionaries[1]
    assert (kept.active, kept.threshold is None) == (dictionary.active, dictionary.threshold is None)
    for each in (dictionary, load_sae(tmp_path)[1]):
        assert_close(each.activity(expected["x"]), expected["activity"])
        assert_close(each.reconstruction(expected["activity"]), expected["reconstruction"])
        assert concepts.steering(1, 3, 2.0).value.tolist() == pytest.approx((2 * each.decoder[3]).tolist())


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architecture": "gated"}, "architecture 'gated'"),
        ({"normalize_activations": "layer_norm"}, "normalize_activations 'layer_norm'"),
        ({"metadata": {"hook_name": "blocks.1.attn.hook_z"}}, "hook_name 'blocks.1.attn.hook_z'"),
        ({"k": 7}, "fitting k"),
    ],
)
def test_what_a_dictionary_cannot_express_is_refused_by_name(tmp_path, changes, named):
    (tmp_path / "sae_weights.safetensors").write_bytes((SAE_LENS / "topk" / "sae_weights.safetensors").read_bytes())
    config = json.loads((SAE_LENS / "topk" / "cfg.json").read_text(encoding="utf-8"))
    (tmp_path / "cfg.json").write_text(json.dumps(config | changes), encoding="utf-8")
    with pytest.raises(ValueError, match=named):
        load_sae(tmp_path)
