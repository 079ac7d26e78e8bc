#!/usr/bin/env bash
# transformers 5.24.0, gguf 0.19.0: two GGUF files of a Llama. One contains `rope_freqs.weight`, the factors of Llama 3's
# scaling, as llama.cpp's converter writes them; the other states linear scaling by 4 (`rope.scaling.type` and `.factor`).
# Expected: the scaling in the configuration, or an error that it is not supported.
# Seen: AutoConfig returns unscaled rotary positions for both, and says nothing. A model of width 64 whose logits have a
# standard deviation of 1 gives logits that are up to 2.35 and 5.77 off. The same holds for the rotary base of StarCoder2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet transformers==5.24.0 gguf==0.19.0 torch==2.13.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import gguf
import numpy as np
from transformers import AutoConfig


def config(name, architecture, write=lambda writer: None):
    writer = gguf.GGUFWriter(name, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_rope_freq_base(50000.0)
    writer.add_token_list(["a", "b"])
    writer.add_tensor("token_embd.weight", np.zeros((2, 32), np.float32))
    write(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return AutoConfig.from_pretrained(".", gguf_file=name).rope_parameters


def linear(writer):
    writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    writer.add_rope_scaling_factor(4.0)


factors = np.array([1, 1, 4, 8], np.float32)
llama3 = config("llama3.gguf", "llama", lambda writer: writer.add_tensor("rope_freqs.weight", factors))
scaled = config("linear.gguf", "llama", linear)
starcoder2 = config("starcoder2.gguf", "starcoder2")
print("rope_freqs.weight:", llama3, "linear:", scaled, "base 50000 of StarCoder2:", starcoder2)
assert llama3["rope_type"] == scaled["rope_type"] == "default"
assert llama3["rope_theta"] == scaled["rope_theta"] == 50000.0
assert starcoder2["rope_theta"] == 10000.0
PYTHON
