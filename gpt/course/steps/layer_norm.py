"""Step 3: layer normalisation."""

import torch

from gpt.course.step import Mistake, Step, Test, Words
from gpt.experiments.normalisation import linear_relu_rows, normalise

CODE = '''
class LayerNorm(nn.Module):
    """Give each vector mean 0 and variance 1, then scale and shift it: (..., width) -> (..., width).
    || 让每个向量的均值为 0、方差为 1，再缩放和平移：(..., width) -> (..., width)。"""

    def __init__(self, width):
        """Parameters: weight (ones) and bias (zeros), both (width,).
        || 参数：weight 全为 1，bias 全为 0，形状都是 (width,)。"""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        """Use the biased variance, and add 1e-5 to it before taking the square root.
        || 用有偏方差；开方之前先加上 1e-5。"""
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(variance + 1e-5) * self.weight + self.bias
'''

STEP = Step(
    key="3",
    title=Words("LayerNorm", "层归一化"),
    says=Words(
        "From layer to layer, the numbers would grow or shrink. LayerNorm brings every token's vector back to the "
        "same range: subtract the mean of its numbers, divide by their standard deviation, then let the model choose "
        "its own scale and shift.",
        "一层层算下去，数字会越来越大或越来越小。层归一化把每个词元的向量拉回同一范围：减去均值，除以标准差，"
        "再让模型自己学一个缩放和一个平移。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the two rows from the book, seed 123", "书中的两行数，种子 123"),
            inputs=lambda reference: {"x": linear_relu_rows(seed=123)},
            run="result = LayerNorm(6)(x)",
            expected=lambda reference: normalise(linear_relu_rows(seed=123)).after,
        ),
        Test(
            name=Words("ln_1 on real activations", "ln_1 在真实激活上的结果"),
            inputs=lambda reference: {"x": reference.layer.resid_pre, "weights": reference.weights("h.0.ln_1")},
            run="result = copy_weights(LayerNorm(x.shape[-1]), weights)(x)",
            expected=lambda reference: reference.model.blocks[0].ln_1.formula(reference.layer.resid_pre),
        ),
        Test(
            name=Words("a vector of equal numbers", "所有数都相等的向量"),
            inputs=lambda reference: {"x": torch.full((2, 4), 3.0)},
            run="result = LayerNorm(4)(x)",
            expected=lambda reference: torch.zeros(2, 4),
        ),
    ),
    mistakes=(
        Mistake(
            "unbiased=False",
            "unbiased=True",
            Words(
                "You use the unbiased variance, which divides by n - 1. Use unbiased=False.",
                "你用的是无偏方差，它除以 n - 1。请用 unbiased=False。",
            ),
        ),
        Mistake(
            "torch.sqrt(variance + 1e-5)",
            "(variance + 1e-5)",
            Words(
                "You divide by the variance. Divide by its square root, the standard deviation.",
                "你除以了方差，应该除以它的平方根，也就是标准差。",
            ),
        ),
        Mistake(
            "torch.sqrt(variance + 1e-5)",
            "(torch.sqrt(variance) + 1e-5)",
            Words(
                "1e-5 belongs inside the square root: sqrt(variance + 1e-5).",
                "1e-5 要放在根号里面：sqrt(variance + 1e-5)。",
            ),
        ),
        Mistake(
            "torch.sqrt(variance + 1e-5)",
            "torch.sqrt(variance)",
            Words(
                "1e-5 is missing. A vector of equal numbers has variance 0, and you would divide by it.",
                "少了 1e-5。如果一个向量的数都相等，方差就是 0，就会除以零。",
            ),
        ),
        Mistake(
            "(x - mean) /",
            "x /",
            Words("The mean is not subtracted.", "没有减去均值。"),
        ),
        Mistake(
            "mean = x.mean(dim=-1, keepdim=True)\n        variance = x.var(dim=-1, keepdim=True, unbiased=False)",
            "mean = x.mean(dim=-2, keepdim=True)\n        variance = x.var(dim=-2, keepdim=True, unbiased=False)",
            Words(
                "You normalise over the tokens. Compute mean and variance within each vector: dim=-1.",
                "你在词元之间做了归一化。均值和方差应该在每个向量内部求：dim=-1。",
            ),
        ),
        Mistake(
            "mean = x.mean(dim=-1, keepdim=True)\n        variance = x.var(dim=-1, keepdim=True, unbiased=False)",
            "mean = x.mean()\n        variance = x.var(unbiased=False)",
            Words(
                "You compute mean and variance over all numbers. Each vector needs its own: dim=-1, keepdim=True.",
                "你把所有的数混在一起求了均值和方差。每个向量要单独求：dim=-1, keepdim=True。",
            ),
        ),
        Mistake(
            " * self.weight + self.bias",
            "",
            Words("weight and bias are not used.", "没有用上 weight 和 bias。"),
        ),
        Mistake(
            " * self.weight + self.bias",
            " * self.weight",
            Words("bias is not added.", "没有加上 bias。"),
        ),
        Mistake(
            "(x - mean) / torch.sqrt(variance + 1e-5) * self.weight + self.bias",
            "((x - mean) / torch.sqrt(variance + 1e-5) + self.bias) * self.weight",
            Words("Scale first, then shift: y * weight + bias.", "先缩放，再平移：y * weight + bias。"),
        ),
    ),
)
