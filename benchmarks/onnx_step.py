"""Export GPT-2 for onnxruntime as an ONNX graph that runs one step with past keys and values."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt import GPT


class Step(nn.Module):
    """One step: maps ids (1, T) and past keys and values (n_layer, nh, S, hs) to the logits at the last position
    (vocab_size,) and to keys and values with T more positions."""

    def __init__(self, model: GPT) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, past_k: Tensor, past_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        config, past, count = self.model.config, past_k.shape[2], ids.shape[1]
        positions = torch.arange(past + count)
        x = self.model.wte(ids[0]) + self.model.wpe(positions[past:])
        ahead = positions[None] > positions[past:, None]  # (T, S + T)
        keys, values = [], []
        for layer, block in enumerate(self.model.h):
            qkv = block.attn.c_attn(_norm(block.ln_1, x)).view(count, 3, config.n_head, config.head_size)
            q, k, v = qkv.permute(1, 2, 0, 3).unbind(0)  # (nh, T, hs)
            k, v = torch.cat((past_k[layer], k), dim=1), torch.cat((past_v[layer], v), dim=1)
            scores = q @ k.transpose(1, 2) / math.sqrt(config.head_size)
            weights = scores.masked_fill(ahead, -1e9).softmax(dim=-1)
            x = x + block.attn.c_proj((weights @ v).transpose(0, 1).reshape(count, -1))
            x = x + block.mlp.c_proj(F.gelu(block.mlp.c_fc(_norm(block.ln_2, x)), approximate="tanh"))
            keys.append(k), values.append(v)
        return self.model.lm_head(_norm(self.model.ln_f, x[-1:]))[0], torch.stack(keys), torch.stack(values)


def export(model: GPT, path: Path, *, int8: bool = False) -> None:
    """Export the graph to a file. With int8, its matrix products are quantised dynamically, per channel."""
    shape = (model.config.n_layer, model.config.n_head, 3, model.config.head_size)
    past = torch.zeros(shape), torch.zeros(shape)
    axes = {"ids": {1: "count"}, "past_k": {2: "past"}, "past_v": {2: "past"}}
    plain = path if not int8 else path.with_name("plain-" + path.name)
    names = {"input_names": list(axes), "output_names": ["logits", "k", "v"], "dynamic_axes": axes}
    torch.onnx.export(Step(model.eval()), (torch.tensor([[1, 2]]), *past), str(plain), dynamo=False, **names)
    if int8:
        from onnxruntime.quantization import quantize_dynamic

        quantize_dynamic(plain, path, per_channel=True)
        plain.unlink()


def _norm(norm: nn.Module, x: Tensor) -> Tensor:
    return F.layer_norm(x, tuple(norm.weight.shape), norm.weight, norm.bias, norm.eps)
