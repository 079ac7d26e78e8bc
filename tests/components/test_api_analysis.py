"""Analysis endpoints, compared with plain passes of the model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from components.api import analysis
from components.api.analysis import AnalysisEndpoints
from components.api.text import TextEndpoints
from gpt import Edits, get_model
from gpt.analysis import patch_sweep

DOG = "The dog ran to the"
ENDPOINTS = AnalysisEndpoints("stories")


@torch.inference_mode()
def logits(text: str = DOG, edits: Edits | None = None) -> torch.Tensor:
    """Return the bundled model's logits, (T, vocab_size)."""
    loaded = get_model()
    return loaded.model(torch.tensor([loaded.tokenizer.encode(text)]), edits=edits)[0]


@pytest.mark.parametrize("position", [-1, 0, 2])
def test_the_last_row_of_the_lens_is_what_the_model_predicts(position: int) -> None:
    p = logits().softmax(dim=-1)[position]
    found = ENDPOINTS.logit_lens(DOG, position)
    rows = found["rows"]
    n_layer = get_model().model.config.n_layer
    assert [(row["layer"], row["point"]) for row in rows] == [
        (layer, point) for layer in range(n_layer) for point in ("resid_mid", "resid_post")
    ]
    assert found["chosen_id"] == rows[-1]["token_id"] == p.argmax()
    assert rows[-1]["chosen_rank"] == 1
    assert rows[-1]["chosen_probability"] == rows[-1]["probability"] == pytest.approx(p.max().item(), rel=1e-4)


def test_the_lens_follows_the_chosen_token() -> None:
    p = logits().softmax(dim=-1)[-1]
    found = ENDPOINTS.logit_lens(DOG, token_id=17)
    assert (found["chosen_id"], found["rows"][-1]["chosen_rank"]) == (17, 1 + int((p > p[17]).sum()))
    assert found["rows"][-1]["chosen_probability"] == pytest.approx(p[17].item(), rel=1e-3)


def test_after_a_space_every_endpoint_explains_the_same_prediction_of_a_word() -> None:
    text = "It was raining, so Lily could not play "
    best = TextEndpoints("stories").next_token(text)[0]
    assert best["token"] == " outside"
    assert ENDPOINTS.logit_lens(text)["rows"][-1]["probability"] == pytest.approx(best["raw_probability"], rel=1e-3)
    ablated = ENDPOINTS.ablate(text, heads=[[0, 0]])["tokens"]
    before = next(token["before"] for token in ablated if token["token_id"] == best["token_id"])
    assert before == pytest.approx(best["raw_probability"], rel=1e-3)
    assert ENDPOINTS.attribution(text)["token"] == " outside"
    assert ENDPOINTS.attention(text, 0, 0)["tokens"][-1] == " play"
    assert [*TextEndpoints("stories").generate(text, 1, 0)][-1] == "outside"


@pytest.mark.parametrize("against", [None, 17])
def test_what_the_parts_add_sums_to_the_logit(against: int | None) -> None:
    row = logits()[-1]
    found: dict[str, Any] = dict(ENDPOINTS.attribution(DOG, against=against))
    numbers = [found[name] for name in ("token_embedding", "position_embedding", "norm_bias", "rounding")]
    total = sum(numbers) + sum(map(sum, found["heads"])) + sum(found["attn_bias"]) + sum(found["mlp"])
    expected = row.max().item() - (0 if against is None else row[against].item())
    assert found["token_id"] == row.argmax()
    assert found["logit"] == pytest.approx(expected, abs=1e-3)
    assert total == pytest.approx(found["logit"], abs=1e-5)


@pytest.mark.parametrize(
    ("parts", "edits"),
    [
        ({"heads": [[6, 0], [4, 1]]}, Edits(head_scale={(6, 0): 0.0, (4, 1): 0.0})),
        ({"attn_layers": [3]}, Edits(attn_scale={3: 0.0})),
        ({"mlp_layers": [0, 7]}, Edits(mlp_scale={0: 0.0, 7: 0.0})),
    ],
)
def test_ablate_gives_the_best_tokens_of_both_predictions(parts: dict[str, Any], edits: Edits) -> None:
    before, after = (logits(edits=each)[-1].softmax(dim=0) for each in (None, edits))
    found = ENDPOINTS.ablate(DOG, **parts, k=5)
    tokens = found["tokens"]
    assert {token["token_id"] for token in tokens} == {
        *before.topk(5).indices.tolist(),
        *after.topk(5).indices.tolist(),
    }
    assert [token["after"] for token in tokens] == sorted((token["after"] for token in tokens), reverse=True)
    for token in tokens:
        assert token["before"] == pytest.approx(before[token["token_id"]].item(), rel=1e-3, abs=1e-6)
        assert token["after"] == pytest.approx(after[token["token_id"]].item(), rel=1e-3, abs=1e-6)
    bits = (before * (before / after).log2()).sum().item()
    assert found["kl_bits"] == pytest.approx(bits, rel=1e-3)


def test_a_hidden_state_is_that_of_the_trace() -> None:
    trace = get_model().trace(DOG)
    for name, position in (("resid_post", -1), ("mlp_out", 2)):
        found = ENDPOINTS.hidden_state(DOG, 3, position, name)
        assert found["values"] == pytest.approx(trace[f"layers.3.{name}"][0, position].tolist(), abs=1e-4)
    assert ENDPOINTS.hidden_state(DOG, 3)["token"] == " the"


def test_patching_gives_the_sweep_between_what_the_model_predicts() -> None:
    clean, corrupted = "Lily had a cat. Her", "Lily had a dog. Her"
    answer, other = (int(logits(text)[-1].argmax()) for text in (clean, "Once upon a time there was"))
    found = ENDPOINTS.patch(clean, corrupted, answer, other)
    sweep = patch_sweep("stories", clean, corrupted, answer, other)
    assert found["recovered"] == pytest.approx(sweep.recovered.numpy(), abs=1e-4)
    assert (found["clean"], found["corrupted"]) == pytest.approx((sweep.clean, sweep.corrupted), abs=1e-4)
    assert "".join(found["clean_tokens"]) == clean


def test_the_loss_is_the_cross_entropy_of_the_model() -> None:
    ids = get_model().tokenizer.encode(DOG)
    found = ENDPOINTS.loss(DOG)
    losses = F.cross_entropy(logits()[:-1], torch.tensor(ids[1:]), reduction="none")
    assert found["loss"] == pytest.approx(losses.mean().item(), rel=1e-4)
    assert found["perplexity"] == pytest.approx(losses.mean().exp().item(), rel=1e-4)
    assert [token["token_id"] for token in found["tokens"]] == ids[1:]
    assert [token["surprisal"] for token in found["tokens"]] == pytest.approx(
        (losses / torch.tensor(2.0).log()).tolist(), rel=1e-3
    )


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("logit_lens", {"prompt": DOG, "position": 5}, "position must be a whole number between -5 and 4, not 5"),
        ("logit_lens", {"prompt": DOG, "position": "last"}, "position must be"),
        ("logit_lens", {"prompt": DOG, "token_id": 4096}, "token_id must be a whole number between 0 and 4095"),
        ("logit_lens", {"prompt": "a " * 400}, "more than the context of 256"),
        ("attribution", {"prompt": DOG, "against": -1}, "against must be a whole number between 0 and 4095"),
        ("attribution", {"prompt": 5}, "prompt must be text"),
        ("ablate", {"prompt": DOG, "heads": []}, "nothing is switched off"),
        ("ablate", {"prompt": DOG, "heads": "6.0"}, "heads must be a list, not str"),
        (
            "ablate",
            {"prompt": DOG, "heads": [6, 0]},
            r"a head must be given as \(layer, head\), two whole numbers, not 6",
        ),
        ("ablate", {"prompt": DOG, "heads": [[6, {}]]}, r"a head must be given as \(layer, head\)"),
        ("ablate", {"prompt": DOG, "heads": [[6, 6]]}, "head 6 does not exist"),
        ("ablate", {"prompt": DOG, "attn_layers": [8]}, "layer 8 does not exist"),
        ("ablate", {"prompt": DOG, "mlp_layers": [True]}, "a layer must be given as a whole number, not True"),
        ("ablate", {"prompt": DOG, "mlp_layers": [0], "k": 0}, "k must be"),
        ("hidden_state", {"prompt": DOG, "layer": 0, "name": "attn_q"}, "can be patched, not 'attn_q'"),
        ("hidden_state", {"prompt": DOG, "layer": 8}, "layer must be a whole number between 0 and 7"),
        ("patch", {"clean": DOG, "corrupted": "Once"}, "must have the same number of tokens"),
        ("patch", {"clean": "a " * 80, "corrupted": "b"}, "up to 64 tokens"),
        ("loss", {"text": "a"}, "a single token"),
        ("loss", {"text": ""}, "There is no text"),
        ("loss", {"text": "a " * 5000}, "the limit here is 4,096"),
        ("loss", {"text": None}, "text must be text"),
        ("loss", {"text": DOG, "model": "gpt9"}, "there is no model"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(name: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        getattr(ENDPOINTS, name)(**arguments)


def test_steering_writes_both_texts_in_one_place_of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted, paired = list[int](), analysis.paired_steps

    def steps(*arguments: Any) -> Any:
        admitted.append(get_model().engine.admission.n_admitted)
        return paired(*arguments)

    monkeypatch.setattr(analysis, "paired_steps", steps)
    found = ENDPOINTS.steer(DOG, "rain", max_new_tokens=4)
    assert admitted == [1]
    assert found["without"] != found["steered"]
    assert ENDPOINTS.steer(DOG, "rain", max_new_tokens=0)["without"] == ""
