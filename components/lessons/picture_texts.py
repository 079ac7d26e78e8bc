"""The words of the small pictures, as in components.texts."""

PICTURE: dict[str, tuple[str, str]] = {
    "picture.text": ("Text", "文本"),
    "picture.text.info": ("at most 40 tokens of simple English", "最多 40 个词元的简单英文"),
    "picture.switch": ("Choose", "选择"),
    "picture.seed": ("Seed", "种子"),
    "picture.tokens": ("Tokens so far", "已有词元数"),
    "picture.depth": ("Stop after so many layers", "算到第几层就停"),
    "picture.padding": ("Padding tokens in front", "前面的填充词元数"),
    "picture.steps": ("Steps", "步数"),
    "picture.top_k": ("Top-k (0: off)", "Top-k（0 为关闭）"),
    "picture.updates": ("Updates", "更新次数"),
    "picture.short": ("Type a little more: this needs at least two tokens.", "请再多输入一点：这里至少需要两个词元。"),
    "picture.empty": ("Type a few words first.", "请先输入几个词。"),
    "picture.long": (
        "This text is too long here: at most {limit} tokens.",
        "这段文本在这里太长了：最多 {limit} 个词元。",
    ),
    # names of axes and rows
    "picture.layers": ("after so many layers", "经过的层数"),
    "picture.length": ("length of the vector", "向量的长度"),
    "picture.scaled": ("scaled by 1/√(2 × layers)", "乘以 1/√(2 × 层数)"),
    "picture.unscaled": ("not scaled", "不缩放"),
    "picture.theirs": ("name there", "那边的名字"),
    "picture.ours": ("name here", "这里的名字"),
    "picture.shape": ("shape", "形状"),
    "picture.cached": ("with a KV cache", "有 KV 缓存"),
    "picture.uncached": ("without", "没有缓存"),
    "picture.multiplications": ("multiplications for one more token", "再写一个词元所需的乘法"),
    "picture.neuron": ("neuron", "神经元"),
    "picture.activation": ("after GELU", "GELU 之后的值"),
    "picture.query": ("looking token", "观看的词元"),
    "picture.key": ("token looked at", "被看的词元"),
    "picture.weight": ("weight", "权重"),
    "picture.place": ("place in the text", "在文本中的位置"),
    "picture.moved": ("how far the prediction moves", "预测移动了多少"),
    "picture.masked": ("with the padding mask", "有填充掩码"),
    "picture.unmasked": ("without it", "没有掩码"),
    "picture.surprise": ("surprise in bits", "意外程度（比特）"),
    "picture.nats": ("loss in nats", "损失（奈特）"),
    "picture.block.resid_pre": ("comes in", "进来"),
    "picture.block.attn_out": ("+ attention", "+ 注意力"),
    "picture.block.resid_mid": ("between", "中间"),
    "picture.block.mlp_out": ("+ feed-forward", "+ 前馈"),
    "picture.block.resid_post": ("goes out", "出去"),
    # choices
    "picture.configuration.choice.12": ("12 layers", "12 层"),
    "picture.configuration.choice.24": ("24 layers", "24 层"),
    "picture.configuration.choice.36": ("36 layers", "36 层"),
    "picture.configuration.choice.48": ("48 layers", "48 层"),
    "picture.parameters.choice.untied": ("head of its own", "输出头独立"),
    "picture.parameters.choice.tied": ("head tied", "输出头共享"),
    "picture.layouts.choice.hugging_face": ("Hugging Face", "Hugging Face 版"),
    "picture.layouts.choice.nanogpt": ("nanoGPT", "nanoGPT 版"),
    "picture.layouts.choice.book": ("the book's GPTModel", "书中的 GPTModel"),
    "picture.next.choice.gpt2": ("GPT-2 small", "GPT-2 small（小）"),
    "picture.next.choice.gpt2-xl": ("GPT-2 XL", "GPT-2 XL（特大）"),
    "picture.skeleton.choice.real": ("trained model", "训练好的模型"),
    "picture.skeleton.choice.skeleton": ("skeleton", "骨架"),
    "picture.untrained.choice.untrained": ("random weights", "随机权重"),
    "picture.untrained.choice.trained": ("trained weights", "训练后的权重"),
    # what a picture says
    "picture.configuration": (
        "{total}. Each head works with {size} of the numbers.",
        "{total}。每个头处理其中 {size} 个数。",
    ),
    "picture.initialisation": (
        "From the embedding to layer {n} the vectors grow to {scaled} times their length with the scaling, to {unscaled} "
        "times without it.",
        "从嵌入到第 {n} 层，有缩放时向量变为原来长度的 {scaled} 倍，没有缩放时变为 {unscaled} 倍。",
    ),
    "picture.layouts.hugging_face": (
        "GPT-2 as Hugging Face stores it, one layer for all: {n} weights with the same names, the four matrices of a block "
        "lying on their side.",
        "Hugging Face 保存的 GPT-2，一层代表所有层：{n} 个权重，名字相同，只是每个块里的四个矩阵是转置的。",
    ),
    "picture.layouts.nanogpt": (
        "nanoGPT's names are those of GPT-2 after a prefix, and its matrices stand upright as ours do: {n} weights, nothing to turn.",
        "nanoGPT 的名字就是 GPT-2 的名字加一个前缀，矩阵的方向也和这里一样：{n} 个权重，无需转置。",
    ),
    "picture.layouts.book": (
        "The book's GPTModel has names of its own and keeps query, key and value apart: {n} weights, three of which become "
        "one matrix here.",
        "书中的 GPTModel 用自己的名字，并把查询、键、值分开存放：{n} 个权重，其中三个在这里合成一个矩阵。",
    ),
    "picture.cost": (
        "{model}: after {n} tokens one more costs {cached} million multiplications with the cache and {uncached} million without: "
        "{times} times as many. The cache then holds {memory} in float32, {each} for each token.",
        "{model}：已有 {n} 个词元时，再写一个，有缓存要 {cached} 亿次乘法，没有缓存要 {uncached} 亿次，是前者的 {times} 倍。此时缓存占 {memory}（float32），"
        "每个词元 {each}。",
    ),
    "picture.feed_forward": (
        "{token} in layer {layer}: {shapes}. After GELU {share} of the neurons are above 0.1; neuron {strongest} answers most "
        "strongly, with {value}.",
        "{token} 在第 {layer} 层：{shapes}。经过 GELU，{share} 的神经元大于 0.1；反应最强的是神经元 {strongest}，值为 {value}。",
    ),
    "picture.attention": (
        "Layer {layer}, head {head}: {token} looks most at {target}, with {share} of its attention. Each row sums to 1.",
        "第 {layer} 层第 {head} 个头：{token} 看得最多的是 {target}，占它注意力的 {share}。每一行的和都是 1。",
    ),
    "picture.block": (
        "Layer {layer}, at {token}: a vector of length {resid_pre} comes in, attention adds one of length {attn_out}, "
        "the feed-forward part one of length {mlp_out}, and one of length {resid_post} goes on.",
        "第 {layer} 层，在 {token} 处：进来的向量长 {resid_pre}，注意力加上一个长 {attn_out} 的向量，前馈部分再加上一个长 {mlp_out} 的，"
        "出去时长 {resid_post}。",
    ),
    "picture.model": (
        "Stopped after {n} of {total} layers, the last norm and the head would say {best}, with {share}.",
        "算完 {total} 层中的 {n} 层就停下，经过最后的归一化和输出头，模型会说 {best}，概率 {share}。",
    ),
    "picture.skeleton.real": (
        "ids {ids} → logits {logits}: the trained model expects {best}.",
        "编号 {ids} → 分数 {logits}：训练好的模型预期的是 {best}。",
    ),
    "picture.skeleton.skeleton": (
        "ids {ids} → logits {logits}: the same shapes, but the skeleton, with random weights, says {best}.",
        "编号 {ids} → 分数 {logits}：形状一样，但权重随机的骨架说的是 {best}。",
    ),
    "picture.small": (
        "ids {ids} → logits {logits}. With {n} padding tokens before a row, its predictions move by at most {masked} with the "
        "mask and by up to {unmasked} without it (0: not at all, 1: everything).",
        "编号 {ids} → 分数 {logits}。在一行前面放 {n} 个填充词元，有掩码时预测最多移动 {masked}，没有掩码时可达 {unmasked}（0 为不动，1 为完全不同）。",
    ),
    "picture.loss": (
        "The mean is the loss: {nats} nats, a perplexity of {perplexity}. {token} surprised the model most: {bits} bits, for it had "
        "given it {share}.",
        "平均值就是损失：{nats} 奈特，困惑度 {perplexity}。最让模型意外的是 {token}：{bits} 比特，因为它事先只给了 {share} 的概率。",
    ),
    "picture.greedy": (
        "{n} steps, at each the best token. The model's probability for exactly this text: {share}.",
        "走了 {n} 步，每一步都取最好的词元。模型给这段文本整体的概率是 {share}。",
    ),
    "picture.untrained.untrained": (
        "Random weights: every token is about as likely as any other, and the text is noise.",
        "权重随机：每个词元的概率都差不多，写出来的是噪声。",
    ),
    "picture.untrained.trained": (
        "The same code and shape after training: the text is a story.",
        "同样的代码、同样的结构，训练之后：写出来的是故事。",
    ),
    "picture.training": (
        "Before any update the loss is near ln({n}) = {chance}: {n} characters, none likelier than another. Where the line stands, "
        "after {step} updates, it is {loss}.",
        "还没有更新时，损失约为 ln({n}) = {chance}：{n} 个字符，没有哪个更可能。在竖线处，{step} 次更新之后，损失是 {loss}。",
    ),
    "picture.training.wrote": ("After {step} updates it writes: {text}", "更新 {step} 次后它写道：{text}"),
}
