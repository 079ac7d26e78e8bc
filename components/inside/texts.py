"""The words of the Inside tab, as in `texts`. A part's words are three lines: its name, what it is, its formula."""

from components.inside.head_texts import HEAD
from components.inside.skeleton_texts import SKELETON
from components.inside.stream_texts import STREAM

INSIDE: dict[str, tuple[str, str]] = {
    "tab.inside": ("Inside", "内部"),
    "inside.machine": ("The machine", "整台机器"),
    "inside.reading": ("The model reads {n} tokens, to be looked into …", "模型正在读入 {n} 个词元，以便查看……"),
    "inside.too_long": (
        "The first {n} of {total} tokens can be looked into: queries, keys and values of more would not fit the {memory} that one "
        "visitor may use.",
        "可以查看 {total} 个词元中的前 {n} 个：再多的查询、键和值就超出每位访客可用的 {memory} 内存。",
    ),
    "inside.question": ("How does a token become the next one?", "一个词元怎样变成下一个？"),
    "inside.lead": (
        "Every strip of colour is a real vector of this model, for the text in the Playground. Left to right is the way "
        "through; one layer is opened, and in it one head.",
        "每一条颜色都是这个模型里真实的向量，文本来自试验台。从左到右就是计算的路；其中一层被打开，里面选中一个头。",
    ),
    "inside.heads.question": ("What does each head look at?", "每个头在看什么？"),
    "flow.name": ("The way of each token through the model", "每个词元穿过模型的路"),
    "flow.keys": (
        "Click a token, a layer or a head. With the keyboard: Tab moves from part to part, ↑ ↓ change the token, "
        "← → the layer, or the head where the focus is on attention.",
        "点击词元、层或头。键盘：Tab 逐个移动，↑ ↓ 换词元，← → 换层；焦点在注意力部分时换头。",
    ),
    "flow.scale": (
        "below zero to above, each column on its own scale; a pixel is the mean of neighbouring numbers, among neurons the "
        "strongest",
        "从负到正，每列各有自己的刻度；一个像素是相邻数的平均，神经元则取最强的一个",
    ),
    "flow.layer": ("Layer", "层"),
    "flow.head": ("Head", "头"),
    "flow.stream": ("residual stream", "残差流"),
    "flow.before": ("{n} before", "前面还有 {n} 个"),
    "flow.after": ("{n} after", "后面还有 {n} 个"),
    "flow.short.tok": ("token", "词元"),
    "flow.short.pos": ("position", "位置"),
    "flow.short.embedding": ("Embedding", "嵌入"),
    "flow.short.pre": ("stream", "残差流"),
    "flow.short.q": ("query", "查询 q"),
    "flow.short.k": ("key", "键 k"),
    "flow.short.weights": ("weights", "权重"),
    "flow.short.v": ("value", "值 v"),
    "flow.short.z": ("mixed", "混合 z"),
    "flow.short.att": ("attention", "注意力"),
    "flow.short.mid": ("stream", "残差流"),
    "flow.short.ff": ("neurons", "神经元"),
    "flow.short.out": ("feed-forward", "前馈层"),
    "flow.short.post": ("stream", "残差流"),
    "flow.short.fin": ("norm", "归一化"),
    "flow.short.next": ("Next token", "下一个词元"),
    "flow.pair": (
        "{query} → {key}: q · k / √{hs} = {score} → weight {weight}",
        "{query} → {key}：q · k / √{hs} = {score} → 权重 {weight}",
    ),
    "flow.later": ("{key} comes later: it cannot be looked at", "{key} 在后面：不能被看"),
    "flow.full": ("full colour at ±{scale}", "±{scale} 时颜色最深"),
    "flow.tokens": (
        "Token\nThe text as the model reads it, a row for each token. Click one to look from there.\n"
        "{token}: id {id}, position {position}",
        "词元\n模型读到的文本，每个词元一行。点击一行，就从那里看。\n{token}：编号 {id}，位置 {position}",
    ),
    "flow.tok": (
        "Token embedding\nThe vector that the model has learned for this token.\nwte[{id}], length {norm}",
        "词元嵌入\n模型为这个词元学到的向量。\nwte[{id}]，长度 {norm}",
    ),
    "flow.pos": (
        "Position embedding\nAdded, so that the model knows where the token stands.\n"
        "x = wte[{id}] + wpe[{position}], length of wpe[{position}] {norm}",
        "位置嵌入\n加上它，模型才知道词元在哪里。\nx = wte[{id}] + wpe[{position}]，wpe[{position}] 的长度 {norm}",
    ),
    "flow.stack": (
        "Layer {n}\nThe residual stream as this layer leaves it. Click to open the layer.\n|x| = {norm}",
        "第 {n} 层\n这一层输出的残差流。点击打开这一层。\n|x| = {norm}",
    ),
    "flow.pre": (
        "Residual stream, before layer {layer}\nWhat has been written about this token so far: every part reads it and "
        "adds to it.\n|x| = {norm}",
        "残差流，进入第 {layer} 层之前\n到目前为止写下的关于这个词元的一切：每个部分都读它，再往上加。\n|x| = {norm}",
    ),
    "flow.norm1": (
        "LayerNorm, then one matrix\nThe vector is shifted to mean 0 and stretched to variance 1; from it come query, key "
        "and value.\n(x − mean) / std · γ + β, mean {mean}, std {std}",
        "层归一化，再乘一个矩阵\n把向量平移到均值 0、缩放到方差 1；由它得到查询、键和值。\n(x − mean) / std · γ + β, mean {mean}, std {std}",
    ),
    "flow.q": (
        "Query of head {head}\nWhat this token looks for.\n|q| = {norm}",
        "第 {head} 个头的查询\n这个词元要找什么。\n|q| = {norm}",
    ),
    "flow.k": (
        "Keys of head {head}\nWhat each token can be found by; the query is compared with each.\n|k| = {norm}",
        "第 {head} 个头的键\n每个词元凭它被找到；查询与每个键相比。\n|k| = {norm}",
    ),
    "flow.weights": (
        "Attention weights of head {head}\nA row says how a token shares out its look among itself and those before it: "
        "they sum to 1.\nsoftmax(q · k / √{hs}); the largest here {weight}, on {target}",
        "第 {head} 个头的注意力权重\n每一行说明一个词元怎样把目光分给自己和前面的词元：合计为 1。\n"
        "softmax(q · k / √{hs})；这里最大的是 {weight}，看向 {target}",
    ),
    "flow.v": (
        "Values of head {head}\nWhat each token hands over when it is looked at.\n|v| = {norm}",
        "第 {head} 个头的值\n每个词元被看时交出的内容。\n|v| = {norm}",
    ),
    "flow.mix": (
        "The look of head {head}\nEach line is as thick as its weight: in these shares the values are added.\nz = {sum}",
        "第 {head} 个头的目光\n线越粗，权重越大：各个值就按这些份额相加。\nz = {sum}",
    ),
    "flow.z": (
        "What head {head} brings back\nThe values, added in the shares of the weights.\nz = {sum}, |z| = {norm}",
        "第 {head} 个头带回来的\n各个值按权重相加。\nz = {sum}，|z| = {norm}",
    ),
    "flow.att": (
        "What attention adds\nAll {n_head} heads side by side, through one matrix.\n|c_proj(z)| = {norm}",
        "注意力要加上的\n{n_head} 个头并排，再乘一个矩阵。\n|c_proj(z)| = {norm}",
    ),
    "flow.plus1": (
        "First addition\nThe stream passes attention by, and what attention found is added to it.\n"
        "|x| = {before}, |added| = {added} → |x| = {after}",
        "第一次相加\n残差流绕过注意力，再加上注意力找到的内容。\n|x| = {before}，|加数| = {added} → |x| = {after}",
    ),
    "flow.mid": (
        "Residual stream, between the two parts\nThe token now knows what attention brought back.\n|x| = {norm}",
        "残差流，在两部分之间\n词元现在带上了注意力带回来的内容。\n|x| = {norm}",
    ),
    "flow.norm2": (
        "LayerNorm, then widening\nShifted and stretched again, then one matrix makes {ff} numbers of {width}.\n"
        "(x − mean) / std · γ + β, mean {mean}, std {std}",
        "层归一化，再变宽\n再次平移和缩放，然后一个矩阵把 {width} 个数变成 {ff} 个。\n(x − mean) / std · γ + β, mean {mean}, std {std}",
    ),
    "flow.ff": (
        "Inside the feed-forward part\nEach number is a neuron after {activation}: near zero it is silent.\n"
        "{active} of {ff} above zero; strongest: neuron {neuron}, {activation}({pre}) = {post}",
        "前馈层内部\n每个数是一个神经元经过 {activation} 之后的值：接近零就是沉默。\n"
        "{ff} 个中有 {active} 个大于零；最强的是第 {neuron} 个：{activation}({pre}) = {post}",
    ),
    "flow.out": (
        "What the feed-forward part adds\nNarrowed to the width of the stream by a second matrix.\n|added| = {norm}",
        "前馈层要加上的\n由第二个矩阵变回残差流的宽度。\n|加数| = {norm}",
    ),
    "flow.plus2": (
        "Second addition\nThe stream passes the feed-forward part by, and its result is added.\n"
        "|x| = {before}, |added| = {added} → |x| = {after}",
        "第二次相加\n残差流绕过前馈层，再加上它的结果。\n|x| = {before}，|加数| = {added} → |x| = {after}",
    ),
    "flow.post": (
        "Residual stream, after layer {layer}\nWhat the next layer reads.\n|x| = {norm}",
        "残差流，离开第 {layer} 层\n下一层读到的就是它。\n|x| = {norm}",
    ),
    "flow.fin": (
        "Last LayerNorm\nThe stream after all {n_layer} layers, shifted and stretched one last time.\n"
        "(x − mean) / std · γ + β, mean {mean}, std {std}",
        "最后的归一化\n经过全部 {n_layer} 层的残差流，最后一次平移和缩放。\n(x − mean) / std · γ + β, mean {mean}, std {std}",
    ),
    "flow.next": (
        "Next token\nA score for each of the {vocab} tokens; softmax makes probabilities of them, before any sampling "
        "setting.\n{token}: exp({logit} − {total}) = {p}",
        "下一个词元\n给词表中 {vocab} 个词元各打一个分；softmax 把分数变成概率，未经采样设置。\n{token}：exp({logit} − {total}) = {p}",
    ),
    "flow.says": (
        "{token} (position {position} of {n}) in layer {layer}, head {head}: it looked most at {targets}. Attention adds a "
        "vector of length {added} to a stream of length {before}, the feed-forward part one of {added2}. After all layers the model expects "
        "{best}.",
        "{token}（位置 {position}，共 {n} 个）在第 {layer} 层第 {head} 个头：主要看向 {targets}。残差流长 {before}，注意力加上 "
        "{added}，前馈层加上 {added2}。经过所有层，模型预期 {best}。",
    ),
    "flow.window": (
        " Shown: positions {start} to {end}; {share} of the look goes to tokens before them.",
        "图中为位置 {start} 到 {end}；{share} 的目光投向更前面的词元。",
    ),
    "heads.name": (
        "Attention of every head: rows are layers, columns are heads",
        "所有头的注意力：每行一层，每列一个头",
    ),
    "heads.title": ("Layer {layer}, head {head}", "第 {layer} 层，第 {head} 个头"),
    "heads.share": (
        "On average it gives {first} of its look to the first token, {previous} to the one before, {self} to itself.",
        "平均来说，它把 {first} 的目光给第一个词元，{previous} 给前一个词元，{self} 给自己。",
    ),
    "heads.axis": ("down: the looking token · across: the token looked at", "纵向：观看的词元 · 横向：被看的词元"),
    "heads.keys": (
        "A row for each layer, a picture for each head, in its own colour. Hover to see one larger, click to open it "
        "everywhere; arrow keys move.",
        "每行一层，每格一个头，颜色各不相同。悬停可放大，点击后处处打开；方向键移动。",
    ),
    "heads.says": (
        "{n} heads over {tokens} tokens. Most of the look on the token before: layer {layer}, head {head} ({share}).",
        "{n} 个头，{tokens} 个词元。最常看前一个词元的是第 {layer} 层第 {head} 个头（{share}）。",
    ),
    "heads.more": (" So far; the rest of {total} tokens follows.", "目前如此，{total} 个词元中其余的随后就到。"),
    **HEAD,
    **SKELETON,
    **STREAM,
}
