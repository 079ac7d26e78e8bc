#!/usr/bin/env bash
# transformers 5.24.0, tokenizers 0.23.3: a GPT-2 folder whose vocabulary is a `vocab.txt` (WordPiece, as some small
# GPT-2 models for Chinese have it) and whose files name no tokenizer class.
# Expected: an error, or a tokenizer with the words of `vocab.txt`.
# Seen: AutoTokenizer returns a GPT2Tokenizer of one token, without the words of the file. It logs nothing about it, and
# every text becomes no ids.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 tokenizers==0.23.3
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import json
from pathlib import Path

from transformers import AutoTokenizer

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "ran", "春", "眠"]
model = Path("model")
model.mkdir()
(model / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
shape = {"n_layer": 1, "n_head": 1, "n_embd": 8, "vocab_size": len(words)}
(model / "config.json").write_text(json.dumps({"model_type": "gpt2", **shape}))
tokenizer = AutoTokenizer.from_pretrained(model)
ids = tokenizer("the dog ran")["input_ids"]
print(type(tokenizer).__name__, "vocabulary:", len(tokenizer), "ids:", ids)
assert type(tokenizer).__name__ == "GPT2Tokenizer"
assert "dog" not in tokenizer.get_vocab()
assert ids == []
PYTHON
