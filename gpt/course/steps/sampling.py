"""Step 12: temperature and top-k."""

from gpt.course.step import Mistake, Step, Test, Words

CODE = '''
def distribution(logits, temperature=1.0, top_k=None):
    """Return the probabilities from which the next token is drawn: (..., V) logits -> (..., V).

    Divide by the temperature, keep the top_k largest (None: all), and apply softmax. Temperature 0 keeps only the
    largest.
    || 返回抽取下一个词元所用的概率：(..., V) 的 logits -> (..., V)。

    除以温度；保留最大的 top_k 个，None 表示全部；再做 softmax。温度为 0 表示只留最大的一个。
    """
    if temperature == 0:
        temperature, top_k = 1.0, 1
    logits = logits / temperature
    if top_k is not None:
        least = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < least, -math.inf)
    return logits.softmax(dim=-1)


@torch.no_grad()
def sample(model, idx, n_tokens, temperature=1.0, top_k=None):
    """Like generate, but draw each token from the distribution. || 与 generate 相同，只是从分布中抽取词元。"""
    for _ in range(n_tokens):
        probabilities = distribution(model(idx[:, -model.config.block_size :])[:, -1], temperature, top_k)
        idx = torch.cat((idx, torch.multinomial(probabilities, 1)), dim=1)
    return idx
'''


def drawing(name: Words, **settings: float | None) -> Test:
    """Return a test of the distribution after the first text."""
    arguments = ", ".join(f"{key}={value}" for key, value in settings.items())
    return Test(
        name=name,
        inputs=lambda reference: {"logits": reference.logits(reference.idx[:1])[0, -1]},
        run=f"result = distribution(logits, {arguments})",
        expected=lambda reference: reference.probabilities(**settings),
    )


STEP = Step(
    key="12",
    title=Words("Temperature and top-k", "温度与 Top-k"),
    says=Words(
        "Greedy text repeats itself, so draw the next token instead. A temperature below 1 makes likely tokens even "
        "more likely, a temperature above 1 gives unlikely ones a chance, and 0 is greedy again. Top-k removes "
        "everything except the k most likely tokens.",
        "贪心生成容易重复，所以改成抽取下一个词元。温度低于 1 时，热门词元更容易被抽到；高于 1 时，冷门词元也有机会；"
        "温度为 0，就又回到贪心。Top-k 只留下最可能的 k 个词元。",
    ),
    code=CODE,
    tests=(
        drawing(Words("temperature 1, without top-k", "温度 1，不用 Top-k"), temperature=1.0, top_k=None),
        drawing(Words("temperature 0.8", "温度 0.8"), temperature=0.8, top_k=None),
        drawing(Words("temperature 0.8 and k = 5", "温度 0.8，k = 5"), temperature=0.8, top_k=5),
        drawing(Words("temperature 0", "温度 0"), temperature=0.0, top_k=None),
        drawing(Words("k = 1", "k = 1"), temperature=1.0, top_k=1),
        Test(
            name=Words("drawing with k = 1 is greedy", "k = 1 时，抽取就是贪心"),
            inputs=lambda reference: {
                "config": reference.short_config,
                "weights": reference.short_weights,
                "idx": reference.idx[:2, :5],
            },
            run="""
model = copy_weights(GPT(Config(**config)), weights)
difference = sample(model, idx, 20, 0.8, 1) - generate(model, idx, 20)
result = difference.abs().sum().item()
""",
            expected=lambda reference: 0,
        ),
    ),
    mistakes=(
        Mistake(
            "logits = logits / temperature",
            "logits = logits * temperature",
            Words("You multiply by the temperature. Divide by it.", "你乘以了温度，应该除以温度。"),
        ),
        Mistake(
            "logits = logits / temperature",
            "pass",
            Words("The temperature is not used.", "没有用上温度。"),
        ),
        Mistake(
            "    return logits.softmax(dim=-1)",
            "    return logits",
            Words("These are logits. softmax turns them into probabilities.", "这是 logits，还要用 softmax 变成概率。"),
        ),
        Mistake(
            "    if temperature == 0:\n        temperature, top_k = 1.0, 1\n",
            "",
            Words(
                "Dividing by 0 gives NaN. Handle temperature 0 separately: keep only the largest.",
                "除以 0 会得到 NaN。温度为 0 要单独处理，只留最大的一个。",
            ),
        ),
        Mistake(
            "logits < least",
            "logits <= least",
            Words(
                "You also remove the k-th largest. Keep values that equal it.",
                "第 k 大的也去掉了，与它相等的数要保留。",
            ),
        ),
        Mistake(
            "masked_fill(logits < least, -math.inf)",
            "masked_fill(logits < least, 0.0)",
            Words(
                "A logit of 0 is not removed, because exp(0) is 1. Fill in -inf.",
                "logit 为 0，词元还没有去掉，因为 exp(0) 是 1。请填 -inf。",
            ),
        ),
        Mistake(
            "        logits = logits.masked_fill(logits < least, -math.inf)\n    return logits.softmax(dim=-1)",
            "        return logits.softmax(dim=-1).masked_fill(logits < least, 0.0)\n    return logits.softmax(dim=-1)",
            Words(
                "The remaining probabilities no longer sum to 1. Remove tokens before softmax.",
                "剩下的概率加起来不再是 1。要在 softmax 之前去掉词元。",
            ),
        ),
        Mistake(
            "if top_k is not None:",
            "if False:",
            Words("top_k is not used.", "没有用上 top_k。"),
        ),
    ),
)
