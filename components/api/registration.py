"""Register the endpoints under their names, with their docstrings as documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, get_args, get_type_hints

import gradio as gr
from gradio.blocks import Block, BlockFunction
from gradio.components import Component
from gradio.utils import get_function_description
from gradio_client.utils import python_type_to_json_schema
from pydantic import validate_call

from components.api.analysis import AnalysisEndpoints
from components.api.arguments import Endpoints
from components.api.results import float32_digits
from components.api.text import TextEndpoints
from components.events import QUEUES, error_messages
from components.parts import Queue
from components.state.admission import ANALYSES
from gpt.background import release_threads, threads_for


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
        event = gr.api(answering(function, queue), api_name=function.__name__, **QUEUES[queue])
        _describe(app.fns[event["id"]])


SHARED = {  # descriptions of arguments that most endpoints take
    "model": 'name from the page\'s list; "" is the model the app was started with',
    "special": "whether names of control tokens in the text, such as <|endoftext|>, become control tokens",
}


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


def answering(function: Callable[..., Any], queue: Queue) -> Callable[..., Any]:
    """Wrap an endpoint: arguments are checked, errors reach the caller as messages, and numbers are rounded.

    Some agents write all numbers as floats, so one without a fraction, such as 6.0, is accepted for an integer.
    """
    call, signature = validate_call(config={"strict": True})(function), inspect.signature(function)

    def named(args: Any, kwargs: Any) -> dict[str, Any]:
        return {name: _whole(value) for name, value in signature.bind(*args, **kwargs).arguments.items()}

    def streaming(*args: Any, **kwargs: Any) -> Iterator[str]:
        with error_messages():
            for line in call(**named(args, kwargs)):
                release_threads()  # another thread may draw the next token
                yield line

    def at_once(*args: Any, **kwargs: Any) -> Any:
        given = named(args, kwargs)
        with error_messages(), _slot(function, given.get("model", "")) if queue == "analysis" else nullcontext():
            return float32_digits(call(**given))

    wrapped = wraps(function)(streaming if inspect.isgeneratorfunction(function) else at_once)
    if function.__doc__:
        shared = "".join(f"    {name}: {SHARED[name]}\n" for name in SHARED if name in signature.parameters)
        wrapped.__doc__ = inspect.cleandoc(function.__doc__).replace("Returns:", f"{shared}Returns:")
    return wrapped


def _whole(value: Any) -> Any:
    """Return a value with floats such as 6.0 as integers; pydantic turns them back where a float is expected."""
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@contextmanager
def _slot(function: Callable[..., Any], model: str) -> Iterator[None]:
    """Wait for a slot for analyses. The endpoint's model is loaded before, so that nobody waits for it in a slot."""
    endpoints: Endpoints = function.__self__  # type: ignore[attr-defined]
    config = endpoints.find_model(model).model.config
    with ANALYSES.enter() as place:
        for _ in place:
            pass
        with threads_for(12 * config.n_layer * config.n_embd**2):  # parameters of all blocks
            yield
