#!/usr/bin/env bash
# mlx 0.32.4 with mlx-cpu, gguf 0.19.0, on Linux: `mx.load` of GGUF files with one tensor of random, valid blocks, for
# each quantised type that it accepts. Q4_K is the main type of the widely used Q4_K_M files.
# Expected: the numbers of gguf's own `dequantize`, up to the rounding to float16; or an error, as for Q3_K and Q5_K.
# Seen: that holds for Q4_0, Q4_1, Q8_0, Q2_K and Q6_K. In Q4_K, every second run of 32 weights is read with the scale
# and the minimum of the run before it: values with a standard deviation of 14 are up to 53 off. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet mlx==0.32.4 mlx-cpu==0.32.4 gguf==0.19.0 numpy==2.4.6
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import gguf
import mlx.core as mx
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

random = np.random.default_rng(0)
scales_at = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q8_0: [0]}
scales_at |= {Type.Q2_K: [80, 82], Type.Q4_K: [0, 2], Type.Q6_K: [208]}
for kind, places in scales_at.items():
    weights, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (4096 // weights, size), dtype=np.uint8)
    for place in places:
        scales = random.uniform(0.01, 0.1, (len(blocks), 1)).astype(np.float16)
        blocks[:, place : place + 2] = scales.view(np.uint8)
    rows = blocks.reshape(8, -1)
    writer = gguf.GGUFWriter("one.gguf", "llama")
    writer.add_tensor("a.weight", rows, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    expected = dequantize(rows, kind)
    loaded = mx.load("one.gguf")
    found = loaded["a.weight"]
    if "a.scales" in loaded:
        bits = found.shape[1] * 32 // expected.shape[1]
        found = mx.dequantize(found, loaded["a.scales"], loaded["a.biases"], group_size=32, bits=bits)
    off = np.abs(np.array(found.astype(mx.float32)) - expected)
    print(f"{kind.name}: standard deviation {expected.std():.1f}, up to {off.max():.4f} off")
    if kind is not Type.Q4_K:
        assert off.max() < 2e-3 * np.abs(expected).max()
        continue
    runs = off.reshape(-1, 2, 32).max(axis=(0, 2))
    print(f"  in the first and second of two runs of 32 weights: {runs[0]:.4f} and {runs[1]:.4f}")
    assert runs[0] < 0.1 and runs[1] > 10
    # A run's scale and minimum, from two of its weights and their 4 bits; then the second run with those of the first
    low, high = (blocks[:, 16:].reshape(-1, 32) >> shift & 15 for shift in (0, 4))
    first = expected.reshape(-1, 2, 32)[:, 0]
    at = np.arange(len(low)), low.argmax(1), low.argmin(1)
    step = (first[at[0], at[1]] - first[at[0], at[2]]) / (low.max(1) - low.min(1).astype(float))
    start = first[at[0], at[1]] - step * low.max(1)
    second = np.array(found.astype(mx.float32)).reshape(-1, 2, 32)[:, 1]
    assert np.allclose(second, start[:, None] + step[:, None] * high, atol=0.1)
PYTHON
