"""Step 10: the loss."""

import math

import torch

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def loss(model, idx):
    """Return the mean surprise at each token after the first, in nats: (B, T) ids -> a number with a gradient.

    This is the cross-entropy between the model's logits and the tokens that actually follow.
    || 返回各词元（第一个除外）的平均惊异度，单位是奈特：(B, T) 的编号 -> 一个带梯度的数。

    也就是模型的 logits 与真正的下一个词元之间的交叉熵。
    """
    logits = model(idx[:, :-1])
    targets = idx[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
'''
RUN = """
model = copy_weights(GPT(Config(**config)), weights)
result = loss(model, idx)
"""

STEP = Step(
    key="10",
    title=Words("Loss", "损失"),
    says=Words(
        "The target of each position is the token that follows it, so a text is its own exercise: the inputs are "
        "all tokens except the last, the answers all tokens except the first. An untrained model is as surprised as if "
        "it rolled a die with vocab_size sides.",
        "每个位置的目标是后面那个词元，所以文本自己就是练习题：最后一个词元以外都是题目，第一个以外都是答案。"
        "没训练过的模型猜下一个词元，就像掷一个有 vocab_size 面的骰子。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("a model that knows nothing: ln(20)", "什么都不会的模型：ln(20)"),
            inputs=lambda reference: {"idx": torch.arange(10).view(2, 5)},
            run="result = loss(lambda idx: torch.zeros(*idx.shape, 20), idx)",
            expected=lambda reference: torch.tensor(math.log(20)),
        ),
        Test(
            name=Words("value and gradient", "数值与梯度"),
            inputs=lambda reference: {
                "config": reference.short_config,
                "weights": reference.short_weights,
                "idx": reference.idx[:2],
            },
            run=RUN
            + """
result.backward()
result = torch.cat([result.detach()[None], model.h[0].ln_1.weight.grad])
""",
            expected=lambda reference: reference.loss_and_gradient(reference.idx[:2]),
        ),
    ),
    mistakes=(
        Mistake(
            "logits = model(idx[:, :-1])\n    targets = idx[:, 1:]",
            "logits = model(idx)\n    targets = idx",
            Words(
                "The targets are not shifted: you ask the model for the token it has just read.",
                "目标没有错开一位，成了让模型猜刚读到的词元。",
            ),
        ),
        Mistake(
            "logits = model(idx[:, :-1])\n    targets = idx[:, 1:]",
            "logits = model(idx[:, 1:])\n    targets = idx[:, :-1]",
            Words(
                "The targets are shifted the wrong way: you ask for the previous token.",
                "目标错开的方向反了，成了猜前一个词元。",
            ),
        ),
        Mistake(
            "targets.flatten())",
            'targets.flatten(), reduction="sum")',
            Words("That is the sum. The loss is the mean over all tokens.", "这是总和。损失是所有词元的平均值。"),
        ),
        Mistake(
            "logits.flatten(0, 1)",
            "logits.flatten(0, 1).softmax(dim=-1)",
            Words(
                "cross_entropy takes logits and applies softmax itself. Remove yours.",
                "cross_entropy 接收 logits，自己会做 softmax。去掉你的 softmax。",
            ),
        ),
        Mistake(
            "return F.cross_entropy(logits.flatten(0, 1), targets.flatten())",
            "return F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / math.log(2)",
            Words("This is in bits. Return nats.", "现在的单位是比特，请改用奈特。"),
        ),
        Mistake(
            "F.cross_entropy(logits.flatten(0, 1), targets.flatten())",
            "F.cross_entropy(logits[:, -1], targets[:, -1])",
            Words(
                "You count only the last position. Use all positions.",
                "你只算了最后一个位置。所有位置都要算。",
            ),
        ),
        Mistake(
            "F.cross_entropy(logits.flatten(0, 1), targets.flatten())",
            "F.cross_entropy(logits, targets)",
            Words(
                "cross_entropy expects the classes in the second axis. Flatten batch and positions first.",
                "cross_entropy 要求类别在第二个轴。先把批次和位置展平。",
            ),
        ),
        Mistake(
            "return F.cross_entropy(logits.flatten(0, 1), targets.flatten())",
            "return -F.cross_entropy(logits.flatten(0, 1), targets.flatten())",
            Words("The sign is wrong: a loss is positive.", "符号反了，损失应该是正数。"),
        ),
    ),
)
