#!/usr/bin/env bash
# keras-hub 0.32.0, keras 3.15.1, torch 2.13.0 (as Keras' backend): greedy generation with GPTNeoXCausalLM, the class
# for Pythia and GPT-NeoX.
# Expected: the tokens that full passes over prompt and written tokens rank first, as with GPT2CausalLM, LlamaCausalLM
# and OPTCausalLM.
# Seen: other tokens. Reading a token with the cache, the attention layer turns its query and key as if the token were
# the first of the text, whatever its position (the index of the cache is not passed to the rotary embedding). That
# includes the last token of the prompt, so that the first written token is often wrong. Single passes, as in training
# and scoring, are right. No warning.
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
length = 18


def inputs(row, size):
    ids, mask = np.zeros((1, size), "int32"), np.zeros((1, size), "bool")
    ids[0, : len(row)], mask[0, : len(row)] = row, True
    return {"token_ids": ids, "padding_mask": mask}


shape = {"vocabulary_size": 30, "num_layers": 3, "hidden_dim": 32, "intermediate_dim": 48}
heads = {"num_heads": 4, "max_sequence_length": 32, "dropout": 0}
llama = {"num_query_heads": 4, "num_key_value_heads": 2}
for family, more in (("GPT2", heads), ("OPT", heads), ("Llama", llama), ("GPTNeoX", heads)):
    keras.utils.set_random_seed(0)
    backbone = getattr(keras_hub.models, f"{family}Backbone")(**shape, **more)
    for weight in backbone.weights:
        if len(weight.shape) >= 2:
            weight.assign(0.4 * np.random.randn(*weight.shape))
    model = getattr(keras_hub.models, f"{family}CausalLM")(backbone=backbone, preprocessor=None)
    model.compile(sampler="greedy")
    generator = np.random.default_rng(0)
    first, same = 0, 0
    for _ in range(8):
        prompt = generator.integers(1, 30, 6).tolist()
        full = list(prompt)
        while len(full) < length:
            full.append(int(torch.as_tensor(model(inputs(full, len(full))))[0, -1].argmax()))
        found = model.generate(inputs(prompt, length), stop_token_ids=None)["token_ids"][0].tolist()
        first += full[6] == found[6]
        same += full == found
    print(f"{family}: {same} of 8 texts are those of full passes, {first} begin with the same token", flush=True)
    assert same <= 2 if family == "GPTNeoX" else same == first == 8
PYTHON
