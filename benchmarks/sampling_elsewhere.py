"""Compare our next-token distributions with those of other engines at the same settings, by their own code.

    pip install transformers mlx mlx-cpu mlx-lm
    python -m benchmarks.sampling_elsewhere

Prints a Markdown table: the total variation between the two distributions, mean (maximum) of 50 positions of the
bundled model. Settings that a row doesn't name are off in both; in the last row, nothing but the temperature is passed
on. transformers runs its own `generate()` on the exported model, mlx-lm its logits processors and its sampler on our
logits. An engine that isn't installed is left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from gpt import Generation, SamplingParams, distribution, get_model
from gpt.models.checkpoints.writing import save_hugging_face

N_POSITIONS = 50
ROWS = {
    "T 0.7": SamplingParams(0.7),
    "T 1.5": SamplingParams(1.5),
    "T 0.8, top-k 40": SamplingParams(0.8, top_k=40),
    "T 0.8, top-p 0.9": SamplingParams(0.8, top_p=0.9),
    "T 1.5, top-p 0.9": SamplingParams(1.5, top_p=0.9),
    "T 1.5, min-p 0.05": SamplingParams(1.5, min_p=0.05),
    "T 0.8, k 40, p 0.95, min-p 0.05": SamplingParams(0.8, top_k=40, top_p=0.95, min_p=0.05),
    "T 0.7, repetition 1.3": SamplingParams(0.7, repetition_penalty=1.3),
    "T 0.8, k 40, p 0.9, repetition 1.1": SamplingParams(0.8, top_k=40, top_p=0.9, repetition_penalty=1.1),
    "only T 0.8 given": SamplingParams(0.8),
}
Engine = Callable[[Sequence[int], torch.Tensor, SamplingParams, bool], np.ndarray]


def transformers_engine(document: Generation) -> Engine:
    """generate() of transformers, on the model in its own format."""
    from transformers import AutoModelForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        save_hugging_face(document.loaded, Path(folder) / "model")
        model = AutoModelForCausalLM.from_pretrained(Path(folder) / "model").eval()

    def probabilities(ids: Sequence[int], logits: torch.Tensor, params: SamplingParams, only: bool) -> np.ndarray:
        given = {} if only else {"top_k": params.top_k or 0, "top_p": params.top_p or 1.0, "min_p": params.min_p}
        given |= {} if only else {"repetition_penalty": params.repetition_penalty or 1.0}
        idx = torch.tensor([ids])
        found = model.generate(
            idx,
            attention_mask=torch.ones_like(idx),
            max_new_tokens=1,
            do_sample=True,
            temperature=params.temperature,
            return_dict_in_generate=True,
            output_scores=True,
            **given,
        )
        return found.scores[0][0].softmax(dim=0).numpy()

    return probabilities


def mlx_lm_engine(document: Generation) -> Engine:
    """The logits processors and the sampler of mlx-lm, on our logits."""
    import mlx.core as mx
    from mlx_lm import sample_utils

    def probabilities(ids: Sequence[int], logits: torch.Tensor, params: SamplingParams, only: bool) -> np.ndarray:
        row = mx.array(logits.numpy())[None]
        for process in sample_utils.make_logits_processors(repetition_penalty=params.repetition_penalty):
            row = process(mx.array(ids), row)
        row = row - mx.logsumexp(row, axis=-1, keepdims=True)
        cuts = {"top_p": params.top_p or 0.0, "min_p": params.min_p or 0.0, "top_k": params.top_k or 0}
        drawn, sample_utils.categorical_sampling = (
            sample_utils.categorical_sampling,
            lambda x, temperature: mx.softmax(x / temperature, axis=-1),
        )
        try:
            return np.array(sample_utils.make_sampler(temp=params.temperature, **cuts)(row)[0])
        finally:
            sample_utils.categorical_sampling = drawn

    return probabilities


def main() -> None:
    document = Generation(get_model("stories"), "Once upon a time")
    list(document.steps(SamplingParams(0.8, seed=1), N_POSITIONS))
    document.read()
    engines: dict[str, Engine] = {}
    for name, engine in (("transformers", transformers_engine), ("mlx-lm", mlx_lm_engine)):
        with suppress(ImportError):
            engines[name] = engine(document)
    print("| settings |", *(f"{name} |" for name in engines), "ours, temperature last |")
    print("|---" * (2 + len(engines)) + "|")
    for row, params in ROWS.items():
        cells = []
        for engine in (*engines.values(), None):
            distances = []
            for position in range(3, 3 + N_POSITIONS):
                ids, logits = document.ids[: position + 1], document.logits(position)
                ours = distribution(logits, params, previous_ids=ids).final.numpy()
                last = replace(params, temperature_last=True)
                theirs = (
                    distribution(logits, last, previous_ids=ids).final.numpy()
                    if engine is None
                    else engine(ids, logits, params, row.startswith("only"))
                )
                distances.append(float(np.abs(ours - theirs).sum()) / 2)
            mean = sum(distances) / len(distances)
            cells.append("0" if mean < 5e-5 else f"{mean:.3f} ({max(distances):.2f})")
        print(f"| {row} |", *(f"{cell} |" for cell in cells))


if __name__ == "__main__":
    main()
