"""Convert prompts to token ids. A prompt is a text, token ids or the messages of a chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpt.errors import GPTError, quoted
from gpt.inputs import AnyModel, ids_of, with_tokenizer
from gpt.tokenizer import Vocabulary, as_token_ids, prompt_ids

Prompt = str | Sequence[int] | Sequence[Mapping[str, str]]


def encode_prompt(model: AnyModel, prompt: Prompt, *, special: bool = False) -> list[int]:
    """Return the validated token ids of a prompt. Raises the same errors as `Generation`.

    special: whether names of control tokens in a text, such as "<|endoftext|>", become control tokens. They are
        characters otherwise, and always in the messages of a chat.
    """
    network, tokenizer = with_tokenizer(model)
    ids = ids_of(model, token_ids(tokenizer, prompt, special=special))
    check_prompt_length(len(ids), network.config.block_size)
    for token_id in ids:
        tokenizer.token_bytes(token_id)  # raises for an unknown id
    return ids


def check_prompt_length(n: int, limit: int) -> None:
    """Raise ValueError for a prompt longer than the context."""
    if n > limit:
        raise GPTError("context.prompt_too_long", n=n, excess=n - limit, limit=limit)


def token_ids(tokenizer: Vocabulary, prompt: Prompt, *, special: bool = False) -> list[int]:
    """Return the token ids for a prompt of any length; [] for "". Raises the same errors as `encode_chat`."""
    if isinstance(prompt, str):
        return prompt_ids(tokenizer, prompt, special=special)
    if is_chat(prompt):
        return tokenizer.encode_chat(checked_messages(prompt))
    return as_token_ids(prompt)


def is_chat(prompt: object) -> bool:
    """Return whether a prompt is a list of messages."""
    return isinstance(prompt, list | tuple) and any(isinstance(message, Mapping) for message in prompt)


def checked_messages(messages: object) -> list[dict[str, str]]:
    """Return a chat's messages as {"role", "content"} dictionaries. Raises ValueError for anything else."""
    if not isinstance(messages, list | tuple) or not messages:
        raise GPTError("chat.messages", value=quoted(messages))
    checked = []
    for number, message in enumerate(messages, start=1):
        if not (
            isinstance(message, Mapping)
            and set(message) == {"role", "content"}
            and all(isinstance(value, str) for value in message.values())
        ):
            raise GPTError("chat.message", number=number, value=quoted(message))
        checked.append({"role": message["role"], "content": message["content"]})
    return checked
