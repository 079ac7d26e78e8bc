"""The steps of the course: texts, solutions and mistakes from steps.md, the tests, and the learner's folder."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from gpt.errors import GPTError

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
SECONDS = 30.0
PROGRAM, README, SETTINGS = "my_gpt.py", "README.md", ".course.json"
IMPORTS = """import json
import math
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F"""
DOCSTRING = re.compile(r'"""(.*?)\s*\|\|\s*(.*?)"""', re.DOTALL)
FENCE = re.compile(r"```\w+\n(.*?)\n```\n(.*?)\n", re.DOTALL)  # code, and the line after it


class Words(NamedTuple):
    """A sentence in both languages, with placeholders for `str.format`."""

    en: str
    zh: str

    def of(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en

    def format(self, **values: object) -> Words:
        return Words(self.en.format(**values), self.zh.format(**values))


HEADER = Words(
    '"""My GPT, step by step. Check it with: python -m gpt.course check"""',
    '"""我的 GPT，一步一步写成。检查时运行 python -m gpt.course check"""',
)


@dataclass(frozen=True)
class Test:
    """A comparison of the learner's code with the solution.

    step: Key of the step.
    run: Lines of Python that set `result` to a tensor, a number or a string. They can use the names in the program, the
        inputs in `gpt.course.reference`, `torch`, `nn` and `copy_weights` (see `gpt.course.process`).
    expected: Name of the input that is the expected result; by default, the solution computes it.
    tolerance: Absolute tolerance. A relative difference of 1e-5 is also allowed.
    seconds: Time limit. Known mistakes are recognised only in tests with the default limit.
    """

    __test__ = False  # not a test for pytest
    step: str
    name: Words
    run: str
    expected: str = ""
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
            gap = " " * docstring.col_offset + f'raise NotImplementedError("{self.key}")'
            lines[docstring.end_lineno : last.end_lineno] = [gap]
        return "\n".join(lines)

    @property
    def defines(self) -> set[str]:
        body = ast.parse(self.code).body
        return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    @property
    def uses(self) -> set[str]:
        return names_in("\n".join([self.code, *(test.run for test in self.tests)]))


def words(text: str) -> Words:
    return Words(*(part.strip() for part in text.split("||")))


def names_in(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


def test(heading: str, *lines: str, **options: Any) -> Test:
    """heading: The key of the step and the name of the test in both languages, such as "4 points || 点"."""
    step, name = heading.split(" ", 1)
    return Test(step, words(name), "\n".join(lines), **options)


ATTENTION = "layer = copy_weights(CausalSelfAttention(Config(**config)), attn)"
MODEL = "model = copy_weights(GPT(Config(**config)), weights)"
SHORT_MODEL = "model = copy_weights(GPT(Config(**short_config)), short_weights)"
TRAINING = (
    "model = copy_weights(GPT(Config(**small_config)), small_weights).train()",
    "optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)",
)

TESTS = (
    test(
        "1 GPT-2's sizes || GPT-2 的尺寸",
        "sizes = ((768, 12), (1024, 16), (1600, 25))  # small, medium and XL",
        "result = [Config(n_embd=width, n_head=heads).head_size for width, heads in sizes]",
    ),
    test(
        "1 a width of 768 for 10 heads || 宽度 768，10 个头",
        "try:",
        "    Config(n_embd=768, n_head=10)",
        "    result = 'no ValueError'",
        "except ValueError as error:",
        "    result = ' '.join(number for number in ('768', '10') if number in str(error))",
    ),
    test(
        "2 the first vectors of two sentences || 两个句子最初的向量",
        "tables = [copy_weights(nn.Embedding(*table['weight'].shape), table) for table in (wte, wpe)]",
        "result = embed(idx[:2], *tables)",
    ),
    test("3 the two rows from the book, seed 123 || 书中的两行数，种子 123", "result = LayerNorm(6)(book_rows)"),
    test(
        "3 ln_1 on real activations || ln_1 在真实激活上的结果",
        "result = copy_weights(LayerNorm(x.shape[-1]), ln_1)(x)",
    ),
    test("3 a vector of equal numbers || 所有数都相等的向量", "result = LayerNorm(4)(torch.full((2, 4), 3.0))"),
    test("4 1,000 points from -6 to 6 || -6 到 6 之间的 1,000 个点", "result = gelu(torch.linspace(-6, 6, 1000))"),
    test(
        "5 the feed-forward part of layer 0 || 第 0 层的前馈网络",
        "result = copy_weights(FeedForward(Config(**config)), mlp)(mlp_input)",
    ),
    test("6a running means of real vectors || 真实向量的累计平均", "result = mean_of_past(x)"),
    test("6b the scores of all heads in layer 0 || 第 0 层所有头的分数", "result = attention_scores(q, k)"),
    test("6b one query, many keys || 一个查询，多个键", "result = attention_scores(q[:, :, -1:], k)"),
    test("6c the weights of all heads in layer 0 || 第 0 层所有头的权重", "output, result = attention(q, k, v)"),
    test("6c the mixed values || 混合后的值", "result, weights = attention(q, k, v)"),
    test("6d the attention of layer 0 || 第 0 层的注意力", ATTENTION, "result = layer(attn_input)"),
    test("6d the weights it stores || 保存下来的权重", ATTENTION, "layer(attn_input)", "result = layer.weights"),
    test(
        "7 gradients without and with shortcuts || 有无残差连接时的梯度",
        "network = nn.ModuleList(nn.Linear(3, width) for width in (3, 3, 3, 3, 1))",
        "copy_weights(network, deep_weights)",
        "gradients = []",
        "for shortcuts in (False, True):",
        "    network.zero_grad()",
        "    output = deep_forward(network, torch.tensor([[1.0, 0.0, -1.0]]), shortcuts)",
        "    output.square().mean().backward()",
        "    gradients.append(torch.stack([layer.weight.grad.abs().mean() for layer in network]))",
        "result = torch.stack(gradients)",
        tolerance=1e-8,
    ),
    test(
        "7 the first block on two sentences || 第一个块处理两个句子",
        "result = copy_weights(Block(Config(**config)), block)(x)",
    ),
    test(
        "8 the shape of the logits || logits 的形状",
        "model = GPT(Config(vocab_size=20, block_size=8, n_layer=2, n_head=2, n_embd=8))",
        "result = list(model(torch.tensor([[2, 16, 5], [4, 1, 9]])).shape)",
    ),
    test(
        "8 the app's logits on ten texts, two at a time || 十段文本的 logits，每次两段",
        MODEL,
        "with torch.no_grad():",
        "    result = torch.cat([model(rows) for rows in idx.split(2)])",
    ),
    test(
        "9 GPT-2's sizes, untied || GPT-2 的结构，不绑定",
        "with torch.device('meta'):",
        "    result = n_parameters(GPT(Config(qkv_bias=False, tie_weights=False)))",
    ),
    test(
        "9 GPT-2's sizes, tied || GPT-2 的结构，绑定",
        "with torch.device('meta'):",
        "    result = n_parameters(GPT(Config(qkv_bias=False, tie_weights=True)))",
    ),
    test(
        "10 a model that knows nothing: ln(20) || 什么都不会的模型：ln(20)",
        "result = loss(lambda idx: torch.zeros(*idx.shape, 20), torch.arange(10).view(2, 5))",
    ),
    test(
        "10 value and gradient || 数值与梯度",
        SHORT_MODEL,
        "error = loss(model, idx[:2])",
        "error.backward()",
        "result = torch.cat([error.detach()[None], model.h[0].ln_1.weight.grad])",
    ),
    test("11 three tokens || 三个词元", SHORT_MODEL, "result = generate(model, idx[:2, :5], 3)"),
    test(
        "11 10 tokens in a context of 12 || 上下文长度 12，写 10 个词元",
        SHORT_MODEL,
        "result = generate(model, idx[:2, :5], 10)",
    ),
    test(
        "11 the app's text: 300 tokens in a context of 256 || 与应用一样：上下文长度 256，写 300 个词元",
        MODEL,
        "result = generate(model, idx[:1], 300)",
        expected="app_text",
        seconds=300.0,
    ),
    test("12 temperature 1, without top-k || 温度 1，不用 Top-k", "result = distribution(logits, 1.0, None)"),
    test("12 temperature 0.8 || 温度 0.8", "result = distribution(logits, 0.8, None)"),
    test("12 temperature 0.8 and k = 5 || 温度 0.8，k = 5", "result = distribution(logits, 0.8, 5)"),
    test("12 temperature 0 || 温度 0", "result = distribution(logits, 0.0, None)"),
    test("12 k = 1 || k = 1", "result = distribution(logits, 1.0, 1)"),
    test(
        "12 drawing with k = 1 is greedy || k = 1 时，抽取就是贪心",
        SHORT_MODEL,
        "difference = sample(model, idx[:2, :5], 20, 0.8, 1) - generate(model, idx[:2, :5], 20)",
        "result = difference.abs().sum().item()",
    ),
    test("13 the bundled model || 自带的模型", "with torch.no_grad():", "    result = load(bundled_folder)(idx[:2])"),
    test(
        "13 a GPT-2 folder written by transformers || transformers 写出的 GPT-2 文件夹",
        "with torch.no_grad():",
        "    result = load(gpt2_folder)(idx[:2])",
    ),
    test("13 evaluation mode || 评估模式", "result = int(load(gpt2_folder).training)"),
    test(
        "14 ten steps on a repeated batch || 同一个批次训练十步",
        *TRAINING,
        "result = [train_step(model, optimizer, batches[0]) for _ in range(10)]",
        tolerance=1e-3,
    ),
    test(
        "14 200 steps of sorting letters: loss on unseen rows || 给字母排序 200 步，没见过的行的损失",
        *TRAINING,
        "for batch in batches:",
        "    train_step(model, optimizer, batch)",
        "result = loss(model, unseen)",
        tolerance=0.05,
        seconds=120.0,
    ),
)


def read_steps(text: str) -> dict[str, Step]:
    """Read steps.md."""
    steps = {}
    for part in re.split(r"^# (?=\d)", text, flags=re.MULTILINE)[1:]:
        heading, says, rest = part.split("\n\n", 2)
        key, title = heading.split(" ", 1)
        (code, _), *edits = FENCE.findall(rest)
        mistakes = []
        for lines, hint in edits:
            right, wrong = ("\n".join(re.findall(rf"^[{sign}](.*)", lines, re.MULTILINE)) for sign in "-+")
            mistakes.append(Mistake(right, wrong, words(hint)))
        tests = tuple(test for test in TESTS if test.step == key)
        steps[key] = Step(key, words(title), words(says), code, tests, tuple(mistakes))
    return steps


STEPS = read_steps((Path(__file__).parent / "steps.md").read_text(encoding="utf-8"))


def find_step(key: str) -> Step:
    if key not in STEPS:
        raise GPTError("course.step", step=key, steps=", ".join(STEPS))
    return STEPS[key]


def assemble(parts: list[str], language: Language) -> str:
    """Combine the code of all steps into one program. parts: the code of each step."""
    titles = [f"# {step.key} {step.title.of(language)}" for step in STEPS.values()]
    sections = (f"{title}\n\n\n{part}\n" for title, part in zip(titles, parts, strict=True))
    return "\n\n".join([f"{HEADER.of(language)}\n\n{IMPORTS}\n", *sections])


def solution(language: Language = "en") -> str:
    return assemble([step.solution(language) for step in STEPS.values()], language)


def stub(language: Language = "en") -> str:
    """Return the program with gaps in place of the function bodies."""
    return assemble([step.stub(language) for step in STEPS.values()], language)


def start(folder: Path, language: Language = "en") -> None:
    """Write the learner's folder. Raises ValueError if it already contains a program."""
    if (folder / PROGRAM).exists():
        raise GPTError("course.exists", path=folder / PROGRAM)
    guide = (Path(__file__).parent / f"guide.{language}.md").read_text(encoding="utf-8")
    steps = (f"### {step.key} {step.title.of(language)}\n\n{step.says.of(language)}\n" for step in STEPS.values())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROGRAM).write_text(stub(language), encoding="utf-8")
    (folder / README).write_text("\n".join([guide, *steps]), encoding="utf-8")
    (folder / SETTINGS).write_text(json.dumps({"language": language}), encoding="utf-8")


def language_of(folder: Path) -> Language:
    """Return the language of a learner's folder. Raises ValueError if it contains no program."""
    if not (folder / PROGRAM).is_file():
        raise GPTError("course.no_program", path=folder / PROGRAM)
    settings = folder / SETTINGS
    return json.loads(settings.read_text(encoding="utf-8"))["language"] if settings.is_file() else "en"


def steps_before(step: Step) -> list[Step]:
    """Return the steps that a step builds on, in order, followed by the step itself."""
    found: list[Step] = []
    names = step.defines
    for other in reversed(STEPS.values()):
        if other.defines & names:
            names |= other.uses
            found.insert(0, other)
    return found
