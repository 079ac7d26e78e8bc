"""The words of one head: its stages, and who looks at whom."""

HEAD: dict[str, tuple[str, str]] = {
    "inside.one_head": ("One head", "一个头"),
    "stages.question": ("How does one head decide where to look?", "一个头怎样决定看哪里？"),
    "stages.lead": (
        "From left to right, the head's own numbers for the text in the Playground. Click a stage to see it large, and a cell "
        "to work it out.",
        "从左到右，都是这个头对试验台里这段文本算出的真实数字。点击一个阶段可放大，点击一格可看它怎样算出。",
    ),
    "stages.name": (
        "The picture of this stage; arrow keys move the selected cell",
        "这一阶段的图；方向键移动选中的格子",
    ),
    "stages.row": ("Stages of the head", "这个头的各个阶段"),
    "stages.layer": ("Layer", "层"),
    "stages.head": ("Head", "头"),
    "stages.q": ("queries Q", "查询 Q"),
    "stages.k": ("keys K", "键 K"),
    "stages.raw": ("Q Kᵀ", "Q Kᵀ"),
    "stages.scaled": ("÷ √{hs}", "÷ √{hs}"),
    "stages.masked": ("masked", "加掩码"),
    "stages.weights": ("softmax", "softmax"),
    "stages.v": ("values V", "值 V"),
    "stages.z": ("weights · V", "权重 · V"),
    "stages.q.says": (
        "Queries: a row for each token, what it looks for, in {hs} numbers.",
        "查询：每个词元一行，用 {hs} 个数表示它要找什么。",
    ),
    "stages.k.says": (
        "Keys: a row for each token, what it can be found by, in {hs} numbers.",
        "键：每个词元一行，用 {hs} 个数表示别人凭什么找到它。",
    ),
    "stages.raw.says": (
        "Scores: the product of each query (row) with each key (column), large where both point the same way.",
        "分数：每个查询（行）与每个键（列）的点积，方向越一致，数越大。",
    ),
    "stages.scaled.says": (
        "Scaled: divided by √{hs}, so that longer vectors do not make the softmax a hard choice.",
        "缩放：除以 √{hs}，免得向量一长，softmax 就变成非此即彼。",
    ),
    "stages.masked.says": (
        "Masked: what comes later is taken away. No token can look ahead.",
        "加掩码：后面的词元被遮住，谁也不能往后看。",
    ),
    "stages.weights.says": (
        "Weights: the softmax of each row makes shares of its scores; each row sums to 1.",
        "权重：对每一行做 softmax，把分数变成份额；每行合计为 1。",
    ),
    "stages.v.says": (
        "Values: a row for each token, what it hands over when it is looked at.",
        "值：每个词元一行，被看时交出的内容。",
    ),
    "stages.z.says": (
        "Output: for each query the values, added in the shares of its weights. It goes on through c_proj into the stream.",
        "输出：每个查询把各个值按权重相加。结果经过 c_proj 写入残差流。",
    ),
    "stages.pair": ("{query} ({i}) looks at {key} ({j})", "{query}（{i}）看 {key}（{j}）"),
    "stages.dot": ("q · k = {terms} + … = {raw}", "q · k = {terms} + … = {raw}"),
    "stages.scale": ("{raw} / √{hs} = {score}", "{raw} / √{hs} = {score}"),
    "stages.kept": ("{j} ≤ {i}: stays {score}", "{j} ≤ {i}：保留 {score}"),
    "stages.hidden": ("{j} > {i}: −∞", "{j} > {i}：−∞"),
    "stages.weight": ("exp({score} − {total}) = {weight}", "exp({score} − {total}) = {weight}"),
    "stages.none": ("exp(−∞) = 0", "exp(−∞) = 0"),
    "stages.part": ("adds {weight} v, of length {norm}", "加上 {weight} v，长度 {norm}"),
    "stages.output": ("all of them together: |z| = {norm}", "全部相加：|z| = {norm}"),
    "stages.later": ("comes later: cannot be looked at", "在后面：不能被看"),
    "stages.strips": ("query, key, and their products, number by number", "查询、键，以及逐个数的乘积"),
    "stages.map": (
        "The whole text in small. The frame is what is shown; click, or use the arrow keys, to move it.",
        "整段文本的缩略图。方框是正在显示的部分；点击或用方向键移动它。",
    ),
    "stages.keys": (
        "The number taken off in the softmax is the logarithm of the sum of exp over the whole row. With the keyboard: arrow "
        "keys move the cell. Later tokens are blank.",
        "softmax 中减去的数，是整行 exp 之和的对数。键盘：方向键移动选中的格子。后面的词元留空。",
    ),
    "stages.says": (
        "{token} (position {position}) in layer {layer}, head {head}, looked most at {targets}.",
        "{token}（位置 {position}）在第 {layer} 层第 {head} 个头，主要看向 {targets}。",
    ),
    "stages.window": (
        " Shown: queries {first} to {last}, keys {first_key} to {last_key}; {share} of this look goes to others.",
        "图中为查询 {first} 到 {last}、键 {first_key} 到 {last_key}；{share} 的目光投向其他词元。",
    ),
    "lines.question": ("Who looks at whom?", "谁在看谁？"),
    "lines.view": ("Show", "显示"),
    "lines.view.weights": ("weights of each head", "每个头的权重"),
    "lines.view.values": ("weights × length of the values", "权重 × 值的长度"),
    "lines.view.without_first": ("weights without the first token", "去掉第一个词元的权重"),
    "lines.view.layer_mean": ("mean of the layer's heads", "本层各头的平均"),
    "lines.view.mean": ("mean of all heads and layers", "所有层、所有头的平均"),
    "lines.view.rollout": ("attention rollout through all layers", "穿过所有层的注意力展开"),
    "lines.what.weights": (
        "Each head's softmax: how each token shares out its look.",
        "每个头的 softmax：每个词元怎样分配目光。",
    ),
    "lines.what.values": (
        "How much really arrives: each weight times the length of the value behind it, after c_proj; rows made to sum to 1. A "
        "large weight on a short value moves little (Kobayashi et al., 2020).",
        "真正送到的有多少：权重乘以对应的值经过 c_proj 后的长度，每行归一为 1。权重再大，值很短也没什么影响（Kobayashi 等，2020）。",
    ),
    "lines.what.without_first": (
        "Heads with nothing to do rest on the first token. Here it is left out and the rest of each row sums to 1 (Xiao et al., "
        "2023).",
        "无事可做的头会停在第一个词元上。这里去掉它，其余部分重新归一为 1（Xiao 等，2023）。",
    ),
    "lines.what.layer_mean": (
        "The weights of the layer, averaged over its heads.",
        "这一层的权重，对所有头取平均。",
    ),
    "lines.what.mean": (
        "The weights of the whole model, averaged over all heads of all layers.",
        "整个模型的权重，对所有层的所有头取平均。",
    ),
    "lines.what.rollout": (
        "How much of each token of the text has reached each position after all layers: the layers' mean weights, half and half with "
        "the shortcut, multiplied up (Abnar and Zuidema, 2020).",
        "经过所有层之后，每个位置里含有原文各个词元多少：各层平均权重与捷径各占一半，逐层相乘（Abnar 与 Zuidema，2020）。",
    ),
    "lines.name": (
        "Lines from each token to those it looks at; arrow keys move the looking token",
        "从每个词元连到它所看的词元；方向键移动观看的词元",
    ),
    "lines.head": ("Head", "头"),
    "lines.heads": ("Heads of layer {layer}", "第 {layer} 层的头"),
    "lines.all": ("all", "全部"),
    "lines.only": ("only head {head}", "只看第 {head} 个头"),
    "lines.least": ("Lines from", "显示不小于"),
    "lines.from": ("looking", "观看的词元"),
    "lines.to": ("looked at", "被看的词元"),
    "lines.cells": ("Layer {layer}, head {head}", "第 {layer} 层，第 {head} 个头"),
    "lines.cells.one": ("The same as cells", "同样的内容，用格子表示"),
    "lines.later": ("comes later", "在后面"),
    "lines.keys": (
        "Hover a token to see its lines alone; click one on the left to look from there. A click on a colour hides that head or "
        "brings it back.",
        "把指针移到一个词元上，只看它的线；点击左边的词元，就从那里看。点击颜色可隐藏或恢复那个头。",
    ),
    "lines.says.weights": (
        "Layer {layer}, head {head}: {token} (position {position}) looked most at {targets}.",
        "第 {layer} 层第 {head} 个头：{token}（位置 {position}）主要看向 {targets}。",
    ),
    "lines.says.values": (
        "Layer {layer}, head {head}: {token} (position {position}) received most from {targets}.",
        "第 {layer} 层第 {head} 个头：{token}（位置 {position}）主要得自 {targets}。",
    ),
    "lines.says.without_first": (
        "Layer {layer}, head {head}: leaving the first token out, {token} (position {position}) looked most at {targets}.",
        "第 {layer} 层第 {head} 个头：不算第一个词元，{token}（位置 {position}）主要看向 {targets}。",
    ),
    "lines.says.layer_mean": (
        "Layer {layer}, all heads: {token} (position {position}) looked most at {targets}.",
        "第 {layer} 层所有头：{token}（位置 {position}）主要看向 {targets}。",
    ),
    "lines.says.mean": (
        "All heads of all layers: {token} (position {position}) looked most at {targets}.",
        "所有层的所有头：{token}（位置 {position}）主要看向 {targets}。",
    ),
    "lines.says.rollout": (
        "After all layers, position {position} ({token}) is made most of {targets}.",
        "经过所有层之后，位置 {position} 处的 {token} 主要由 {targets} 构成。",
    ),
    "lines.more": (
        " So far through {layers} of {n} layers; the rest follows.",
        "目前到了 {n} 层中的第 {layers} 层，其余随后就到。",
    ),
    "lines.nothing": (
        "{token} (position {position}) can look at nothing but the first token.",
        "{token}（位置 {position}）除了第一个词元，没有别的可看。",
    ),
    "lines.window": (
        " Shown: the keys {first} to {last}; {share} goes to others.",
        "图中为第 {first} 到 {last} 个键；{share} 投向其他词元。",
    ),
}
