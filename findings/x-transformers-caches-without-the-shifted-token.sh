#!/usr/bin/env bash
# x-transformers 2.31.10, torch 2.13.0: greedy generation by `AutoregressiveWrapper.generate` with its defaults, of
# decoders with options such as shift_tokens, which the README describes.
# Expected: the tokens that full passes rank first, as with cache_kv=False; or no cache, or an error, for options that a
# cache does not support.
# Seen: other tokens with shift_tokens=1, which gives half of each token's features to the next one: a token read with
# the cache gets zeros instead of the features of the token before. Logits with a standard deviation of 1 are up to 2.7
# off, those with attn_selective and attn_data_dependent_alibi 1.7 and 0.1. Rotary positions, ALiBi and memory keys are
# right. No warning, although the library looks for options that do not support a cache.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet x-transformers==2.31.10 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.set_grad_enabled(False)
ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
right = ({}, {"rotary_pos_emb": True}, {"alibi_pos_bias": True}, {"attn_num_mem_kv": 4})
wrong = ({"shift_tokens": 1}, {"attn_selective": True}, {"attn_data_dependent_alibi": True})
for options in (*right, *wrong):
    torch.manual_seed(0)
    layers = Decoder(dim=64, depth=3, heads=4, attn_dim_head=16, **options)
    model = TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers).eval()
    torch.manual_seed(1)
    for parameter in model.parameters():  # as if trained
        parameter += 0.1 * torch.randn_like(parameter)
    text = ids
    for _ in range(8):
        text = torch.cat([text, model(text)[:, -1:].argmax(-1)], dim=1)
    wrapper = AutoregressiveWrapper(model)
    cached = torch.equal(wrapper.generate(ids, 8, temperature=0.0)[0], text[0, 6:])
    uncached = torch.equal(wrapper.generate(ids, 8, temperature=0.0, cache_kv=False)[0], text[0, 6:])
    off, (_, cache) = 0.0, model(ids, return_intermediates=True)
    for end in range(7, 14):
        logits, cache = model(text[:, :end], cache=cache, return_intermediates=True)
        off = max(off, (logits[:, -1] - model(text[:, :end])[:, -1]).abs().max().item())
    print(f"{options}: logits with a cache {off:.2f} off; tokens as by full passes: {cached}, uncached {uncached}")
    assert uncached and (off > 0.05 if options in wrong else off < 1e-4)
    assert cached or options in wrong
    assert not (cached and "shift_tokens" in options)
PYTHON
