#!/usr/bin/env bash
# tokenizers 0.23.3, sentencepiece 0.2.1: the same normalisation table (nmt_nfkc, from the model file) read by both.
# Expected: the same normalised text, because `Precompiled` takes over SentencePiece's own table; at worst, decomposed
# letters stay decomposed.
# Seen: SentencePiece composes decomposed text. `Precompiled` composes a letter with one mark, drops all further marks
# of that letter ("việt" becomes "viẹt", the pinyin "lǜ" becomes "lü"), and leaves Japanese voiced kana and Korean
# syllables decomposed. Of the letters below U+2100 that have a decomposition, 302 come out differently.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet sentencepiece==0.2.1 tokenizers==0.23.3 protobuf==6.33.1
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import unicodedata
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import normalizers

Path("text.txt").write_text("the café is open\nthe dog ran to the café\n" * 50, encoding="utf-8")
sentencepiece.SentencePieceTrainer.train(
    input="text.txt",
    model_prefix="tiny",
    vocab_size=30,
    hard_vocab_limit=False,
    normalization_rule_name="nmt_nfkc",
    minloglevel=2,
)
proto = sentencepiece_model_pb2.ModelProto.FromString(Path("tiny.model").read_bytes())
precompiled = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
processor = sentencepiece.SentencePieceProcessor(model_file="tiny.model")


def both(text):
    apart = unicodedata.normalize("NFD", text)
    return processor.normalize(apart).replace("\u2581", " ").strip(), precompiled.normalize_str(apart).strip()


for word, seen in {"café": "café", "việt": "viẹt", "lǜ": "lü"}.items():
    theirs, found = both(word)
    print(word, "-> sentencepiece", theirs, "tokenizers", found)
    assert (theirs, found) == (word, seen)
for word in ("がぎ", "한국"):
    theirs, found = both(word)
    assert (theirs, found) == (word, unicodedata.normalize("NFD", word))
letters = [chr(i) for i in range(0xC0, 0x2100) if len(unicodedata.normalize("NFD", chr(i))) > 1]
different = [letter for letter in letters if len({*both(letter)}) == 2]
print(len(different), "of", len(letters), "letters differ")
assert len(different) == 302
PYTHON
