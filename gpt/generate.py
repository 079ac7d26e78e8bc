"""Text generation from Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpt.checks import check_integer
from gpt.documents.generation import Generation, Step
from gpt.edits import Edits
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
    """Continue a prompt: yields one Step per token, each after one forward pass.

    The iterator ends after a step with a finish_reason: end-of-text, max_new_tokens, or a full context (a
    prompt of P tokens yields up to block_size - P + 1 steps). Invalid arguments raise ValueError at the call,
    not at the first step.
    """
    check_integer("max_new_tokens", max_new_tokens, 1)
    return Generation(loaded, prompt, edits=edits).steps(params, max_new_tokens)
