"""Step 11: greedy generation."""

from gpt.course.step import Mistake, Step, Test, Words
from gpt.generate import generate_greedy

CODE = '''
@torch.no_grad()
def generate(model, idx, n_tokens):
    """Append the most likely token, n_tokens times: (B, T) -> (B, T + n_tokens).

    The model reads at most the last block_size tokens.
    || 接上最可能的词元，重复 n_tokens 次：(B, T) -> (B, T + n_tokens)。

    模型最多读最后 block_size 个词元。
    """
    for _ in range(n_tokens):
        logits = model(idx[:, -model.config.block_size :])[:, -1]
        idx = torch.cat((idx, logits.argmax(dim=-1, keepdim=True)), dim=1)
    return idx
'''
RUN = """
model = copy_weights(GPT(Config(**config)), weights)
result = generate(model, idx, n_tokens)
"""

STEP = Step(
    key="11",
    title=Words("Greedy generation", "贪心生成"),
    says=Words(
        "A GPT writes one token at a time: read, take the most likely next token, append it, read again. When the text "
        "outgrows the context, the model reads only its end. The last check writes 300 tokens in a context of 256 and "
        "expects the app's text, token for token.",
        "GPT 一次写一个词元：读一遍，取最可能的下一个，接上，再读。文本超过上下文长度时，只读末尾。"
        "最后一项检查的上下文长度是 256，要写 300 个词元，必须和应用写出的一模一样。",
    ),
    code=CODE,
    tests=(
        Test(
            name=Words("three tokens", "三个词元"),
            inputs=lambda reference: {
                "config": reference.short_config,
                "weights": reference.short_weights,
                "idx": reference.idx[:2, :5],
                "n_tokens": 3,
            },
            run=RUN,
            expected=lambda reference: generate_greedy(reference.short, reference.idx[:2, :5], 3),
        ),
        Test(
            name=Words("10 tokens in a context of 12", "上下文长度 12，写 10 个词元"),
            inputs=lambda reference: {
                "config": reference.short_config,
                "weights": reference.short_weights,
                "idx": reference.idx[:2, :5],
                "n_tokens": 10,
            },
            run=RUN,
            expected=lambda reference: generate_greedy(reference.short, reference.idx[:2, :5], 10),
        ),
        Test(
            name=Words("the app's text: 300 tokens in a context of 256", "与应用一样：上下文长度 256，写 300 个词元"),
            inputs=lambda reference: {
                "config": reference.config,
                "weights": reference.weights(),
                "idx": reference.idx[:1],
                "n_tokens": 300,
            },
            run=RUN,
            expected=lambda reference: reference.long_text,
            seconds=300.0,
        ),
    ),
    mistakes=(
        Mistake(
            "idx[:, -model.config.block_size :]",
            "idx",
            Words(
                "The text outgrows the context, and there are no positions beyond it. Crop it: idx[:, -block_size:].",
                "文本超过了上下文长度，没有那么多位置，要裁剪：idx[:, -block_size:]。",
            ),
        ),
        Mistake(
            "idx[:, -model.config.block_size :]",
            "idx[:, : model.config.block_size]",
            Words(
                "You keep the beginning of the text. Keep its end: idx[:, -block_size:].",
                "你保留了文本的开头。要保留结尾：idx[:, -block_size:]。",
            ),
        ),
        Mistake(
            "idx = torch.cat((idx, logits.argmax(dim=-1, keepdim=True)), dim=1)\n    return idx",
            "context = idx[:, -model.config.block_size + 1 :]\n"
            "        idx = torch.cat((context, logits.argmax(dim=-1, keepdim=True)), dim=1)\n    return idx",
            Words(
                "You crop the text itself. Crop only what the model reads, and return everything.",
                "你把文本本身裁短了。只裁剪给模型读的部分，返回的文本要完整。",
            ),
        ),
        Mistake(
            "[:, -1]\n        idx = torch.cat((idx, logits.argmax",
            "[:, 0]\n        idx = torch.cat((idx, logits.argmax",
            Words(
                "You read the prediction after the first token. The next token is predicted at the last position.",
                "你读的是第一个词元之后的预测。下一个词元要看最后一个位置。",
            ),
        ),
        Mistake(
            "logits.argmax(dim=-1, keepdim=True)",
            "logits.argmin(dim=-1, keepdim=True)",
            Words("That is the least likely token.", "这是最不可能的词元。"),
        ),
        Mistake(
            "logits.argmax(dim=-1, keepdim=True)",
            "logits.argmax(dim=-1)",
            Words(
                "argmax drops an axis, so its result cannot be appended. Use keepdim=True.",
                "argmax 的结果少了一个轴，接不上去。用 keepdim=True。",
            ),
        ),
        Mistake(
            "logits.argmax(dim=-1, keepdim=True)), dim=1)",
            "logits.argmax(dim=-1, keepdim=True)), dim=0)",
            Words(
                "dim=0 appends another text. Tokens are appended along dim=1.",
                "dim=0 接上的是另一段文本。词元要沿 dim=1 接上。",
            ),
        ),
        Mistake(
            "dim=1)\n    return idx",
            "dim=1)\n    return idx[:, -n_tokens:]",
            Words("Return the prompt followed by the new tokens.", "返回时要包含提示词和新词元。"),
        ),
    ),
)
