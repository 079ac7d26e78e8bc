"""The learner's folder: the program with gaps, its solution, and the README."""

from __future__ import annotations

import json
from pathlib import Path

from gpt.course.steps import STEPS, Language, Step, Words
from gpt.errors import GPTError

PROGRAM, README, SETTINGS = "my_gpt.py", "README.md", ".course.json"
HEADER = Words(
    '"""My GPT, step by step. Check it with: python -m gpt.course check"""',
    '"""我的 GPT，一步一步写成。检查时运行 python -m gpt.course check"""',
)
IMPORTS = """import json
import math
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F"""
GUIDE = Words(
    """# Build your own GPT

Every function in `my_gpt.py` has a description and a gap. Fill in the gaps from top to bottom. At the end, the file is
a GPT that loads this project's model or GPT-2 and writes the same text as the app, token for token.

```
python -m gpt.course watch       check whenever you save
python -m gpt.course check       check once
python -m gpt.course check 7     a step, with the steps it builds on
python -m gpt.course solution 7  the solution to a step
```

Your program runs in its own process. Its output appears below the result. In shapes, B is the number of
texts, T the number of tokens, C the width (n_embd) and hs the width of one head.

## The steps
""",
    """# 自己动手写一个 GPT

`my_gpt.py` 里的每个函数都有说明，函数体空着，请从上往下填好。填完以后，它就是一个 GPT，能加载这个项目的模型或者
GPT-2，写出的文本和应用一模一样，一个词元也不差。

```
python -m gpt.course watch       每次保存就检查
python -m gpt.course check       检查一次
python -m gpt.course check 7     检查第 7 步和它依赖的步骤
python -m gpt.course solution 7  看第 7 步的答案
```

你的程序在单独的进程里运行，它打印的内容显示在结果下面。形状里的 B 是文本数，T 是词元数，C 是宽度 (n_embd)，
hs 是一个头的宽度。

## 步骤
""",
)


def find_step(key: str) -> Step:
    """Return the step with this key. Raises ValueError for an unknown key."""
    if key not in STEPS:
        raise GPTError("course.step", step=key, steps=", ".join(STEPS))
    return STEPS[key]


def assemble(parts: list[str], language: Language) -> str:
    """Combine the code of all steps into one program. parts: the code of each step."""
    titles = [f"# {step.key} {step.title.of(language)}" for step in STEPS.values()]
    sections = (f"{title}\n\n\n{part}\n" for title, part in zip(titles, parts, strict=True))
    return "\n\n".join([f"{HEADER.of(language)}\n\n{IMPORTS}\n", *sections])


def solution(language: Language = "en") -> str:
    """Return the complete program."""
    return assemble([step.solution(language) for step in STEPS.values()], language)


def stub(language: Language = "en") -> str:
    """Return the program with gaps in place of the function bodies."""
    return assemble([step.stub(language) for step in STEPS.values()], language)


def readme(language: Language) -> str:
    """Return the guide with a paragraph for each step."""
    steps = (f"### {step.key} {step.title.of(language)}\n\n{step.says.of(language)}\n" for step in STEPS.values())
    return "\n".join([GUIDE.of(language), *steps])


def start(folder: Path, language: Language = "en") -> None:
    """Write the learner's folder. Raises ValueError if it already contains a program."""
    if (folder / PROGRAM).exists():
        raise GPTError("course.exists", path=folder / PROGRAM)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROGRAM).write_text(stub(language), encoding="utf-8")
    (folder / README).write_text(readme(language), encoding="utf-8")
    (folder / SETTINGS).write_text(json.dumps({"language": language}), encoding="utf-8")


def language_of(folder: Path) -> Language:
    """Return the language of a learner's folder. Raises ValueError if it contains no program."""
    if not (folder / PROGRAM).is_file():
        raise GPTError("course.no_program", path=folder / PROGRAM)
    settings = folder / SETTINGS
    return json.loads(settings.read_text(encoding="utf-8"))["language"] if settings.is_file() else "en"


def steps_before(step: Step) -> list[Step]:
    """Return the steps that a step builds on, in order, followed by the step itself."""
    owners = {name: other for other in STEPS.values() for name in other.defines}
    found, wanted = {step.key}, [step]
    while wanted:
        for name in wanted.pop().uses & owners.keys():
            if owners[name].key not in found:
                found.add(owners[name].key)
                wanted.append(owners[name])
    return [other for other in STEPS.values() if other.key in found]
