#!/usr/bin/env bash
# torch 2.13.0 on a CPU: the next token drawn with torch.multinomial from the five most likely ones of a vocabulary, as
# short programs for GPT-2 do it, with logits in float16.
# Expected: one of the five tokens, because all others have a probability of exactly 0, as in float32 and bfloat16.
# Seen: about one token in 1,000 is another one with GPT-2's vocabulary, and five with Qwen's of 151,936 tokens: any
# word of any language, in the middle of a text. No warning. Reported as issue 192812 of pytorch/pytorch.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import torch

torch.manual_seed(0)
for name, size in (("GPT-2", 50_257), ("Qwen", 151_936)):
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        logits = torch.randn(size).to(dtype)
        top = logits.topk(5)
        kept = torch.full_like(logits, -torch.inf).scatter(0, top.indices, top.values)
        probabilities = kept.softmax(dim=-1)
        assert probabilities.count_nonzero() == 5
        drawn = torch.cat([torch.multinomial(probabilities.expand(100, size), 1) for _ in range(40)])
        others = int((probabilities[drawn] == 0).sum())
        print(f"{name}, {dtype}: {others} of {len(drawn):,} drawn tokens have a probability of 0")
        assert (others > 0) == (dtype is torch.float16)
PYTHON
