"""Generation past a full context: before each further token, the first one is dropped.

As in `gpt.generate_greedy`, each step then reads a full context anew: every token has moved one position back, so
no key or value of the cache remains valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpt.documents.generation import Generation
from gpt.documents.remote import RemoteReply, RemoteRequest, edits_of
from gpt.documents.step import FinishReason, Step
from gpt.inference.zero_gpu import on_gpu, on_zero_gpu, to_numpy
from gpt.models.gpu_copy import gpu_copy
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams, with_seed


def sliding_steps(
    document: Generation, params: SamplingParams, max_new_tokens: int
) -> Iterator[tuple[Generation, Step]]:
    """As `Generation.steps`, beyond a full context.

    Yields each step with the document that it was appended to: the given one until its context is full, then a new one
    for each token. The last step carries its finish_reason: end_of_text or max_new_tokens.
    """
    params = with_seed(params)
    steps = _zero_gpu_steps if on_zero_gpu() else _steps
    for count, (current, step) in enumerate(steps(document, params, max_new_tokens), 1):
        reason: FinishReason | None = step.finish_reason if step.finish_reason == "end_of_text" else None
        if reason is None and count == max_new_tokens:
            reason = "max_new_tokens"
        text = step.text + current.incomplete_text() if reason == "max_new_tokens" else step.text
        yield current, replace(step, text=text, finish_reason=reason)
        if reason is not None:
            return


def _steps(document: Generation, params: SamplingParams, count: int) -> Iterator[tuple[Generation, Step]]:
    for _ in range(count):
        if document.loaded.engine.stopped:
            return
        if document.full:
            document = document.without_first()
        yield document, document.step(params)


def _zero_gpu_steps(document: Generation, params: SamplingParams, count: int) -> Iterator[tuple[Generation, Step]]:
    for reply in _zero_gpu_replies(document.loaded, document.remote_request(params, count)):
        if document.full:
            document = document.without_first()
        for step in reply.steps:
            document.add_step(step, params, reply)
            yield document, step


@on_gpu
def _zero_gpu_replies(loaded: LoadedModel, request: RemoteRequest) -> Iterator[RemoteReply]:
    """`_steps` in one ZeroGPU call."""
    edits = edits_of(request.edits)
    remote = Generation(gpu_copy(loaded), request.ids, edits=edits, dropped=request.dropped)
    start = request.n_known
    for document, step in _steps(remote, request.params, request.max_new_tokens or 0):
        if document is not remote:
            remote, start = document, 0
        yield RemoteReply((step,), start, to_numpy(document.activations(start)))
        start = document.n_read
