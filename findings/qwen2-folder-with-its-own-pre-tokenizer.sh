#!/usr/bin/env bash
# transformers 5.24.0, tokenizers 0.23.3: a folder of the Qwen2 or Qwen3 architecture with another vocabulary, whose
# tokenizer.json splits texts as GPT-2 or Llama 3 do.
# Expected: AutoTokenizer splits texts as tokenizer.json says, as it does in a folder of a Llama.
# Seen: it takes vocabulary and merges from the file, and splits texts as Qwen2 does: "123" becomes three tokens instead
# of one, in a class Qwen2Tokenizer, for Qwen2 even if the folder names LlamaTokenizerFast. No warning; the model reads
# ids that it was not trained on. Issue 45920 of huggingface/transformers reports the same of other families.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 tokenizers==0.23.3
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer, tokenizer.decoder = byte_level, decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=byte_level.alphabet(), show_progress=False)
tokenizer.train_from_iterator(["the dog ran 123 times"] * 20, trainer)
text = "the dog ran 123 times"
expected = tokenizer.encode(text).tokens
print("tokenizers:", expected)
for family, named, same in (
    ("llama", None, True),
    ("gpt2", None, True),
    ("qwen2", None, False),
    ("qwen3", None, False),
    ("qwen2", "LlamaTokenizerFast", False),
):
    model = Path(f"{family}-{named}")
    model.mkdir()
    tokenizer.save(str(model / "tokenizer.json"))
    (model / "config.json").write_text(json.dumps({"model_type": family, "vocab_size": 300}))
    if named:
        (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": named}))
    found = AutoTokenizer.from_pretrained(model)
    tokens = found.tokenize(text)
    print(model, type(found).__name__, tokens)
    assert (tokens == expected) == same
    assert same or "1" in tokens and len(tokens) > len(expected)
PYTHON
