"""The words of the panels on the skeleton and on the feed-forward part, as in components.texts."""

BLOCKS: dict[str, tuple[str, str]] = {
    "skeleton.question": ("What does a GPT know without its blocks?", "没有中间的层，GPT 还知道什么？"),
    "skeleton.says": (
        "Same shapes, other meaning: after {token} the whole model expects {full}; with every block skipped, {bare}. "
        "{moved} of the prediction is the work of the blocks.",
        "形状相同，含义不同：在 {token} 之后，完整的模型认为是 {full}；跳过所有层则是 {bare}。预测中有 {moved} 是这些层的功劳。",
    ),
    "skeleton.full": ("whole model", "完整模型"),
    "skeleton.bare": ("blocks skipped", "跳过所有层"),
    "skeleton.bars.says": (
        "The running model after {token}: the broad bars as it is, the slim ones with every block skipped.",
        "正在运行的模型在 {token} 之后：宽条是原样，细条是跳过所有层之后。",
    ),
    "skeleton.shapes.question": ("Which shapes flow through both?", "流过两者的是什么形状？"),
    "skeleton.shapes.says": (
        "A fresh model of 2 layers, 4 heads and width 128, vocabulary 10,000, and its skeleton: blocks and norms are "
        "replaced by identity. Both give {last}. If the first of {n} tokens is exchanged, the last prediction of the "
        "skeleton moves by {bare}, that of the whole model by {full}.",
        "一个全新的模型（2 层、4 个头、宽度 128、词表 10,000）和它的骨架：层和归一化都换成恒等。两者都输出 {last}。"
        "替换 {n} 个词元中的第一个，骨架的最后一个预测变动 {bare}，完整模型变动 {full}。",
    ),
    "skeleton.stage": ("stage", "阶段"),
    "skeleton.whole": ("whole model", "完整模型"),
    "skeleton.skeleton": ("skeleton", "骨架"),
    # feed-forward
    "ff.question": ("What does the feed-forward part do with one token?", "前馈层对一个词元做了什么？"),
    "ff.position": ("Token", "词元"),
    "ff.position.info": ("its position in the text of the Playground", "它在试验台文本中的位置"),
    "ff.says": (
        "Layer {layer} widens {token} from {width} numbers to {hidden}, bends each with {activation} and brings them back "
        "to {width}. {active} of the {hidden} stay above zero; the strongest is number {neuron} with {value}.",
        "第 {layer} 层把 {token} 从 {width} 个数展开成 {hidden} 个，每个都经过 {activation}，再收回到 {width} 个。"
        "{hidden} 个中有 {active} 大于零；最强的是第 {neuron} 个，值为 {value}。",
    ),
    "ff.in": ("in, after the norm", "输入（归一化后）"),
    "ff.pre": ("widened (c_fc)", "展开（c_fc）"),
    "ff.post": ("after {activation}", "经过 {activation}"),
    "ff.out": ("out (c_proj)", "输出（c_proj）"),
    "ff.shapes": (
        "Shapes as they were: every token on its own, the same two matrices for all.",
        "真实的形状：每个词元各算各的，所有词元共用两个矩阵。",
    ),
    "ff.before": ("Before {activation}", "{activation} 之前"),
    "ff.after": ("After {activation}", "{activation} 之后"),
    "ff.neuron": ("number", "编号"),
    "ff.before.says": (
        "The {hidden} numbers before: from {low} to {high}, {negative} of them below zero.",
        "之前的 {hidden} 个数：从 {low} 到 {high}，{negative} 小于零。",
    ),
    "ff.after.says": (
        "Afterwards the lowest is {low}, the highest {high}; {quiet} are closer to zero than 0.05.",
        "之后最低 {low}，最高 {high}；{quiet} 的绝对值不到 0.05。",
    ),
}
