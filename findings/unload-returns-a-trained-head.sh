#!/usr/bin/env bash
# peft 0.21.2, transformers 5.24.0, torch 2.13.0: `unload()` of a LoRA adapter with modules_to_save, such as the head.
# Expected: the base model, which the documentation promises. PEFT keeps the modules' original weights for this purpose
# (issue 551 of huggingface/peft), and disable_adapter() computes with them.
# Seen: the adapter's matrices are removed, but the trained copies of head and norm stay and the original ones are
# dropped: a mixture of two models, whose logits, with a standard deviation of about 3, are up to 8.0 from the base
# model's. Saved, it opens like any other model. No warning; without modules_to_save it is the base model.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet peft==0.21.2 transformers==5.24.0 torch==2.13.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
config = AutoConfig.for_model("llama", vocab_size=50, initializer_range=0.3, eos_token_id=None, **shape)
for saved in (None, ["norm"], ["lm_head"]):
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_config(config).eval()
    expected = base(ids).logits
    model = get_peft_model(base, LoraConfig(target_modules=["q_proj"], modules_to_save=saved)).eval()
    for parameter in model.parameters():
        if parameter.requires_grad:  # as if trained
            parameter += 0.3 * torch.randn_like(parameter)
    with model.disable_adapter():
        disabled = (model(ids).logits - expected).abs().max().item()
    unloaded = model.unload()
    unloaded.save_pretrained("unloaded")
    opened = AutoModelForCausalLM.from_pretrained("unloaded").eval()
    off = [(each(ids).logits - expected).abs().max().item() for each in (unloaded, opened)]
    print(f"modules_to_save {saved}: {disabled:.2f} off with disable_adapter(), {off[0]:.2f} after unload()")
    assert disabled < 1e-4 and not hasattr(unloaded, "peft_config")
    assert (min(off) > 0.5) if saved else (max(off) < 1e-4)
PYTHON
