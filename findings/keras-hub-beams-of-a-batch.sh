#!/usr/bin/env bash
# keras-hub 0.32.0, keras 3.15.1, torch 2.13.0 (as Keras' backend): beam search with GPT2CausalLM.generate and
# BeamSampler(num_beams=4) for two prompts of different lengths in one batch.
# Expected: each prompt gets the text that it gets alone, as with greedy search, which is right in the same batch.
# Seen: the longer prompt gets a less likely one. While the shorter prompt already writes, the tokens of the longer one
# are kept, but its beams are scored and exchanged as if they wrote the most likely tokens. They begin as copies of the
# prompt with different scores, instead of as one beam. In 20 batches, several longer prompts get other texts, none of
# which is more likely than the text that the prompt gets alone. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet keras-hub==0.32.0 keras==3.15.1 torch==2.13.0
cd "$folder"
KERAS_BACKEND=torch TF_CPP_MIN_LOG_LEVEL=3 "$folder/env/bin/python" -W ignore - <<'PYTHON'
import keras
import keras_hub
import numpy as np
import torch

torch.set_grad_enabled(False)
keras.utils.set_random_seed(0)
backbone = keras_hub.models.GPT2Backbone(
    vocabulary_size=30,
    num_layers=2,
    num_heads=4,
    hidden_dim=32,
    intermediate_dim=64,
    max_sequence_length=32,
    dropout=0,
)
for weight in backbone.weights:
    if len(weight.shape) >= 2:
        weight.assign((1.5 if "position" in weight.path else 0.4) * np.random.randn(*weight.shape))
model = keras_hub.models.GPT2CausalLM(backbone=backbone, preprocessor=None)
length = 14


def inputs(rows):
    ids, mask = np.zeros((len(rows), length), "int32"), np.zeros((len(rows), length), "bool")
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = row, True
    return {"token_ids": ids, "padding_mask": mask}


def generate(rows):
    return model.generate(inputs(rows), stop_token_ids=None)["token_ids"].tolist()


def log_probability(row, start):
    logits = torch.as_tensor(model(inputs([row])))[0].log_softmax(-1)
    return sum(logits[i - 1, row[i]].item() for i in range(start, length))


generator = np.random.default_rng(0)
pairs = [[generator.integers(0, 30, 2).tolist(), generator.integers(0, 30, 8).tolist()] for _ in range(20)]
model.compile(sampler="greedy")
assert all(generate(pair) == [generate([row])[0] for row in pair] for pair in pairs)
model.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=4))
others = 0
for pair in pairs:
    (short,), (long,) = generate(pair[:1]), generate(pair[1:])
    together = generate(pair)
    assert together[0] == short
    if together[1] != long:
        others += 1
        alone, batch = log_probability(long, 8), log_probability(together[1], 8)
        print(f"alone {long[8:]} with log-probability {alone:.2f}, in the batch {together[1][8:]} with {batch:.2f}")
        assert batch < alone
print(f"{others} of the {len(pairs)} longer prompts get another text in a batch")
assert others >= 3
PYTHON
