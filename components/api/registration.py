"""Register the endpoints under their names, with their docstrings as documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, get_args, get_origin, get_type_hints

import gradio as gr
from gradio.blocks import Block, BlockFunction
from gradio.components import Component
from gradio.utils import get_function_description
from gradio_client.utils import python_type_to_json_schema

from components.api.analysis import AnalysisEndpoints
from components.api.arguments import Endpoints
from components.api.results import float32_digits
from components.api.text import TextEndpoints
from components.events import QUEUES, error_messages
from components.parts import Queue
from components.state.admission import ANALYSES


def register_endpoints(app: gr.Blocks, default_model: str) -> None:
    """Register each endpoint under its function's name. Call this inside the app's context.

    Gradio's MCP server offers the same functions as tools.
    """
    text, analysis = TextEndpoints(default_model), AnalysisEndpoints(default_model)
    functions: dict[Callable[..., Any], Queue] = {
        text.list_models: "interactive",
        text.generate: "model",
        text.next_token: "model",
        text.tokenize: "model",
        analysis.attention: "analysis",
        analysis.logit_lens: "analysis",
        analysis.attribution: "analysis",
        analysis.ablate: "analysis",
        analysis.steer: "model",
        analysis.hidden_state: "analysis",
        analysis.patch: "analysis",
        analysis.loss: "analysis",
    }
    for function, queue in functions.items():
        event = gr.api(_answering(function, queue), api_name=function.__name__, **QUEUES[queue])
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


def _answering(function: Callable[..., Any], queue: Queue) -> Callable[..., Any]:
    """Wrap an endpoint: errors reach the caller as messages, analyses wait for a slot, and numbers are rounded.

    Floats without a fraction, such as 6.0, are accepted for integers.
    """
    hints, signature = get_type_hints(function), inspect.signature(function)

    def understood(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        given = signature.bind(*args, **kwargs).arguments
        return {name: as_integers(value, hints[name]) for name, value in given.items()}

    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def streaming(*args: Any, **kwargs: Any) -> Iterator[str]:
            with error_messages():
                yield from function(**understood(args, kwargs))

        return streaming

    @wraps(function)
    def answering(*args: Any, **kwargs: Any) -> Any:
        with error_messages(), _slot(function, args, kwargs) if queue == "analysis" else nullcontext():
            return float32_digits(function(**understood(args, kwargs)))

    return answering


def as_integers(value: object, hint: Any) -> object:
    """Return a value with integral floats such as 6.0 as integers, wherever the type hint has integers but no floats.

    Some agents write all numbers as floats. Other values are returned unchanged.
    """
    hints = (hint, *get_args(hint))
    if isinstance(value, list):
        items = next((get_args(each)[0] for each in hints if get_origin(each) is list), None)
        return [as_integers(each, items) for each in value]
    is_integral = isinstance(value, float) and value.is_integer() and int in hints and float not in hints
    return int(value) if is_integral else value  # type: ignore[call-overload]


@contextmanager
def _slot(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Wait for a slot for analyses. The endpoint's model is loaded before, so that nobody waits for it in a slot."""
    endpoints: Endpoints = function.__self__  # type: ignore[attr-defined]
    endpoints.find_model(inspect.signature(function).bind(*args, **kwargs).arguments.get("model", ""))
    with ANALYSES.enter() as place:
        for _ in place:
            pass
        yield
