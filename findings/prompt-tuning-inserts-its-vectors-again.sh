#!/usr/bin/env bash
# peft 0.21.2, transformers 5.24.0 and 5.23.0, torch 2.13.0: greedy generation of a Llama with prompt tuning, p-tuning
# or prefix tuning, with all settings at their defaults.
# Expected: the tokens that full passes over prompt and written tokens rank first, as with use_cache=False and with
# transformers 5.23.0; or an error, because the two versions do not fit together.
# Seen with 5.24.0: prompt tuning and p-tuning insert all trained vectors again before each written token but the first.
# Prefix tuning leaves the trained prefix out: it writes what the base model writes, with positions moved by the length
# of the prefix. Logits with a standard deviation of about 3 are up to 8.8 off. Training and scoring are right, so a
# loss does not show it. The warnings mention position ids and past_key_values, which 5.24.0 renamed to cache.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet peft==0.21.2 transformers==5.24.0 torch==2.13.0
cd "$folder"
cat > try.py <<'PYTHON'
import sys

import torch
from peft import PrefixTuningConfig, PromptEncoderConfig, PromptTuningConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
wrong = sys.argv[1] == "5.24.0"
ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(ids)}
for settings in (PromptTuningConfig, PromptEncoderConfig, PrefixTuningConfig):
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", vocab_size=50, initializer_range=0.3, eos_token_id=None, **shape)
    base = AutoModelForCausalLM.from_config(config).eval()
    model = get_peft_model(base, settings(task_type="CAUSAL_LM", num_virtual_tokens=4)).eval()
    for parameter in model.parameters():
        if parameter.requires_grad:  # as if trained
            parameter += 0.3 * torch.randn_like(parameter)
    expected, full = ids, []
    for _ in range(6):
        full.append(model(expected).logits[:, -1])
        expected = torch.cat([expected, full[-1].argmax(-1)[:, None]], dim=1)
    generated = model.generate(input_ids=ids, return_dict_in_generate=True, output_logits=True, **options)
    found, logits = generated.sequences, torch.stack(generated.logits)
    off = (logits - torch.stack(full)).abs().max().item()
    print(f"{settings.__name__}: {expected[0, 6:].tolist()} expected, {found[0, 6:].tolist()} seen, logits {off:.1f} off")
    assert torch.equal(found, expected) != wrong
    assert (off > 3) if wrong else (off < 1e-3)
    if settings is PrefixTuningConfig:
        without = base.generate(ids, position_ids=4 + torch.arange(6)[None], **options)
        assert torch.equal(found, without) == wrong
        continue
    assert torch.equal(model.generate(input_ids=ids, use_cache=False, **options), expected)
    embedding, vectors = base.get_input_embeddings(), model.get_prompt(1)
    again = torch.cat([vectors, embedding(ids), vectors, embedding(found[:, 6:7])], dim=1)
    assert torch.allclose(logits[1], base(inputs_embeds=again).logits[:, -1], atol=1e-3) == wrong
PYTHON
"$folder/env/bin/python" -W ignore try.py 5.24.0
"$folder/env/bin/pip" install --quiet transformers==5.23.0
"$folder/env/bin/python" -W ignore try.py 5.23.0
