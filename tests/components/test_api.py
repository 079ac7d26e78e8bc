"""The endpoints: over the network, their analyses compared with plain passes of the model, and what they refuse."""

from __future__ import annotations

import contextlib
import json
import math
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError
from torch.nn import functional as F

from components.api import analysis
from components.api.analysis import AnalysisEndpoints
from components.api.arguments import Endpoints
from components.api.registration import answering, register_endpoints
from components.api.text import TextEndpoints
from components.page import launch_options
from components.state.admission import ANALYSES
from gpt import DEFAULT_MODEL, Edits, SamplingParams, generate, get_model, list_models
from gpt.analysis import patch_sweep
from tests.components.drawing import as_read

API_PAGE = Path(__file__).parents[2] / "docs" / "api.md"
DOG = "The dog ran to the"


@pytest.fixture(scope="module")
def client():
    with gr.Blocks() as app:
        register_endpoints(app, DEFAULT_MODEL)
    options = {"app_kwargs": launch_options()["app_kwargs"], "ssr_mode": False}
    _, url, _ = app.launch(prevent_thread_lock=True, quiet=True, **options)
    yield Client(url, verbose=False)
    app.server.force_exit = True  # do not wait for the client's open stream
    app.close(verbose=False)


def ask(client, *args, api_name, **kwargs):
    return client.submit(*args, api_name=api_name, **kwargs).result(timeout=60)


def stream(client, *args, **kwargs):
    job = client.submit(*args, api_name="/generate", **kwargs)
    final = job.result(timeout=60)
    outputs = job.outputs()
    assert outputs[-1] == final
    return outputs


def test_generate_yields_the_new_text_so_far_first_empty_then_once_per_token(client):
    texts = stream(client, "Once upon a time", 12, 0.8, seed=5)
    steps = list(generate(get_model(), "Once upon a time", SamplingParams(temperature=0.8, seed=5), 12))
    assert texts[0] == ""
    assert len(texts) == 1 + len(steps)
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert texts[-1] == "".join(step.text for step in steps)


def test_generate_goes_on_past_a_full_context_where_it_is_asked_to(client):
    arguments = {"prompt": "a " * 10, "max_new_tokens": 257, "temperature": 0, "model": "untrained"}
    with pytest.raises(AppError, match="max_new_tokens"):
        stream(client, **arguments)
    arguments |= {"prompt": "a" + " a" * 249, "max_new_tokens": 9}  # beyond the context of 256
    steps = generate("untrained", arguments["prompt"], SamplingParams(temperature=0), 9, on_full="crop")
    assert stream(client, **arguments, on_full="crop")[-1] == "".join(step.text for step in steps)


def test_generate_ends_before_a_stop_text_and_can_send_only_what_is_new(client):
    arguments = {"prompt": "Once upon a time", "max_new_tokens": 30, "temperature": 0}
    whole = stream(client, **arguments)[-1]
    at = whole.index(" named Lily")
    texts = stream(client, **arguments, stop=["never", "med Li", ""])
    assert texts[-1] == whole[: at + 3]
    assert all(texts[-1].startswith(text) for text in texts)
    for stop in (None, ["med Li"]):
        deltas = stream(client, **arguments, stop=stop, delta=True)
        assert "".join(deltas) == (whole if stop is None else whole[: at + 3])


def test_the_list_of_models_has_the_names_that_are_taken(client):
    found = ask(client, api_name="/list_models")
    assert [each["name"] for each in found] == list_models()
    assert [each["name"] for each in found if each["is_default"]] == [DEFAULT_MODEL]


def test_generate_answers_the_messages_of_a_chat(client, chat_model):
    messages = [{"role": "user", "content": "Hello <|im_end|>"}]
    steps = generate(get_model(chat_model), messages, SamplingParams(temperature=0), 8)
    expected = "".join(step.text for step in steps)
    assert stream(client, messages=messages, max_new_tokens=8, temperature=0, model=chat_model)[-1] == expected


def test_every_parameter_and_every_returned_value_is_described(client):
    for endpoint in client.view_api(return_format="dict")["named_endpoints"].values():
        for described in (*endpoint["parameters"], *endpoint["returns"]):
            assert len(described["python_type"]["description"].split()) > 1
            assert "Any" not in described["python_type"]["type"]
        assert [each["label"] for each in endpoint["parameters"]] == [
            each["parameter_name"] for each in endpoint["parameters"]
        ]


def test_next_token_is_sorted_and_equals_the_models_own_softmax(client):
    rows = ask(client, DOG, 50, api_name="/next_token")
    loaded = get_model()
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([loaded.tokenizer.encode(DOG)]))[0, -1]
    p = logits.softmax(dim=0)
    assert len(rows) == 50
    assert set(rows[0]) == {"token_id", "token", "probability", "raw_probability", "log_probability"}
    assert [row["probability"] for row in rows] == sorted((row["probability"] for row in rows), reverse=True)
    for row in rows:
        assert row["raw_probability"] == pytest.approx(p[row["token_id"]].item(), rel=1e-4)
        assert math.exp(row["log_probability"]) == pytest.approx(row["raw_probability"], rel=1e-4)
        assert row["token"] == loaded.tokenizer.decode([row["token_id"]])


def test_rows_of_attention_end_with_their_query(client):
    answer = ask(client, DOG, 2, 1, api_name="/attention")
    weights = as_read(get_model(), DOG).attn_weights(2, 1)
    assert "".join(answer["tokens"]) == DOG
    for n, (row, expected) in enumerate(zip(answer["weights"], weights, strict=True), 1):
        assert torch.equal(torch.tensor(row), expected[:n])


def test_tokens_by_tokens_have_a_limit_of_their_own(client, monkeypatch):
    monkeypatch.setattr(analysis, "MAX_ATTENTION_TOKENS", 4)
    with pytest.raises(AppError, match="texts of up to 4 tokens; this one has 5"):
        ask(client, DOG, 0, 0, api_name="/attention")


@pytest.mark.parametrize("name", ["ablate", "hidden_state", "loss", "next_token", "patch"])
def test_numbers_have_the_digits_of_float32(client, name):
    arguments = {"ablate": (DOG, [[6, 0]]), "hidden_state": (DOG, 5), "patch": (DOG, "The cat ran to the")}
    answer = json.dumps(ask(client, *arguments.get(name, (DOG,)), api_name=f"/{name}"))
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", answer)]
    assert numbers == [float(f"{x:.9g}") for x in numbers] != []


def test_analyses_wait_for_a_slot_once_their_model_is_loaded(client, monkeypatch):
    waiting, find = [], Endpoints.find_model
    monkeypatch.setattr(
        Endpoints, "find_model", lambda self, name: waiting.append(ANALYSES.n_waiting) or find(self, name)
    )
    with contextlib.ExitStack() as others:
        for _ in range(ANALYSES.limit):
            others.enter_context(ANALYSES.enter())
        job = client.submit(DOG, api_name="/logit_lens")
        while not ANALYSES.n_waiting:
            assert not job.done()
        assert waiting == [0]
        assert ask(client, DOG, 3, api_name="/next_token")
    assert job.result(timeout=60)["rows"]


def test_an_empty_prompt_starts_from_end_of_text(client):
    assert ask(client, "", 0, 0, api_name="/attention")["tokens"] == ["<|endoftext|>"]
    assert len(stream(client, "", 3)) == 4


def test_special_token_text_is_plain_text(client):
    eot, text = get_model().tokenizer.eot_id, "The end.<|endoftext|>Once"
    assert eot not in ask(client, text, api_name="/tokenize")["ids"]
    ids = ask(client, text, special=True, api_name="/tokenize")["ids"]
    assert ids == [*get_model().tokenizer.encode("The end."), eot, *get_model().tokenizer.encode("Once")]
    steps = generate(get_model(), ids, SamplingParams(temperature=0), 3)
    assert stream(client, text, 3, 0, special=True)[-1] == "".join(step.text for step in steps)
    assert ask(client, text, 0, 0, special=True, api_name="/attention")["tokens"][-2:] == ["<|endoftext|>", "Once"]


REFUSED = [
    ("generate", {"prompt": "a " * 400}, "more than the context of 256"),
    ("generate", {"prompt": None}, "prompt: Input should be a valid string"),
    ("generate", {"prompt": "x" * 200_001}, "characters"),
    ("generate", {"prompt": "a", "max_new_tokens": 257}, "max_new_tokens must be a whole number between 1 and 256"),
    ("generate", {"prompt": "a", "temperature": "hot"}, "temperature"),
    ("generate", {"prompt": "a", "top_p": 1.01}, "top_p"),
    ("generate", {"prompt": "a", "seed": 1.5}, "seed"),
    ("generate", {"prompt": "a", "on_full": "slide"}, "on_full must be one of stop, crop"),
    ("generate", {"prompt": "a", "on_full": "crop", "max_new_tokens": 513}, "between 1 and 512"),
    ("generate", {"messages": [{"role": "user", "content": "a"}]}, "has no chat template"),
    ("generate", {"messages": "hello"}, "messages: Input should be a valid list"),
    ("generate", {"messages": [{"role": "user"}]}, "Message 1 must be"),
    ("generate", {"messages": [{"role": "user", "content": "a" * 200_001}]}, "characters"),
    ("generate", {"messages": [{"role": "user", "content": "a"}], "prompt": "b"}, "not both"),
    ("generate", {"prompt": "a", "model": ["stories"]}, "model: Input should be a valid string"),
    ("next_token", {"prompt": "a", "k": 5000}, "k must be a whole number between 1 and 4096"),
    ("next_token", {"prompt": "a", "k": "5"}, "k: Input should be a valid integer"),
    ("next_token", {"prompt": "a", "k": True}, "k: Input should be a valid integer"),
    ("next_token", {"prompt": "a", "temperature": "1"}, "temperature: Input should be a valid number"),
    ("attention", {"prompt": "a", "layer": 99, "head": 0}, "layer must be a whole number between 0 and 7"),
    ("logit_lens", {"prompt": DOG, "position": 5}, "position must be a whole number between -5 and 4, not 5"),
    ("logit_lens", {"prompt": DOG, "token_id": 4096}, "token_id must be a whole number between 0 and 4095"),
    ("ablate", {"prompt": DOG, "heads": "6.0"}, "heads: Input should be a valid list"),
    ("ablate", {"prompt": DOG, "heads": [[6]]}, "A head must be given as (layer, head)"),
    ("ablate", {"prompt": DOG, "heads": [[6, 6]]}, "Head 6 does not exist"),
    ("ablate", {"prompt": DOG, "mlp_layers": [0.5]}, "mlp_layers.0: Input should be a valid integer"),
    ("ablate", {"prompt": DOG}, "Nothing is switched off"),
    ("hidden_state", {"prompt": DOG, "layer": 0, "name": "attn_q"}, "can be patched, not 'attn_q'"),
    ("patch", {"clean": DOG, "corrupted": "Once"}, "must have the same number of tokens"),
    ("patch", {"clean": "a " * 80, "corrupted": "b"}, "up to 64 tokens"),
    ("loss", {"text": ""}, "There is no text"),
    ("loss", {"text": "a " * 5000}, "the limit here is 4,096"),
]


@pytest.mark.parametrize(("name", "arguments", "said"), REFUSED)
def test_what_cannot_be_done_is_refused_with_a_sentence(name, arguments, said):
    kind = TextEndpoints if hasattr(TextEndpoints, name) else AnalysisEndpoints
    with pytest.raises(gr.Error, match=re.escape(said)):
        list(answering(getattr(kind("stories"), name), "model")(**arguments))


@pytest.mark.parametrize(
    ("endpoint", "arguments", "said"),
    [
        ("/generate", {"prompt": None}, "prompt: Input should"),
        ("/attention", {"prompt": "a", "layer": "a", "head": 0}, "layer"),
        ("/tokenize", {"text": "a", "model": "<script>alert(1)</script>"}, "&lt;script&gt;"),
    ],
)
def test_a_refusal_reaches_the_caller_and_the_next_request_works(client, capfd, endpoint, arguments, said):
    with pytest.raises(AppError, match=said) as refusal:
        ask(client, api_name=endpoint, **arguments)
    assert "<script" not in str(refusal.value)
    assert "Traceback" not in capfd.readouterr().err
    assert ask(client, "ok", api_name="/tokenize")["ids"]


def test_the_curl_example_of_the_documentation_gets_the_three_best_next_tokens(client):
    (example,) = re.findall(r"```bash\n(url=.*?)```", API_PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "http://127.0.0.1:7860/" in example
    script = example.replace("http://127.0.0.1:7860/", client.src)
    event, data = subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.strip().splitlines()
    assert event == "event: complete"
    assert json.loads(data.removeprefix("data: ")) == [ask(client, DOG, 3, api_name="/next_token")]


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


def test_steering_writes_both_texts_in_one_place_of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted, paired = list[int](), analysis.together

    def steps(*arguments: Any) -> Any:
        admitted.append(get_model().engine.admission.n_admitted)
        return paired(*arguments)

    monkeypatch.setattr(analysis, "together", steps)
    found = ENDPOINTS.steer(DOG, "rain", max_new_tokens=4)
    assert admitted == [1]
    assert found["without"] != found["steered"]
    assert ENDPOINTS.steer(DOG, "rain", max_new_tokens=0)["without"] == ""
