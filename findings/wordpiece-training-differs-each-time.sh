#!/usr/bin/env bash
# tokenizers 0.23.3: a WordPiece vocabulary, trained ten times on the same texts with the same settings in one process.
# Expected: the same vocabulary each time, as with the BPE trainer, which does the same work: nothing in it is random.
# Seen: ten different ones. The tokens are the same (or nearly, where counts are equal), but their ids differ, so a
# model trained with one of them can't be used with the next. One thread or TOKENIZERS_PARALLELISM=false changes
# nothing, and there is no seed. Reported as issue 1794 of huggingface/tokenizers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet tokenizers==0.23.3
cd "$folder"
RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false "$folder/env/bin/python" - <<'PYTHON'
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

random.seed(0)
words = ["".join(random.choices("abcdefghij", k=random.randint(2, 7))) for _ in range(300)]
texts = [" ".join(random.choices(words, k=20)) for _ in range(200)]
for name, model, trainer, different in (
    ("BPE", models.BPE(), trainers.BpeTrainer, 1),
    ("WordPiece", models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer, 10),
):
    vocabularies, encodings = set(), set()
    for _ in range(10):
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        settings = trainer(vocab_size=100, special_tokens=["[UNK]"], show_progress=False)
        tokenizer.train_from_iterator(texts, settings)
        vocabularies.add(tuple(sorted(tokenizer.get_vocab().items())))
        encodings.add(tuple(tokenizer.encode(texts[0]).ids))
    print(f"{name}: {len(vocabularies)} vocabularies in 10 trainings, {len(encodings)} encodings of one text")
    assert len(vocabularies) == len(encodings) == different
PYTHON
