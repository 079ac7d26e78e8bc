"""Endpoints that list models, generate text, predict tokens and tokenize."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from components.api.arguments import Endpoints, checked_messages, checked_text, read
from components.api.results import ListedModel, NextToken, Tokens
from components.labels import token_text
from components.next_tokens import best
from components.state.admission import measured, min_update_interval
from components.state.settings import sampling_params
from gpt import distribution, generate, list_models, with_seed
from gpt.errors import check_integer
from gpt.models.registry import models_in_memory, title
from gpt.tokenizer import prompt_ids


class TextEndpoints(Endpoints):
    """Endpoints for text. Generation waits in the model's admission queue, as on the page."""

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
        special: bool = False,
        repetition_window: int = 0,
        temperature_last: bool = False,
    ) -> Iterator[str]:
        """Continue a prompt or a chat, token by token. Only one of the two is required.

        Parameters:
            prompt: text to continue, a space at its end begins the next word; "" starts from the start-of-text token
            max_new_tokens: from 1 to the model's context, or twice that with on_full="crop"; the text may end earlier
            temperature: 0 to 2; 0 always takes the most probable token
            top_k: keep the k most probable tokens; 0 keeps all
            top_p: keep the most probable tokens that together reach this probability; 1 keeps all
            min_p: keep tokens with at least this share of the best token's probability; 0 keeps all
            repetition_penalty: above 1 makes tokens already in the text less likely; 1 has no effect
            seed: integer, at least 0; the same seed gives the same text; null draws a random seed
            on_full: "stop" ends when the context is full; "crop" continues from the newest tokens that fit
            messages: a chat instead of a prompt, as {"role", "content"}; requires a model with a chat template
            stop: list of stop sequences; generation ends before the first one that occurs
            delta: send only the characters added since the last update, instead of the whole new text
            repetition_window: penalise only tokens among this many at the end of the text; 0 penalises all its tokens
            temperature_last: apply the temperature after top_k, top_p and min_p, as llama.cpp does
        Returns:
            the new text so far: "" at first, then updated after every token, or several under load
        """
        loaded = self.find_model(model)
        params = sampling_params(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            repetition_window=repetition_window,
            temperature_last=temperature_last,
            seed=seed,
        )
        limit = loaded.model.config.block_size * (2 if on_full == "crop" else 1)
        check_integer("max_new_tokens", max_new_tokens, 1, limit)
        text = checked_text("prompt", prompt)
        given = text if messages is None else checked_messages(messages, text)
        stops = [checked_text("stop", each) for each in stop or [] if each]
        params = with_seed(params)
        steps = generate(loaded, given, params, max_new_tokens, on_full=on_full, special=special)  # type: ignore[arg-type]
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
        """List the models that the other endpoints accept by name.

        Returns:
            a list of models, each with name, title, is_default and is_loaded
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
        special: bool = False,
        temperature_last: bool = False,
    ) -> list[NextToken]:
        """Get the most probable next tokens. Only the prompt is required.

        Parameters:
            prompt: text before the predicted token, which begins with the space at the end of the text, if there is one
            k: number of tokens
            temperature: 0 to 2; at 0 the most probable token gets probability 1
            top_k: keep the k most probable tokens; 0 keeps all
            top_p: keep the most probable tokens that together reach this probability; 1 keeps all
            min_p: keep tokens with at least this share of the best token's probability; 0 keeps all
            temperature_last: apply the temperature after top_k, top_p and min_p, as llama.cpp does
        Returns:
            a list, best first: token_id, token, probability with these settings, raw_probability and its logarithm
        """
        loaded = self.find_model(model)
        params = sampling_params(
            temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, temperature_last=temperature_last
        )
        check_integer("k", k, 1, loaded.tokenizer.n_vocab)
        document = read(loaded, prompt, special=special)
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
            for i in best(final, raw, k).tolist()
        ]

    def tokenize(self, text: str, model: str = "", special: bool = False) -> Tokens:
        r"""Split a text into tokens, including a control token that some models expect first. The text is required.

        Parameters:
            text: any text
        Returns:
            ids, and tokens: the text of each token, with bytes that form no character as \xNN
        """
        tokenizer = self.find_model(model).tokenizer
        ids = prompt_ids(tokenizer, checked_text("text", text), special=special)
        return {"ids": ids, "tokens": [token_text(tokenizer, i) for i in ids]}


def held_back(text: str, stops: list[str]) -> int:
    """Return the number of characters at the end of a text that may begin a stop sequence."""
    return max((n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0)
