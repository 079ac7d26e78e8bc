#!/usr/bin/env bash
# ctranslate2 4.8.5, transformers 5.24.0, torch 2.13.0: a Llama with the rotary scaling of Llama 3.1, 3.2 and 3.3
# (rope_type "llama3"), converted by TransformersConverter. CTranslate2 supports this scaling since pull request 1751 of
# OpenNMT/CTranslate2.
# Expected: the logits of transformers, up to 1e-3, as for a Llama without scaling or with linear scaling.
# Seen: the logits of the model without scaling. The converter writes the factor for linear scaling only, so that the
# low frequencies are divided by its default, 1. Logits with a standard deviation of 2.4 are off by 0.1 within the first
# 12 tokens, so a short test passes, and by 7.9 within 500. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet ctranslate2==4.8.5 transformers==5.24.0 torch==2.13.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/env/bin/python" -W ignore - <<'PYTHON'
import ctranslate2
import numpy as np
import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

torch.set_grad_enabled(False)
words = Tokenizer(models.WordLevel({f"word{each}": each for each in range(64)}, unk_token="word0"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="word0", eos_token="word1", unk_token="word0")
ids = torch.randint(3, 64, (1, 500), generator=torch.Generator().manual_seed(1))
base = {"rope_theta": 500000.0}
scalings = {
    "default": base,
    "linear": base | {"factor": 8.0},
    "llama3": base
    | {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
}
expected = {}
for name, rope in scalings.items():
    torch.manual_seed(0)
    shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
    shape |= {"vocab_size": 64, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1}
    rope = rope | {"rope_type": name}
    config = AutoConfig.for_model("llama", max_position_embeddings=131072, rope_parameters=rope, **shape)
    model = AutoModelForCausalLM.from_config(config).eval()
    expected[name] = model(ids).logits[0].numpy()
    model.save_pretrained(name)
    tokenizer.save_pretrained(name)
    TransformersConverter(name).convert(f"{name}-converted")
    converted = ctranslate2.Generator(f"{name}-converted", compute_type="float32")
    logits = np.array(converted.forward_batch(ids.tolist()))[0]
    off = np.abs(logits - expected[name])
    unscaled = np.abs(logits - expected["default"]).max()
    print(f"{name}: {off[:12].max():.4f} off in 12 tokens, {off.max():.4f} in 500; {unscaled:.4f} from no scaling")
    assert (off[:12].max() < 0.5 and off.max() > 4 and unscaled < 1e-3) if name == "llama3" else off.max() < 1e-3
PYTHON
