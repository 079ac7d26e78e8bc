#!/usr/bin/env bash
# transformers 5.24.0, torch 2.13.0: beam search with a MiniMax (layers of linear attention between ordinary ones).
# Expected: the score of a returned text is its own log-probability, as in other families, and in this
# example at least as high as that of greedy search.
# Seen: with three beams, the best text claims -7.7 and has -18.8, which is less than greedy search's -8.7, because the
# states of the linear layers are not exchanged when the beams are. With use_cache=False both are right. No warning.
# Issue 46612 of huggingface/transformers reported the same of other families.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
ids = torch.tensor([[5, 6, 7, 8, 9, 10, 3, 2, 9]])
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
shape |= {"hidden_size": 64, "intermediate_size": 96, "vocab_size": 60, "initializer_range": 0.3}
options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(ids)}
for name, more in (("llama", {}), ("minimax", {"num_local_experts": 4})):
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, eos_token_id=None, bos_token_id=0, **shape, **more)
    model = AutoModelForCausalLM.from_config(config).eval()

    def own(text, model=model):
        return model(text).logits[0, 8:-1].log_softmax(-1).gather(-1, text[0, 9:, None]).sum().item()

    greedy = own(model.generate(ids, **options))
    for cache in (True, False):
        settings = {"num_beams": 3, "return_dict_in_generate": True, "output_scores": True, "use_cache": cache}
        found = model.generate(ids, **options, **settings)
        claimed, real = found.sequences_scores.item() * 8, own(found.sequences)
        print(f"{name}, use_cache={cache}: claimed {claimed:.2f}, own {real:.2f}; greedy search {greedy:.2f}")
        right = abs(claimed - real) < 1e-2 and real >= greedy - 1e-2
        assert right == (name == "llama" or not cache)
    if name == "minimax":
        assert "linear_attention" in config.layer_types
PYTHON
