"""The API endpoints, with the same limits as the page."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypedDict, TypeVar, get_args, get_type_hints

import gradio as gr
from gradio.blocks import BlockFunction
from gradio.utils import get_function_description
from gradio_client.utils import python_type_to_json_schema

from components.errors import PageError
from components.events import MAX_CONCURRENT_EVENTS, error
from components.labels import token_text
from components.state.settings import checked_number, sampling_params
from components.update_rate import min_update_interval
from gpt import Generation, LoadedModel, distribution, generate, get_model, list_models
from gpt.errors import GPTError

F = TypeVar("F", bound=Callable[..., Any])
MAX_CHARACTERS = 100_000


def find_model(name: object) -> LoadedModel:
    """The shared model of that name, including models trained by visitors. Raises ValueError if it is unknown."""
    if not isinstance(name, str):
        raise GPTError("model.unknown", name=name, models=", ".join(list_models()))
    return get_model(name)


def checked_text(name: str, value: object) -> str:
    """The checked text. Raises ValueError if it is not a string or too long."""
    if not isinstance(value, str):
        raise PageError("error.not_text", name=name, type=type(value))
    if len(value) > MAX_CHARACTERS:
        raise PageError("error.text_too_long", name=name, n=len(value), limit=MAX_CHARACTERS)
    return value


class NextToken(TypedDict):
    """A token with its probability after the settings and before them."""

    token_id: int
    token: str
    probability: float
    raw_probability: float


class HeadWeights(TypedDict):
    """weights[query][key] of a head over these tokens."""

    tokens: list[str]
    weights: list[list[float]]


class Tokens(TypedDict):
    """A text as token ids, and the text of each."""

    ids: list[int]
    tokens: list[str]


class Endpoints:
    """The four endpoints; model "" stands for the one the app was started with."""

    def __init__(self, default_model: str) -> None:
        self.default_model = default_model

    def register(self, app: gr.Blocks) -> None:
        """Register each endpoint under its name; call inside the context of the app."""
        for function in (self.generate, self.next_token, self.attention, self.tokenize):
            event = gr.api(
                _with_sentences(function),
                api_name=function.__name__,
                concurrency_id="model",
                concurrency_limit=MAX_CONCURRENT_EVENTS,
            )
            _describe(app.fns[event["id"]])

    def generate(
        self,
        prompt: str,
        max_new_tokens: int = 64,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int = 0,
        model: str = "",
        on_full: str = "stop",
    ) -> Iterator[str]:
        """Continue a prompt, token by token. Only the prompt is required.

        Parameters:
            prompt: text to continue; an empty one starts from end-of-text
            max_new_tokens: 1 up to the context of the model, twice that with on_full="crop"; the text may end before
            temperature: 0 to 2; 0 always takes the most probable token
            top_k: keep the k most probable tokens; 0 keeps all
            top_p: keep the most probable tokens that total this probability; 1 keeps all
            min_p: keep tokens of at least this share of the best one's probability; 0 keeps all
            repetition_penalty: above 1 lowers the tokens of the text; 1 is off
            seed: a whole number of at least 0; the same seed writes the same text
            model: a name of the page's list; "" is the model that the app was started with
            on_full: "stop" ends where the context is full; "crop" goes on from the newest tokens that fit in it
        Returns:
            the new text so far: first "", then once for each token, or for several at once under load
        """
        loaded = self._model(model)
        params = sampling_params(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=checked_number("seed", seed, 0),
        )
        limit = loaded.model.config.block_size * (2 if on_full == "crop" else 1)
        count = checked_number("max_new_tokens", max_new_tokens, 1, limit)
        steps = generate(loaded, checked_text("prompt", prompt), params, count, on_full=on_full)  # type: ignore[arg-type]
        text = ""
        yield text
        with loaded.engine.admission.enter() as ahead:
            for _ in ahead:
                pass
            shown = -math.inf
            for step in steps:
                text += step.text
                now = time.perf_counter()
                if now - shown >= min_update_interval(loaded) or step.finish_reason is not None:
                    shown = now
                    yield text

    def next_token(
        self,
        prompt: str,
        k: int = 20,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        model: str = "",
    ) -> list[NextToken]:
        """The most probable next tokens. Only the prompt is required.

        Parameters:
            prompt: text before the token; an empty one is end-of-text
            k: how many tokens
            temperature: 0 to 2; 0 gives the most probable token probability 1
            top_k: keep the k most probable tokens; 0 keeps all
            top_p: keep the most probable tokens that total this probability; 1 keeps all
            min_p: keep tokens of at least this share of the best one's probability; 0 keeps all
            model: a name of the page's list; "" is the model that the app was started with
        Returns:
            a list, best first: token_id, token, probability with these settings, raw_probability without
        """
        loaded = self._model(model)
        params = sampling_params(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
        count = checked_number("k", k, 1, loaded.tokenizer.n_vocab)
        document = self._read(loaded, prompt)
        stages = distribution(document.logits(document.n_read - 1), params)
        final, raw = stages.final.tolist(), stages.raw.tolist()
        order = sorted(range(len(final)), key=lambda i: (-final[i], -raw[i], i))
        return [
            {
                "token_id": i,
                "token": token_text(loaded.tokenizer, i),
                "probability": final[i],
                "raw_probability": raw[i],
            }
            for i in order[:count]
        ]

    def attention(self, prompt: str, layer: int, head: int, model: str = "") -> HeadWeights:
        """The attention weights of one head. Prompt, layer and head are required.

        Parameters:
            prompt: text to read; an empty one is end-of-text
            layer: counts from 0
            head: counts from 0
            model: a name of the page's list; "" is the model that the app was started with
        Returns:
            tokens, and weights[query][key], where each row sums to 1
        """
        loaded = self._model(model)
        config = loaded.model.config
        layer = checked_number("layer", layer, 0, config.n_layer - 1)
        head = checked_number("head", head, 0, config.n_head - 1)
        document = self._read(loaded, prompt)
        return {
            "tokens": [token_text(loaded.tokenizer, i) for i in document.ids],
            "weights": document.attn_weights(layer, head).tolist(),
        }

    def tokenize(self, text: str, model: str = "") -> Tokens:
        r"""The tokens of a text. Only the text is required.

        Parameters:
            text: any text
            model: a name of the page's list; "" is the model that the app was started with
        Returns:
            ids, and tokens: the text of each, bytes that are no character as \xNN
        """
        tokenizer = self._model(model).tokenizer
        ids = tokenizer.encode(checked_text("text", text))
        return {"ids": ids, "tokens": [token_text(tokenizer, i) for i in ids]}

    def _model(self, name: object) -> LoadedModel:
        return find_model(self.default_model if name == "" else name)

    @staticmethod
    def _read(loaded: LoadedModel, prompt: object) -> Generation:
        document = Generation(loaded, checked_text("prompt", prompt))
        document.read()
        return document


def _describe(endpoint: BlockFunction) -> None:
    """Show what the docstring says of parameters and returned values in the API page, and the type of the values."""
    _, parameters, returns = get_function_description(endpoint.fn)
    for component, (name, description) in zip(endpoint.inputs, parameters.items(), strict=True):
        component.label = name
        component.api_info()["additional_description"] = description
    hint = get_type_hints(endpoint.fn)["return"]
    schema = python_type_to_json_schema(get_args(hint)[0] if inspect.isgeneratorfunction(endpoint.fn) else hint)
    for component, description in zip(endpoint.outputs, returns, strict=True):
        component.label = description
        component.api_info().update(schema, description=description)


def _with_sentences(function: F) -> F:
    """The endpoint with each ValueError as a gr.Error that reaches the caller."""
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def streaming(*args: Any, **kwargs: Any) -> Iterator[str]:
            try:
                yield from function(*args, **kwargs)
            except ValueError as problem:
                raise error(problem) from None

        return streaming

    @wraps(function)
    def answering(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ValueError as problem:
            raise error(problem) from None

    return answering
