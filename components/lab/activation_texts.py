"""The words of the Activations tab, as in components.texts."""

ACTIVATIONS: dict[str, tuple[str, str]] = {
    "tab.activations": ("Activations", "激活函数"),
    "activations.question": ("What bends the numbers?", "是什么让数字弯曲？"),
    "activations.says": (
        "Between the two matrices of a feed-forward layer GPT-2 sends every number through GELU: nearly zero on the "
        "left, nearly unchanged on the right, and smooth between, where ReLU has a corner.",
        "在前馈层的两个矩阵之间，GPT-2 让每个数通过 GELU：左边接近零，右边几乎不变，中间是平滑的，而 ReLU 在那里有一个折角。",
    ),
    "activations.x": ("x", "x"),
    "activations.function": ("function", "函数"),
    "activations.slope": ("slope", "斜率"),
    "activations.flat": ("slope 0", "斜率为 0"),
    "activations.values": (
        "At x = {x}: GELU (tanh) {gelu_tanh}, ReLU {relu}, SiLU {silu}; slopes {d_gelu_tanh}, {d_relu}, {d_silu}. GELU's "
        "slope is zero only at x = {zero}.",
        "在 x = {x}：GELU（tanh）{gelu_tanh}，ReLU {relu}，SiLU {silu}；斜率 {d_gelu_tanh}、{d_relu}、{d_silu}。GELU 的斜率只在 x = "
        "{zero} 处为零。",
    ),
    "activations.histogram": ("What this model really sends through it", "这个模型真正送进去的数"),
    "activations.count": ("share of the values", "所占比例"),
    "activations.pre": ("pre-activation", "激活前的值"),
    "activations.histogram.says": (
        "Layer {layer}, {n} values from {tokens} tokens: {negative} are below zero, mean {mean}, standard deviation {std}; "
        "{outside} lie outside the picture.",
        "第 {layer} 层，{tokens} 个词元的 {n} 个值：{negative} 小于零，均值 {mean}，标准差 {std}；{outside} 在图外。",
    ),
    "activations.exact.question": ("Which GELU is it?", "是哪一种 GELU？"),
    "activations.exact": ("GELU (tanh) − GELU (erf)", "GELU（tanh 近似）− GELU（精确）"),
    "activations.exact.says": (
        "GPT-2 takes the tanh formula instead of the exact one with erf. At x = {x} they differ by {here}, nowhere in the "
        "picture by more than {most}. SiLU, x times its sigmoid, is the gate of SwiGLU, which later models use instead.",
        "GPT-2 用 tanh 公式代替精确的 erf 公式。在 x = {x} 处两者相差 {here}，图中最多相差 {most}。"
        "SiLU 即 x 乘以它的 sigmoid，是后来的模型改用的 SwiGLU 中的门。",
    ),
    "activations.swap.question": (
        "What if the running model used another one?",
        "如果正在运行的模型换一个激活函数呢？",
    ),
    "activations.swap": ("Activation", "激活函数"),
    "activations.swap.before": ("trained with {name}", "训练时用的 {name}"),
    "activations.swap.after": ("with {name}", "换成 {name}"),
    "activations.swap.says": (
        "After {token}, with {name} in every layer, {moved} of the prediction moves: {best} {before} → {after}. The best is "
        "then {new_best}.",
        "在 {token} 之后，每一层都换成 {name}，预测变动 {moved}：{best} {before} → {after}。此时最可能的是 {new_best}。",
    ),
    "activations.swap.same": (
        "After {token} {best} has {before}. The model was trained with {name}; choose another one.",
        "在 {token} 之后，{best} 的概率是 {before}。模型训练时用的就是 {name}；请换一个试试。",
    ),
}
