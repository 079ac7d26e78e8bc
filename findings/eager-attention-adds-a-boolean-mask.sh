#!/usr/bin/env bash
# transformers 5.24.0, torch 2.13.0: a causal mask of shape (1, 1, T, T) of True and False, passed as `attention_mask`.
# Expected: the same logits with both attention implementations, those without a mask; or an error.
# Seen: "sdpa" gives them. "eager" adds the mask to the scores, so that True counts 1 and every token sees those after
# it: GPT-2's logits, with a standard deviation of about 3, are up to 7.2 off, and the first token's depend on the last.
# No warning. A program that needs attention weights has to choose "eager".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import torch
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
gpt2 = {"n_layer": 3, "n_head": 4, "n_embd": 64}
llama = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
ids, others = torch.tensor([[5, 6, 7, 8, 9, 10]]), torch.tensor([[5, 6, 7, 8, 9, 20]])
mask = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
for name, shape in (("gpt2", gpt2), ("llama", llama)):
    torch.manual_seed(0)
    shape |= {"vocab_size": 50, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 0}
    config = AutoConfig.for_model(name, **shape)
    model = AutoModelForCausalLM.from_config(config).eval()
    for implementation in ("sdpa", "eager"):
        model.set_attn_implementation(implementation)
        masked = model(ids, attention_mask=mask).logits
        off = (masked - model(ids).logits).abs().max().item()
        first = (masked[0, 0] - model(others, attention_mask=mask).logits[0, 0]).abs().max().item()
        print(f"{name} {implementation}: {off:.2f} off; first token changes with the last by {first:.2f}")
        assert (off < 1e-4 and first < 1e-4) if implementation == "sdpa" else (off > 1 and first > 0.1)
PYTHON
