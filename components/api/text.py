"""Endpoints that write a text, predict a token, and tokenize."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from components.api.arguments import Endpoints, checked_messages, checked_text, checked_texts, read
from components.api.results import ListedModel, NextToken, Tokens
from components.labels import token_text
from components.next_tokens import best
from components.state.settings import checked_number, sampling_params
from components.state.throughput import measured, min_update_interval
from gpt import distribution, generate, list_models, with_seed
from gpt.models.registry import models_in_memory, title
from gpt.tokenizer import prompt_ids


class TextEndpoints(Endpoints):
    """Generation waits in the admission queue of its model, as on the page."""

    def generate(
        self,
        prompt: str = "",
        max_new_tokens: int = 64,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int | None = 0,
        model: str = "",
        on_full: str = "stop",
        messages: list[dict[str, str]] | None = None,
        stop: list[str] | None = None,
        delta: bool = False,
    ) -> Iterator[str]:
        """Continue a prompt, or answer in a chat, token by token. Only one of the two is required.

        Parameters:
            prompt: text to continue; an empty one starts from the token that stands before every text
            max_new_tokens: 1 up to the context of the model, twice that with on_full="crop"; the text may end before
            temperature: 0 to 2; 0 always takes the most probable token
            top_k: keep the k most probable tokens; 0 keeps all
            top_p: keep the most probable tokens that total this probability; 1 keeps all
            min_p: keep tokens of at least this share of the best one's probability; 0 keeps all
            repetition_penalty: above 1 lowers the tokens of the text; 1 is off
            seed: a whole number of at least 0, the default; the same seed writes the same text; null draws one
            model: a name of the page's list; "" is the model that the app was started with
            on_full: "stop" ends where the context is full; "crop" goes on from the newest tokens that fit in it
            messages: of a chat, instead of a prompt, each {"role", "content"}; for models with a chat template
            stop: the text ends before the first of these texts
            delta: send only what is new since the last update, instead of the whole new text
        Returns:
            the new text so far: first "", then once for each token, or for several at once under load
        """
        loaded = self.find_model(model)
        params = sampling_params(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
        )
        limit = loaded.model.config.block_size * (2 if on_full == "crop" else 1)
        count = int(checked_number("max_new_tokens", max_new_tokens, 1, limit))
        text = checked_text("prompt", prompt)
        given = text if messages is None else checked_messages(messages, text)
        stops = checked_texts("stop", stop)
        params = with_seed(params)
        steps = generate(loaded, given, params, count, on_full=on_full)  # type: ignore[arg-type]
        text = sent = ""
        began = time.perf_counter()
        yield text
        with loaded.engine.admission.enter() as place:
            for _ in place:
                pass
            shown = -math.inf
            for step in measured(steps, params.seed, began):
                text += step.text
                ends = [text.index(each) for each in stops if each in text]
                if ends:
                    text = text[: min(ends)]
                    break
                now, ready = time.perf_counter(), text[: len(text) - held_back(text, stops)]
                if now - shown >= min_update_interval(loaded) and len(ready) > len(sent) - 1:
                    yield ready[len(sent) if delta else 0 :]
                    shown, sent = now, ready
                for _ in place.after_token():
                    pass
        if sent != text:
            yield text[len(sent) if delta else 0 :]

    def list_models(self) -> list[ListedModel]:
        """The models that the other endpoints take by their names.

        Returns:
            a list of name, title, is_default and is_loaded
        """
        loaded = {model.name for model in models_in_memory()}
        return [
            {"name": name, "title": title(name), "is_default": name == self.default_model, "is_loaded": name in loaded}
            for name in list_models()
        ]

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
            prompt: text before the token; an empty one is the token that stands before every text
            k: how many tokens
            temperature: 0 to 2; 0 gives the most probable token probability 1
            top_k: keep the k most probable tokens; 0 keeps all
            top_p: keep the most probable tokens that total this probability; 1 keeps all
            min_p: keep tokens of at least this share of the best one's probability; 0 keeps all
            model: a name of the page's list; "" is the model that the app was started with
        Returns:
            a list, best first: token_id, token, probability with these settings, raw_probability and its log without
        """
        loaded = self.find_model(model)
        params = sampling_params(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
        count = int(checked_number("k", k, 1, loaded.tokenizer.n_vocab))
        document = read(loaded, prompt)
        stages = distribution(document.logits(document.n_read - 1), params)
        final, raw = stages.final.numpy(), stages.raw.numpy()
        log_p = document.logits(document.n_read - 1).log_softmax(dim=0)
        return [
            {
                "token_id": i,
                "token": token_text(loaded.tokenizer, i),
                "probability": float(final[i]),
                "raw_probability": float(raw[i]),
                "log_probability": float(log_p[i]),
            }
            for i in best(final, raw, count).tolist()
        ]

    def tokenize(self, text: str, model: str = "") -> Tokens:
        r"""The tokens of a text, after the control token that some models expect first. Only the text is required.

        Parameters:
            text: any text
            model: a name of the page's list; "" is the model that the app was started with
        Returns:
            ids, and tokens: the text of each, bytes that are no character as \xNN
        """
        tokenizer = self.find_model(model).tokenizer
        ids = prompt_ids(tokenizer, checked_text("text", text))
        return {"ids": ids, "tokens": [token_text(tokenizer, i) for i in ids]}


def held_back(text: str, stops: list[str]) -> int:
    """How many characters at the end of a text may begin one of the texts at which it ends."""
    return max((n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0)
