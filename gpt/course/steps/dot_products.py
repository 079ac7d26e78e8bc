"""Step 6b: dot products."""

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def attention_scores(q, k):
    """Compute how well each query matches each key: (..., T, hs) and (..., S, hs) -> (..., T, S).

    The score is the dot product of the two vectors, divided by the square root of their width hs.
    || 计算每个查询与每个键有多匹配：(..., T, hs) 和 (..., S, hs) -> (..., T, S)。

    分数是两个向量的点积，除以宽度 hs 的平方根。
    """
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
'''

STEP = Step(
    key="6b",
    title=Words("Attention: dot products", "注意力：点积"),
    says=Words(
        "Which of the earlier tokens matter? Each token asks with a query and offers a key, and their dot product "
        "measures how well they match. Wider vectors have larger dot products, so divide by the square root of the "
        "width. Otherwise, softmax would pick a single token, and the model would stop learning.",
        "前面的词元里哪些重要？每个词元用查询来问，用键来答，点积就是匹配程度。向量越宽，点积越大，所以要除以"
        "宽度的平方根；否则 softmax 只会选中一个词元，学习也就停了。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the scores of all heads in layer 0", "第 0 层所有头的分数"),
            inputs=lambda reference: {"q": reference.layer.attn_q, "k": reference.layer.attn_k},
            run="result = attention_scores(q, k)",
            expected=lambda reference: reference.layer.attn_scores,
        ),
        Test(
            name=Words("one query, many keys", "一个查询，多个键"),
            inputs=lambda reference: {"q": reference.layer.attn_q[:, :, -1:], "k": reference.layer.attn_k},
            run="result = attention_scores(q, k)",
            expected=lambda reference: reference.layer.attn_scores[:, :, -1:],
        ),
    ),
    mistakes=(
        Mistake(
            " / math.sqrt(q.shape[-1])",
            "",
            Words("The scores are not scaled: divide by sqrt(hs).", "分数没有缩放，要除以 sqrt(hs)。"),
        ),
        Mistake(
            "math.sqrt(q.shape[-1])",
            "q.shape[-1]",
            Words("You divide by the width. Divide by its square root.", "你除以了宽度，应该除以它的平方根。"),
        ),
        Mistake(
            "math.sqrt(q.shape[-1])",
            "math.sqrt(q.shape[-2])",
            Words(
                "You divide by the square root of the number of tokens, shape[-2]. The width is shape[-1].",
                "你除以了词元数 shape[-2] 的平方根。宽度是 shape[-1]。",
            ),
        ),
        Mistake(
            "q @ k.transpose(-2, -1)",
            "k @ q.transpose(-2, -1)",
            Words("Queries and keys are swapped: rows are queries.", "查询和键放反了，每行应该是一个查询。"),
        ),
        Mistake(
            "k.transpose(-2, -1)",
            "k",
            Words(
                "q @ k cannot work, because both are (T, hs). Transpose the keys: k.transpose(-2, -1).",
                "q @ k 算不了，因为两者都是 (T, hs)。用 k.transpose(-2, -1) 把键转置。",
            ),
        ),
        Mistake(
            "k.transpose(-2, -1)",
            "k.T",
            Words(
                "k.T reverses all axes, including batch and heads. Swap only the last two: k.transpose(-2, -1).",
                "k.T 会颠倒所有的轴，连批次和头也不例外。只交换最后两个：k.transpose(-2, -1)。",
            ),
        ),
    ),
)
