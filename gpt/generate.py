"""Text generation from Python, without a document to steer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpt.documents.generation import Generation, Step
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams


def generate(
    loaded: LoadedModel,
    prompt: str | Sequence[int],
    params: SamplingParams,
    max_new_tokens: int,
    *,
    edits: Edits | None = None,
) -> Iterator[Step]:
    """Continue a prompt: one Step per token, each yielded as soon as it is chosen, one forward pass each.

    The iterator ends after a step with a finish_reason: end-of-text, max_new_tokens, or a full context (a
    prompt of P tokens yields up to block_size - P + 1 steps). Invalid arguments raise ValueError at the call,
    not at the first step.
    """
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise GPTError("argument.whole_number_min", name="max_new_tokens", low=1, value=max_new_tokens)
    return Generation(loaded, prompt, edits=edits).steps(params, max_new_tokens)
