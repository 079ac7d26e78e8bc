"""The words of the panels on layer normalisation and shortcut connections, as in components.texts."""

NORMS: dict[str, tuple[str, str]] = {
    "norm.question": ("What does layer normalisation do to a row?", "层归一化对一行数做了什么？"),
    "norm.source": ("Rows", "数据来源"),
    "norm.source.example": ("Linear + ReLU, seed 123", "Linear + ReLU，种子 123"),
    "norm.source.model": ("the running model", "正在运行的模型"),
    "norm.which": ("Norm", "归一化层"),
    "norm.which.ln_1": ("before attention (ln_1)", "注意力之前（ln_1）"),
    "norm.which.ln_2": ("before feed-forward (ln_2)", "前馈层之前（ln_2）"),
    "norm.which.ln_f": ("after the last layer (ln_f)", "最后一层之后（ln_f）"),
    "norm.position": ("Token", "词元"),
    "norm.position.info": ("its position in the text of the Playground", "它在试验台文本中的位置"),
    "norm.scale": ("Scale", "缩放"),
    "norm.scale.info": ("times what the model has learned", "乘在模型学到的缩放上"),
    "norm.shift": ("Shift", "平移"),
    "norm.shift.info": ("on top of what the model has learned", "加在模型学到的平移上"),
    "norm.eps": ("eps", "eps（小常数）"),
    "norm.eps.info": ("added to the variance, so that nothing is divided by zero", "加在方差上，避免除以零"),
    "norm.before": ("Before", "之前"),
    "norm.after": ("After", "之后"),
    "norm.row": ("Row {n}", "第 {n} 行"),
    "norm.place": ("place", "位置"),
    "norm.says": (
        "{row} comes in with mean {mean} and variance {variance}; normalised it has mean {new_mean} and variance "
        "{new_variance}, and scale and shift make {last_mean} and {last_variance} of them.",
        "{row} 进来时均值 {mean}、方差 {variance}；归一化后均值 {new_mean}、方差 {new_variance}；再经缩放和平移，变成 "
        "{last_mean} 和 {last_variance}。",
    ),
    "norm.picture": (
        "{when}: {n} numbers a row; the dashed line is the mean, the band one standard deviation to both sides.",
        "{when}：每行 {n} 个数；虚线是均值，色带是上下各一个标准差。",
    ),
    "norm.table.stage": ("stage", "阶段"),
    "norm.table.mean": ("mean", "均值"),
    "norm.table.variance": ("variance, ÷ n", "方差（÷ n）"),
    "norm.table.unbiased": ("unbiased, ÷ (n − 1)", "无偏方差（÷ (n − 1)）"),
    "norm.stage.before": ("before", "之前"),
    "norm.stage.standard": ("normalised", "归一化"),
    "norm.stage.after": ("scaled and shifted", "缩放平移后"),
    "norm.note": (
        "(x − mean) / √(variance + eps) × scale + shift, over each row alone. The variance divides by n, as GPT-2 does.",
        "(x − 均值) / √(方差 + eps) × 缩放 + 平移，每一行各算各的。方差除以 n，与 GPT-2 相同。",
    ),
    # shortcut connections
    "shortcuts.question": (
        "What reaches the first layers when a deep network learns?",
        "深层网络学习时，前几层能收到什么？",
    ),
    "shortcuts.depth": ("Depth", "深度"),
    "shortcuts.depth.info": ("layers, each with its activation", "层数，每层带激活函数"),
    "shortcuts.width": ("Width", "宽度"),
    "shortcuts.width.info": (
        "of every layer but the last, which gives one number",
        "除最后一层（只输出一个数）外各层的宽度",
    ),
    "shortcuts.seed": ("Seed", "随机种子"),
    "shortcuts.activation": ("Activation", "激活函数"),
    "shortcuts.without": ("without shortcuts", "没有残差连接"),
    "shortcuts.with": ("with shortcuts", "有残差连接"),
    "shortcuts.layer": ("layer", "层"),
    "shortcuts.gradient": ("mean |gradient|", "平均 |梯度|"),
    "shortcuts.says": (
        "The first layer's gradient is {without} without shortcuts and {with_shortcuts} with them: {ratio} times as much.",
        "第一层的梯度：没有残差连接时是 {without}，有时是 {with_shortcuts}，是前者的 {ratio} 倍。",
    ),
    "shortcuts.nothing": (
        "Without shortcuts nothing reaches the first layer: its gradient is zero. With them it is {with_shortcuts}.",
        "没有残差连接时，第一层什么也收不到：梯度为零。有残差连接时是 {with_shortcuts}。",
    ),
    "shortcuts.dead": (
        "Nothing reaches the first layer, with shortcuts or without: these weights make every number there zero.",
        "不论有没有残差连接，第一层都收不到任何东西：这组权重让那里的数全变成了零。",
    ),
    "shortcuts.picture": (
        "Mean absolute gradient of each layer's weights in one step: input from 1 down to −1, target 0, squared error. "
        "A shortcut adds a layer's input to its output where both have the same shape.",
        "一步训练中每层权重的平均绝对梯度：输入从 1 降到 −1，目标 0，平方误差。输入输出形状相同时，残差连接把层的输入加到输出上。",
    ),
    "shortcuts.seed.error": (
        "The seed must be a whole number from 0 to {limit}.",
        "种子必须是 0 到 {limit} 之间的整数。",
    ),
}
