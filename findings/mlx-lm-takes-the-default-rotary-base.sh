#!/usr/bin/env bash
# mlx-lm 0.32.2 with mlx-cpu 0.32.4 on Linux, transformers 5.24.0, torch 2.13.0: folders saved by transformers 5, whose
# rotary base of 500,000, as in Llama 3, stands in rope_parameters.
# Expected: the logits of transformers, up to 1e-4; or an error, as for Granite, because the file has no rope_theta.
# Seen: `load_model` takes each family's default base and says nothing. The logits of Llama, SmolLM3, OLMo 2, Phi-3 and
# Gemma 2, with a standard deviation of 2 to 3, are up to 4.3 off. They are right if the base happens to be the default.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages=(mlx-lm==0.32.2 mlx==0.32.4 mlx-cpu==0.32.4 transformers==5.24.0 torch==2.13.0)
"$folder/env/bin/pip" install --quiet "${packages[@]}"
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/env/bin/python" -W ignore - <<'PYTHON'
import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
ids = [[5, 6, 7, 8, 9, 10]]
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
for family in ("llama", "smollm3", "olmo2", "phi3", "gemma2"):
    for base in (10_000.0, 500_000.0):
        torch.manual_seed(0)
        rope = {"rope_type": "default", "rope_theta": base}
        config = AutoConfig.for_model(
            family, vocab_size=50, initializer_range=0.3, pad_token_id=None, rope_parameters=rope, **shape
        )
        model = AutoModelForCausalLM.from_config(config).eval()
        model.save_pretrained("model")
        saved = json.loads(Path("model/config.json").read_text())
        assert saved["rope_parameters"]["rope_theta"] == base and "rope_theta" not in saved
        found = load_model(Path("model"))[0](mx.array(ids))
        off = np.abs(np.array(found.astype(mx.float32)) - model(torch.tensor(ids)).logits.numpy()).max()
        print(f"{family}, rotary base {base:,.0f}: {off:.4f} off")
        assert (off < 1e-3) if base == 10_000 else (off > 0.5)
PYTHON
