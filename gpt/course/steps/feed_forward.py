"""Step 5: the feed-forward part."""

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
class FeedForward(nn.Module):
    """Process each token on its own: (..., n_embd) -> (..., n_embd).
    || 单独处理每个词元：(..., n_embd) -> (..., n_embd)。"""

    def __init__(self, config):
        """Linear layers: c_fc, from the width to four times the width, and c_proj, back to the width.
        || 线性层：c_fc 扩展到四倍宽度，c_proj 再变回来。"""
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)

    def forward(self, x):
        """c_fc, GELU, c_proj. || c_fc、GELU、c_proj。"""
        return self.c_proj(gelu(self.c_fc(x)))
'''

STEP = Step(
    key="5",
    title=Words("Feed-forward", "前馈网络"),
    says=Words(
        "A token's vector is expanded to four times as many neurons, passed through GELU, and brought back to its "
        "width. Tokens do not see each other here. Two thirds of a block's parameters are in these two matrices.",
        "先把词元的向量扩展成四倍数量的神经元，经过 GELU，再变回原来的宽度。在这里，词元之间互相看不见。"
        "一个块三分之二的参数都在这两个矩阵里。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the feed-forward part of layer 0", "第 0 层的前馈网络"),
            inputs=lambda reference: {
                "config": reference.config,
                "weights": reference.weights("h.0.mlp"),
                "x": reference.model.blocks[0].ln_2.formula(reference.layer.resid_mid),
            },
            run="result = copy_weights(FeedForward(Config(**config)), weights)(x)",
            expected=lambda reference: reference.layer.mlp_out,
        ),
    ),
    mistakes=(
        Mistake(
            "self.c_proj(gelu(self.c_fc(x)))",
            "self.c_proj(self.c_fc(x))",
            Words(
                "GELU is missing, so the two layers are equivalent to a single linear layer.",
                "少了 GELU，两层合起来就只是一个线性层。",
            ),
        ),
        Mistake(
            "self.c_proj(gelu(self.c_fc(x)))",
            "gelu(self.c_proj(self.c_fc(x)))",
            Words("GELU comes between the two layers, not after them.", "GELU 在两层之间，不在最后。"),
        ),
        Mistake(
            "gelu(self.c_fc(x))",
            "torch.relu(self.c_fc(x))",
            Words("You use ReLU. This model was trained with GELU.", "你用了 ReLU。这个模型训练时用的是 GELU。"),
        ),
        Mistake(
            "return self.c_proj(gelu(self.c_fc(x)))",
            "return x + self.c_proj(gelu(self.c_fc(x)))",
            Words("The shortcut is not part of this module: the block adds it.", "残差连接不在这个模块里，由块来加。"),
        ),
        Mistake(
            "nn.Linear(4 * config.n_embd, config.n_embd)",
            "nn.Linear(4 * config.n_embd, config.n_embd, bias=False)",
            Words("c_proj needs a bias.", "c_proj 需要偏置。"),
        ),
        Mistake(
            "self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)\n"
            "        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)",
            "self.c_fc = nn.Linear(config.n_embd, config.n_embd)\n"
            "        self.c_proj = nn.Linear(config.n_embd, config.n_embd)",
            Words("Between the layers the width is 4 * n_embd.", "两层之间的宽度应该是 4 * n_embd。"),
        ),
    ),
)
