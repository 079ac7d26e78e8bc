import base64
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from components.state.selection import Selection
from components.tabs.inside import stream, trace_file
from components.tabs.inside.embeddings import nearest_value, positions_value
from components.tabs.inside.part import Scene
from components.tabs.inside.record import Record
from components.tabs.inside.stream_figures import closeness_bars, share_bars, similarity_heatmap
from gpt import GPT, Edits, Generation, GPTConfig, Trace, get_model
from gpt.analysis.residual import stream_norms, strongest_neurons
from gpt.models.checkpoints.vocabularies import PlainIds

TEXT = "The dog ran to the park with"


@pytest.fixture(
    scope="module", params=[None, Edits(head_scale={(0, 1): 0.0}, activation="relu")], ids=["plain", "edited"]
)
def scene(request):
    document = Generation(get_model(), TEXT, edits=request.param)
    document.read()
    record = Record(document)
    record.extend()
    return Scene(record, Selection(layer=2), 4, None, "en", {}, {})


def whole(scene: Scene) -> Trace:
    document, trace = scene.record.document, Trace()
    with torch.inference_mode():
        document.loaded.model(torch.tensor([document.ids]), trace=trace, edits=document.edits)
    return trace


def test_a_position_traced_alone_is_the_one_of_the_whole_pass(scene):
    before = scene.record.head(1, 0).weights.copy()
    one, all_of = scene.record.trace_at(4), whole(scene)
    for name in ("resid_pre", "attn_out", "resid_mid", "mlp_pre", "mlp_post", "mlp_out", "resid_post"):
        for layer, right in zip(one.layers, all_of.layers, strict=True):
            assert torch.allclose(getattr(layer, name)[0, 0], getattr(right, name)[0, 4], atol=1e-4), name
    assert scene.record.length == len(scene.record.document.ids)
    assert np.allclose(scene.record.head(1, 0).weights, before, atol=1e-5)


def test_the_pictures_say_what_the_model_computed(scene):
    trace = scene.record.trace_at(4)
    lengths = json.loads(stream.lengths_value(scene, stream_norms(trace)))
    right = [layer.resid_post[0, 4].norm().item() for layer in whole(scene).layers]
    assert f"{right[-1]:.2f}" in lengths["text"]
    shares = json.loads(stream.shares_value(scene, stream_norms(trace)))
    assert len(shares["figure"]["data"]) == 3
    found = strongest_neurons(scene.record.document.loaded.model, trace, 2, 0, k=4, n_tokens=3)
    rows = json.loads(stream.neurons_table(scene, found))
    post = whole(scene).layers[2].mlp_post[0, 4]
    assert len(rows) == 5
    for row in rows[1:]:
        assert float(row[2]) == pytest.approx(post[int(row[0])].item(), abs=0.0051)
    assert "ReLU" in stream.neurons_value(scene, found) or scene.record.document.edits is None


def test_another_layer_needs_no_other_pass_and_another_token_does(scene):
    first = stream.trace_of(scene)
    assert stream.trace_of(replace(scene, look=Selection(layer=5))) is first
    other = stream.trace_of(replace(scene, position=3))
    assert torch.equal(other.layers[0].resid_pre, scene.record.trace_at(3).layers[0].resid_pre)
    assert not torch.equal(other.layers[0].resid_pre, first.layers[0].resid_pre)


def test_the_strip_is_shaded_by_the_length_of_each_vector_after_the_layer(scene):
    lengths = whole(scene).layers[2].resid_post[0].norm(dim=-1).numpy()
    update = stream.strip_update(scene)
    largest, levels = update["shade"].split(":")
    assert float(largest) == 1
    levels = np.frombuffer(base64.b64decode(levels), "<u2")
    np.testing.assert_allclose(levels / 65535, lengths / lengths.max(), atol=1e-5)
    assert update["selected"].startswith("4:")
    assert update["value"].count("\n") == 1 + len(lengths)
    says = stream.lengths_say(scene)
    assert f"(position {lengths.argmax()}), {lengths.max():.1f}" in says
    assert json.loads(stream.layer_value(scene)) == {"layer": 2, "n_layer": 8}


def test_the_file_holds_every_number_and_of_a_long_text_its_end(scene, monkeypatch, tmp_path):
    monkeypatch.setattr(trace_file, "get_upload_folder", lambda: str(tmp_path))
    path, says = trace_file.save_trace(scene.record.document, "en")
    kept, right = Trace.load(path), whole(scene)
    assert torch.allclose(kept.layers[7].resid_post, right.layers[7].resid_post, atol=1e-4)
    assert torch.allclose(kept.layers[0].attn_weights, right.layers[0].attn_weights, atol=1e-5)
    assert "Positions 0 to 6" in says
    monkeypatch.setattr(trace_file, "LARGEST", 1)
    path, says = trace_file.save_trace(scene.record.document, "en")
    assert "Positions 6 to 6" in says
    assert Trace.load(path).layers[0].attn_weights.shape == (1, 6, 1, 7)


def test_the_nearest_tokens_and_positions_are_those_of_the_embedding(scene):
    model = scene.record.document.loaded.model
    bars = json.loads(nearest_value(scene))
    wte = torch.nn.functional.normalize(model.wte.weight.detach(), dim=1)
    cosine = wte @ wte[scene.record.document.ids[4]]
    assert f"{cosine.topk(2).values[1]:.2f}" in bars["text"]
    wpe = torch.nn.functional.normalize(model.wpe.weight.detach(), dim=1)
    assert f"{(wpe[1:] * wpe[:-1]).sum(1).mean():.2f}" in json.loads(positions_value(model, "en"))["text"]


def test_a_stream_of_no_length_has_no_shares():
    assert stream.whole_percents(np.array([0.5, 0.25, 0.25])) == ["50\u00a0%", "25\u00a0%", "25\u00a0%"]
    assert stream.whole_percents(np.full(3, np.nan)) == ["–"] * 3


def test_a_vocabulary_of_one_token_has_no_nearest(scene):
    model = GPT(GPTConfig(vocab_size=1, block_size=4, n_layer=1, n_head=1, n_embd=8))
    alone = SimpleNamespace(model=model, tokenizer=PlainIds(1))
    document = SimpleNamespace(loaded=alone, ids=[0])
    assert nearest_value(replace(scene, record=SimpleNamespace(document=document), position=0)) == ""


def test_figures_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="2 cosines need as many labels, not 1"):
        closeness_bars(["a"], np.zeros(2), title="cosine")
    shares = {name: np.full(3, 1 / 3) for name in "abc"}
    assert len(share_bars(shares, layer_title="layer", share_title="share").data) == 3
    assert similarity_heatmap(np.eye(4), np.arange(4), title="position", value="cosine").data[0].z.shape == (4, 4)
