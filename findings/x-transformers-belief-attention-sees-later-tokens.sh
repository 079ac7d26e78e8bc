#!/usr/bin/env bash
# x-transformers 2.31.10, torch 2.13.0: a causal `Decoder` with attn_orthog_projected_values ("belief attention"), which
# removes from what attention returns for a token the part that is parallel to the token's own values.
# Expected: a token's logits depend on the tokens before it only, as in every other Decoder.
# Seen: the parallel part is computed over all tokens of a text, as one long vector. The logits of all tokens, with a
# standard deviation of 1, change with the last token, by up to 0.08; training therefore sees what it has to predict.
# Logits with the default cache are up to 1.7 from those of one pass. The same holds for
# attn_orthog_projected_values_per_head. No warning.
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
ids, others = torch.tensor([[5, 6, 7, 8, 9, 10]]), torch.tensor([[5, 6, 7, 8, 9, 20]])
for option in (None, "attn_orthog_projected_values", "attn_orthog_projected_values_per_head"):
    torch.manual_seed(0)
    options = {} if option is None else {option: True}
    layers = Decoder(dim=64, depth=3, heads=4, attn_dim_head=16, **options)
    model = TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers).eval()
    torch.manual_seed(1)
    for parameter in model.parameters():  # as if trained
        parameter += 0.1 * torch.randn_like(parameter)
    earlier = (model(ids) - model(others))[0, :-1].abs().amax(dim=-1)
    written = AutoregressiveWrapper(model).generate(ids, 6, temperature=0.0)
    text = torch.cat([ids, written], dim=1)
    off, (_, cache) = 0.0, model(ids, return_intermediates=True)
    for end in range(7, 12):
        logits, cache = model(text[:, :end], cache=cache, return_intermediates=True)
        off = max(off, (logits[:, -1] - model(text[:, :end])[:, -1]).abs().max().item())
    changes = " ".join(f"{change:.3f}" for change in earlier.tolist())
    print(f"{option}: logits of the tokens before the last change by {changes}; with a cache {off:.2f} off")
    if option is None:
        assert earlier.max() < 1e-5 and off < 1e-4
    else:
        assert earlier.min() > 1e-3 and off > 0.5
PYTHON
