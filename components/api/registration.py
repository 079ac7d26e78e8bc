"""Register the endpoints under their names, with their docstrings as documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, get_args, get_type_hints

import gradio as gr
from gradio.blocks import Block, BlockFunction
from gradio.components import Component
from gradio.utils import get_function_description
from gradio_client.utils import python_type_to_json_schema

from components.api.analysis import AnalysisEndpoints
from components.api.text import TextEndpoints
from components.events import QUEUES, error_messages
from components.parts import Queue


def register_endpoints(app: gr.Blocks, default_model: str) -> None:
    """Register each endpoint under its function's name. Call this inside the app's context.

    Gradio's MCP server offers the same functions as tools.
    """
    text, analysis = TextEndpoints(default_model), AnalysisEndpoints(default_model)
    functions: dict[Callable[..., Any], Queue] = {
        text.list_models: "analysis",
        text.generate: "model",
        text.next_token: "model",
        text.tokenize: "model",
        analysis.attention: "analysis",
        analysis.logit_lens: "analysis",
        analysis.attribution: "analysis",
        analysis.ablate: "analysis",
        analysis.steer: "analysis",
        analysis.hidden_state: "analysis",
        analysis.patch: "analysis",
        analysis.loss: "analysis",
    }
    for function, queue in functions.items():
        event = gr.api(_with_sentences(function), api_name=function.__name__, **QUEUES[queue])
        _describe(app.fns[event["id"]])


def _describe(endpoint: BlockFunction) -> None:
    """Show the docstring's parameters and return values, with their types, on the API page."""
    function = endpoint.fn
    assert function is not None
    _, parameters, returns = get_function_description(function)
    for component, (name, description) in zip(_components(endpoint.inputs), parameters.items(), strict=True):
        component.label = name
        component.api_info()["additional_description"] = description
    hint = get_type_hints(function)["return"]
    schema = python_type_to_json_schema(get_args(hint)[0] if inspect.isgeneratorfunction(function) else hint)
    returns = returns or [""]  # python -OO removes docstrings
    for component, description in zip(_components(endpoint.outputs), returns, strict=True):
        component.label = description
        component.api_info().update(schema, description=description)


def _components(blocks: Sequence[Block]) -> Iterator[Component]:
    return (each for each in blocks if isinstance(each, Component))


def _with_sentences(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an endpoint so that its errors reach the caller as messages."""
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def streaming(*args: Any, **kwargs: Any) -> Iterator[str]:
            with error_messages():
                yield from function(*args, **kwargs)

        return streaming

    @wraps(function)
    def answering(*args: Any, **kwargs: Any) -> Any:
        with error_messages():
            return function(*args, **kwargs)

    return answering
