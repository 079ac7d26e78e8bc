"""Step 14: training."""

import torch

from gpt.course.reference import LEARNING_RATE, TRAINING_STEPS
from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def train_step(model, optimizer, idx):
    """Make one update on a batch (B, T). Return the loss before the update as a Python number.
    || 用一个批次 (B, T) 更新一次；返回更新前的损失（Python 的数）。"""
    error = loss(model, idx)
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
    return error.item()
'''
RUN = f"""
model = copy_weights(GPT(Config(**config)), weights).train()
optimizer = torch.optim.AdamW(model.parameters(), lr={LEARNING_RATE})
losses = [train_step(model, optimizer, idx) for idx in batches]
"""

STEP = Step(
    key="14",
    title=Words("Training", "训练"),
    says=Words(
        "Four lines make a model learn: compute the loss, clear the old gradients, go backward, step. First, repeat "
        "one batch and watch its loss fall. Then train for 200 steps on sorting letters. Rows that the model has "
        "never seen show whether it has learned to sort or has only memorised the training rows.",
        "四行代码就能让模型学习：算损失，清掉旧梯度，反向传播，更新。先反复用同一个批次，看损失下降；"
        "再让它学“给字母排序”，训练 200 步；最后换成没见过的行，看它是学会了排序，还是死记硬背。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("ten steps on a repeated batch", "同一个批次训练十步"),
            inputs=lambda reference: {**reference.small_model, "batches": reference.batches[:1].expand(10, -1, -1)},
            run=RUN + "result = losses",
            expected=lambda reference: torch.tensor(reference.trained(reference.batches[:1].expand(10, -1, -1))[:-1]),
            tolerance=1e-3,
        ),
        Test(
            name=Words("200 steps of sorting letters: loss on unseen rows", "给字母排序 200 步，没见过的行的损失"),
            inputs=lambda reference: {
                **reference.small_model,
                "batches": reference.batches[:TRAINING_STEPS],
                "unseen": reference.batches[-1],
            },
            run=RUN + "result = loss(model, unseen)",
            expected=lambda reference: torch.tensor(reference.trained(reference.batches[:TRAINING_STEPS])[-1]),
            tolerance=0.05,
            seconds=120.0,
        ),
    ),
    mistakes=(
        Mistake(
            "    optimizer.zero_grad()\n",
            "",
            Words(
                "The gradients of earlier batches add up: call optimizer.zero_grad() before backward().",
                "之前批次的梯度会累积，要在 backward() 之前调用 optimizer.zero_grad()。",
            ),
        ),
        Mistake(
            "    optimizer.zero_grad()\n    error.backward()\n",
            "    error.backward()\n    optimizer.zero_grad()\n",
            Words(
                "The weights never change, because the step finds no gradients. The order is zero_grad, "
                "backward, step.",
                "权重始终没变，因为更新时没有梯度。顺序是 zero_grad、backward、step。",
            ),
        ),
        Mistake(
            "    error.backward()\n",
            "    (-error).backward()\n",
            Words(
                "The loss rises because you go uphill. Call backward() on the loss itself.",
                "损失在上升，方向反了。要对损失本身调用 backward()。",
            ),
        ),
        Mistake(
            "return error.item()",
            "return loss(model, idx).item()",
            Words("Return the loss before the update.", "要返回更新之前的损失。"),
        ),
    ),
)
