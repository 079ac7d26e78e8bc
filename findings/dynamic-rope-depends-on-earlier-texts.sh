#!/usr/bin/env bash
# transformers 5.24.0, torch 2.13.0: two texts, both longer than max_position_embeddings, are read one after the other by
# a Llama with rope_type "dynamic".
# Expected: the logits of a text depend on the text, as in every other model in evaluation mode.
# Seen: after a longer text, a text gets other logits than from a freshly loaded model, and other greedy tokens. The
# frequencies only ever grow to the longest text so far; a text within max_position_embeddings resets them. A server's
# answers to a long prompt therefore depend on its earlier prompts. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def loaded():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        initializer_range=0.3,
        rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0},
    )
    return LlamaForCausalLM(config).eval()


torch.manual_seed(1)
short, text, longer = (torch.randint(64, (1, length)) for length in (20, 64, 128))
with torch.no_grad():
    fresh, model = loaded()(text).logits, loaded()
    model(longer)
    after_longer = model(text).logits
    model(short)
    after_short = model(text).logits
off, reset = ((fresh - logits).abs().max().item() for logits in (after_longer, after_short))
changed = (fresh.argmax(-1) != after_longer.argmax(-1)).sum().item()
print(f"standard deviation {fresh.std():.2f}; after a longer text up to {off:.2f} off, {changed} of 64 tokens differ")
print(f"after a short text {reset:.2e} off")
assert off > 0.5 and changed > 0
assert reset < 1e-6
PYTHON
