import gc
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import gradio
import httpx
import huggingface_hub
import pytest

import app
from gpt.models.registry import remove_model
from gpt.models.sources import DEFAULT_MODEL

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Restore the garbage collector, which `app.main` leaves disabled."""
    yield
    gc.unfreeze()
    gc.enable()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*arguments: str, **environment: str) -> subprocess.Popen:
    kept = {name: value for name, value in os.environ.items() if name not in ("PORT", "GRADIO_SERVER_PORT")}
    return subprocess.Popen(
        [sys.executable, "app.py", *arguments],
        cwd=ROOT,
        env={**kept, "HF_HUB_OFFLINE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refused(*arguments: str, **environment: str) -> str:
    """Run the app with arguments that it rejects, and return its message: one line, no traceback, exit code not 0."""
    process = start(*arguments, **environment)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "Traceback" not in errors
    return errors


def test_it_says_where_it_is_ready_serves_the_page_with_plotly_and_ends_texts_when_it_is_terminated():
    port = free_port()
    process = start("--log", PORT=str(port))
    try:
        line = process.stdout.readline()
        assert line == f"Glassbox GPT is ready: http://127.0.0.1:{port}/\n"
        page = httpx.get(f"http://127.0.0.1:{port}/").text
        script = re.search(r"glassbox/plotly-[\d.]+\.min\.js", page).group()
        answer = httpx.get(f"http://127.0.0.1:{port}/{script}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert str(ROOT) not in page
        tools = httpx.get(f"http://127.0.0.1:{port}/gradio_api/mcp/schema").json()
        assert {tool["name"] for tool in tools} == {
            *("generate", "next_token", "tokenize", "attention", "logit_lens", "attribution", "ablate", "loss"),
            *("hidden_state", "patch", "steer", "list_models"),
        }
        url = f"http://127.0.0.1:{port}/gradio_api/call/v2/generate"
        body = {"prompt": "Once upon a time", "temperature": 0}
        events = f"{url}/{httpx.post(url, json=body).json()['event_id']}"
        assert httpx.get(f"http://127.0.0.1:{port}/gradio_api/proxy=a").status_code == 404
        with httpx.stream("GET", events, timeout=60) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: generating"
            process.terminate()
            assert "event: complete" in [*lines]
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=60)
    logged = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert [line["event"] for line in logged] == [
        "model loaded",
        "model loaded",
        "start",
        "request refused",
        "shutdown",
    ]
    assert (logged[0]["model"], logged[2]["port"], logged[3]["route"], logged[4]["stopped"]) == (
        DEFAULT_MODEL,
        port,
        "closed",
        0,
    )
    assert "Once upon" not in errors
    said = [line for line in errors.splitlines() if not line.startswith("{")]
    assert (process.returncode, said[-1].endswith("/gradio_api/mcp/")) == (0, True)  # the address of the MCP tools


@pytest.fixture
def refusal(monkeypatch, capfd) -> Callable[..., str]:
    """Return a function that runs the app in this process and returns its one-line message. Loaded models stay."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr("gpt.models.registry.configure", lambda **options: None)
        monkeypatch.setattr(sys, "argv", ["app.py", *arguments])
        assert app.main() == 1
        errors = capfd.readouterr().err
        assert "Traceback" not in errors
        assert errors.count("\n") == 1
        return errors

    return run


def test_a_used_port_is_one_clear_line(refusal):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} of 127.0.0.1 is in use or not allowed: choose another with --port" in refusal(
            "--port", port
        )


def test_an_address_of_another_computer_is_named_as_the_reason(refusal):
    assert "this computer has no address 192.0.2.1: choose another with --host" in refusal("--host", "192.0.2.1")


@pytest.mark.parametrize(
    ("arguments", "environment", "public"),
    [
        ([], {}, False),
        (["--public"], {}, True),
        (["--share"], {}, True),
        (["--host", "0.0.0.0"], {}, True),
        ([], {"SPACE_ID": "someone/space"}, True),
    ],
)
def test_limits_for_strangers_are_on_wherever_others_can_open_the_page(monkeypatch, arguments, environment, public):
    monkeypatch.setattr(sys, "argv", ["app.py", *arguments])
    monkeypatch.delenv("SPACE_ID", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert app.is_public(app.parse_arguments()) == public


def test_options_of_the_environment_come_before_those_of_the_command_line(monkeypatch):
    monkeypatch.setenv("GLASSBOX_OPTIONS", "--model 'my model' --precision int8 --allow gpt2")
    monkeypatch.setattr(sys, "argv", ["app.py", "--precision", "half"])
    given = app.parse_arguments()
    assert (given.model, given.precision, given.allow) == ("my model", "half", ["gpt2"])


def test_pages_may_be_followed_if_the_command_line_or_the_environment_says_so(monkeypatch):
    found = []
    for argument, value in (([], ""), (["--class"], ""), ([], "1")):
        monkeypatch.setattr(sys, "argv", ["app.py", *argument])
        monkeypatch.setenv("GLASSBOX_CLASS", value)
        found.append(app.parse_arguments().classes)
    assert found == [False, True, True]


def test_an_unknown_model_is_one_clear_line(refusal):
    assert "no-such-model" in refusal("--model", "no-such-model")


def test_an_adapters_base_model_is_the_one_on_the_command_line(refusal, tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "stories"}')
    assert "changes the model nowhere, which is not here" in refusal("--model", str(tmp_path), "--base", "nowhere")
    remove_model(str(tmp_path))
    assert "but stories is not an adapter" in refusal("--model", "stories", "--base", "poems")


def test_a_model_that_cannot_be_fetched_is_replaced_by_no_other(refusal, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    try:
        assert "connect to the internet" in refusal("--model", "someone/model")
    finally:
        remove_model("someone/model")


def test_without_the_package_mcp_it_says_that_agents_get_no_tools(monkeypatch, capsys):
    page = SimpleNamespace(
        launch=lambda **options: None,
        local_url="here",
        server_port=7860,
        share_url=None,
        mcp_server=False,
        mcp_error="the package mcp is missing",
        block_thread=lambda: None,
    )
    monkeypatch.setattr("components.page.build_app", lambda *given, **options: page)
    monkeypatch.setattr("gpt.models.registry.configure", lambda **options: None)
    monkeypatch.setattr(sys, "argv", ["app.py"])
    assert app.main() == 0
    said = capsys.readouterr()
    assert "MCP tools are unavailable: the package mcp is missing" in said.err
    assert said.out == "Glassbox GPT is ready: here\n"


def test_no_mcp_starts_without_tools_for_agents(monkeypatch, capsys):
    launched = {}
    page = SimpleNamespace(
        launch=launched.update,
        local_url="here",
        server_port=7860,
        share_url=None,
        mcp_server=False,
        block_thread=lambda: None,
    )
    monkeypatch.setattr("components.page.build_app", lambda *given, **options: page)
    monkeypatch.setattr("gpt.models.registry.configure", lambda **options: None)
    monkeypatch.setitem(sys.modules, "mcp", sys.modules.get("mcp"))
    monkeypatch.setattr(sys, "argv", ["app.py", "--no-mcp"])
    assert app.main() == 0
    assert launched["mcp_server"] is False
    assert capsys.readouterr() == ("Glassbox GPT is ready: here\n", "")


@pytest.mark.parametrize("port", ["http", "0", "70000"])
def test_a_port_that_is_none_is_refused(port):
    assert "port" in refused("--port", port)
    assert "port" in refused(GRADIO_SERVER_PORT=port)


def test_a_function_is_called_again_and_again_in_the_background() -> None:
    called = threading.Semaphore(0)
    app.every(0.01, called.release)
    for _ in range(2):
        assert called.acquire(timeout=10)


def test_gradio_makes_no_table_of_past_events() -> None:
    queue = gradio.Blocks()._queue  # it reads what app.py sets in the environment
    assert queue.ANALYTICS_MAX_EVENTS == 1
    assert queue.ANAYLTICS_CACHE_FREQUENCY >= 10**9
