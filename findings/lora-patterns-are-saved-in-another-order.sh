#!/usr/bin/env bash
# peft 0.21.2, transformers 5.24.0, torch 2.13.0: a LoRA adapter whose alpha_pattern names one module before all modules
# of its kind, saved with save_pretrained and opened with from_pretrained.
# Expected: the logits that the adapter had before it was saved.
# Seen: of the keys that match a module, the first one counts, and save_pretrained sorts them: "down_proj" comes before
# "model.layers.0.mlp.down_proj", so that the opened adapter scales layer 0 like all others. Logits with a standard
# deviation of about 3 are 6.7 off. The key "0.mlp.down_proj" for the same layer stays first. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet peft==0.21.2 transformers==5.24.0 torch==2.13.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/env/bin/python" -W ignore - <<'PYTHON'
import json
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
ids = torch.tensor([[5, 6, 7, 8, 9, 10]])


def base():
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", vocab_size=50, initializer_range=0.3, eos_token_id=None, **shape)
    return AutoModelForCausalLM.from_config(config)


for one in ("model.layers.0.mlp.down_proj", "0.mlp.down_proj"):
    patterns = {one: 32, "down_proj": 4}
    model = get_peft_model(base(), LoraConfig(target_modules=["down_proj"], alpha_pattern=patterns)).eval()
    for parameter in model.parameters():
        if parameter.requires_grad:  # as if trained
            parameter += 0.2 * torch.randn_like(parameter)
    model.save_pretrained("adapter")
    saved = json.loads(Path("adapter/adapter_config.json").read_text())["alpha_pattern"]
    opened = PeftModel.from_pretrained(base(), "adapter").eval()
    scales = [
        [layer.mlp.down_proj.scaling["default"] for layer in each.base_model.model.model.layers]
        for each in (model, opened)
    ]
    off = (model(ids).logits - opened(ids).logits).abs().max().item()
    print(f"{patterns} is saved as {saved}; scales {scales[0]} become {scales[1]}; logits {off:.2f} off")
    assert saved == patterns
    assert scales[0] == [4.0, 0.5, 0.5]
    if one.startswith("model"):
        assert list(saved) == ["down_proj", one] and scales[1] == [0.5, 0.5, 0.5] and off > 0.5
    else:
        assert list(saved) == [one, "down_proj"] and scales[1] == scales[0] and off == 0
PYTHON
