#!/usr/bin/env bash
# transformer-lens 4.3.0, transformers 5.24.0, torch 2.13.0: enable_compatibility_mode() of a GPT-OSS, with all settings
# at their defaults.
# Expected: other weights for the same function, as with Llama and Qwen2: probabilities that agree to 1e-4; or an error.
# Seen: another model. The biases of the values are moved into the bias of the attention's output, which needs attention
# weights that add up to 1. Those of GPT-OSS do not, because a part of them goes to its sinks. Log-probabilities of a
# model whose logits have a standard deviation of 2 are up to 5 off. With fold_value_biases=False they are right.
# No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformer-lens==4.3.0 transformers==5.24.0 torch==2.13.0
cd "$folder"
HF_HUB_OFFLINE=1 "$folder/env/bin/python" - <<'PYTHON'
import copy

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

torch.set_grad_enabled(False)
words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(50)}, unk_token="w0"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", eos_token="w1", bos_token="w2").save_pretrained("words")
tokenizer = AutoTokenizer.from_pretrained("words")
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 50}
shape |= {"hidden_size": 64, "intermediate_size": 96, "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
for family, more in (("llama", {"attention_bias": True}), ("qwen2", {}), ("gpt_oss", experts)):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **shape, **more)).eval()
    model.config.architectures = [type(model).__name__]
    for parameter in model.parameters():  # as if trained: no bias is zero
        parameter += 0.25 * torch.randn_like(parameter)
    ids = torch.randint(3, 50, (1, 12))
    expected = model(ids).logits
    for settings in ({}, {"fold_value_biases": False}):
        bridge = TransformerBridge.boot_transformers(
            "tiny/" + family, hf_model=copy.deepcopy(model), tokenizer=tokenizer, device="cpu"
        )
        raw = (bridge(ids) - expected).abs().max().item()
        bridge.enable_compatibility_mode(**settings)
        logits, cache = bridge.run_with_cache(ids)
        off = (logits.log_softmax(-1) - expected.log_softmax(-1)).abs().max().item()
        weights = cache["pattern", 1].sum(-1)
        print(f"{family} {settings}: attention weights add up to {weights.min():.2f} to {weights.max():.2f}", end=", ")
        print(f"log-probabilities are {off:.1g} off; standard deviation of the logits {expected.std():.1f}")
        assert raw < 1e-3
        assert off > 0.5 if family == "gpt_oss" and not settings else off < 1e-3
PYTHON
