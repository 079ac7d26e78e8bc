"""Several texts at once give what each gives alone, and sums over a corpus are those of its tokens."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis import (
    direct_logit_attribution,
    head_roles,
    logit_lens,
    mean_ablation,
    mean_activation,
    mean_difference,
    strongest_examples,
    token_predictions,
    trace_text,
)
from gpt.edits import Edits, Hook
from gpt.trace import Trace

TEXTS = [[3, 1, 4, 1, 5, 9, 2, 6, 5], [7], [8, 9, 7, 9], [3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8]]
CLOSE = {"atol": 2e-5, "rtol": 1e-4}


@torch.inference_mode()
def test_the_traces_of_several_texts_are_those_of_each(model, monkeypatch):
    monkeypatch.setattr("gpt.analysis.tracing.MAX_BATCH_TOKENS", 24)
    edits = Edits(hooks=(Hook("resid_mid", 1, lambda x: 1.5 * x, 0),))
    for several, ids in zip(trace_text(model, TEXTS, edits, full=True), TEXTS, strict=True):
        alone = trace_text(model, ids, edits, full=True)
        assert several.keys() == alone.keys()
        for name in alone:
            assert_close(several[name], alone[name], **CLOSE)
    with pytest.raises(ValueError, match="position 3"):
        trace_text(model, TEXTS, Edits(hooks=(Hook("resid_mid", 1, abs, 3),)))


@torch.inference_mode()
def test_analyses_of_several_texts_are_those_of_each(model):
    texts = [ids for ids in TEXTS if len(ids) > 1]
    lenses, parts = logit_lens(model, texts), direct_logit_attribution(model, texts, token=5)
    roles, statistics = head_roles(model, texts), token_predictions(model, texts, top_k=3)
    for number, ids in enumerate(texts):
        assert_close(lenses[number].probability, logit_lens(model, trace=ids).probability, **CLOSE)
        assert_close(parts[number].heads, direct_logit_attribution(model, ids, token=5).heads, **CLOSE)
        assert_close(roles[number].first_token, head_roles(model, ids).first_token, **CLOSE)
        log_p = model(torch.tensor([ids]))[0, :-1].log_softmax(dim=-1).gather(1, torch.tensor(ids[1:])[:, None])
        assert [token.nats for token in statistics[number].tokens] == pytest.approx((-log_p[:, 0]).tolist(), abs=2e-5)
    batch = head_roles(model, torch.tensor([ids, ids[::-1]]))
    assert_close(batch[1].first_token, head_roles(model, ids[::-1]).first_token, **CLOSE)


@pytest.mark.parametrize(
    ("only", "last"),
    [
        (["layers.1.resid_post"], 1),
        (["layers.0.attn_scores", "layers.0.mlp_post"], 0),
        (["token_embedding"], -1),
        (["head_out"], 2),
        (["layers.0.ln_1", "logits"], 2),
    ],
)
def test_a_trace_of_some_names_keeps_them_and_stops_after_their_layer(model, only, last):
    ran: list[int] = []
    handles = [block.register_forward_pre_hook(lambda each, _: ran.append(each.layer)) for block in model.h]
    found = trace_text(model, TEXTS[0], only=only)
    assert ran == list(range(last + 1))
    for handle in handles:
        handle.remove()
    whole = trace_text(model, TEXTS[0], full=True)
    assert {name.rpartition(".")[2] for name in found} >= {name.rpartition(".")[2] for name in only} - {"attn_scores"}
    for name in [*found, *(name for name in only if name != "head_out")]:
        assert_close(found[name], whole[name], **CLOSE)
    with pytest.raises(ValueError, match="mlp_pre was not recorded"):
        _ = found.layers[0].mlp_pre
    with pytest.raises(ValueError, match=r"a trace has no 'layers\.0\.attn'"):
        Trace(only=["layers.0.attn"])


def test_strongest_examples_and_means_are_those_of_all_tokens(model):
    traces = [trace_text(model, ids) for ids in TEXTS]
    neuron = [trace.layers[1].mlp_post[0, :, 5] for trace in traces]
    found = strongest_examples(model, "layers.1.mlp_post", 5, TEXTS, k=3)
    expected = sorted(((values.max().item(), text) for text, values in enumerate(neuron)), reverse=True)[:3]
    assert [example.value for example in found] == pytest.approx([value for value, _ in expected], abs=1e-5)
    for example, (_, text) in zip(found, expected, strict=True):
        assert (example.text, list(example.ids)) == (text, TEXTS[text])
        assert example.position == int(neuron[text].argmax())
    stream = torch.cat([trace.layers[1].resid_post[0] for trace in traces])
    assert_close(mean_activation(model, "layers.1.resid_post", TEXTS), stream.mean(dim=0), **CLOSE)
    steering = mean_difference(model, 1, TEXTS, TEXTS[:1])
    assert steering.layer == 1
    assert_close(steering.value, stream.mean(dim=0) - traces[0].layers[1].resid_post[0].mean(dim=0), **CLOSE)


@torch.inference_mode()
def test_mean_ablation_gives_a_head_its_mean_output(model):
    mean = torch.cat([trace_text(model, ids).layers[1].head_out[0] for ids in TEXTS], dim=1).mean(dim=1)  # (nh, hs)
    trace, plain = Trace(), trace_text(model, TEXTS[0])
    model(torch.tensor([TEXTS[0]]), edits=Edits(hooks=mean_ablation(model, [(1, 0), (1, 3)], TEXTS)), trace=trace)
    expected = plain.layers[1].head_out.clone()
    expected[:, [0, 3]] = mean[[0, 3], None]
    assert_close(trace.layers[1].head_out, expected, **CLOSE)
