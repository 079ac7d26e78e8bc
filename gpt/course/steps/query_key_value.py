"""Step 6c: query, key and value."""

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def attention(q, k, v):
    """Mix the values of the past: (..., T, hs) each -> (output (..., T, hs), weights (..., T, T)).

    No token sees later tokens: their scores are -inf before the softmax.
    || 按权重混合前面的值：每个输入都是 (..., T, hs) -> (输出 (..., T, hs)，权重 (..., T, T))。

    词元看不到后面的词元，所以 softmax 之前，把后面的分数设为 -inf。
    """
    T = q.shape[-2]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    scores = attention_scores(q, k).masked_fill(future, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
'''
RUN = """
output, weights = attention(q, k, v)
result = weights
"""

STEP = Step(
    key="6c",
    title=Words("Attention: query, key, value", "注意力：查询、键、值"),
    says=Words(
        "Hide the future: set every score above the diagonal to -inf. Softmax turns each row into weights that sum to "
        "1, and -inf into exactly 0. The output is the weighted mean of the values: the product from step 6a, with "
        "weights that depend on the text.",
        "先遮住后面的词元：把对角线以上的分数都设为 -inf。softmax 把每一行变成和为 1 的权重，-inf 正好变成 0。"
        "输出是值的加权平均，也就是 6a 的那个乘积，只不过权重由文本决定。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("the weights of all heads in layer 0", "第 0 层所有头的权重"),
            inputs=lambda reference: {
                "q": reference.layer.attn_q,
                "k": reference.layer.attn_k,
                "v": reference.layer.attn_v,
            },
            run=RUN,
            expected=lambda reference: reference.layer.attn_weights,
        ),
        Test(
            name=Words("the mixed values", "混合后的值"),
            inputs=lambda reference: {
                "q": reference.layer.attn_q,
                "k": reference.layer.attn_k,
                "v": reference.layer.attn_v,
            },
            run=RUN.replace("result = weights", "result = output"),
            expected=lambda reference: reference.layer.attn_weights @ reference.layer.attn_v,
        ),
    ),
    mistakes=(
        Mistake(
            ".masked_fill(future, -math.inf)",
            "",
            Words("There is no mask, so tokens see later tokens.", "没有掩码，词元看到了后面的词元。"),
        ),
        Mistake(
            "scores = attention_scores(q, k).masked_fill(future, -math.inf)\n    weights = scores.softmax(dim=-1)",
            "scores = attention_scores(q, k)\n    weights = scores.softmax(dim=-1).masked_fill(future, 0.0)",
            Words(
                "The mask is applied after softmax, so the rows no longer sum to 1. Mask the scores.",
                "掩码用在了 softmax 之后，每行加起来不再是 1。应该遮住分数。",
            ),
        ),
        Mistake(
            "masked_fill(future, -math.inf)",
            "masked_fill(future, 0.0)",
            Words(
                "A score of 0 still gets some weight, because exp(0) is 1. Fill in -inf.",
                "分数为 0，还是有权重，因为 exp(0) 是 1。请填 -inf。",
            ),
        ),
        Mistake(
            ".triu(1)",
            ".triu(0)",
            Words(
                "The mask also hides the token itself, and row 0 has nothing left (NaN). Use triu(1).",
                "掩码把词元自己也遮住了，第 0 行什么都不剩（NaN）。用 triu(1)。",
            ),
        ),
        Mistake(
            ".triu(1)",
            ".tril(-1)",
            Words("The mask hides the past instead of the future.", "掩码遮住了前面的词元。要遮住后面的。"),
        ),
        Mistake(
            "scores.softmax(dim=-1)",
            "scores.softmax(dim=-2)",
            Words(
                "Softmax runs over the queries, so the columns sum to 1. Each query distributes its own weight: "
                "dim=-1.",
                "softmax 算错了方向，成了每列加起来是 1。每个查询要分配自己的权重：dim=-1。",
            ),
        ),
        Mistake(
            "return weights @ v, weights",
            "return weights @ k, weights",
            Words("You mix the keys. Mix the values v instead.", "你混合的是键，要混合的是值 v。"),
        ),
        Mistake(
            "return weights @ v, weights",
            "return weights.transpose(-2, -1) @ v, weights",
            Words("The weights are transposed. Compute weights @ v.", "权重转置了，应该是 weights @ v。"),
        ),
        Mistake(
            "return weights @ v, weights",
            "return weights, weights @ v",
            Words("Return the output first, then the weights.", "先返回输出，再返回权重。"),
        ),
    ),
)
