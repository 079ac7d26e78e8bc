"""Step 8: the model."""

import torch

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
class GPT(nn.Module):
    """Map token ids to the logits of the next token: (B, T) -> (B, T, vocab_size).
    || 输入词元编号，输出下一个词元的 logits：(B, T) -> (B, T, vocab_size)。"""

    def __init__(self, config):
        """Modules: wte, wpe, h (an nn.ModuleList of blocks), ln_f, lm_head (linear, without a bias).

        Store the configuration as self.config. If config.tie_weights is set, lm_head and wte share one weight.
        || 模块：wte、wpe、h（由块组成的 nn.ModuleList）、ln_f、lm_head（线性层，无偏置）。

        把配置存为 self.config。config.tie_weights 为真时，lm_head 与 wte 用同一个 weight。
        """
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tie_weights:
            self.lm_head.weight = self.wte.weight

    def forward(self, idx):
        """Embed, run every block, normalise, apply the head. || 嵌入，依次经过每个块，归一化，最后用输出头。"""
        x = embed(idx, self.wte, self.wpe)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))
'''

STEP = Step(
    key="8",
    title=Words("The GPT", "完整的 GPT"),
    says=Words(
        "Now put everything together: embed, run eight or twelve blocks, apply a final norm, and let a head compare "
        "the result with each token in the vocabulary. Use exactly these names, because the weights are copied by "
        "name. After this step, your program computes the same logits as the app.",
        "零件都齐了，现在拼起来：先嵌入，再经过八个或十二个块和最后一次归一化，最后由输出头把结果和词表里的每个词元"
        "比较。名字要与这里完全一致，因为权重是按名字复制的。完成这一步，你的程序算出的 logits 就和应用一样了。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the shape of the logits", "logits 的形状"),
            inputs=lambda reference: {"idx": torch.tensor([[2, 16, 5], [4, 1, 9]])},
            run="""
model = GPT(Config(vocab_size=20, block_size=8, n_layer=2, n_head=2, n_embd=8))
result = list(model(idx).shape)
""",
            expected=lambda reference: [2, 3, 20],
        ),
        Test(
            name=Words("the app's logits on ten texts, two at a time", "十段文本的 logits，每次两段"),
            inputs=lambda reference: {
                "config": reference.config,
                "weights": reference.weights(),
                "idx": reference.idx,
            },
            run="""
model = copy_weights(GPT(Config(**config)), weights)
with torch.no_grad():
    result = torch.cat([model(rows) for rows in idx.split(2)])
""",
            expected=lambda reference: reference.logits(reference.idx),
        ),
    ),
    mistakes=(
        Mistake(
            "return self.lm_head(self.ln_f(x))",
            "return self.lm_head(self.ln_f(x))[:, -1]",
            Words(
                "Return the logits of every position, not only the last one. Training needs them all.",
                "要返回每个位置的 logits，不只是最后一个，训练时都要用。",
            ),
        ),
        Mistake(
            "return self.lm_head(self.ln_f(x))",
            "return self.ln_f(x)",
            Words("The head is missing: lm_head.", "缺了输出头 lm_head。"),
        ),
        Mistake(
            "nn.ModuleList(Block(config) for _ in range(config.n_layer))",
            "[Block(config) for _ in range(config.n_layer)]",
            Words(
                "A plain list hides the blocks from torch. Put them into an nn.ModuleList.",
                "放在普通列表里的块，torch 看不到。请放进 nn.ModuleList。",
            ),
        ),
        Mistake(
            "nn.ModuleList(Block(config) for _ in range(config.n_layer))",
            "nn.ModuleList([Block(config)] * config.n_layer)",
            Words(
                "All layers are the same block. Create a new Block for each of them.",
                "所有层都是同一个块。每一层都要新建一个 Block。",
            ),
        ),
        Mistake(
            "self.lm_head(self.ln_f(x))",
            "self.lm_head(x)",
            Words("The final norm, ln_f, is missing.", "缺了最后的归一化 ln_f。"),
        ),
        Mistake(
            "return self.lm_head(self.ln_f(x))",
            "return self.lm_head(self.ln_f(x)).softmax(dim=-1)",
            Words(
                "These are probabilities. Return the logits, without softmax.",
                "这是概率。请返回 logits，不要做 softmax。",
            ),
        ),
        Mistake(
            "            x = block(x)",
            "            x = x + block(x)",
            Words("The block already adds its input: x = block(x).", "块里已经加过输入了，这里写 x = block(x)。"),
        ),
        Mistake(
            "            x = block(x)",
            "            x = self.ln_f(block(x))",
            Words(
                "Apply ln_f only once, after the last block, not after each block.",
                "ln_f 只在最后一个块之后用一次，不是每个块之后都用。",
            ),
        ),
        Mistake(
            "for block in self.h:",
            "for block in self.h[:-1]:",
            Words("One block is missing.", "漏了一个块。"),
        ),
        Mistake(
            "nn.Linear(config.n_embd, config.vocab_size, bias=False)",
            "nn.Linear(config.n_embd, config.vocab_size)",
            Words("The head has no bias: bias=False.", "输出头没有偏置，要写 bias=False。"),
        ),
    ),
)
