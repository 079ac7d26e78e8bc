#!/usr/bin/env bash
# captum 0.9.0, transformers 5.24.0, torch 2.13.0: LLMAttribution with FeatureAblation, which words of a prompt raise
# the log-probability of each token of a target, with all settings at their defaults.
# Expected: the log-probability of the token with the prompt, minus that without the word, for each token of the target.
# Seen: right for the first token of the target only. The numbers of the following ones are of the right size and often
# of the wrong sign: 1.26 becomes -1.07. They are right with use_cached_outputs=False. Nothing is logged.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet captum==0.9.0 transformers==5.24.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import torch
from captum.attr import FeatureAblation, LLMAttribution, TextTokenInput
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

torch.manual_seed(0)
words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(50)}, unk_token="w0"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0", pad_token="w0", eos_token="w0")
shape = {"n_layer": 3, "n_head": 4, "n_embd": 64, "vocab_size": 50, "initializer_range": 0.3}
model = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0)).eval()
prompt, target = [5, 6, 7, 8], [9, 10, 3]


@torch.no_grad()
def log_probabilities(ids):
    logits = model(torch.tensor([ids + target])).logits[0, len(ids) - 1 : -1]
    return logits.log_softmax(-1)[range(3), target]


without = [log_probabilities([0 if i == j else token for j, token in enumerate(prompt)]) for i in range(4)]
expected = log_probabilities(prompt)[:, None] - torch.stack(without, dim=1)
text = TextTokenInput("w5 w6 w7 w8", tokenizer, baselines=0)
attribution = LLMAttribution(FeatureAblation(model), tokenizer)
default = attribution.attribute(text, target="w9 w10 w3").token_attr
uncached = attribution.attribute(text, target="w9 w10 w3", use_cached_outputs=False).token_attr
for name, found in (("by hand", expected), ("default", default), ("without cached outputs", uncached)):
    print(name, [[round(value, 2) for value in row] for row in found.tolist()])
assert torch.allclose(uncached, expected, atol=1e-4)
assert torch.allclose(default[0], expected[0], atol=1e-4)
assert (default[1:] - expected[1:]).abs().max() > 1
PYTHON
