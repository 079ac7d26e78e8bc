#!/usr/bin/env bash
# transformers 5.24.0, peft 0.21.2, torch 2.13.0: an activated LoRA (aLoRA), which changes the tokens from an invocation
# text on, saved with PEFT and opened by AutoModelForCausalLM.from_pretrained, which applies adapters.
# Expected: the logits of AutoPeftModelForCausalLM.from_pretrained, as with a plain LoRA adapter; or an error.
# Seen: the base model's logits. All matrices are loaded and are part of the model, but only PEFT's own class looks for
# the invocation text, so they are never applied: logits with a standard deviation of about 3 are 8.3 off. Without
# a text that invokes it, both give the base model's. No warning.
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
for invocation in (None, [7, 8]):
    base = AutoModelForCausalLM.from_pretrained("base")
    without = base(ids).logits
    settings = LoraConfig(
        task_type="CAUSAL_LM", target_modules=["q_proj", "down_proj"], alora_invocation_tokens=invocation
    )
    model = get_peft_model(base, settings).eval()
    for parameter in model.parameters():
        if parameter.requires_grad:  # as if trained
            parameter += 0.3 * torch.randn_like(parameter)
    expected = model(ids).logits
    model.save_pretrained("adapter")
    by_peft = AutoPeftModelForCausalLM.from_pretrained("adapter").eval()(ids).logits
    opened = AutoModelForCausalLM.from_pretrained("adapter").eval()
    off = [(found - expected).abs().max().item() for found in (by_peft, opened(ids).logits)]
    from_base = (opened(ids).logits - without).abs().max().item()
    print(f"invoked by {invocation}: PEFT {off[0]:.2f} off, transformers {off[1]:.2f}, from the base {from_base:.2f}")
    assert any("lora_B" in name and parameter.abs().max() > 0 for name, parameter in opened.named_parameters())
    assert off[0] < 1e-4
    assert (off[1] < 1e-4 < from_base) if invocation is None else (off[1] > 1 and from_base < 1e-4)
PYTHON
