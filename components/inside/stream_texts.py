"""The words of the residual stream, the neurons and the embeddings, as in `components.texts`."""

STREAM: dict[str, tuple[str, str]] = {
    "inside.stream": ("Stream and neurons", "残差流与神经元"),
    "stream.tokens.question": ("How long is the vector of each token?", "每个词元的向量有多长？"),
    "stream.tokens.says": (
        "After layer {layer}: the longest is that of {longest} (position {longest_at}), {longest_is}; the shortest, "
        "{shortest_is}, that of {shortest} ({shortest_at}). Click a token, or a layer below.",
        "第 {layer} 层之后，最长的是{longest}（位置 {longest_at}），长 {longest_is}；最短的是{shortest}（位置 "
        "{shortest_at}），长 {shortest_is}。可以点击词元，或下面图中的层。",
    ),
    "stream.tokens.share": ("length, of the longest", "长度（与最长者相比）"),
    "stream.question": ("How does a token's vector grow from layer to layer?", "一个词元的向量怎样一层层长大？"),
    "stream.says": (
        "At “{token}” the stream starts with length {first} and leaves the last layer with {last}; layer {most} adds the "
        "longest vector.",
        "在“{token}”处，残差流起初的长度是 {first}，离开最后一层时是 {last}；第 {most} 层加上的向量最长。",
    ),
    "stream.note": (
        "Lengths of vectors: the stream after each layer, and what the layer's two parts add to it.",
        "都是向量的长度：每层之后的残差流，以及这一层两个部分各加了多少。",
    ),
    "stream.post": ("the stream", "残差流"),
    "stream.attn": ("attention adds", "注意力加上"),
    "stream.mlp": ("feed-forward adds", "前馈层加上"),
    "stream.layer": ("layer", "层"),
    "stream.length": ("length", "长度"),
    "stream.shares.question": ("Who makes up the stream after each layer?", "每层之后，残差流由谁构成？"),
    "stream.shares.says": (
        "After layer {layer}: {kept} was there before, {attn} is attention's, {mlp} is the feed-forward part's.",
        "第 {layer} 层之后：{kept} 是原有的，{attn} 来自注意力，{mlp} 来自前馈层。",
    ),
    "stream.shares.note": (
        "Share = what a part adds along the new stream, over the stream's length. The three sum to 100 %; a part below zero "
        "works against the others.",
        "份额 = 一部分沿新残差流方向的分量，除以残差流的长度。三者合计 100 %；小于零的部分与其他部分相抵。",
    ),
    "stream.kept": ("was there", "原有"),
    "stream.share": ("share", "份额"),
    "neurons.question": ("Which neurons write most here?", "这里哪些神经元写得最多？"),
    "neurons.says": (
        "At “{token}” neuron {first} of layer {layer} writes the longest vector. Its activation is {pre} before and {post} "
        "after {activation}; it pushes {up} up and {down} down.",
        "在“{token}”处，第 {layer} 层的神经元 {first} 写入的向量最长。它在 {activation} 之前是 {pre}，之后是 {post}；"
        "它抬高 {up}，压低 {down}。",
    ),
    "neurons.note": (
        "A neuron's vector is its activation times its column of the matrix behind it (c_proj); its way to the logits is the direct one, with the last "
        "LayerNorm's scale held fixed.",
        "神经元写入的向量 = 激活值 × 后面的矩阵（c_proj）中它的那一列；到 logits 只算直达的路，最后一个 LayerNorm 的缩放保持不变。",
    ),
    "neurons.before": ("before {activation}", "{activation} 之前"),
    "neurons.after": ("after", "之后"),
    "neurons.neuron": ("neuron", "神经元"),
    "neurons.pre": ("before", "之前"),
    "neurons.post": ("after", "之后"),
    "neurons.length": ("length", "长度"),
    "neurons.up": ("pushes up", "抬高"),
    "neurons.down": ("pushes down", "压低"),
    "trace.save": ("Save every number (.npz)", "保存全部数值（.npz）"),
    "trace.saved": (
        "Positions {first} to {last} of the text, {size}: numpy.load opens it, and so does gpt.Trace.load.",
        "文本的第 {first} 到第 {last} 个位置，{size}：可用 numpy.load 或 gpt.Trace.load 打开。",
    ),
    "inside.embeddings": ("Embeddings", "嵌入"),
    "embeddings.question": ("Which tokens start out alike?", "哪些词元一开始就相像？"),
    "embeddings.says": (
        "Closest to “{token}” is {nearest}: the cosine of their embeddings is {cosine}.",
        "与“{token}”最接近的是{nearest}：两者嵌入的余弦是 {cosine}。",
    ),
    "embeddings.note": (
        "Before any layer a token is its row of the token embedding (wte) alone; the cosine says how nearly two rows point the same "
        "way. A click on a token in any other tab shows its neighbours here.",
        "进入任何一层之前，词元只是词元嵌入（wte）中的一行；余弦表示两行的方向有多一致。在其他标签页点击词元，这里就显示它的近邻。",
    ),
    "embeddings.cosine": ("cosine", "余弦"),
    "places.question": ("How alike are the positions?", "各个位置有多相像？"),
    "places.says": (
        "Neighbouring positions have a cosine of {near} on average, positions half the context apart {far}.",
        "相邻位置的余弦平均为 {near}，相隔半个上下文的位置为 {far}。",
    ),
    "places.note": (
        "Each cell: the cosine of two rows of wpe, the learned vector of each position; {shown} of {all} positions are shown.",
        "每一格是 wpe 中两行（每个位置学到的向量）的余弦；共 {all} 个位置，显示 {shown} 个。",
    ),
    "places.rotary": (
        "This model has no position embeddings: its positions are rotary, turned into queries and keys.",
        "这个模型没有位置嵌入：它用旋转位置编码，直接作用于查询和键。",
    ),
    "places.position": ("position", "位置"),
}
