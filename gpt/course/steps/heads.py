"""Step 6d: heads and projection."""

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
class CausalSelfAttention(nn.Module):
    """Attention with several heads in parallel: (B, T, C) -> (B, T, C).
    || 多个注意力头并行：(B, T, C) -> (B, T, C)。"""

    def __init__(self, config):
        """Linear layers: c_attn, from C to 3 C, with a bias if config.qkv_bias is set, and c_proj, from C to C.
        || 线性层：c_attn 从 C 到 3 C，config.qkv_bias 为真时有偏置；c_proj 从 C 到 C。"""
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.qkv_bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x):
        """Split c_attn(x) into q, k and v, and each into heads. Attend, concatenate the heads, and project.

        Store the weights, (B, n_head, T, T), as self.weights for the pictures of attention.
        || 把 c_attn(x) 分成 q、k、v，再各自分成多个头；计算注意力；把各头并排拼好；最后投影。

        把权重 (B, n_head, T, T) 存为 self.weights，画注意力的图要用。
        """
        B, T, C = x.shape
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in (q, k, v))
        y, self.weights = attention(q, k, v)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))
'''
SPLIT = "part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)"


def mixing(run: str) -> str:
    """Return the lines of a test that builds the attention of layer 0 first."""
    return "attn = copy_weights(CausalSelfAttention(Config(**config)), weights)\n" + run


STEP = Step(
    key="6d",
    title=Words("Attention: heads and projection", "注意力：多头与投影"),
    says=Words(
        "One matrix computes queries, keys and values for all heads at once. A head is a slice of C / n_head adjacent "
        "numbers, and each head looks for something different. Afterwards, the slices are concatenated again, and "
        "c_proj mixes them.",
        "一个矩阵一次算出所有头的查询、键和值。一个头就是相邻的 C / n_head 个数，每个头找的东西不同。"
        "最后把各段重新并排放好，由 c_proj 混合起来。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the attention of layer 0", "第 0 层的注意力"),
            inputs=lambda reference: {
                "config": reference.config,
                "weights": reference.weights("h.0.attn"),
                "x": reference.model.blocks[0].ln_1.formula(reference.layer.resid_pre),
            },
            run=mixing("result = attn(x)"),
            expected=lambda reference: reference.layer.attn_out,
        ),
        Test(
            name=Words("the weights it stores", "保存下来的权重"),
            inputs=lambda reference: {
                "config": reference.config,
                "weights": reference.weights("h.0.attn"),
                "x": reference.model.blocks[0].ln_1.formula(reference.layer.resid_pre),
            },
            run=mixing("attn(x)\nresult = attn.weights"),
            expected=lambda reference: reference.layer.attn_weights,
        ),
    ),
    mistakes=(
        Mistake(
            SPLIT,
            "part.reshape(B, self.n_head, T, C // self.n_head)",
            Words(
                "Heads and positions are swapped in the view: a token's numbers are spread over several rows. Use "
                "view(B, T, n_head, hs), then transpose(1, 2).",
                "view 里的头和位置放反了：一个词元的数散到了好几行。先 view(B, T, n_head, hs)，再 transpose(1, 2)。",
            ),
        ),
        Mistake(
            SPLIT,
            "part.view(B, T, C // self.n_head, self.n_head).permute(0, 3, 1, 2)",
            Words(
                "A head takes adjacent numbers, not every n_head-th number: view(B, T, n_head, hs).",
                "一个头取的是相邻的数，不是每隔 n_head 个取一个：view(B, T, n_head, hs)。",
            ),
        ),
        Mistake(
            "y.transpose(1, 2).reshape(B, T, C)",
            "y.reshape(B, T, C)",
            Words(
                "Before you concatenate the heads, swap heads and positions back: y.transpose(1, 2).",
                "把头并排拼好之前，先把头和位置换回来：y.transpose(1, 2)。",
            ),
        ),
        Mistake(
            "y.transpose(1, 2).reshape(B, T, C)",
            "y.transpose(1, 2).view(B, T, C)",
            Words(
                "view needs numbers that are adjacent in memory; after a transpose, they no longer are. Use reshape.",
                "转置之后，这些数在内存里不再相邻，而 view 需要相邻。请用 reshape。",
            ),
        ),
        Mistake(
            "q, k, v = self.c_attn(x)",
            "k, q, v = self.c_attn(x)",
            Words("The order in c_attn is query, key, value.", "c_attn 里的顺序是查询、键、值。"),
        ),
        Mistake(
            "q, k, v = self.c_attn(x)",
            "v, k, q = self.c_attn(x)",
            Words(
                "Queries and values are swapped: c_attn gives query, key, value.",
                "查询和值弄反了：c_attn 依次给出查询、键、值。",
            ),
        ),
        Mistake(
            "self.c_proj(y.transpose(1, 2).reshape(B, T, C))",
            "y.transpose(1, 2).reshape(B, T, C)",
            Words("The projection c_proj is missing.", "缺了投影 c_proj。"),
        ),
        Mistake(
            "q, k, v = (part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in (q, k, v))\n"
            "        y, self.weights = attention(q, k, v)\n"
            "        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))",
            "y, self.weights = attention(q, k, v)\n        return self.c_proj(y)",
            Words(
                "You use a single head over the whole width. Split q, k and v into n_head heads.",
                "整个宽度成了一个头。要把 q、k、v 分成 n_head 个头。",
            ),
        ),
        Mistake(
            "y, self.weights = attention(q, k, v)",
            "y, _ = attention(q, k, v)",
            Words(
                "Store the weights as self.weights for the pictures.",
                "要把权重存为 self.weights，画图要用。",
            ),
        ),
    ),
)
