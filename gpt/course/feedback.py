"""Explain what is wrong with an answer, in both languages."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gpt.course.steps import Words

SHOWN = 5  # numbers shown per row


def say(en: str, zh: str, **values: object) -> Words:
    """Fill in the placeholders of a sentence in both languages."""
    return Words(en.format(**values), zh.format(**values))


def error(answer: dict[str, Any]) -> Words:
    """Return the feedback for a program that raised an error, exited, or took too long."""
    kind, message, line, code = (answer[name] for name in ("error", "message", "line", "code"))
    if kind == "late":
        return say(
            "Your program ran for more than {seconds} seconds and was stopped. Is there an endless loop?",
            "运行超过 {seconds} 秒，已经停止。是不是有循环停不下来？",
            seconds=message,
        )
    if kind == "ended":
        return Words("Your program exited before it gave a result.", "程序还没给出结果就退出了。")
    if kind == "WrongNames":
        return say(
            "Parameters are missing (-), not in the course (+), or of other shapes (yours != expected):\n{names}",
            "这些参数缺少 (-)、课程里没有 (+)，或者形状不同 (你的 != 期望)：\n{names}",
            names=message,
        )
    if kind == "TypeError" and message.startswith("result: "):
        return say(
            "Your code returned {kind} instead of a tensor or a number. Does the function end with return?",
            "返回的是 {kind}，应该是张量或数。函数末尾写 return 了吗？",
            kind=message.removeprefix("result: "),
        )
    where = say("line {line}, ", "第 {line} 行，", line=line) if line else Words("", "")
    quote = f"\n    {code}" if code else ""
    return Words(f"{where.en}{kind}: {message}{quote}", f"{where.zh}{kind}：{message}{quote}")


def difference(expected: Any, received: Any, tolerance: float) -> Words:
    """Describe the difference between two results: their shapes or types, or the first row that differs."""
    if not isinstance(expected, Tensor) or not isinstance(received, Tensor):
        return say("Expected {a}, got {b}.", "期望 {a}，得到 {b}。", a=numbers(expected), b=numbers(received))
    if expected.shape != received.shape:
        return say(
            "Expected shape {a}, got {b}.", "期望形状 {a}，得到 {b}。", a=tuple(expected.shape), b=tuple(received.shape)
        )
    if expected.is_floating_point() != received.is_floating_point():
        return say(
            "Expected numbers of type {a}, got {b}.",
            "期望的数据类型是 {a}，得到 {b}。",
            a=str(expected.dtype).removeprefix("torch."),
            b=str(received.dtype).removeprefix("torch."),
        )
    if not expected.dim():
        return say("Expected {a}, got {b}.", "期望 {a}，得到 {b}。", a=numbers(expected), b=numbers(received))
    cells = differs(expected, received, tolerance).nonzero().tolist()
    *row, column = cells[0]
    start = max(0, min(column - 1, expected.shape[-1] - SHOWN))
    return say(
        "Shape {shape}; {n} of {total} numbers differ, first at {cell}.\n"
        "    from {begin}: expected {a}\n    {gap}     got      {b}",
        "形状 {shape}；{total} 个数里有 {n} 个不同，第一个在 {cell}。\n"
        "    从 {begin} 起：期望 {a}\n    {gap}      得到 {b}",
        shape=tuple(expected.shape),
        n=f"{len(cells):,}",
        total=f"{expected.numel():,}",
        cell=cells[0],
        begin=[*row, start],
        gap=" " * len(str([*row, start])),
        a=numbers(expected[tuple(row)][start:]),
        b=numbers(received[tuple(row)][start:]),
    )


def differs(expected: Tensor, received: Tensor, tolerance: float, *, equal_nan: bool = False) -> Tensor:
    """Return a mask of the elements at which two tensors of the same shape differ by more than the tolerance.

    A relative difference of 1e-5 is also allowed."""
    return ~torch.isclose(received.double(), expected.double(), rtol=1e-5, atol=tolerance, equal_nan=equal_nan)


def general_hint(expected: Any, answer: dict[str, Any], tolerance: float) -> Words | None:
    """Return a hint based on the kind of difference, for answers that match no known mistake."""
    received = answer.get("result")
    if not isinstance(expected, Tensor) or not isinstance(received, Tensor):
        return None
    if received.shape != expected.shape:
        if sorted(received.shape) == sorted(expected.shape):
            return Words("The axes are in the wrong order: transpose two of them.", "轴的顺序不对，要转置其中两个。")
        return None
    if not received.is_floating_point():
        return None
    if received.isnan().any():
        return Words(
            "The result contains NaN: a division by 0, or a softmax over nothing but -inf.",
            "出现了 NaN：可能除以了 0，或者 softmax 的输入全是 -inf。",
        )
    if not expected.is_floating_point():
        return None
    ratio = float((received * expected).sum() / expected.square().sum())
    if not math.isclose(ratio, 1, rel_tol=1e-4) and torch.allclose(
        received, expected * ratio, rtol=1e-4, atol=tolerance
    ):
        return say(
            "Every number is {ratio:.4g} times the expected one.", "每个数都是期望值的 {ratio:.4g} 倍。", ratio=ratio
        )
    return None


def numbers(values: Any) -> str:
    """Format a few numbers of a tensor with four decimal places, and any other result as Python does."""
    if not isinstance(values, Tensor):
        return repr(values)
    row = values.flatten()[:SHOWN].tolist()
    if not values.is_floating_point():
        return "  ".join(map(str, row))
    return "  ".join(f"{number:.4g}" if abs(number) < 1e-3 else f"{number:.4f}" for number in row)
