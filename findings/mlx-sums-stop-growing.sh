#!/usr/bin/env bash
# mlx 0.32.4 with mlx-cpu on Linux (x86-64), numpy 2.4.6: mean, standard deviation and norm of large float32 arrays,
# such as an embedding of 16,384 tokens with 4,096 numbers each; and clip_grad_norm for a gradient of this size.
# Expected: the numbers of NumPy, which adds up in parts, to 1e-3.
# Seen: a sum over the whole array adds one number after the other in float32, and one that counts ones stops at
# 16,777,216: the mean of twice as many ones is 0.5. Random weights with a standard deviation of 0.02 get 0.018, and a
# norm that is 10 % too small, so that a gradient clipped to 1 has a norm of 1.11. logsumexp of zeros is off by log 4.
# Means of rows are right. No warning. Issue 4379 of ml-explore/mlx reports it for variances around a large mean.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet mlx==0.32.4 mlx-cpu==0.32.4 numpy==2.4.6
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import math

import mlx.core as mx
import numpy as np
from mlx.optimizers import clip_grad_norm

ones = mx.ones((2**13, 2**12))
mean, of_rows = mx.mean(ones).item(), mx.mean(mx.mean(ones, axis=1)).item()
print(f"mean of {ones.size:,} ones: {mean}; mean of the means of its rows: {of_rows}")
assert (mean, of_rows) == (0.5, 1.0) and np.ones(ones.shape, np.float32).mean() == 1
log_sum = mx.logsumexp(mx.zeros(2**26)).item()
print(f"logsumexp of {2**26:,} zeros: {log_sum:.3f}, expected {math.log(2**26):.3f}")
assert abs(log_sum - math.log(2**24)) < 1e-3
for size in (64, 16384):
    weights = 0.02 * np.random.default_rng(0).standard_normal((size, 4096), np.float32)
    ours = mx.array(weights)
    clipped = np.array(clip_grad_norm({"weight": ours}, 1.0)[0]["weight"])
    deviation, norm = mx.std(ours).item() / weights.std(), mx.linalg.norm(ours).item() / np.linalg.norm(weights)
    after = np.linalg.norm(clipped)
    print(f"{size} rows: deviation {deviation:.3f} and norm {norm:.3f} of NumPy's, clipped gradient {after:.3f}")
    if size == 64:
        assert max(abs(deviation - 1), abs(norm - 1), abs(after - 1)) < 1e-3
    else:
        assert deviation < 0.95 and norm < 0.95 and after > 1.05
PYTHON
