#!/usr/bin/env bash
# transformer-lens 4.3.0, transformers 5.24.0 and 5.23.0, torch 2.13.0: greedy generation with
# TransformerBridge.generate and all settings at their defaults, where use_past_kv_cache is True.
# Expected: the tokens that full passes rank first, as with use_past_kv_cache=False and with transformers 5.23.0; or an
# error, because the two versions do not fit together.
# Seen with 5.24.0, which pip chooses: the cache stays empty, so that every written token but the first is predicted
# from the one token before it, at its right position. Logits with a standard deviation of 2.5 are up to 9 off. That
# holds for GPT-2, Llama, Qwen3, Gemma 2, OLMo 2 and about 30 other families; GPT-J, OPT and BLOOM are right. Single
# passes with hooks are right, so a text that the model wrote does not fit the activations that explain it. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
cd "$folder"
for version in 5.24.0 5.23.0; do
  "$folder/env/bin/pip" install --quiet transformer-lens==4.3.0 transformers==$version torch==2.13.0
  HF_HUB_OFFLINE=1 "$folder/env/bin/python" -W ignore - <<'PYTHON'
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

torch.set_grad_enabled(False)
words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(50)}, unk_token="w0"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", eos_token="w1", bos_token="w2").save_pretrained("words")
tokenizer = AutoTokenizer.from_pretrained("words")
gpt2 = {"n_layer": 3, "n_head": 4, "n_embd": 64}
llama = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
llama |= {"hidden_size": 64, "intermediate_size": 128}
ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
for family, shape in (("gpt2", gpt2), ("llama", llama), ("qwen3", llama), ("gptj", gpt2 | {"rotary_dim": 8})):
    torch.manual_seed(0)
    shape = shape | {"vocab_size": 50, "initializer_range": 0.3, "bos_token_id": 2, "eos_token_id": 1}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **shape)).eval()
    full = ids
    for _ in range(10):
        full = torch.cat([full, model(full, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    bridge = TransformerBridge.boot_transformers("tiny/" + family, hf_model=model, tokenizer=tokenizer, device="cpu")
    how = {"max_new_tokens": 10, "do_sample": False, "stop_at_eos": False, "verbose": False}
    default = bridge.generate(ids, **how)
    uncached = bridge.generate(ids, use_past_kv_cache=False, **how)
    logits = bridge(full)
    cache = bridge(full[:, :-1], return_type="logits_and_cache", use_past_kv_cache=True)[1]
    cached = cache.get_seq_length()
    last = bridge(full[:, -1:], past_key_values=cache, position_ids=torch.tensor([[full.shape[1] - 1]]))
    off = (last - logits[:, -1:]).abs().max().item()
    same = (default == full)[0, 6:].sum().item()
    print(f"transformers {transformers.__version__} {family}: {same} of 10 tokens are those of full passes", end=", ")
    print(f"logits with a standard deviation of {logits.std():.1f} are {off:.0g} off")
    assert torch.equal(uncached, full)
    right = family == "gptj" or transformers.__version__ == "5.23.0"
    assert torch.equal(default, full) == right and (off < 1e-3 if right else off > 1)
    assert cached == (full.shape[1] - 1 if right else 0)
PYTHON
done
