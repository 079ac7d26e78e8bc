"""Step 7: the block and its shortcuts."""

from typing import Any

import torch
from torch import Tensor

from gpt.course.reference import Reference
from gpt.course.step import Mistake, Step, Test, Words
from gpt.experiments.shortcuts import DeepNetwork, shortcut_gradients

CODE = '''
def deep_forward(layers, x, shortcuts):
    """Send x through linear layers, each followed by GELU.

    With shortcuts, add a layer's input to its output if both have the same shape.
    || 让 x 依次经过各线性层，每层之后接 GELU。

    shortcuts 为真时，只要形状相同，就把该层的输入加到输出上。
    """
    for layer in layers:
        y = gelu(layer(x))
        x = x + y if shortcuts and x.shape == y.shape else y
    return x


class Block(nn.Module):
    """Attention, then feed-forward. Each reads a normalised copy of x and adds to x: (B, T, C) -> (B, T, C).
    || 先是注意力，后是前馈网络；输入都先归一化，结果都加到 x 上：(B, T, C) -> (B, T, C)。"""

    def __init__(self, config):
        """Modules: ln_1, attn, ln_2, mlp. || 模块：ln_1、attn、ln_2、mlp。"""
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd)
        self.mlp = FeedForward(config)

    def forward(self, x):
        """Compute x + attn(ln_1(x)), then the same with mlp and ln_2.
        || 先算 x + attn(ln_1(x))，再用 mlp 和 ln_2 同样算一次。"""
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x
'''


def layers(reference: Reference) -> dict[str, Any]:
    """Return the weights for the five layers in the original experiment, with seed 123."""
    network = DeepNetwork([3] * 5 + [1], "gelu_tanh", True, torch.Generator().manual_seed(123))
    weights = {name.removeprefix("layers."): value for name, value in network.state_dict().items()}
    return {"weights": weights, "widths": [3] * 5 + [1]}


def gradients(reference: Reference) -> Tensor:
    """Return the mean absolute gradients without and with shortcuts, (2, 5)."""
    found = shortcut_gradients(seed=123)
    return torch.tensor([found.without, found.with_shortcuts])


STEP = Step(
    key="7",
    title=Words("Block and shortcuts", "块与残差连接"),
    says=Words(
        "Each part adds to x instead of replacing it. On the way back, the gradient takes the same shortcut: in the "
        "experiment with five layers, the first one gets a gradient of 0.0002 without shortcuts and 0.22 with them. "
        "First write that experiment, then the block.",
        "每个部分都往 x 上加一点，而不是把 x 换掉。反向传播时，梯度也走这条近路：在五层的实验里，"
        "第一层的梯度在没有残差连接时是 0.0002，有残差连接时是 0.22。先写这个实验，再写块。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("gradients without and with shortcuts", "有无残差连接时的梯度"),
            inputs=layers,
            run="""
network = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
copy_weights(network, weights)
rows = []
for shortcuts in (False, True):
    network.zero_grad()
    output = deep_forward(network, torch.tensor([[1.0, 0.0, -1.0]]), shortcuts)
    output.square().mean().backward()
    rows.append(torch.stack([layer.weight.grad.abs().mean() for layer in network]))
result = torch.stack(rows)
""",
            expected=gradients,
            tolerance=1e-8,
        ),
        Test(
            name=Words("the first block on two sentences", "第一个块处理两个句子"),
            inputs=lambda reference: {
                "config": reference.config,
                "weights": reference.weights("h.0"),
                "x": reference.layer.resid_pre,
            },
            run="result = copy_weights(Block(Config(**config)), weights)(x)",
            expected=lambda reference: reference.layer.resid_post,
        ),
    ),
    mistakes=(
        Mistake(
            "x + y if shortcuts and x.shape == y.shape else y",
            "y",
            Words(
                "Both rows are equal because the shortcut is never added.",
                "两行一样，说明残差连接根本没起作用。",
            ),
        ),
        Mistake(
            "x = x + y if shortcuts and x.shape == y.shape else y",
            "x = x + y if shortcuts else y",
            Words(
                "The last layer has one output and three inputs. Add the shortcut only if the shapes match.",
                "最后一层有三个输入、一个输出。只有形状相同时才加残差连接。",
            ),
        ),
        Mistake(
            "y = gelu(layer(x))\n        x = x + y if shortcuts and x.shape == y.shape else y",
            "y = layer(x)\n        x = gelu(x + y if shortcuts and x.shape == y.shape else y)",
            Words(
                "The shortcut bypasses GELU: add x after it.",
                "残差连接要绕过 GELU，在 GELU 之后再加 x。",
            ),
        ),
        Mistake(
            "x = x + self.attn(self.ln_1(x))\n        x = x + self.mlp(self.ln_2(x))",
            "x = self.attn(self.ln_1(x))\n        x = self.mlp(self.ln_2(x))",
            Words(
                "Both shortcuts are missing: x + attn(...), then x + mlp(...).",
                "两个残差连接都缺了：x + attn(...)，然后 x + mlp(...)。",
            ),
        ),
        Mistake(
            "x = x + self.attn(self.ln_1(x))",
            "x = self.attn(self.ln_1(x))",
            Words("The shortcut around attention is missing.", "缺了绕过注意力的残差连接。"),
        ),
        Mistake(
            "x = x + self.mlp(self.ln_2(x))",
            "x = self.mlp(self.ln_2(x))",
            Words("The shortcut around the feed-forward part is missing.", "缺了绕过前馈网络的残差连接。"),
        ),
        Mistake(
            "x = x + self.attn(self.ln_1(x))\n        x = x + self.mlp(self.ln_2(x))",
            "x = self.ln_1(x + self.attn(x))\n        x = self.ln_2(x + self.mlp(x))",
            Words(
                "That is post-norm, as in the original Transformer. GPT-2 normalises before each part: attn(ln_1(x)).",
                "这是后置归一化，最早的 Transformer 就是这样。GPT-2 在每个部分之前归一化：attn(ln_1(x))。",
            ),
        ),
        Mistake(
            "x = x + self.attn(self.ln_1(x))\n        x = x + self.mlp(self.ln_2(x))",
            "x = x + self.attn(self.ln_1(x)) + self.mlp(self.ln_2(x))",
            Words(
                "The feed-forward part must read x after attention has been added.",
                "前馈网络的输入应该是加上注意力之后的 x。",
            ),
        ),
        Mistake(
            "x = x + self.mlp(self.ln_2(x))",
            "x = x + self.mlp(self.ln_1(x))",
            Words("You use ln_1 twice. The feed-forward part has ln_2.", "ln_1 用了两次，前馈网络要用 ln_2。"),
        ),
        Mistake(
            "x = x + self.attn(self.ln_1(x))",
            "x = self.ln_1(x)\n        x = x + self.attn(x)",
            Words(
                "You add to the normalised copy. Add to x itself.",
                "你加到了归一化后的副本上。要加到 x 本身上。",
            ),
        ),
        Mistake(
            "x = x + self.attn(self.ln_1(x))",
            "x = x + self.attn(x)",
            Words("Attention must read ln_1(x).", "注意力的输入应该是 ln_1(x)。"),
        ),
    ),
)
