"""Step 4: GELU."""

import torch

from gpt.course.step import Mistake, Step, Test, Words
from gpt.layers import GELU

CODE = '''
def gelu(x):
    """Compute 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) for each number.
    || 逐个数计算 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))。"""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
'''

STEP = Step(
    key="4",
    title=Words("GELU", "GELU"),
    says=Words(
        "Several linear layers in a row are equivalent to a single one. A nonlinear function between them changes "
        "that. GELU lets large numbers pass, stops very negative ones, and is smooth in between. Write the tanh form, "
        "which GPT-2 uses, not the exact one with erf.",
        "线性层叠得再多，合起来还是一个线性层；中间弯一下就不同了。GELU 让大的正数通过，挡住绝对值大的负数，"
        "中间平滑过渡。请写 GPT-2 用的 tanh 形式，而不是带 erf 的精确形式。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("1,000 points from -6 to 6", "-6 到 6 之间的 1,000 个点"),
            inputs=lambda reference: {"x": torch.linspace(-6, 6, 1000)},
            run="result = gelu(x)",
            expected=lambda reference: GELU("tanh").formula(torch.linspace(-6, 6, 1000)),
        ),
    ),
    mistakes=(
        Mistake(
            "torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))",
            "torch.erf(x / math.sqrt(2))",
            Words(
                "That is the exact form with erf. It is not wrong, but GPT-2 was trained with the tanh form.",
                "这是带 erf 的精确形式。它本身没错，但 GPT-2 训练时用的是 tanh 形式。",
            ),
        ),
        Mistake(
            "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))",
            "x * torch.sigmoid(1.702 * x)",
            Words(
                "The approximation with a sigmoid is coarser. Use the tanh form.",
                "用 sigmoid 来近似，更粗糙。请用 tanh 形式。",
            ),
        ),
        Mistake("0.5 * x * (1", "x * (1", Words("The factor 0.5 is missing.", "少了系数 0.5。")),
        Mistake(
            "x**3",
            "x**2",
            Words("The small term contains x cubed, not x squared.", "小的那一项里是 x 的三次方，不是平方。"),
        ),
        Mistake(
            "math.sqrt(2 / math.pi)",
            "math.sqrt(2) / math.pi",
            Words("pi belongs inside the square root: sqrt(2 / pi).", "pi 也在根号里：sqrt(2 / pi)。"),
        ),
        Mistake(
            "(x + 0.044715 * x**3)",
            "x",
            Words("The term 0.044715 x³ is missing.", "少了 0.044715 x³ 这一项。"),
        ),
        Mistake(
            "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))",
            "torch.relu(x)",
            Words(
                "That is ReLU, which has a corner at 0. GELU is smooth there.",
                "这是 ReLU，在 0 处有一个拐角，而 GELU 在那里是平滑的。",
            ),
        ),
    ),
)
