#!/usr/bin/env bash
# transformers 5.24.0, torch 2.13.0: position_ids 0, 2, 4, ... or all equal, as in experiments on positions.
# Expected: every token sees all tokens before it, at the given positions, whether or not keys and values are kept.
# Seen: that holds with the default, use_cache=True. With use_cache=False and no attention mask, every position that is
# not one more than the position before starts a new text that can't see the tokens before it, as in packed training:
# logits with a standard deviation of about 3 differ by up to 10.3 (GPT-2) and 10.5 (Llama). The other way round, packed
# texts see each other unless use_cache=False. An attention mask of ones does not change this. No warning. Added with
# pull request 39194 of huggingface/transformers.
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
ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
for name, shape in (("gpt2", gpt2), ("llama", llama)):
    torch.manual_seed(0)
    shape |= {"vocab_size": 50, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 0}
    config = AutoConfig.for_model(name, **shape)
    model = AutoModelForCausalLM.from_config(config).eval()
    for positions in ([0, 1, 2, 3, 4, 5], [0, 2, 4, 6, 8, 10], [3, 3, 3, 3, 3, 3]):
        given = torch.tensor([positions])
        kept, not_kept = (model(ids, position_ids=given, use_cache=cache).logits for cache in (True, False))
        off = (kept - not_kept).abs().max().item()
        alone = torch.cat([model(ids[:, [i]], position_ids=given[:, [i]]).logits for i in range(6)], dim=1)
        cut = (not_kept - alone).abs().max().item()
        print(f"{name} {positions}: without a cache {off:.2f} off, {cut:.2f} from tokens that see only themselves")
        assert (off < 1e-4 < cut) if positions[1] == 1 else (off > 1 and cut < 1e-4)
    packed = torch.tensor([[0, 1, 2, 0, 1, 2]])
    second = model(ids[:, 3:]).logits
    sees = {cache: model(ids, position_ids=packed, use_cache=cache).logits[:, 3:] - second for cache in (True, False)}
    print(f"{name}, packed texts: with a cache {sees[True].abs().max():.2f} off, without {sees[False].abs().max():.2f}")
    assert sees[True].abs().max() > 1 and sees[False].abs().max() < 1e-4
PYTHON
