"""Step 2: token and position embeddings."""

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def embed(idx, wte, wpe):
    """Look up a vector for each token and one for its position, and add them: (B, T) ids -> (B, T, n_embd).

    wte, wpe: nn.Embedding of the tokens and of the positions. The first position is 0.
    || 查出词元的向量和位置的向量，再把两者相加：(B, T) 的编号 -> (B, T, n_embd)。

    wte、wpe：nn.Embedding，分别对应词元和位置。第一个位置是 0。
    """
    positions = torch.arange(idx.shape[1])
    return wte(idx) + wpe(positions)
'''

STEP = Step(
    key="2",
    title=Words("Embeddings", "嵌入"),
    says=Words(
        "A token id is only a number in a list. The first table turns it into a vector that can carry meaning, and "
        "the second adds a vector for its position. Without the second table, “dog bites man” and “man bites dog” "
        "would be the same to the model.",
        "词元编号只是列表里的一个序号。第一张表把它变成能承载含义的向量，第二张表再加上代表位置的向量。"
        "没有第二张表，“狗咬人”和“人咬狗”对模型来说就是一回事。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the first vectors of two sentences", "两个句子最初的向量"),
            inputs=lambda reference: {
                "idx": reference.idx[:2],
                "tokens": reference.weights("wte"),
                "places": reference.weights("wpe"),
            },
            run="""
wte = copy_weights(nn.Embedding(*tokens["weight"].shape), tokens)
wpe = copy_weights(nn.Embedding(*places["weight"].shape), places)
result = embed(idx, wte, wpe)
""",
            expected=lambda reference: reference.layer.resid_pre,
        ),
    ),
    mistakes=(
        Mistake(
            "return wte(idx) + wpe(positions)",
            "return wte(idx)",
            Words("The positions are missing: add wpe(positions).", "缺了位置的向量，要加上 wpe(positions)。"),
        ),
        Mistake(
            "torch.arange(idx.shape[1])",
            "torch.arange(1, idx.shape[1] + 1)",
            Words(
                "You count positions from 1, but the first position is 0.", "你从 1 开始数位置，第一个位置应该是 0。"
            ),
        ),
        Mistake(
            "torch.arange(idx.shape[1])",
            "torch.arange(idx.shape[0])",
            Words(
                "You count the texts in the batch instead of the tokens: positions run along idx.shape[1].",
                "你给批次里的文本编了号。要给词元编号，位置有 idx.shape[1] 个。",
            ),
        ),
        Mistake(
            "wpe(positions)",
            "wpe(positions.flip(0))",
            Words("The positions run backwards.", "位置的顺序反了。"),
        ),
        Mistake(
            "wte(idx) + wpe(positions)",
            "wte(idx) * wpe(positions)",
            Words("The two vectors must be added, not multiplied.", "两个向量要相加，不是相乘。"),
        ),
        Mistake(
            "wte(idx) + wpe(positions)",
            "wpe(positions).expand(*idx.shape, -1)",
            Words("The tokens are missing: add wte(idx).", "缺了词元的向量，要加上 wte(idx)。"),
        ),
    ),
)
