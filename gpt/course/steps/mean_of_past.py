"""Step 6a: the mean of the past."""

import torch
from torch import Tensor

from gpt.course.reference import Reference
from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def mean_of_past(x):
    """Replace each token's vector with the mean of all vectors up to and including it: (..., T, C) -> (..., T, C).
    || 把每个词元的向量换成它和它之前所有向量的均值：(..., T, C) -> (..., T, C)。"""
    T = x.shape[-2]
    weights = torch.tril(torch.ones(T, T))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ x
'''


def expected(reference: Reference) -> Tensor:
    """Return the running means, computed row by row."""
    x = reference.layer.resid_pre
    rows = [x[:, : t + 1].mean(dim=1) for t in range(x.shape[1])]
    return torch.stack(rows, dim=1)


STEP = Step(
    key="6a",
    title=Words("Attention: the mean of the past", "注意力：对前文取平均"),
    says=Words(
        "So far, no token knows about the others. The simplest way to give it a past is to average: row t "
        "becomes the mean of rows 0 to t. Write it as a matrix of weights times x, with zeros above the diagonal and "
        "rows that sum to 1. Attention is this product with better weights.",
        "到目前为止，每个词元都不知道别的词元。要让词元了解前文，最简单的办法是取平均：第 t 行变成第 0 到 t 行的"
        "均值。请写成权重矩阵乘以 x，矩阵的对角线以上是零，每行加起来是 1。注意力就是这个乘积，只不过权重更合理。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("running means of real vectors", "真实向量的累计平均"),
            inputs=lambda reference: {"x": reference.layer.resid_pre},
            run="result = mean_of_past(x)",
            expected=expected,
        ),
    ),
    mistakes=(
        Mistake(
            "torch.tril(torch.ones(T, T))",
            "torch.ones(T, T)",
            Words(
                "Every row is the mean of the whole text, so the tokens see their future. Keep only the lower "
                "triangle.",
                "每一行都成了整段文本的均值，词元看到了后面的内容。请只保留下三角。",
            ),
        ),
        Mistake(
            "torch.tril(torch.ones(T, T))",
            "torch.triu(torch.ones(T, T))",
            Words("You average the future: use tril, not triu.", "你平均的是后面的词元。要用 tril，不是 triu。"),
        ),
        Mistake(
            "torch.tril(torch.ones(T, T))",
            "torch.tril(torch.ones(T, T), -1)",
            Words(
                "A token counts as part of its own past: keep the diagonal. Without it, row 0 has nothing to average.",
                "词元自己也算在内，要保留对角线，否则第 0 行没有数可以平均。",
            ),
        ),
        Mistake(
            "weights / weights.sum(dim=-1, keepdim=True)",
            "weights / T",
            Words(
                "Row t averages t + 1 vectors: divide by that, not by T.",
                "第 t 行有 t + 1 个向量，要除以 t + 1，不是 T。",
            ),
        ),
        Mistake(
            "weights / weights.sum(dim=-1, keepdim=True)",
            "weights / weights.sum(dim=-2, keepdim=True)",
            Words("The rows must sum to 1, not the columns: dim=-1.", "加起来是 1 的应该是行，不是列：dim=-1。"),
        ),
        Mistake(
            "weights = weights / weights.sum(dim=-1, keepdim=True)",
            "pass",
            Words("That is the sum. Divide each row of weights by its sum.", "这是求和。把每行权重除以这一行的和。"),
        ),
    ),
)
