#!/usr/bin/env bash
# torch 2.13.0, transformers 5.24.0, onnxruntime 1.32.0, torchao 0.18.0: dynamic quantisation to int8 of a causal model.
# Expected: rounding errors, but a token's logits still depend on the tokens before it only, and not on other texts.
# Seen: torch.ao.quantization.quantize_dynamic rounds activations with one scale for all tokens of all texts of a batch.
# In a Llama whose logits have a standard deviation of about 3, the first token's change by 0.86 with the last token, so
# scoring a text in one pass, with a cache or in a batch gives different numbers. quantize_dynamic of onnxruntime does
# the same with a matrix product. torchao has a scale for each token, and does not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 onnxruntime==1.32.0 onnx==1.23.2 torchao==0.18.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import copy

import numpy
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_grad_enabled(False)
torch.manual_seed(0)
shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
config = AutoConfig.for_model("llama", vocab_size=50, initializer_range=0.3, **shape)
model = AutoModelForCausalLM.from_config(config).eval()
by_torch = torch.ao.quantization.quantize_dynamic(copy.deepcopy(model), {torch.nn.Linear})
by_torchao = copy.deepcopy(model)
quantize_(by_torchao, Int8DynamicActivationInt8WeightConfig())
ids, others = torch.tensor([[5, 6, 7, 8, 9, 10]]), torch.tensor([[5, 6, 7, 8, 9, 20]])
for name, each in (("float32", model), ("torch", by_torch), ("torchao", by_torchao)):
    later = (each(ids).logits[0, 0] - each(others).logits[0, 0]).abs().max().item()
    text = (each(torch.cat([ids, ids * 4])).logits[0] - each(ids).logits[0]).abs().max().item()
    print(f"{name}: the first token changes with the last by {later:.2f}, with another text by {text:.2f}")
    assert (later > 0.1 and text > 0.1) if name == "torch" else (later < 1e-4 and text < 1e-4)

rows = numpy.random.default_rng(0).standard_normal((6, 64)).astype(numpy.float32)
weight = numpy_helper.from_array(numpy.random.default_rng(1).standard_normal((64, 64)).astype(numpy.float32), "weight")
values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 64]) for name in ("x", "y")]
product = helper.make_node("MatMul", ["x", "weight"], ["y"])
graph = helper.make_graph([product], "product", values[:1], values[1:], [weight])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), "product.onnx")
quantize_dynamic("product.onnx", "int8.onnx")
session = onnxruntime.InferenceSession("int8.onnx")
larger = rows.copy()
larger[-1] *= 4
first, changed = (session.run(None, {"x": each})[0][0] for each in (rows, larger))
print(f"onnxruntime: the first row changes with the last by {abs(first - changed).max():.2f}")
assert abs(first - changed).max() > 0.1
PYTHON
