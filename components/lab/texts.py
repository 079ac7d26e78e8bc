"""The words of the Shapes and Loss tabs and of every panel, as in components.texts."""

from components.lab.activation_texts import ACTIVATIONS
from components.lab.block_texts import BLOCKS
from components.lab.mask_texts import MASKS
from components.lab.norm_texts import NORMS
from components.lab.speed_texts import SPEED
from components.lab.start_texts import STARTS
from components.lab.token_texts import TOKENIZER

LABS: dict[str, tuple[str, str]] = {
    # shapes
    "tab.shapes": ("Shapes", "结构"),
    "shapes.question": ("How big is a GPT?", "一个 GPT 有多大？"),
    "shapes.says": (
        "Each bar is one part of the model, as long as its number of parameters. Pick a shape, or move a slider.",
        "每一条是模型的一个部分，长度就是它的参数量。选一个现成的结构，或拖动滑块。",
    ),
    "shapes.preset": ("Shape", "结构"),
    "shapes.preset.picked": ("the model picked above", "上方选中的模型"),
    "shapes.preset.untied": ("GPT-2 small, untied, no QKV bias", "GPT-2 small，不共享输出头，无 QKV 偏置"),
    "shapes.preset.own": ("your own", "自定义"),
    "shapes.n_embd": ("Width", "宽度"),
    "shapes.n_embd.info": ("numbers in each token's vector (n_embd)", "每个词元向量的长度（n_embd）"),
    "shapes.n_layer": ("Layers", "层数"),
    "shapes.n_layer.info": ("blocks, one after the other (n_layer)", "依次堆叠的模块数（n_layer）"),
    "shapes.n_head": ("Heads", "头数"),
    "shapes.n_head.info": ("in each block; they share the width (n_head)", "每层的头数，平分宽度（n_head）"),
    "shapes.block_size": ("Context", "上下文"),
    "shapes.block_size.info": ("tokens it can read (block_size)", "最多能读的词元数（block_size）"),
    "shapes.vocab_size": ("Vocabulary", "词表大小"),
    "shapes.vocab_size.info": ("different tokens (vocab_size)", "不同词元的数量（vocab_size）"),
    "shapes.n_ff": ("Feed-forward width", "前馈层宽度"),
    "shapes.n_ff.info": ("inside each block; 0: 4 × width (n_ff)", "每层内部；0 表示 4 × 宽度（n_ff）"),
    "shapes.tie_weights": ("Tied head", "共享输出头"),
    "shapes.tie_weights.info": ("the head is the token embedding", "输出头就是词元嵌入矩阵"),
    "shapes.bias": ("Biases", "偏置"),
    "shapes.bias.info": ("in every layer and norm", "所有线性层和归一化层"),
    "shapes.qkv_bias": ("QKV bias", "QKV 偏置"),
    "shapes.qkv_bias.info": ("in queries, keys and values, if there are biases", "查询、键、值的偏置（在有偏置时）"),
    "shapes.rotary": ("Rotary positions", "旋转位置编码"),
    "shapes.rotary.info": ("turned, not learned: no parameters", "靠旋转而非学习：没有参数"),
    "shapes.skeleton": ("Skeleton", "骨架"),
    "shapes.skeleton.info": (
        "blocks and norms do nothing: embedding, then head",
        "层和归一化什么都不做：嵌入后直接到输出头",
    ),
    "shapes.headline": ("{n} parameters", "{n} 个参数"),
    "shapes.part.token_embedding": ("Token embedding", "词元嵌入"),
    "shapes.part.position_embedding": ("Position embedding", "位置嵌入"),
    "shapes.part.attention": ("Attention", "注意力"),
    "shapes.part.feed_forward": ("Feed-forward", "前馈层"),
    "shapes.part.norms": ("Norms", "归一化"),
    "shapes.part.head": ("Output head", "输出头"),
    "shapes.part.shared": ("{n}, shared with the embedding", "{n}，与词元嵌入共享"),
    "shapes.part.replaced": ("{n}, replaced by identity", "{n}，已换成恒等"),
    "shapes.parts.says": (
        "{part}: the largest part, {share}. Untied {untied}, tied {tied}: embedding and head are both {shape}.",
        "{part}最大，占 {share}。不共享输出头 {untied}，共享 {tied}：嵌入和输出头都是 {shape}。",
    ),
    "shapes.size.weights": ("Weights", "权重"),
    "shapes.size.cache": ("KV cache, one token", "KV 缓存，每个词元"),
    "shapes.size.context": ("KV cache, {n} tokens", "KV 缓存，{n} 个词元"),
    "shapes.cost": (
        "One token costs {first} at the start of a text and {end} at position {position}: {matrices} in the matrices "
        "(2 per weight) and {attention} in looking back (4 × layers × width × tokens looked at).",
        "一个词元的运算量在文本开头是 {first}，在位置 {position} 是 {end}：其中矩阵 {matrices}（每个权重 2 次），"
        "回看 {attention}"
        "（4 × 层数 × 宽度 × 被看的词元数）。",
    ),
    "shapes.error.number": (
        "{name} must be a whole number of at least {low}.",
        "“{name}”必须是不小于 {low} 的整数。",
    ),
    "shapes.error.heads": (
        "Width {width} must divide by {heads} heads: each head gets an equal share. {counts} heads would do, or a width of {widths}.",
        "宽度 {width} 不能被头数 {heads} 整除：每个头要分到相等的一份。可用 {counts} 个头，或者宽度 {widths}。",
    ),
    "shapes.or": (" or ", " 或 "),
    "shapes.error.rotary": (
        "Rotary positions turn pairs of numbers: {width} / {heads} makes heads of {size}, which is odd.",
        "旋转位置编码要成对地旋转数字：{width} / {heads} 使每个头宽 {size}，是奇数。",
    ),
    "shapes.build": ("Build it", "造出来"),
    "shapes.build.question": ("What has training done?", "训练带来了什么？"),
    "shapes.build.says": (
        "The Playground's prompt and sampling settings, once with random weights in this shape, once with the "
        "trained model.",
        "用试验台的提示词和采样设置：一边是这个结构加随机权重，一边是训练过的模型。",
    ),
    "shapes.build.empty": ("Press “Build it”.", "请按“造出来”。"),
    "shapes.room": (
        "Building this shape takes {need} of memory in float32; at most {limit} are lent.",
        "造出这个结构需要 {need} 内存（float32），上限 {limit}。",
    ),
    "shapes.room.none": (
        "This shape would need {need} of memory in float32, more than the {limit} that are lent: it is only counted.",
        "这个结构需要 {need} 内存（float32），超过上限 {limit}：只计算大小，不能造出来。",
    ),
    "shapes.busy": (
        "Others are building at this moment and the memory is lent out: try again shortly.",
        "此刻别人也在造模型，内存已用完：请稍后再试。",
    ),
    "shapes.building": ("Drawing random weights …", "正在随机生成权重……"),
    "shapes.status.example": ("An example: ", "示例："),
    "shapes.status": (
        "{n} random weights drawn in {seconds} s · {tokens} tokens · seed {seed}",
        "{n} 个随机权重，用时 {seconds} 秒 · {tokens} 个词元 · 种子 {seed}",
    ),
    "shapes.status.stopped": (
        "{n} random weights drawn in {seconds} s · stopped",
        "{n} 个随机权重，用时 {seconds} 秒 · 已停止",
    ),
    "shapes.untrained": ("Random weights", "随机权重"),
    "shapes.trained": ("Trained: {model}", "训练过的：{model}"),
    "shapes.stages.question": ("What shapes flow through it?", "流过它的张量是什么形状？"),
    "shapes.stages.says": (
        "From {first} token ids to {last}: a score for every token of the vocabulary, at every position. Measured "
        "in a "
        "forward pass over the prompt; each bar is as long as one token's vector.",
        "从 {first} 的词元编号到 {last}：每个位置上，词表中每个词元一个分数。来自对提示词的一次真实前向计算；"
        "每条的长度是一个词元向量的长度。",
    ),
    "shapes.stages.skeleton": (
        "The skeleton has every shape of the whole model, and computes nothing between embedding and head.",
        "骨架的形状与完整模型完全相同，但在嵌入和输出头之间什么都不计算。",
    ),
    "shapes.stage.idx": ("token ids", "词元编号"),
    "shapes.stage.wte": ("token embedding", "词元嵌入"),
    "shapes.stage.wpe": ("+ position embedding", "+ 位置嵌入"),
    "shapes.stage.c_attn": ("first block: queries, keys, values", "第一层：查询、键、值"),
    "shapes.stage.attention": ("first block: attention", "第一层：注意力"),
    "shapes.stage.c_fc": ("first block: feed-forward, inside", "第一层：前馈层内部"),
    "shapes.stage.feed_forward": ("first block: feed-forward", "第一层：前馈层"),
    "shapes.stage.blocks": ("after {n} blocks", "经过 {n} 层之后"),
    "shapes.stage.identity": ("after {n} times identity", "经过 {n} 次恒等之后"),
    "shapes.stage.ln_f": ("last norm", "最后的归一化"),
    "shapes.stage.no_norm": ("identity in place of the last norm", "恒等，代替最后的归一化"),
    "shapes.stage.lm_head": ("head: logits", "输出头：logits 分数"),
    # loss
    "tab.loss": ("Loss", "损失"),
    "loss.question": ("How surprised is the model?", "模型有多意外？"),
    "loss.what": (
        "Paste any text: each token is coloured by its surprisal, −log2 of the probability that the model gave it. "
        "Faint was "
        "expected, strong was not. At most {limit} tokens.",
        "粘贴任意文本：每个词元按它的意外程度着色，也就是模型给它的概率的 −log2。颜色淡的在意料之中，颜色浓的在意料之外。"
        "最多 {limit} 个词元。",
    ),
    "loss.text": ("Text", "文本"),
    "loss.placeholder": ("Two tokens or more. Ctrl+Enter measures.", "至少两个词元。按 Ctrl+Enter 测量。"),
    "loss.example.turn": ("A story with a turn", "有转折的故事"),
    "loss.example.shuffled": ("Words in disorder", "打乱的词"),
    "loss.example.repeat": ("A pattern", "重复的规律"),
    "loss.measure": ("Measure", "测量"),
    "loss.stride": ("Stride", "步长"),
    "loss.stride.info": (
        "how far the window moves on in a longer text",
        "文本较长时，窗口每次前移多少",
    ),
    "loss.stride.whole": ("a whole context", "整个上下文"),
    "loss.stride.half": ("half a context", "半个上下文"),
    "loss.stride.quarter": ("a quarter", "四分之一"),
    "loss.stride.eighth": ("an eighth", "八分之一"),
    "loss.loading": ("Reading …", "正在读……"),
    "loss.progress": ("Window {n} of {total}", "第 {n} 个窗口，共 {total} 个"),
    "loss.headline": (
        "{loss} nats per token · perplexity {perplexity} · {bits} bits per byte",
        "每个词元 {loss} 奈特 · 困惑度 {perplexity} · 每字节 {bits} 比特",
    ),
    "loss.says": (
        "{model} was as unsure as in a fair choice among {choices} tokens.",
        "{model} 的把握相当于在 {choices} 个词元中随机选一个。",
    ),
    "loss.misled": (
        "{model} was sure of other tokens than these: a blind choice among all {vocab_size} would have done better.",
        "{model} 确信的是别的词元：在全部 {vocab_size} 个词元中盲选一个都会更好。",
    ),
    "loss.counted": (
        " {n} tokens; the first does not count, nothing stands before it; the others are {bytes} bytes. ",
        "共 {n} 个词元；第一个不计，因为它前面没有内容；其余共 {bytes} 字节。",
    ),
    "loss.fits": (
        "They fit the context of {limit}: each is predicted from all before it.",
        "全部放得进 {limit} 的上下文：每个词元都由它前面的全部内容预测。",
    ),
    "loss.windows": (
        "They are longer than the context of {limit}, so they were read in {n} windows, each {stride} tokens after "
        "the one "
        "before: each token is predicted from at least {least} others, where so many stand before it.",
        "超过了 {limit} 的上下文，因此分 {n} 个窗口读，每个窗口比前一个后移 {stride} 个词元：每个词元至少由前面 "
        "{least} 个预测（如果有那么多）。",
    ),
    "loss.repaired": (
        " Halves of surrogate pairs, which are no characters, were read as U+FFFD.",
        "单独的半个代理对不是字符，已按 U+FFFD 读取。",
    ),
    "loss.token": (
        "{token} had {p}, rank {rank} of {total}: {bits} bits, or {nats} nats. Expected there: {expected}.",
        "{token} 的概率是 {p}，在 {total} 个中排第 {rank}：{bits} 比特，即 {nats} 奈特。那里最可能的是：{expected}。",
    ),
    "loss.token.first": (
        "{token} comes first: nothing stands before it, so it is not predicted.",
        "{token} 是第一个词元：前面没有内容，所以没有预测。",
    ),
    "loss.surprisal": ("surprisal", "意外程度"),
    "loss.bits": ("bits", "比特"),
    "loss.error.empty": ("There is no text: type or paste some first.", "没有文本：请先输入或粘贴一段。"),
    "loss.error.one": (
        "This text is a single token, and a first token has nothing before it to be predicted from: write a little "
        "more.",
        "这段文本只有一个词元，而第一个词元前面没有可用来预测它的内容：请再多写一点。",
    ),
    "loss.error.tokens": (
        "The text has {n} tokens; at most {limit} are read here: shorten it.",
        "文本有 {n} 个词元；这里最多读 {limit} 个：请缩短一些。",
    ),
    "loss.error.characters": (
        "The text has {n} characters; at most {limit} are read here: shorten it.",
        "文本有 {n} 个字符；这里最多读 {limit} 个：请缩短一些。",
    ),
    # panels
    **NORMS,
    **MASKS,
    **STARTS,
    **SPEED,
    **BLOCKS,
    # activations
    **ACTIVATIONS,
    **TOKENIZER,
}
