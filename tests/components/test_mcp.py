"""The endpoints as tools of an MCP server, called by the official client."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, Tool

from components.api.registration import register_endpoints
from components.events import NO_PROGRESS
from components.page import launch_options
from gpt import DEFAULT_MODEL, SamplingParams, generate
from tests.asynchronous import run

API_PAGE = Path(__file__).parents[2].joinpath("docs", "api.md").read_text(encoding="utf-8")
DOG = "The dog ran to the"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with gr.Blocks() as page:
        register_endpoints(page, DEFAULT_MODEL)
        gr.Button().click(print, **NO_PROGRESS)  # like every event of the page
    options = {"app_kwargs": launch_options()["app_kwargs"], "ssr_mode": False}
    page.launch(prevent_thread_lock=True, quiet=True, mcp_server=True, **options)
    yield f"{page.local_url}gradio_api/mcp/"
    page.server.force_exit = True  # do not wait for the stream of the server's own client
    page.close(verbose=False)


def tools(url: str) -> dict[str, Tool]:
    async def listed() -> list[Tool]:
        async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            return (await session.list_tools()).tools

    return {tool.name: tool for tool in run(listed())}


def call(url: str, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
    async def answers() -> list[CallToolResult]:
        async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            return await asyncio.gather(*(session.call_tool(name, arguments) for name, arguments in calls))

    return run(answers())


def text_of(answer: CallToolResult) -> str:
    [content] = answer.content
    assert content.type == "text"
    return content.text


CALLS: dict[str, dict[str, Any]] = {
    "generate": {"prompt": DOG, "max_new_tokens": 4, "temperature": 0},
    "next_token": {"prompt": DOG, "k": 2},
    "tokenize": {"text": DOG},
    "attention": {"prompt": DOG, "layer": 0, "head": 0},
    "logit_lens": {"prompt": DOG, "token_id": None},
    "attribution": {"prompt": DOG},
    "ablate": {"prompt": DOG, "heads": [[6, 0]], "k": 2},
    "steer": {"prompt": DOG, "concept": "dog", "max_new_tokens": 4, "k": 2},
    "hidden_state": {"prompt": DOG, "layer": 2},
    "patch": {"clean": "Lily had a cat. Her", "corrupted": "Lily had a dog. Her"},
    "list_models": {},
    "loss": {"text": DOG},
}


def test_every_endpoint_and_no_event_of_the_page_is_a_tool_described_with_all_arguments(url: str) -> None:
    found = tools(url)
    assert found.keys() == CALLS.keys()
    for tool in found.values():
        assert tool.description is not None
        assert "Returns: " in tool.description
        assert tool.annotations is not None
        assert (tool.annotations.readOnlyHint, tool.annotations.destructiveHint) == (True, False)
        for argument in tool.inputSchema["properties"].values():
            assert len(argument["description"].split()) > 1


def test_every_tool_answers_also_at_once(url: str) -> None:
    answers = dict(zip(CALLS, call(url, *CALLS.items()), strict=True))
    assert [name for name, answer in answers.items() if answer.isError] == []
    steps = generate(DEFAULT_MODEL, DOG, SamplingParams(temperature=0), 4)
    written = answers.pop("generate")
    assert text_of(written) == "".join(step.text for step in steps)
    assert written.structuredContent == {"result": text_of(written)}
    found = {name: json.loads(text_of(answer)) for name, answer in answers.items()}
    for name, answer in answers.items():
        value = found[name]
        assert answer.structuredContent == (value if isinstance(value, dict) else {"result": value})
    assert "".join(found["tokenize"]["tokens"]) == DOG
    assert found["logit_lens"]["chosen"] == found["next_token"][0]["token"]


WHOLE: list[tuple[str, dict[str, Any]]] = [
    ("next_token", {"prompt": DOG, "k": 1, "top_k": 3, "temperature": 1}),
    ("logit_lens", {"prompt": DOG, "position": 2, "token_id": 17}),
    ("ablate", {"prompt": DOG, "heads": [[6, 0], [1, 2]], "attn_layers": [3], "mlp_layers": [0], "k": 1}),
]


def in_floats(value: Any, add: float = 0.0) -> Any:
    """Return the value with each integer as a float, plus a number."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        made = {key: in_floats(each, add) for key, each in items}
        return made if isinstance(value, dict) else [*made.values()]
    return value + add if isinstance(value, int) else value


def test_a_whole_number_may_be_written_as_a_float_and_the_other_way_round(url: str) -> None:
    whole, floats = (call(url, *calls) for calls in (WHOLE, [(name, in_floats(given)) for name, given in WHOLE]))
    for (name, _), one, other in zip(WHOLE, whole, floats, strict=True):
        assert not one.isError
        assert rounded(text_of(one)) == rounded(text_of(other)), name
    assert all(answer.isError for answer in call(url, *((name, in_floats(given, 0.5)) for name, given in WHOLE)))


def test_the_older_transport_whose_calls_are_not_counted_is_closed(url: str) -> None:
    answer = httpx.get(f"{url}sse")
    assert (answer.status_code, answer.json()) == (404, {"error": "this address is closed"})


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("ablate", {"prompt": DOG, "heads": [[9, 0]]}, "Layer 9 does not exist: the model has layers 0 to 7"),
        ("loss", {"text": "a " * 5000}, "The text is 5,001 tokens long; the limit here is 4,096."),
        ("next_token", {}, "Input validation error: 'prompt' is a required property"),
        ("next_token", {"prompt": 5}, "Input validation error: 5 is not of type 'string'"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(
    url: str, capfd: pytest.CaptureFixture[str], tool: str, arguments: dict[str, Any], said: str
) -> None:
    [answer] = call(url, (tool, arguments))
    assert (answer.isError, text_of(answer)) == (True, said)
    assert "Traceback" not in capfd.readouterr().err


def test_the_documentation_shows_the_address_and_a_call_with_its_result(url: str) -> None:
    [snippet] = re.findall(r"```json\n(.*?)```", API_PAGE, flags=re.DOTALL)
    [server] = json.loads(snippet)["mcpServers"].values()
    assert httpx.URL(server["url"]).path == httpx.URL(url).path
    [(tool, arguments, result)] = re.findall(r"```text\n(\w+) (\{.*?\})\n(.*?)```", API_PAGE, flags=re.DOTALL)
    [answer] = call(url, (tool, json.loads(arguments)))
    assert rounded(text_of(answer)) == rounded(" ".join(result.split()))


def rounded(text: str) -> str:
    """Round every number to three digits; the rest depends on the processor."""
    return re.sub(r"\d+\.[\de-]+", lambda number: f"{float(number[0]):.3g}", text)
