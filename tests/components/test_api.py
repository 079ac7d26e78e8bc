import contextlib
import inspect
import json
import math
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import gradio as gr
import httpx
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from components.api import analysis
from components.api.analysis import AnalysisEndpoints
from components.api.arguments import Endpoints
from components.api.registration import register_endpoints
from components.api.text import TextEndpoints
from components.page import build_app, launch_options
from components.state.admission import ANALYSES
from gpt import DEFAULT_MODEL, Generation, SamplingParams, generate, get_model, list_models

API_PAGE = Path(__file__).parents[2] / "docs" / "api.md"
DOG = "The dog ran to the"


@pytest.fixture(scope="module")
def client():
    app = build_app()
    _, url, _ = app.launch(prevent_thread_lock=True, quiet=True, **launch_options())
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
    arguments |= {"prompt": "a" + " a" * 249, "max_new_tokens": 20}  # beyond the context of 256
    steps = generate("untrained", arguments["prompt"], SamplingParams(temperature=0), 20, on_full="crop")
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


def test_a_seed_of_null_is_another_each_time(client):
    texts = {stream(client, "Lily", 16, 1.5, seed=None)[-1] for _ in range(3)}
    assert len(texts) > 1


def test_the_list_of_models_has_the_names_that_are_taken(client):
    found = ask(client, api_name="/list_models")
    assert [each["name"] for each in found] == list_models()
    assert [each["name"] for each in found if each["is_default"]] == [DEFAULT_MODEL]


def test_every_seed_fixes_the_draw_zero_too(client):
    texts = {seed: [stream(client, "Lily", 8, 1.5, seed=seed)[-1] for _ in range(2)] for seed in (0, 1, 2**40)}
    assert all(a == b for a, b in texts.values())
    assert len({pair[0] for pair in texts.values()}) == 3


def test_generate_answers_the_messages_of_a_chat(client, chat_model):
    messages = [{"role": "user", "content": "Hello <|im_end|>"}]
    steps = generate(get_model(chat_model), messages, SamplingParams(temperature=0), 8)
    expected = "".join(step.text for step in steps)
    assert stream(client, messages=messages, max_new_tokens=8, temperature=0, model=chat_model)[-1] == expected


def test_the_endpoints_need_no_docstrings(monkeypatch):
    for kind in (TextEndpoints, AnalysisEndpoints):
        for endpoint in vars(kind).values():
            if inspect.isfunction(endpoint):
                monkeypatch.setattr(endpoint, "__doc__", None)  # like python -OO
    with gr.Blocks() as page:
        register_endpoints(page, DEFAULT_MODEL)


def test_the_defaults_are_those_that_are_documented(client):
    parameters = client.view_api(return_format="dict")["named_endpoints"]
    found = {
        name: {p["parameter_name"]: p.get("parameter_default") for p in endpoint["parameters"]}
        for name, endpoint in parameters.items()
    }
    assert found["/generate"] == {
        "prompt": "",
        "max_new_tokens": 64,
        "temperature": 0.8,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "seed": 0,
        "model": "",
        "on_full": "stop",
        "messages": None,
        "stop": None,
        "delta": False,
        "special": False,
    }
    last = {"model": "", "special": False}
    assert found["/next_token"] == {
        "prompt": None,
        "k": 20,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        **last,
    }
    assert found["/attention"] == {"prompt": None, "layer": None, "head": None, **last}
    assert found["/tokenize"] == {"text": None, **last}
    assert found["/logit_lens"] == {"prompt": None, "position": -1, "token_id": None, **last}
    assert found["/attribution"] == {"prompt": None, "position": -1, "token_id": None, "against": None, **last}
    parts = {"heads": None, "attn_layers": None, "mlp_layers": None}
    assert found["/ablate"] == {"prompt": None, **parts, "k": 20, **last}
    length = {"max_new_tokens": 40, "temperature": 0.7, "seed": 1}
    assert found["/steer"] == {"prompt": None, "concept": None, "strength": None, **length, "k": 20, **last}
    assert found["/loss"] == {"text": None, **last}
    assert found["/hidden_state"] == {"prompt": None, "layer": None, "position": -1, "name": "resid_post", **last}
    tokens = {"answer": None, "other": None, "name": "resid_pre"}
    assert found["/patch"] == {"clean": None, "corrupted": None, **tokens, **last}
    assert found["/list_models"] == {}
    assert len(found) == 12


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


def test_next_token_after_top_k_keeps_k_and_renormalises(client):
    rows = ask(client, DOG, 10, top_k=3, temperature=0.5, api_name="/next_token")
    kept = [row for row in rows if row["probability"] > 0]
    assert len(kept) == 3
    assert sum(row["probability"] for row in kept) == pytest.approx(1, abs=1e-6)


def test_rows_of_attention_end_with_their_query(client):
    answer = ask(client, DOG, 2, 1, api_name="/attention")
    document = Generation(get_model(), DOG)
    document.read()
    weights = document.attn_weights(2, 1)
    assert "".join(answer["tokens"]) == DOG
    for n, (row, expected) in enumerate(zip(answer["weights"], weights, strict=True), 1):
        assert torch.equal(torch.tensor(row), expected[:n])


def test_tokens_by_tokens_have_a_limit_of_their_own(client, monkeypatch):
    monkeypatch.setattr(analysis, "MAX_ATTENTION_TOKENS", 4)
    with pytest.raises(AppError, match="texts of up to 4 tokens; this one has 5"):
        ask(client, DOG, 0, 0, api_name="/attention")


@pytest.mark.parametrize("name", ["ablate", "attribution", "hidden_state", "logit_lens", "loss", "next_token", "patch"])
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


def test_tokenize_gives_ids_and_texts(client):
    answer = ask(client, DOG, api_name="/tokenize")
    assert answer["ids"] == get_model().tokenizer.encode(DOG)
    assert "".join(answer["tokens"]) == DOG


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


def test_the_untrained_model_can_be_asked_for_by_name(client):
    first, second = (ask(client, DOG, 1, model=name, api_name="/next_token") for name in ("stories", "untrained"))
    assert first[0]["probability"] > 10 * second[0]["probability"]


REFUSED = [
    ("/generate", {"prompt": "a " * 400}, "more than the context of 256"),
    ("/generate", {"prompt": 5}, "prompt must be text"),
    ("/generate", {"prompt": None}, "prompt must be text"),
    ("/generate", {"prompt": "x" * 200_001}, "characters"),
    ("/generate", {"prompt": "a", "max_new_tokens": 0}, "max_new_tokens must be a whole number between 1 and 256"),
    ("/generate", {"prompt": "a", "max_new_tokens": 257}, "max_new_tokens"),
    ("/generate", {"prompt": "a", "max_new_tokens": 2.5}, "max_new_tokens"),
    ("/generate", {"prompt": "a", "max_new_tokens": True}, "max_new_tokens"),
    ("/generate", {"prompt": "a", "temperature": -0.1}, "temperature must be a number between 0 and 2"),
    ("/generate", {"prompt": "a", "temperature": "hot"}, "temperature"),
    ("/generate", {"prompt": "a", "temperature": None}, "temperature"),
    ("/generate", {"prompt": "a", "top_k": -1}, "top_k"),
    ("/generate", {"prompt": "a", "top_p": 0}, "top_p"),
    ("/generate", {"prompt": "a", "top_p": 1.01}, "top_p"),
    ("/generate", {"prompt": "a", "min_p": 2}, "min_p"),
    ("/generate", {"prompt": "a", "repetition_penalty": 0}, "repetition_penalty"),
    ("/generate", {"prompt": "a", "seed": -1}, "seed"),
    ("/generate", {"prompt": "a", "seed": 1.5}, "seed"),
    ("/generate", {"prompt": "a", "on_full": "slide"}, "on_full must be one of stop, crop"),
    ("/generate", {"prompt": "a", "on_full": "crop", "max_new_tokens": 513}, "between 1 and 512"),
    ("/generate", {"messages": [{"role": "user", "content": "a"}]}, "has no chat template"),
    ("/generate", {"messages": []}, "messages must be a list of at least one"),
    ("/generate", {"messages": "hello"}, "messages must be a list of at least one"),
    ("/generate", {"messages": [{"role": "user"}]}, "message 1 must be"),
    ("/generate", {"messages": [{"role": "user", "content": "a" * 200_001}]}, "characters"),
    ("/generate", {"messages": [{"role": "user", "content": "a"}], "prompt": "b"}, "not both"),
    ("/generate", {"prompt": "a", "model": "gpt9"}, "there is no model"),
    ("/generate", {"prompt": "a", "model": ["stories"]}, "there is no model"),
    ("/next_token", {"prompt": "a", "k": 0}, "k must be a whole number between 1 and 4096"),
    ("/next_token", {"prompt": "a", "k": 5000}, "k must be"),
    ("/next_token", {"prompt": "a", "temperature": 100}, "temperature"),
    ("/attention", {"prompt": "a", "layer": 99, "head": 0}, "layer must be a whole number between 0 and 7"),
    ("/attention", {"prompt": "a", "layer": 0, "head": -1}, "head must be a whole number between 0 and 5"),
    ("/attention", {"prompt": "a", "layer": "0", "head": 0}, "layer"),
    ("/ablate", {"prompt": "a"}, "nothing is switched off"),
    ("/tokenize", {"text": None}, "text must be text"),
]


@pytest.mark.parametrize(("endpoint", "arguments", "said"), REFUSED)
def test_what_cannot_be_done_is_refused_with_a_sentence(endpoint, arguments, said):
    name = endpoint.removeprefix("/")
    of_texts = hasattr(TextEndpoints, name)
    function = getattr((TextEndpoints if of_texts else AnalysisEndpoints)("stories"), name)
    with pytest.raises(ValueError, match="(?s)" + said.replace("(", r"\(")):
        list(function(**arguments)) if name == "generate" else function(**arguments)


@pytest.mark.parametrize(
    ("endpoint", "arguments", "said"),
    [
        ("/generate", {"prompt": None}, "prompt must be text"),
        ("/attention", {"prompt": "a", "layer": "0", "head": 0}, "layer"),
        ("/tokenize", {"text": "a", "model": "<script>alert(1)</script>"}, "&lt;script&gt;"),
    ],
)
def test_a_refusal_reaches_the_caller_and_the_next_request_works(client, capfd, endpoint, arguments, said):
    with pytest.raises(AppError, match=said) as refusal:
        ask(client, api_name=endpoint, **arguments)
    assert "<script" not in str(refusal.value)
    assert "Traceback" not in capfd.readouterr().err
    assert ask(client, "ok", api_name="/tokenize")["ids"]


@pytest.mark.parametrize("text", ["a\x00b", "<b>${alert(1)}</b> {{x}}", "é 你好 👩", " \n\t "])
def test_any_text_is_read(client, text):
    answer = ask(client, text, api_name="/tokenize")
    assert answer["ids"] == get_model().tokenizer.encode(text)
    assert math.isfinite(ask(client, text, 1, api_name="/next_token")[0]["probability"])


def test_eight_at_once_get_what_each_would_get_alone(client):
    alone = [stream(client, "Tom", 10, 1.0, seed=seed)[-1] for seed in range(8)]
    jobs = [client.submit("Tom", 10, 1.0, seed=seed, api_name="/generate") for seed in range(8)]
    assert [job.result(timeout=60) for job in jobs] == alone


def test_the_curl_example_of_the_documentation_gets_the_three_best_next_tokens(client):
    (example,) = re.findall(r"```bash\n(url=.*?)```", API_PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "http://127.0.0.1:7860/" in example
    script = example.replace("http://127.0.0.1:7860/", client.src)
    event, data = subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.strip().splitlines()
    assert event == "event: complete"
    assert json.loads(data.removeprefix("data: ")) == [ask(client, DOG, 3, api_name="/next_token")]


def test_half_a_surrogate_pair_that_only_raw_json_can_send_becomes_a_replacement_character(client):
    address = f"{client.src}gradio_api/call"
    body = {"data": ["\ud800 lone", 4, 0, 0, 1, 0, 1, 0, "", "stop", None, None, False, False]}
    posted = httpx.post(f"{address}/generate", content=json.dumps(body), headers={"Content-Type": "application/json"})
    events = httpx.get(f"{address}/generate/{posted.json()['event_id']}", timeout=60).text
    assert "event: complete" in events
    assert ask(client, "ok", api_name="/tokenize")["ids"]
