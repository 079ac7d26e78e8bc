#!/usr/bin/env bash
# transformers 5.24.0, torch 2.13.0: greedy generation of a GPT-Neo (TinyStories are of this family) with
# cache_implementation="static".
# Expected: the tokens of the default cache, as in the other families; or an error, because GPT-Neo's window does not
# support it.
# Seen: other tokens. In layers with a window, the positions of the mask are counted from the end of the cache, most of
# which is still empty: the first logits, with a standard deviation of about 3, are up to 4 off. No warning. A GPT-Neo
# without windows is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import torch
from transformers import GPTNeoConfig, GPTNeoForCausalLM

ids = torch.tensor([[5, 6, 7, 8, 9, 10, 3, 2, 9]])
for kinds in (["global", "global"], ["global", "local"]):
    torch.manual_seed(0)
    config = GPTNeoConfig(
        num_layers=4,
        attention_types=[[kinds, 2]],
        num_heads=4,
        hidden_size=64,
        vocab_size=50,
        max_position_embeddings=64,
        window_size=4,
        initializer_range=0.3,
        eos_token_id=None,
        bos_token_id=None,
    )
    model = GPTNeoForCausalLM(config).eval()
    settings = {"do_sample": False, "max_new_tokens": 8, "return_dict_in_generate": True, "output_logits": True}
    mask = torch.ones_like(ids)
    default, static = (
        model.generate(ids, attention_mask=mask, cache_implementation=name, **settings) for name in (None, "static")
    )
    with torch.no_grad():
        by_hand = model(ids, use_cache=False).logits[:, -1]
    off = [(found.logits[0] - by_hand).abs().max().item() for found in (default, static)]
    for name, found, each in zip(("default", "static"), (default, static), off):
        print(kinds, name, found.sequences[0, 9:].tolist(), f"first logits {each:.2f} off")
    assert off[0] < 1e-4
    assert torch.equal(default.sequences, static.sequences) == (kinds[1] == "global")
    assert (off[1] > 1) == (kinds[1] == "local")
PYTHON
