#!/usr/bin/env bash
# torch 2.13.0 on a CPU: linear layers of 64 numbers in int8, made by quantize_dynamic or called as an operator.
# Expected: a call takes about as long as that of the float layer. Packing the weights ahead serves this purpose.
# Seen: quantize_dynamic's layer takes 3 times as long as the float layer (18 instead of 6 microseconds), and the
# operator 3 times as long as torch.nn.functional.linear. The packed weight is an object in which torch looks for
# `__torch_function__` at each call. It has none, and the look-up throws and catches two C++ exceptions. Inside
# torch._C.DisableTorchFunctionSubclass(), which leaves it out, the operator is as fast as the float function, and the
# layer needs 9 microseconds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import timeit

import torch

torch.set_grad_enabled(False)
torch.set_num_threads(1)
torch.manual_seed(0)
layer, inputs = torch.nn.Linear(64, 64), torch.randn(1, 64)
quantised = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(layer), {torch.nn.Linear})[0]
packed = quantised._packed_params._packed_params
calls = {
    "float layer": lambda: layer(inputs),
    "float function": lambda: torch.nn.functional.linear(inputs, layer.weight, layer.bias),
    "int8 layer": lambda: quantised(inputs),
    "int8 operator": lambda: torch.ops.quantized.linear_dynamic(inputs, packed, True),
}


def measure():
    return {name: min(timeit.repeat(call, number=200, repeat=100)) / 200 * 1e6 for name, call in calls.items()}


times = measure()
with torch._C.DisableTorchFunctionSubclass():
    without = measure()
for name in calls:
    print(f"{name}: {times[name]:.1f} microseconds, {without[name]:.1f} without the look-up")
assert times["int8 layer"] > 2 * times["float layer"] and times["int8 layer"] > 1.5 * without["int8 layer"]
assert times["int8 operator"] > 2 * times["float function"] and times["int8 operator"] > 2 * without["int8 operator"]
PYTHON
