"""The words of the panels on speed and on positions, as in components.texts."""

SPEED: dict[str, tuple[str, str]] = {
    "kernels.question": ("What do the cache and the kernel save?", "缓存和注意力内核省下了什么？"),
    "kernels.says": (
        "At {length} tokens the next one takes {cached} multiplications with a KV cache and {plain} without: {ratio} times "
        "as many. The cache takes {bytes} for each token of the text.",
        "文本有 {length} 个词元时，写下一个词元：有 KV 缓存需要 {cached} 次乘法，没有则是 {plain} 次，为 {ratio} 倍。缓存为每个词元占用 {bytes}。",
    ),
    "kernels.measured": (
        "Measured at {length} tokens: {cached} tokens a second with the cache, {plain} without; with the cache SDPA makes "
        "{sdpa}, attention in the open {open}.",
        "在 {length} 个词元时测得：有缓存每秒 {cached} 个词元，没有则 {plain} 个；有缓存时，SDPA 每秒 {sdpa} 个，逐步计算的注意力 {open} 个。",
    ),
    "kernels.length": ("tokens of the text", "文本的词元数"),
    "kernels.multiplications": ("multiplications for the next token", "写下一个词元的乘法次数"),
    "kernels.rate": ("tokens a second", "每秒词元数"),
    "kernels.cached": ("with KV cache", "有 KV 缓存"),
    "kernels.plain": ("without", "没有"),
    "kernels.cached.sdpa": ("cache, SDPA", "有缓存，SDPA"),
    "kernels.cached.open": ("cache, open", "有缓存，逐步计算"),
    "kernels.plain.sdpa": ("no cache, SDPA", "无缓存，SDPA"),
    "kernels.plain.open": ("no cache, open", "无缓存，逐步计算"),
    "kernels.counted": (
        "Counted from the shape of the running model: with a cache one token is read, without it all of them again.",
        "按正在运行的模型的结构计算：有缓存只读一个词元，没有则全部重读。",
    ),
    "kernels.bytes.question": ("What memory does that take?", "这要占用多少内存？"),
    "kernels.bytes.tokens": ("tokens", "词元数"),
    "kernels.bytes.cache": ("KV cache", "KV 缓存"),
    "kernels.bytes.open": ("attention weights, open, one layer", "逐步计算时一层的注意力权重"),
    "kernels.bytes.note": (
        "SDPA never writes the attention weights down; in the open, without a cache, they grow with the square of the text.",
        "SDPA 从不把注意力权重写进内存；逐步计算且无缓存时，它们随文本长度的平方增长。",
    ),
    "kernels.measure": ("Measure on this computer", "在这台计算机上测量"),
    "kernels.measure.says": (
        "Times the next token of the same text with and without cache, with both kernels, for {seconds} seconds at most.",
        "对同一段文本，分别在有无缓存、两种内核下测量写下一个词元的时间，最多 {seconds} 秒。",
    ),
    "kernels.short": (
        "Stopped at {length} tokens: the next length would take longer than {seconds} seconds in all.",
        "测到 {length} 个词元为止：再长就会超过总共 {seconds} 秒。",
    ),
    # positions
    "positions.question": ("How does a model know where a token stands?", "模型怎样知道词元的位置？"),
    "positions.position": ("Position of the query", "查询的位置"),
    "positions.distance": ("Distance to the key", "与键的距离"),
    "positions.distance.info": ("how many tokens before it the key stands", "键在它前面多少个词元"),
    "positions.says": (
        "A learned position is a vector that is added; a rotary one turns pairs of numbers. Moved along together, query "
        "and key keep their angles: {distance} apart they are {closeness} as close as at the same place.",
        "学习式位置是加上去的一个向量；旋转位置则把成对的数旋转一个角度。查询和键一起移动时夹角不变：相距 {distance} 时，"
        "接近程度是同一位置时的 {closeness}。",
    ),
    "positions.circles": (
        "Pairs 0, 2, 4 and 6 of a head of {size}: the blue hand is the query at {position}, the other the key at {key_position}. "
        "Pair {last} turns {slower} slower than pair 0: {angles} a token.",
        "宽度为 {size} 的头，第 0、2、4、6 对：蓝色指针是位置 {position} 的查询，另一根是位置 {key_position} 的键。每对转得越来越慢，"
        "第 {last} 对比第 0 对慢 {slower}：每个词元转 {angles}。",
    ),
    "positions.query": ("query", "查询"),
    "positions.key": ("key", "键"),
    "positions.pair": ("pair {n}", "第 {n} 对"),
    "positions.closeness": ("closeness of two equal vectors", "两个相同向量的接近程度"),
    "positions.apart": ("tokens apart", "相距的词元数"),
    "positions.closeness.says": (
        "Two equal vectors, turned by their positions: how close they are depends on their distance alone.",
        "两个相同的向量按各自的位置旋转：它们有多接近，只取决于距离。",
    ),
    "positions.beyond.question": ("What happens beyond the trained length?", "超出训练长度会怎样？"),
    "positions.beyond.says": (
        "Two tiny models learn texts of {trained} letters, one with learned positions, one with rotary ones, and then read "
        "{tested}. Each letter follows from the two before it, nine times of ten. It takes some seconds, {seconds} at most.",
        "两个微型模型学习 {trained} 个字母的文本，一个用学习式位置，一个用旋转位置，然后读 {tested} 个字母。每个字母十次有九次由前两个决定。"
        "需要几秒钟，最多 {seconds} 秒。",
    ),
    "positions.train": ("Train both", "训练两个模型"),
    "positions.learned": ("learned positions", "学习式位置"),
    "positions.rotary": ("rotary positions", "旋转位置"),
    "positions.place": ("position", "位置"),
    "positions.loss": ("loss, nats", "损失（奈特）"),
    "positions.trained": ("trained up to here", "训练到这里为止"),
    "positions.floor": ("the rule itself", "规则本身"),
    "positions.beyond.picture": (
        "After {steps} updates: within {trained} positions the loss is {learned_in} learned and {rotary_in} rotary; beyond, "
        "{learned_out} and {rotary_out}.",
        "更新 {steps} 次后：在 {trained} 个位置之内，学习式的损失是 {learned_in}，旋转式是 {rotary_in}；超出之后是 {learned_out} 和 {rotary_out}。",
    ),
}
