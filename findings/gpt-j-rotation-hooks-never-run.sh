#!/usr/bin/env bash
# transformer-lens 4.3.0, transformers 5.24.0: a GPT-J, and hooks on its queries and keys after the rotation
# (`blocks.0.attn.hook_rot_q`, `hook_rot_k`).
# Expected: the hooks run, as they do in a Llama, or an error that the names do not exist, as for other wrong names.
# Seen: the names are accepted, and the hooks never run. A measurement that doubles all rotated keys finds no effect.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformer-lens==4.3.0 transformers==5.24.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import torch
from tokenizers import Tokenizer, models
from transformer_lens.model_bridge import TransformerBridge
from transformers import GPTJConfig, GPTJForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

shape = {"vocab_size": 50, "bos_token_id": 1, "eos_token_id": 1}
gptj = GPTJConfig(n_embd=32, n_layer=2, n_head=4, n_positions=32, rotary_dim=4, **shape)
llama = LlamaConfig(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=32, **shape
)
words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(50)}, unk_token="w0"))
idx = torch.arange(2, 12)[None]
runs = {}
for name, kind, config in (("gptj", GPTJForCausalLM, gptj), ("llama", LlamaForCausalLM, llama)):
    kind(config).save_pretrained(name)
    PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w1", eos_token="w1").save_pretrained(name)
    bridge, runs[name] = TransformerBridge.boot_transformers(name), []

    def seen(x, hook, calls=runs[name]):
        calls.append(hook.name)
        return 2 * x

    hooks = [(f"blocks.0.attn.hook_rot_{part}", seen) for part in "qk"]
    bridge.run_with_hooks(idx, fwd_hooks=hooks)
print(runs)
assert len(runs["llama"]) == 2
assert runs["gptj"] == []
PYTHON
