"""The steps of the course, in order: texts, solutions and mistakes from steps.md, with the tests of each step."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch

from gpt.course.reference import LEARNING_RATE, TRAINING_STEPS, Reference, config_of, state
from gpt.experiments.initialisation import shortcut_gradients
from gpt.experiments.layers import linear_relu_rows, normalise
from gpt.experiments.minimal import DeepNetwork
from gpt.experiments.shapes import UNTIED_124M, count_parameters
from gpt.generate import generate_greedy
from gpt.layers import GELU, seeded
from gpt.models.sources import BUNDLED
from gpt.presets import PRESETS

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
SECONDS = 30.0
DOCSTRING = re.compile(r'"""(.*?)\s*\|\|\s*(.*?)"""', re.DOTALL)
FENCE = re.compile(r"```\w+\n(.*?)\n```\n(.*?)\n", re.DOTALL)  # code, and the line after it
SIZES = ("gpt2", "gpt2-medium", "gpt2-xl")

Inputs = Callable[[Reference], dict[str, Any]]


class Words(NamedTuple):
    """A sentence in both languages, with placeholders for `str.format`."""

    en: str
    zh: str

    def of(self, language: Language, **values: object) -> str:
        return getattr(self, language).format(**values) if values else getattr(self, language)


@dataclass(frozen=True)
class Test:
    """A comparison of the learner's code with the reference model.

    run: Lines of Python that set `result`. They can use the names in the learner's program, the inputs, `torch`, `nn`
        and `copy_weights` (see `gpt.course.process`). The result is a tensor, a number or a string.
    inputs, expected: Computed by the reference model when the test runs.
    tolerance: Absolute tolerance. A relative difference of 1e-5 is also allowed.
    seconds: Time limit. Known mistakes are recognised only in tests with the default limit.
    """

    __test__ = False  # not a test for pytest
    name: Words
    run: str
    expected: Callable[[Reference], Any]
    inputs: Callable[[Reference], dict[str, Any]] = lambda reference: {}
    tolerance: float = 1e-5
    seconds: float = SECONDS

    @property
    def is_long(self) -> bool:
        return self.seconds > SECONDS


@dataclass(frozen=True)
class Mistake:
    """A known mistake: the solution with `wrong` in place of `right`.

    `right` occurs once in the step's code or, if it does not occur there, once in the whole program.
    """

    right: str
    wrong: str
    hint: Words


@dataclass(frozen=True)
class Step:
    """One step of the course.

    key: "1" to "14", with step 6 split into "6a" to "6d".
    says: What to write and why.
    code: The solution. Docstrings contain both languages, "English || 中文".
    """

    key: str
    title: Words
    says: Words
    code: str
    tests: tuple[Test, ...]
    mistakes: tuple[Mistake, ...]

    def solution(self, language: Language) -> str:
        return DOCSTRING.sub(rf'"""\{1 + LANGUAGES.index(language)}"""', self.code.strip("\n"))

    def stub(self, language: Language) -> str:
        """Return the solution with gaps instead of the function bodies. Docstrings remain."""
        lines = self.solution(language).split("\n")
        functions = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.FunctionDef)]
        for function in sorted(functions, key=lambda node: -node.lineno):
            docstring, last = function.body[0], function.body[-1]
            assert docstring.end_lineno is not None
            assert last.end_lineno is not None
            gap = " " * docstring.col_offset + f'raise NotImplementedError("{self.key}")'
            lines[docstring.end_lineno : last.end_lineno] = [gap]
        return "\n".join(lines)

    @property
    def defines(self) -> set[str]:
        body = ast.parse(self.code).body
        return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    @property
    def uses(self) -> set[str]:
        texts = (self.code, *(test.run for test in self.tests))
        return {node.id for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def steps(text: str, tests: Mapping[str, tuple[Test, ...]]) -> dict[str, Step]:
    found = {}
    for part in re.split(r"^# (?=\d)", text, flags=re.MULTILINE)[1:]:
        heading, says, rest = part.split("\n\n", 2)
        key, title = heading.split(" ", 1)
        (code, _), *wrong = FENCE.findall(rest)
        found[key] = Step(key, words(title), words(says), code, tests[key], tuple(map(mistake, wrong)))
    return found


def words(text: str) -> Words:
    return Words(*(part.strip() for part in text.split("||")))


def mistake(found: tuple[str, str]) -> Mistake:
    lines = found[0].split("\n")
    right, wrong = ("\n".join(line[1:] for line in lines if line[0] == sign) for sign in "-+")
    return Mistake(right, wrong, words(found[1]))


def weights_of(part: str, **more: Callable[[Reference], Any]) -> Inputs:
    """Return a function for inputs: the configuration, the weights of a part of the bundled model, and further ones."""
    return lambda reference: {
        "config": config_of(reference.model),
        "weights": reference.weights(part),
        **{name: value(reference) for name, value in more.items()},
    }


def short_model(**more: Callable[[Reference], Any]) -> Inputs:
    return lambda reference: {
        "config": config_of(reference.short),
        "weights": state(reference.short),
        **{name: value(reference) for name, value in more.items()},
    }


def query_key_value(reference: Reference) -> dict[str, Any]:
    return {"q": reference.layer.attn_q, "k": reference.layer.attn_k, "v": reference.layer.attn_v}


def deep_layers(reference: Reference) -> dict[str, Any]:
    """Return the weights for the five layers in the original experiment, with seed 123."""
    with seeded(123):
        network = DeepNetwork([3] * 5 + [1], shortcuts=True)
    weights = {name.removeprefix("layers."): value for name, value in network.state_dict().items()}
    return {"weights": weights, "widths": [3] * 5 + [1]}


def counting(name: Words, tied: bool) -> Test:
    return Test(
        name,
        f"""
with torch.device("meta"):
    result = n_parameters(GPT(Config(qkv_bias=False, tie_weights={tied})))
""",
        lambda reference: count_parameters(replace(UNTIED_124M, tie_weights=tied)),
    )


def writing(name: Words, n: int) -> Test:
    return Test(
        name,
        GENERATE,
        lambda reference: generate_greedy(reference.short, reference.idx[:2, :5], n),
        short_model(idx=lambda reference: reference.idx[:2, :5], n_tokens=lambda reference: n),
    )


def drawing(name: Words, **settings: float | None) -> Test:
    arguments = ", ".join(f"{key}={value}" for key, value in settings.items())
    return Test(
        name,
        f"result = distribution(logits, {arguments})",
        lambda reference: reference.probabilities(**settings),
        lambda reference: {"logits": reference.logits(reference.idx[:1])[0, -1]},
    )


BLOCK = "result = copy_weights(Block(Config(**config)), weights)(x)"
HEADS = "attn = copy_weights(CausalSelfAttention(Config(**config)), weights)\n"
MODEL = "model = copy_weights(GPT(Config(**config)), weights)\n"
GENERATE = MODEL + "result = generate(model, idx, n_tokens)"
LOAD = "with torch.no_grad():\n    result = load(folder)(idx)"
TRAIN = f"""
model = copy_weights(GPT(Config(**config)), weights).train()
optimizer = torch.optim.AdamW(model.parameters(), lr={LEARNING_RATE})
losses = [train_step(model, optimizer, idx) for idx in batches]
"""

TESTS: dict[str, tuple[Test, ...]] = {
    "1": (
        Test(
            Words("GPT-2's sizes", "GPT-2 的尺寸"),
            "result = [Config(n_embd=width, n_head=heads).head_size for width, heads in sizes]",
            lambda reference: [PRESETS[name].head_size for name in SIZES],
            lambda reference: {"sizes": [[PRESETS[name].n_embd, PRESETS[name].n_head] for name in SIZES]},
        ),
        Test(
            Words("a width of 768 for 10 heads", "宽度 768，10 个头"),
            """
try:
    Config(n_embd=768, n_head=10)
    result = "no ValueError"
except ValueError as error:
    result = " ".join(number for number in ("768", "10") if number in str(error))
""",
            lambda reference: "768 10",
        ),
    ),
    "2": (
        Test(
            Words("the first vectors of two sentences", "两个句子最初的向量"),
            """
wte = copy_weights(nn.Embedding(*tokens["weight"].shape), tokens)
wpe = copy_weights(nn.Embedding(*places["weight"].shape), places)
result = embed(idx, wte, wpe)
""",
            lambda reference: reference.layer.resid_pre,
            lambda reference: {
                "idx": reference.idx[:2],
                "tokens": reference.weights("wte"),
                "places": reference.weights("wpe"),
            },
        ),
    ),
    "3": (
        Test(
            Words("the two rows from the book, seed 123", "书中的两行数，种子 123"),
            "result = LayerNorm(6)(x)",
            lambda reference: normalise(linear_relu_rows(seed=123))["after"],
            lambda reference: {"x": linear_relu_rows(seed=123)},
        ),
        Test(
            Words("ln_1 on real activations", "ln_1 在真实激活上的结果"),
            "result = copy_weights(LayerNorm(x.shape[-1]), weights)(x)",
            lambda reference: reference.model.blocks[0].ln_1.formula(reference.layer.resid_pre),
            lambda reference: {"x": reference.layer.resid_pre, "weights": reference.weights("h.0.ln_1")},
        ),
        Test(
            Words("a vector of equal numbers", "所有数都相等的向量"),
            "result = LayerNorm(4)(x)",
            lambda reference: torch.zeros(2, 4),
            lambda reference: {"x": torch.full((2, 4), 3.0)},
        ),
    ),
    "4": (
        Test(
            Words("1,000 points from -6 to 6", "-6 到 6 之间的 1,000 个点"),
            "result = gelu(x)",
            lambda reference: GELU("tanh").formula(torch.linspace(-6, 6, 1000)),
            lambda reference: {"x": torch.linspace(-6, 6, 1000)},
        ),
    ),
    "5": (
        Test(
            Words("the feed-forward part of layer 0", "第 0 层的前馈网络"),
            "result = copy_weights(FeedForward(Config(**config)), weights)(x)",
            lambda reference: reference.layer.mlp_out,
            weights_of("h.0.mlp", x=lambda reference: reference.mlp_input),
        ),
    ),
    "6a": (
        Test(
            Words("running means of real vectors", "真实向量的累计平均"),
            "result = mean_of_past(x)",
            lambda reference: (
                reference.layer.resid_pre.cumsum(1) / torch.arange(1, 1 + reference.idx.shape[1])[:, None]
            ),
            lambda reference: {"x": reference.layer.resid_pre},
        ),
    ),
    "6b": (
        Test(
            Words("the scores of all heads in layer 0", "第 0 层所有头的分数"),
            "result = attention_scores(q, k)",
            lambda reference: reference.layer.attn_scores,
            query_key_value,
        ),
        Test(
            Words("one query, many keys", "一个查询，多个键"),
            "result = attention_scores(q[:, :, -1:], k)",
            lambda reference: reference.layer.attn_scores[:, :, -1:],
            query_key_value,
        ),
    ),
    "6c": (
        Test(
            Words("the weights of all heads in layer 0", "第 0 层所有头的权重"),
            "output, result = attention(q, k, v)",
            lambda reference: reference.layer.attn_weights,
            query_key_value,
        ),
        Test(
            Words("the mixed values", "混合后的值"),
            "result, weights = attention(q, k, v)",
            lambda reference: reference.layer.attn_weights @ reference.layer.attn_v,
            query_key_value,
        ),
    ),
    "6d": (
        Test(
            Words("the attention of layer 0", "第 0 层的注意力"),
            HEADS + "result = attn(x)",
            lambda reference: reference.layer.attn_out,
            weights_of("h.0.attn", x=lambda reference: reference.attn_input),
        ),
        Test(
            Words("the weights it stores", "保存下来的权重"),
            HEADS + "attn(x)\nresult = attn.weights",
            lambda reference: reference.layer.attn_weights,
            weights_of("h.0.attn", x=lambda reference: reference.attn_input),
        ),
    ),
    "7": (
        Test(
            Words("gradients without and with shortcuts", "有无残差连接时的梯度"),
            """
network = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
copy_weights(network, weights)
rows = []
for shortcuts in (False, True):
    network.zero_grad()
    output = deep_forward(network, torch.tensor([[1.0, 0.0, -1.0]]), shortcuts)
    output.square().mean().backward()
    rows.append(torch.stack([layer.weight.grad.abs().mean() for layer in network]))
result = torch.stack(rows)
""",
            lambda reference: torch.tensor(shortcut_gradients(seed=123)),  # (2, 5)
            deep_layers,
            tolerance=1e-8,
        ),
        Test(
            Words("the first block on two sentences", "第一个块处理两个句子"),
            BLOCK,
            lambda reference: reference.layer.resid_post,
            weights_of("h.0", x=lambda reference: reference.layer.resid_pre),
        ),
    ),
    "8": (
        Test(
            Words("the shape of the logits", "logits 的形状"),
            """
model = GPT(Config(vocab_size=20, block_size=8, n_layer=2, n_head=2, n_embd=8))
result = list(model(idx).shape)
""",
            lambda reference: [2, 3, 20],
            lambda reference: {"idx": torch.tensor([[2, 16, 5], [4, 1, 9]])},
        ),
        Test(
            Words("the app's logits on ten texts, two at a time", "十段文本的 logits，每次两段"),
            MODEL + "with torch.no_grad():\n    result = torch.cat([model(rows) for rows in idx.split(2)])",
            lambda reference: reference.logits(reference.idx),
            weights_of("", idx=lambda reference: reference.idx),
        ),
    ),
    "9": (
        counting(Words("GPT-2's sizes, untied", "GPT-2 的结构，不绑定"), tied=False),
        counting(Words("GPT-2's sizes, tied", "GPT-2 的结构，绑定"), tied=True),
    ),
    "10": (
        Test(
            Words("a model that knows nothing: ln(20)", "什么都不会的模型：ln(20)"),
            "result = loss(lambda idx: torch.zeros(*idx.shape, 20), idx)",
            lambda reference: torch.tensor(math.log(20)),
            lambda reference: {"idx": torch.arange(10).view(2, 5)},
        ),
        Test(
            Words("value and gradient", "数值与梯度"),
            MODEL + "result = loss(model, idx)\nresult.backward()\n"
            "result = torch.cat([result.detach()[None], model.h[0].ln_1.weight.grad])",
            lambda reference: reference.loss_and_gradient(reference.idx[:2]),
            short_model(idx=lambda reference: reference.idx[:2]),
        ),
    ),
    "11": (
        writing(Words("three tokens", "三个词元"), 3),
        writing(Words("10 tokens in a context of 12", "上下文长度 12，写 10 个词元"), 10),
        Test(
            Words("the app's text: 300 tokens in a context of 256", "与应用一样：上下文长度 256，写 300 个词元"),
            GENERATE,
            lambda reference: reference.long_text,
            weights_of("", idx=lambda reference: reference.idx[:1], n_tokens=lambda reference: 300),
            seconds=300.0,
        ),
    ),
    "12": (
        drawing(Words("temperature 1, without top-k", "温度 1，不用 Top-k"), temperature=1.0, top_k=None),
        drawing(Words("temperature 0.8", "温度 0.8"), temperature=0.8, top_k=None),
        drawing(Words("temperature 0.8 and k = 5", "温度 0.8，k = 5"), temperature=0.8, top_k=5),
        drawing(Words("temperature 0", "温度 0"), temperature=0.0, top_k=None),
        drawing(Words("k = 1", "k = 1"), temperature=1.0, top_k=1),
        Test(
            Words("drawing with k = 1 is greedy", "k = 1 时，抽取就是贪心"),
            MODEL + "difference = sample(model, idx, 20, 0.8, 1) - generate(model, idx, 20)\n"
            "result = difference.abs().sum().item()",
            lambda reference: 0,
            short_model(idx=lambda reference: reference.idx[:2, :5]),
        ),
    ),
    "13": (
        Test(
            Words("the bundled model", "自带的模型"),
            LOAD,
            lambda reference: reference.logits(reference.idx[:2]),
            lambda reference: {"folder": str(BUNDLED), "idx": reference.idx[:2]},
        ),
        Test(
            Words("a GPT-2 folder written by transformers", "transformers 写出的 GPT-2 文件夹"),
            LOAD,
            lambda reference: reference.short(reference.idx[:2]).detach(),
            lambda reference: {"folder": reference.gpt2_folder, "idx": reference.idx[:2]},
        ),
        Test(
            Words("evaluation mode", "评估模式"),
            "result = int(load(folder).training)",
            lambda reference: 0,
            lambda reference: {"folder": reference.gpt2_folder},
        ),
    ),
    "14": (
        Test(
            Words("ten steps on a repeated batch", "同一个批次训练十步"),
            TRAIN + "result = losses",
            lambda reference: torch.tensor(reference.trained(reference.batches[:1].expand(10, -1, -1))[:-1]),
            lambda reference: {**reference.small_model, "batches": reference.batches[:1].expand(10, -1, -1)},
            tolerance=1e-3,
        ),
        Test(
            Words("200 steps of sorting letters: loss on unseen rows", "给字母排序 200 步，没见过的行的损失"),
            TRAIN + "result = loss(model, unseen)",
            lambda reference: torch.tensor(reference.trained(reference.batches[:TRAINING_STEPS])[-1]),
            lambda reference: {
                **reference.small_model,
                "batches": reference.batches[:TRAINING_STEPS],
                "unseen": reference.batches[-1],
            },
            tolerance=0.05,
            seconds=120.0,
        ),
    ),
}
STEPS = steps((Path(__file__).parent / "steps.md").read_text(encoding="utf-8"), TESTS)
