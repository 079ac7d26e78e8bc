#!/usr/bin/env bash
# peft 0.21.2, transformers 5.24.0, torch 2.13.0: Lily, one of PEFT's adapters, on a causal Llama.
# Expected: as with LoRA, a token's logits depend on the tokens before it only, and not on other texts of the batch. The
# documentation has a router that weights the adapter's matrices for the input.
# Seen: the router's weights are averaged over all tokens of all texts of a pass. The first token's logits, with a
# standard deviation of about 3, change by 2.4 with the last token and by 2.3 with another text in the batch. In training
# and scoring, a token's loss therefore depends on the tokens that it has to predict; generation with a cache, where a
# pass is one token, computes something else than one pass over the text: up to 9.5 off, other greedy tokens. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet peft==0.21.2 transformers==5.24.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
from peft import LilyConfig, LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
ids, others = torch.tensor([[5, 6, 7, 8, 9, 10]]), torch.tensor([[5, 6, 7, 8, 9, 20]])
for settings in (LoraConfig, LilyConfig):
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", vocab_size=50, initializer_range=0.3, eos_token_id=None, **shape)
    base = AutoModelForCausalLM.from_config(config)
    model = get_peft_model(base, settings(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"])).eval()
    for parameter in model.parameters():
        if parameter.requires_grad:  # as if trained
            parameter += 0.3 * torch.randn_like(parameter)
    alone = model(ids).logits[0]
    later = (model(others).logits[0, 0] - alone[0]).abs().max().item()
    text = (model(torch.cat([ids, ids * 4])).logits[0, 0] - alone[0]).abs().max().item()
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(ids)}
    generated = model.generate(input_ids=ids, return_dict_in_generate=True, output_logits=True, **options)
    again = model(generated.sequences[:, :-1]).logits[0, 5:]
    off = (torch.cat(generated.logits) - again).abs().max().item()
    same = torch.equal(again.argmax(-1), generated.sequences[0, 6:])
    print(f"{settings.__name__}: the first token changes with the last by {later:.2f}, with another text by {text:.2f}")
    print(f"  generated logits {off:.2f} from one pass over the generated text, same greedy tokens: {same}")
    if settings is LilyConfig:
        assert min(later, text, off) > 0.5 and not same
    else:
        assert max(later, text, off) < 1e-3 and same
PYTHON
