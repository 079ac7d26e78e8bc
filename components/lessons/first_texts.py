"""Lessons 1 to 10, what a GPT is made of, as in components.texts. `{...}` are facts of the app's model."""

FIRST: dict[str, tuple[str, str]] = {
    "lesson.configuration.title": ("Configuration", "配置"),
    "lesson.configuration.says": (
        "A GPT's shape is a handful of numbers: how many tokens it knows and how many it reads at once, how wide a token's vector "
        "is, how many layers follow one another, and how many heads share the width.",
        "一个 GPT 的结构只是几个数：认识多少词元、一次能读多少、每个词元的向量有多宽、有多少层、多少个头来分这个宽度。",
    ),
    "lesson.configuration.question": (
        "Set the width to 768 and the heads to 10. Why is that refused, and which numbers of heads near 10 would do?",
        "把宽度设为 768，头数设为 10。为什么不行？10 附近哪些头数可以？",
    ),
    "lesson.configuration.answer": (
        "Each head works with width / heads of the numbers, and 768 / 10 is no whole number. 8 heads (of 96) and 12 heads (of 64) do; "
        "12 is GPT-2's choice.",
        "每个头分到 宽度 / 头数 个数，而 768 / 10 不是整数。8 个头（每个 96）或 12 个头（每个 64）都可以；GPT-2 选了 12。",
    ),
    "lesson.tokenizer.title": ("Tokenizer", "分词器"),
    "lesson.tokenizer.says": (
        "The model never sees letters: byte-pair encoding joins the bytes of a text into tokens, the pieces that were frequent where "
        "it was learned, and each token is one number.",
        "模型从不直接看字母：字节对编码（BPE）把文本的字节拼成词元，也就是学习时常见的片段，每个词元对应一个编号。",
    ),
    "lesson.tokenizer.question": (
        "Type “Lily”, then “lily”, then 小. How many tokens does this app's own vocabulary need for each, and why?",
        "依次输入 “Lily”、“lily” 和“小”。本应用自己的词表各需要几个词元？为什么？",
    ),
    "lesson.tokenizer.answer": (
        "One, two and three. Its stories are full of girls named Lily, but hardly ever write the flower; and they hold no Chinese at "
        "all, so a character falls apart into its three UTF-8 bytes. Nothing is ever unknown: 256 byte tokens can spell any text.",
        "一个、两个、三个。训练用的故事里到处是叫 Lily 的女孩，小写的百合花却很少见；里面也完全没有中文，所以一个汉字散成三个 UTF-8 字节。"
        "没有什么是“未知”的：256 个字节词元能拼出任何文本。",
    ),
    "lesson.skeleton.title": ("The skeleton", "骨架模型"),
    "lesson.skeleton.says": (
        "Take the blocks and the norms out, and every shape stays: [batch, tokens] goes in, [batch, tokens, vocabulary] comes out. "
        "Only the thinking in between is gone.",
        "把所有块和归一化拿掉，形状一点不变：进去是 [批, 词元]，出来是 [批, 词元, 词表]。少掉的只是中间的“思考”。",
    ),
    "lesson.skeleton.question": (
        "Look at the skeleton with several prompts. Which token does it expect after each?",
        "用几段不同的文本看骨架模型。每次它预期的下一个词元是什么？",
    ),
    "lesson.skeleton.answer": (
        "Usually the last token of the text once more. Its vector goes straight to the head, which is the embedding again, and a vector "
        "resembles no row so much as its own. No other token can have a say: only attention moves information between positions.",
        "通常就是文本的最后一个词元。它的向量直接到了输出头，而输出头就是嵌入矩阵，向量当然最像自己的那一行。其他词元没有发言权：只有注意力能在位置之间传递信息。",
    ),
    "lesson.layer_norm.title": ("Layer normalisation", "层归一化"),
    "lesson.layer_norm.says": (
        "Before a part of the model reads a token's vector, the vector is moved to mean 0 and stretched to variance 1, then scaled and "
        "shifted by what was learned.",
        "模型的每个部分在读一个词元的向量之前，先把它移到均值 0、拉到方差 1，再按学到的量缩放和平移。",
    ),
    "lesson.layer_norm.question": (
        "For the first row a variance of 0.0231 is printed in many texts, and the code divides by 0.0192. Which one is right?",
        "第一行的方差，很多教程印的是 0.0231，而代码用的是 0.0192。哪一个对？",
    ),
    "lesson.layer_norm.answer": (
        "Both. 0.0231 divides the squared distances by n − 1 = 5, the unbiased estimate; layer normalisation divides by n = 6: "
        "0.0231 × 5/6 = 0.0192. GPT-2 was trained with the second, so its weights need it.",
        "都对。0.0231 是把平方差除以 n − 1 = 5（无偏估计），层归一化除以 n = 6：0.0231 × 5/6 = 0.0192。GPT-2 是用后者训练的，所以权重也要配后者。",
    ),
    "lesson.activations.title": ("GELU and ReLU", "GELU 与 ReLU"),
    "lesson.activations.says": (
        "Between its two layers the feed-forward part bends the numbers: GELU lets what is clearly positive through, takes what is "
        "clearly negative to nearly 0, and turns smoothly from one to the other.",
        "前馈部分在两个矩阵之间把数“弯”一下：GELU 让明显为正的数通过，把明显为负的数压到接近 0，中间平滑过渡。",
    ),
    "lesson.activations.question": (
        "Where is the slope of GELU zero? And where is that of ReLU?",
        "GELU 的斜率在哪里为零？ReLU 的呢？",
    ),
    "lesson.activations.answer": (
        "GELU's only near x = −0.75, ReLU's for every negative x. A ReLU neuron that is negative for all texts gets no gradient and "
        "stays silent for good; with GELU it can come back. Later models gate one half of the neurons by the other with SiLU: SwiGLU.",
        "GELU 只在 x ≈ −0.75 处为零，ReLU 对所有负数都为零。若一个 ReLU 神经元对所有文本都为负，它得不到梯度，就永远沉默；用 GELU 还能回来。"
        "后来的模型用 SiLU 让一半神经元给另一半当门：SwiGLU。",
    ),
    "lesson.feed_forward.title": ("The feed-forward part", "前馈部分"),
    "lesson.feed_forward.says": (
        "Each token on its own: widen its vector to four times as many numbers, the neurons, bend them with GELU, and bring them back "
        "to the old width.",
        "每个词元各算各的：把向量展宽到四倍（这些数就是神经元），用 GELU 弯一下，再收回原来的宽度。",
    ),
    "lesson.feed_forward.question": (
        "Go through the layers. In which do most neurons answer, and in which next to none?",
        "逐层看一遍。哪一层反应的神经元最多？哪一层几乎没有？",
    ),
    "lesson.feed_forward.answer": (
        "For this text the first and the last layer have many, the ones between only a few of {n_ff}. Silence is normal: a neuron "
        "stands for something, and most things are not the case at this token.",
        "对这段文本，第一层和最后一层反应的多，中间各层 {n_ff} 个里只有少数。沉默是常态：一个神经元代表某件事，而大多数事在这个词元上并没有发生。",
    ),
    "lesson.shortcuts.title": ("Shortcut connections", "残差连接"),
    "lesson.shortcuts.says": (
        "A layer adds to what it read instead of replacing it, so when the network learns, the gradient reaches the first layers by a "
        "path that weakens nothing.",
        "每一层不是替换读到的东西，而是往上加；于是学习的时候，梯度能沿着一条不会衰减的路回到最前面的层。",
    ),
    "lesson.shortcuts.question": (
        "Compare the first layer's gradient with the last one's, without shortcuts and with. Then make the network 10 layers deep.",
        "比较第一层和最后一层的梯度，没有残差连接时和有时。再把网络加深到 10 层。",
    ),
    "lesson.shortcuts.answer": (
        "With 5 layers and no shortcuts the first gets 0.00020 and the last 0.0050, 25 times as much; with shortcuts 0.22 and 1.33. "
        "With 10 layers the first layer gets 0.0000003 without them, and 0.57 with them.",
        "5 层而没有残差连接时，第一层是 0.00020，最后一层是 0.0050，相差 25 倍；有残差连接时是 0.22 和 1.33。加深到 10 层，第一层没有残差连接只剩 "
        "0.0000003，有则是 0.57。",
    ),
    "lesson.attention.title": ("Causal self-attention", "因果自注意力"),
    "lesson.attention.says": (
        "Each token asks with a query, is found by its key and gives its value: softmax(q kᵀ / √d) says how much of each earlier "
        "token's value it takes, in every head anew.",
        "每个词元用查询去问，凭键被找到，给出自己的值：softmax(q kᵀ / √d) 决定它从前面每个词元的值里取多少，每个头各算一遍。",
    ),
    "lesson.attention.question": (
        "Why is everything above the diagonal empty, and why does the first row always hold a single 1?",
        "为什么对角线上方总是空的？为什么第一行永远只有一个 1？",
    ),
    "lesson.attention.answer": (
        "A token may not look ahead, at what it shall predict: the mask sets those scores to −∞ before the softmax, which makes the "
        "weights exactly 0. The weights of a row sum to 1, and the first token has only itself to look at.",
        "词元不能往后看，那正是它要预测的：掩码在 softmax 之前把这些分数设为 −∞，权重就恰好是 0。每一行的权重之和为 1，而第一个词元只能看自己。",
    ),
    "lesson.block.title": ("The transformer block", "Transformer 块"),
    "lesson.block.says": (
        "Two branches, attention and feed-forward: each reads a normed copy of the residual stream and adds its result to it.",
        "两条支路，注意力和前馈：各自读残差流归一化后的副本，再把结果加回残差流。",
    ),
    "lesson.block.question": (
        "GPT norms what a branch reads (pre-norm); the first Transformer normed the sum (post-norm). What does pre-norm keep free?",
        "GPT 归一化的是支路读到的东西（pre-norm），最早的 Transformer 归一化的是相加之后的和（post-norm）。pre-norm 保住了什么？",
    ),
    "lesson.block.answer": (
        "The straight path: from the embedding to the last norm there is nothing but additions, so a gradient reaches every layer as "
        "it is. Post-norm stands on that path after each sum; deep models then learn only with a careful warm-up. The price: the "
        "stream grows, as the bars show, and needs one more norm at the end.",
        "那条直路：从嵌入到最后的归一化只有加法，梯度原样到达每一层。post-norm 在每次相加之后都挡在这条路上，模型一深就得小心预热才学得动。"
        "代价是残差流越来越长（看柱子），所以最后还要再归一化一次。",
    ),
    "lesson.model.title": ("The GPT model", "完整的 GPT"),
    "lesson.model.says": (
        "Token embedding plus position embedding, {n_layer} blocks, a last norm, and a head that gives a score to each of the "
        "{vocab_size} tokens that may come next.",
        "词元嵌入加位置嵌入，{n_layer} 个块，最后一次归一化，再由输出头给 {vocab_size} 个可能的下一个词元各打一个分。",
    ),
    "lesson.model.question": (
        "Let the model stop early. What does it say after 0 layers, and from which layer on does its answer stay the same?",
        "让模型提前停下。0 层时它说什么？从第几层起答案不再变？",
    ),
    "lesson.model.answer": (
        "After 0 layers the last token itself: nothing has been computed yet. For the example the app's own model thinks of a child "
        "from the first layer on, leans to “ boy”, and from layer 4 on says “ girl”. The shapes in between are all the same: a block "
        "changes the numbers, never their number.",
        "0 层时说的是最后那个词元自己：还什么都没算。对这个例子，本应用自带的模型从第一层起就想到小孩，先偏向 “ boy”，从第 4 层起一直是 “ girl”。"
        "中间的形状始终一样：块改变的是数值，不是个数。",
    ),
}
