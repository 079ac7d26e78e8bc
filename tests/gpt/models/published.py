"""The config.json files of published models: some of them here, others in ../shared/real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

REAL = Path(__file__).resolve().parents[4] / "shared" / "real"


def pythia(n_layer: int, n_head: int, n_embd: int) -> dict[str, Any]:
    return {
        "model_type": "gpt_neox",
        "hidden_act": "gelu",
        "hidden_size": n_embd,
        "intermediate_size": 4 * n_embd,
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 2048,
        "num_attention_heads": n_head,
        "num_hidden_layers": n_layer,
        "rotary_emb_base": 10000,
        "rotary_pct": 0.25,
        "tie_word_embeddings": False,
        "use_parallel_residual": True,
        "vocab_size": 50304,
    }


CONFIGS: dict[str, dict[str, Any] | str] = {
    "pythia-14m": pythia(6, 4, 128),
    "pythia-31m": pythia(6, 8, 256),
    "pythia-70m": pythia(6, 8, 512),
    "pythia-160m": pythia(12, 12, 768),
    "pythia-410m": pythia(24, 16, 1024),
    "SmolLM2-135M": "mlc__smollm2_135m",
    "SmolLM2-360M": "mlc__smollm2_360m",
    "Qwen2.5-0.5B": "mirror__Qwen2.5-0.5B-Instruct",
    "Qwen3-0.6B": "mlc__qwen3_0.6b",
    "Llama-3.2-1B": "mlc__llama3_2_1b",
    "gemma-3-270m": "text__gemma-3-270m",
}


def published(name: str) -> dict[str, Any]:
    """Return a config.json by its model or its file. Skips the test if it is in a collection that is not there."""
    found = CONFIGS.get(name, name)
    if isinstance(found, dict):
        return found
    path = REAL / "configs" / f"{found}.json"
    if not path.is_file():
        pytest.skip("needs the published configurations in ../shared/real")
    return dict(json.loads(path.read_text(encoding="utf-8")))
