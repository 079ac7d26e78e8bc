"""The words of the Compare tab, as in components.texts."""

COMPARE: dict[str, tuple[str, str]] = {
    "tab.compare": ("Compare", "对比"),
    "compare.question": ("What if it had gone another way?", "如果走的是另一条路呢？"),
    "compare.says": (
        "One prompt, two ways on from it: side by side in step, or all the ways that a beam search weighs.",
        "同一个提示词，两种走向：可以两边同步并排地写，也可以看束搜索权衡过的每一条路。",
    ),
    "compare.sides": ("Side by side", "并排"),
    "compare.beams": ("Beam search", "束搜索"),
    # side by side
    "compare.left": ("Left", "左"),
    "compare.right": ("Right", "右"),
    "compare.preset": ("Try one", "试一试"),
    "compare.preset.seeds": ("Two seeds", "两个种子"),
    "compare.preset.temperatures": ("Cold against hot", "低温对高温"),
    "compare.preset.trained": ("Trained against untrained", "训练过的对未训练的"),
    "compare.empty": ("Nothing yet: press Generate.", "还没有文本：请按“生成”。"),
    "compare.status": ("{model} · {n} tokens · seed {seed}", "{model} · {n} 个词元 · 种子 {seed}"),
    "compare.left.too_long": ("Left: {problem}", "左：{problem}"),
    "compare.right.too_long": ("Right: {problem}", "右：{problem}"),
    "compare.measuring": (
        "Comparing the predictions: position {n} of {total} …",
        "正在比较两边的预测：位置 {n} / {total}……",
    ),
    "compare.parting.question": ("Where do they part?", "在哪里分开？"),
    "compare.parts": (
        "At position {position}, after {here}: the left goes on with {left} ({left_p} there), the right with {right} "
        "({right_p} there). From there on both texts are underlined.",
        "在位置 {position}，{here} 之后：左边接 {left}（在左边的概率 {left_p}），右边接 {right}（在右边的概率 {right_p}）。"
        "从那里起，两边的文本都有下划线。",
    ),
    "compare.parts.draw": (
        " The numbers that chose there: {left} left, {right} right.",
        "那里抽到的数：左 {left}，右 {right}。",
    ),
    "compare.parts.draw.same": (
        " Both were chosen by the same number, {draw}: the distributions differ, not the dice.",
        "两边抽到的是同一个数 {draw}：不同的是分布，而不是运气。",
    ),
    "compare.same": ("So far both texts are the same.", "到目前为止，两边的文本相同。"),
    "compare.ended": (
        "The texts do not part: one ends where the other goes on.",
        "两边的文本没有分开：一边结束了，另一边还在继续。",
    ),
    "compare.vocabularies": (
        "{left} and {right} have different vocabularies: their tokens are cut differently, so they cannot be compared "
        "token by token. Read both texts.",
        "{left} 和 {right} 的词表不同：切分出的词元不一样，因此不能逐个词元比较。请直接阅读两边的文本。",
    ),
    "compare.divergence.question": ("How far apart are their predictions?", "两边的预测相差多远？"),
    "compare.divergence.raw": ("of the models", "模型本身"),
    "compare.divergence.final": ("after the settings", "经过设置之后"),
    "compare.divergence.axis": ("bits", "比特"),
    "compare.divergence.position": ("position", "位置"),
    "compare.divergence.says": (
        "Over {n} positions with the same history the models are {raw} bits apart on average, {final} after the settings. "
        "The most, {most} bits, is after {token}, position {position}.",
        "在历史相同的 {n} 个位置上，两个模型平均相差 {raw} 比特，经过设置之后相差 {final} 比特。相差最大的是位置 {position} 的 "
        "{token} 之后：{most} 比特。",
    ),
    "compare.divergence.none": (
        "Over {n} positions with the same history the predictions are equal, 0 bits apart: only the draws differ.",
        "在历史相同的 {n} 个位置上，两边的预测完全相同，相差 0 比特：不同的只有抽到的数。",
    ),
    "compare.divergence.infinite": (
        " ∞: the right can never draw something that the left can.",
        "∞：左边可能抽到的词元中，有右边绝不会抽到的。",
    ),
    "compare.divergence.note": (
        "Kullback-Leibler divergence: the bits lost per token by who believes the right where the left is true. Click a "
        "position to see both predictions.",
        "KL 散度：实际按左边写、却相信右边的人，每个词元平均多付出的比特数。点击某个位置可查看两边的预测。",
    ),
    "compare.bars.question": ("What did each expect?", "两边各自预测什么？"),
    "compare.bars.left": ("Left", "左边"),
    "compare.bars.right": ("Right", "右边"),
    "compare.bars.says": (
        "{side}, after {token} (position {position}): {best} {before} → {after}.",
        "{side}，位置 {position} 的 {token} 之后：{best} {before} → {after}。",
    ),
    "compare.bars.chosen": (" It went on with {chosen}, {p}.", "接着写了 {chosen}，{p}。"),
    "compare.bars.apart": (
        "The texts have parted before this position, so these two predictions have different histories.",
        "两边的文本在这个位置之前已经分开，所以这两个预测的历史不同。",
    ),
    # beam search
    "beams.question": ("Which whole text is the likeliest?", "哪一整段文本最有可能？"),
    "beams.lead": (
        "Sampling follows one way. Beam search carries the few likeliest texts on at once, looks at every next token of "
        "each, and drops all but the best again.",
        "采样只走一条路。束搜索同时带着几段最有可能的文本往下写，查看每一段的所有下一个词元，再只留下最好的几段。",
    ),
    "beams.width": ("Width", "束宽"),
    "beams.width.info": ("texts carried on at once; 1: greedy", "同时保留的文本数；1：贪心"),
    "beams.penalty": ("Length penalty", "长度惩罚"),
    "beams.penalty.info": (
        "score = sum ÷ length^penalty; higher: longer texts",
        "得分 = 总和 ÷ 长度^惩罚；越大越偏向长文本",
    ),
    "beams.length": ("Length", "长度"),
    "beams.length.info": ("new tokens at most", "最多生成的词元数"),
    "beams.search": ("Search", "搜索"),
    "beams.empty": ("Nothing yet: press Search.", "还没有结果：请按“搜索”。"),
    "beams.tree.name": ("The tree of the search, step by step", "搜索树，逐步展开"),
    "beams.step": ("step", "步"),
    "beams.fate": ("fate", "去留"),
    "beams.fate.kept": ("kept", "保留"),
    "beams.fate.pruned": ("dropped", "淘汰"),
    "beams.fate.finished": ("ends here", "到此结束"),
    "beams.fate.best": ("the best so far", "目前最佳"),
    "beams.keys": (
        "grey: nothing alive comes after it. Arrow keys walk, Enter chooses.",
        "灰色：后面已没有活着的分支。方向键移动，回车选定。",
    ),
    "beams.token": ("this token: share, log", "该词元：概率、对数"),
    "beams.total": ("log-probability", "对数概率之和"),
    "beams.score": ("score", "得分"),
    "beams.running": ("Step {n} of at most {total} …", "第 {n} 步，最多 {total} 步……"),
    "beams.status": (
        "{model} · {n} steps · the best {candidates} candidates are drawn, {dropped} of them dropped",
        "{model} · {n} 步 · 图中是最好的 {candidates} 个候选，淘汰 {dropped} 个",
    ),
    "beams.status.stopped": (" · stopped", " · 已停止"),
    "beams.best": (
        "The best text: {text}. Its {n} tokens have the log-probability {total} (natural logarithm); the score is {score}.",
        "最佳的文本：{text}。它的 {n} 个词元的对数概率之和是 {total}（自然对数）；得分 {score}。",
    ),
    "beams.unfinished": (
        "No text has ended yet. The likeliest so far: {text}, log-probability {total}.",
        "还没有结束的文本。目前最有可能的：{text}，对数概率之和 {total}。",
    ),
    "beams.table.question": ("The finished beams", "完成的文本"),
    "beams.table.text": ("text", "文本"),
    "beams.table.tokens": ("tokens", "词元数"),
    "beams.chosen": (
        "Chosen: {text}. It ends at step {n} ({fate}), log-probability {total}. Click another candidate to choose that way.",
        "选定：{text}。它到第 {n} 步为止（{fate}），对数概率之和 {total}。点击其他候选可改选。",
    ),
    "beams.adopt": ("Make it the document", "设为当前文档"),
    "beams.adopted": ("A way that the beam search found; undo leads back", "束搜索找到的一条路；可以撤销"),
}
