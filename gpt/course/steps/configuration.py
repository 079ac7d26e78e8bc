"""Step 1: configuration."""

from gpt.course.step import Mistake, Step, Test, Words
from gpt.presets import PRESETS

CODE = '''
@dataclass(frozen=True)
class Config:
    """The numbers that define the shape of a GPT. The defaults are those of GPT-2 small.
    || 决定 GPT 结构的几个数，默认值取自 GPT-2 small。"""

    vocab_size: int = 50257
    block_size: int = 1024
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    qkv_bias: bool = True
    tie_weights: bool = True

    def __post_init__(self):
        """Raise a ValueError that names both numbers if n_embd is not divisible by n_head.
        || 如果 n_embd 不能被 n_head 整除，抛出 ValueError，并在错误信息里写出这两个数。"""
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd ({self.n_embd}) must be divisible by n_head ({self.n_head})")

    @property
    def head_size(self):
        """The width of one head. || 一个注意力头的宽度。"""
        return self.n_embd // self.n_head
'''

STEP = Step(
    key="1",
    title=Words("Configuration", "配置"),
    says=Words(
        "Five sizes and two switches determine every matrix of a GPT. The heads share the width, so the width must be "
        "divisible by the number of heads. Check that here, with a clear message, so that no later step fails with a "
        "puzzling error about shapes.",
        "五个尺寸和两个开关决定了 GPT 的每一个矩阵。各个注意力头平分宽度，所以宽度必须能被头数整除。"
        "在这里检查，用一句话说清楚，后面就不会冒出让人摸不着头脑的形状错误。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("GPT-2's sizes", "GPT-2 的尺寸"),
            inputs=lambda reference: {
                "sizes": [[PRESETS[name].n_embd, PRESETS[name].n_head] for name in ("gpt2", "gpt2-medium", "gpt2-xl")]
            },
            run="result = [Config(n_embd=width, n_head=heads).head_size for width, heads in sizes]",
            expected=lambda reference: [PRESETS[name].head_size for name in ("gpt2", "gpt2-medium", "gpt2-xl")],
        ),
        Test(
            name=Words("a width of 768 for 10 heads", "宽度 768，10 个头"),
            run="""
try:
    Config(n_embd=768, n_head=10)
    result = "no ValueError"
except ValueError as error:
    result = " ".join(number for number in ("768", "10") if number in str(error))
""",
            expected=lambda reference: "768 10",
        ),
    ),
    mistakes=(
        Mistake(
            "self.n_embd // self.n_head",
            "self.n_embd / self.n_head",
            Words(
                "A width is a whole number: divide with // instead of /.",
                "宽度是整数，要用 // 做除法，不要用 /。",
            ),
        ),
        Mistake(
            "return self.n_embd // self.n_head",
            "return self.n_embd",
            Words(
                "That is the width of all heads together. Divide it by the number of heads.",
                "这是所有头加在一起的宽度，还要除以头数。",
            ),
        ),
        Mistake(
            "if self.n_embd % self.n_head:",
            "if self.n_head > self.n_embd:",
            Words(
                "10 heads were accepted, although 768 / 10 is not a whole number. Look at the remainder: n_embd % "
                "n_head.",
                "10 个头通过了检查，可是 768 / 10 不是整数。看余数：n_embd % n_head。",
            ),
        ),
        Mistake(
            'raise ValueError(f"n_embd ({self.n_embd}) must be divisible by n_head ({self.n_head})")',
            'raise ValueError("n_embd must be divisible by n_head")',
            Words(
                "The message should contain both numbers, so that nobody has to look for them.",
                "错误信息里要写出这两个数，读的人才不用到处去找。",
            ),
        ),
    ),
)
