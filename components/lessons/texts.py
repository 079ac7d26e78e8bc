"""The words around the lessons, as in components.texts."""

from components.lessons.first_texts import FIRST
from components.lessons.picture_texts import PICTURE
from components.lessons.second_texts import SECOND

LESSONS: dict[str, tuple[str, str]] = {
    "tab.lessons": ("Lessons", "课程"),
    "lessons.name": ("All lessons", "全部课程"),
    "lessons.count": ("Lesson {n} of {total}", "第 {n} 课，共 {total} 课"),
    "lessons.previous": ("Previous", "上一课"),
    "lessons.next": ("Next", "下一课"),
    "lessons.learning": (
        "A tiny model learns this now, which takes some seconds …",
        "一个很小的模型正在学，需要几秒……",
    ),
    "lessons.seen": ("seen", "看过"),
    "lessons.answered": ("answered", "答过"),
    "lessons.progress": (
        "{seen} of {total} seen, {answered} answered. ← → turn the page.",
        "看过 {seen} / {total} 课，答过 {answered} 课。按 ← → 翻页。",
    ),
    "lessons.code": ("The code that does it", "做这件事的代码"),
    "lessons.line": ("line {line}", "第 {line} 行"),
    "lessons.try": ("Try it", "试一试"),
    "lessons.answer": ("Show the answer", "看答案"),
    "lessons.open.playground": ("Open in the Playground", "到试验台看看"),
    "lessons.open.inside": ("See it Inside", "到“内部”看看"),
    "lessons.open.why": ("See it in Why?", "到“为什么”看看"),
    "lessons.open.activations": ("Open Activations", "打开激活函数"),
    "lessons.open.shapes": ("Open in Shapes", "到“结构”看看"),
    "lessons.open.loss": ("Open Loss", "打开损失"),
    "lessons.open.train": ("Train one live", "亲手训练一个"),
    **PICTURE,
    **FIRST,
    **SECOND,
}
