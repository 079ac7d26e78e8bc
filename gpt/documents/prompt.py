"""Token ids of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.tokenizer import as_token_ids, prompt_ids, start_ids


def encode_prompt(loaded: LoadedModel, prompt: str | Sequence[int]) -> list[int]:
    """Token ids of a prompt, checked; see `Generation`."""
    tokenizer, block_size = loaded.tokenizer, loaded.model.config.block_size
    ids = prompt_ids(tokenizer, prompt) if isinstance(prompt, str) else as_token_ids(prompt)
    ids = ids or start_ids(tokenizer)
    if not ids:
        raise GPTError("prompt.empty")
    if len(ids) > block_size:
        raise GPTError("context.prompt_too_long", n=len(ids), excess=len(ids) - block_size, limit=block_size)
    for token_id in ids:
        tokenizer.token_bytes(token_id)  # raises for an id that does not exist
    return ids
