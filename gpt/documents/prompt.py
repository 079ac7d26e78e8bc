"""Token ids of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.tokenizer import as_token_ids


def encode_prompt(loaded: LoadedModel, prompt: str | Sequence[int]) -> list[int]:
    """Token ids of a prompt, checked; see `Generation`."""
    tokenizer, block_size = loaded.tokenizer, loaded.model.config.block_size
    ids = tokenizer.encode(prompt) if isinstance(prompt, str) else as_token_ids(prompt)
    if not ids:
        if tokenizer.eot_id is None:
            raise GPTError("prompt.empty")
        ids = [tokenizer.eot_id]
    if len(ids) > block_size:
        raise GPTError("context.prompt_too_long", n=len(ids), excess=len(ids) - block_size, limit=block_size)
    for token_id in ids:
        tokenizer.token_bytes(token_id)  # raises for an id that does not exist
    return ids
