"""Step 9: parameters and tying."""

from dataclasses import replace

from gpt.course.step import Mistake, Step, Test, Words
from gpt.experiments.shapes import UNTIED_124M, count_parameters

CODE = '''
def n_parameters(model):
    """Count the numbers in all weights. A shared matrix counts once.
    || 数一数所有权重里有多少个数；共享的矩阵只算一次。"""
    return sum(weight.numel() for weight in model.parameters())
'''


def building(tied: bool) -> str:
    """Return the lines of a test that counts the parameters in a GPT-2 on the meta device."""
    return f"""
with torch.device("meta"):
    result = n_parameters(GPT(Config(qkv_bias=False, tie_weights={tied})))
"""


STEP = Step(
    key="9",
    title=Words("Parameters and tying", "参数量与权重绑定"),
    says=Words(
        "GPT-2 small is called 124M, yet its matrices hold 163,009,536 numbers. The difference is one matrix: the "
        "head uses the token embedding a second time. Count both ways.",
        "GPT-2 small 号称 124M，可是它的矩阵里一共有 163,009,536 个数。差在一个矩阵：输出头把词元嵌入又用了一次。"
        "两种数法都算一算。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("GPT-2's sizes, untied", "GPT-2 的结构，不绑定"),
            run=building(False),
            expected=lambda reference: count_parameters(UNTIED_124M),
        ),
        Test(
            name=Words("GPT-2's sizes, tied", "GPT-2 的结构，绑定"),
            run=building(True),
            expected=lambda reference: count_parameters(replace(UNTIED_124M, tie_weights=True)),
        ),
    ),
    mistakes=(
        Mistake(
            "sum(weight.numel() for weight in model.parameters())",
            "len(list(model.parameters()))",
            Words(
                "You count tensors. Count the numbers in each: weight.numel().",
                "你数的是张量。要数每个张量里的数：weight.numel()。",
            ),
        ),
        Mistake(
            "weight.numel()",
            "len(weight)",
            Words(
                "len counts only the rows. A matrix has rows times columns: weight.numel().",
                "len 只给出行数，而矩阵里有“行数 × 列数”个数：weight.numel()。",
            ),
        ),
        Mistake(
            "        if config.tie_weights:\n            self.lm_head.weight = self.wte.weight\n",
            "",
            Words(
                "The shared matrix is counted twice. Tie the head in step 8, self.lm_head.weight = self.wte.weight, "
                "and count model.parameters(), which contains it once. state_dict contains it under both names.",
                "共享的矩阵算了两次。在第 8 步绑定输出头：self.lm_head.weight = self.wte.weight；"
                "再数 model.parameters()，里面只有一份；state_dict 里两个名字各有一份。",
            ),
        ),
        Mistake(
            "        if config.tie_weights:\n            self.lm_head.weight = self.wte.weight\n",
            "        self.lm_head.weight = self.wte.weight\n",
            Words(
                "The head is always tied. In step 8, tie it only if config.tie_weights.",
                "你总是绑定输出头。在第 8 步，config.tie_weights 为真时才绑定。",
            ),
        ),
        Mistake(
            "3 * config.n_embd, bias=config.qkv_bias)",
            "3 * config.n_embd)",
            Words(
                "c_attn always has a bias. In step 6d: bias=config.qkv_bias.",
                "c_attn 总是有偏置。在第 6d 步写：bias=config.qkv_bias。",
            ),
        ),
    ),
)
