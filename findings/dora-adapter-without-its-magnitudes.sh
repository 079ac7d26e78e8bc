#!/usr/bin/env bash
# transformers 5.24.0, peft 0.21.2, torch 2.13.0: a DoRA adapter (LoRA with use_dora=True), saved with PEFT and opened
# by AutoModelForCausalLM.from_pretrained, which applies adapters.
# Expected: the logits of PeftModel.from_pretrained, as with a plain LoRA adapter.
# Seen: DoRA's magnitudes are not found under the name that the file gives them and keep the values of the base model.
# The load report lists them as unexpected and missing, and the model is returned: logits with a standard deviation of
# about 3 are up to 3.3 off.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 peft==0.21.2 torch==2.13.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/env/bin/python" - <<'PYTHON'
import torch
from peft import AutoPeftModelForCausalLM, LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
torch.manual_seed(0)
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
config = AutoConfig.for_model("llama", vocab_size=50, initializer_range=0.3, **shape)
AutoModelForCausalLM.from_config(config).save_pretrained("base")
ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
for dora in (False, True):
    base = AutoModelForCausalLM.from_pretrained("base")
    model = get_peft_model(base, LoraConfig(target_modules=["q_proj"], use_dora=dora))
    for parameter in model.parameters():
        if parameter.requires_grad:  # as if trained
            parameter += 0.3 * torch.randn_like(parameter)
    expected = model.eval()(ids).logits
    model.save_pretrained("adapter")
    by_peft = AutoPeftModelForCausalLM.from_pretrained("adapter").eval()(ids).logits
    by_transformers = AutoModelForCausalLM.from_pretrained("adapter").eval()(ids).logits
    off = [(found - expected).abs().max().item() for found in (by_peft, by_transformers)]
    print(f"DoRA {dora}: PEFT {off[0]:.2f} off, transformers {off[1]:.2f} off")
    assert off[0] < 1e-4
    assert (off[1] > 1) if dora else (off[1] < 1e-4)
PYTHON
