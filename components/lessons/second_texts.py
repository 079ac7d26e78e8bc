"""Lessons 11 to 20, its weights, its writing, its learning, as in components.texts. `{...}` are facts of the app's model."""

SECOND: dict[str, tuple[str, str]] = {
    "lesson.parameters.title": ("Parameters and memory", "参数与内存"),
    "lesson.parameters.says": (
        "Every number that is learned is a parameter; how many there are follows from the configuration alone, and so does the memory "
        "that they take.",
        "每个要学的数都是一个参数；有多少个、占多少内存，只由配置就能算出来。",
    ),
    "lesson.parameters.question": (
        "GPT-2 small is called the 124M model. Why do 163 million parameters stand here when its head is not tied?",
        "GPT-2 small 人称 124M 模型。为什么输出头不共享时，这里有 1.63 亿个参数？",
    ),
    "lesson.parameters.answer": (
        "Embedding and head are both [50257, 768], 38,597,376 numbers each. Counted twice the sum is 163,009,536, with one matrix for "
        "both 124,412,160. (This shape has no bias for query, key and value; with them GPT-2 has 124,439,808.)",
        "嵌入和输出头都是 [50257, 768]，各有 38,597,376 个数。算两份共 163,009,536，两者共用一个矩阵则是 124,412,160。（这个结构的查询、键、值没有偏置；"
        "加上偏置，GPT-2 是 124,439,808。）",
    ),
    "lesson.initialisation.title": ("Tying and first weights", "权重共享与初始化"),
    "lesson.initialisation.says": (
        "The head that scores tokens is the embedding matrix itself. All weights start as small random numbers, and those that add to "
        "the residual stream smaller still, by 1/√(2 × layers).",
        "给词元打分的输出头就是嵌入矩阵本身。所有权重都从很小的随机数开始，往残差流上加的那些还要再小一些：乘以 1/√(2 × 层数)。",
    ),
    "lesson.initialisation.question": (
        "Move the layers from 4 to 24. How does the end of each curve change, and where does the 2 in the formula come from?",
        "把层数从 4 调到 24。两条曲线的末端各怎么变？公式里的 2 从哪里来？",
    ),
    "lesson.initialisation.answer": (
        "With the scaling it hardly moves, without it the vectors grow with depth: to about 2.4 times at 4 layers, 6 times at 24. "
        "Every layer adds twice, once after attention and once after the feed-forward part: 2 × layers random vectors, whose sum is "
        "√(2 × layers) times as long as one.",
        "有缩放时几乎不变，没有缩放时向量随深度变长：4 层约 2.4 倍，24 层约 6 倍。每一层加两次，注意力之后一次，前馈之后一次：2 × 层数 个随机向量相加，"
        "长度是单个的 √(2 × 层数) 倍。",
    ),
    "lesson.loss.title": ("Loss", "损失"),
    "lesson.loss.says": (
        "At each position the model gave the token that really follows some probability p; the loss is the mean of −ln p, how "
        "surprised it was.",
        "在每个位置，模型给真正出现的下一个词元一个概率 p；损失就是 −ln p 的平均值，也就是它有多意外。",
    ),
    "lesson.loss.question": (
        "A model that knows nothing gives every token the same probability. What are its loss and its perplexity?",
        "一个什么都不懂的模型，会给每个词元同样的概率。它的损失和困惑度是多少？",
    ),
    "lesson.loss.answer": (
        "With {vocab_size} tokens p is 1/{vocab_size}, so the loss is ln({vocab_size}) = {uniform} nats. The perplexity is exp(loss) = "
        "{vocab_size}: as many tokens as it wavers between. Each nat is 1/ln 2 = 1.44 bits.",
        "词表有 {vocab_size} 个词元，p = 1/{vocab_size}，损失就是 ln({vocab_size}) = {uniform} 奈特。困惑度是 exp(损失) = {vocab_size}：它在这么多词元之间犹豫。"
        "1 奈特 = 1/ln 2 = 1.44 比特。",
    ),
    "lesson.greedy.title": ("Greedy generation", "贪心生成"),
    "lesson.greedy.says": (
        "Read the text, take the most likely next token, append it, and begin again: a loop of a few lines writes the story.",
        "读文本，取最可能的下一个词元，接上去，再来一遍：几行代码的循环就写出了故事。",
    ),
    "lesson.greedy.question": (
        "Come back to the same prompt and step number as often as you like. Does the text ever change? Change one word of the prompt.",
        "同样的提示词、同样的步数，反复看几次，文本会变吗？再把提示词改一个词看看。",
    ),
    "lesson.greedy.answer": (
        "Never: nothing is left to chance, the best token is a function of the text. A single other word may lead elsewhere from the "
        "first step on. Best step by step is not best as a whole, though, and greedy texts like to repeat themselves.",
        "不会变：没有任何偶然，最好的词元是文本的函数。而只要改一个词，可能从第一步起就走上另一条路。不过，每一步最好不等于整体最好，贪心写出的文本还爱重复自己。",
    ),
    "lesson.sampling.title": ("Sampling", "采样"),
    "lesson.sampling.says": (
        "Divide the logits by a temperature, keep the k best, make probabilities of them, and let one random number choose.",
        "把分数除以温度，只留最好的 k 个，变成概率，再由一个随机数来选。",
    ),
    "lesson.sampling.question": (
        "Set the temperature to 0, then to 1, then to 2. What happens to the best token and to the entropy? And at top-k 1?",
        "把温度依次设为 0、1、2。最好的词元和熵怎么变？top-k 为 1 时呢？",
    ),
    "lesson.sampling.answer": (
        "At 0 the best token has everything and the entropy is 0: that is greedy. At 1 the bars are the model's own. At 2 they are "
        "flatter, the entropy is higher, and unlikely tokens come up. Top-k 1 is greedy at any temperature.",
        "温度为 0 时最好的词元独占全部，熵为 0：这就是贪心。为 1 时是模型原本的概率。为 2 时更平，熵更大，冷门的词元也会出现。top-k 为 1 时，无论温度多少都是贪心。",
    ),
    "lesson.untrained.title": ("Before training", "训练之前"),
    "lesson.untrained.says": (
        "The same code with random weights writes gibberish: all that the model knows came from training.",
        "同样的代码，权重随机，写出来的是胡话：模型懂的一切都来自训练。",
    ),
    "lesson.untrained.question": (
        "What probability does the best token have under random weights, and what would pure chance give it?",
        "权重随机时，最好的词元概率是多少？纯靠运气应该是多少？",
    ),
    "lesson.untrained.answer": (
        "About a tenth of a percent, close to the 1/4,096 = 0.024 % of chance: the first weights are so small that all logits lie "
        "near 0. Trained weights put most of the probability on a few tokens.",
        "大约千分之一，接近纯靠运气的 1/4,096 = 0.024 %：初始权重很小，所有分数都在 0 附近。训练后，大部分概率集中在少数几个词元上。",
    ),
    "lesson.layouts.title": ("Pretrained weights", "预训练权重"),
    "lesson.layouts.says": (
        "Weights are tensors with names: whoever knows the names and which way the matrices lie can load GPT-2 into this code.",
        "权重就是带名字的张量：知道名字、知道矩阵的方向，就能把 GPT-2 装进这份代码。",
    ),
    "lesson.layouts.question": (
        "At Hugging Face c_attn.weight is [768, 2304], here it is [2304, 768]. Why, and does it change the numbers?",
        "在 Hugging Face，c_attn.weight 是 [768, 2304]，这里是 [2304, 768]。为什么？数值会变吗？",
    ),
    "lesson.layouts.answer": (
        "OpenAI's code computes x W, PyTorch's Linear computes x Wᵀ: turning the matrix once while loading gives the same product. And "
        "2304 = 3 × 768: query, key and value lie side by side in one matrix.",
        "OpenAI 的代码算 x W，PyTorch 的 Linear 算 x Wᵀ：加载时转置一次，乘积完全一样。而 2304 = 3 × 768：查询、键、值并排放在一个矩阵里。",
    ),
    "lesson.small.title": ("A small GPT, and padding", "小 GPT 与填充"),
    "lesson.small.says": (
        "The same class makes a GPT of any size, here 2 layers for 10,000 tokens; texts of unequal length share a batch by padding, "
        "which a mask of ones and zeros hides.",
        "同一个类可以造任意大小的 GPT，这里是 2 层、10,000 个词元；长短不一的文本靠填充放进同一批，再用 1 和 0 的掩码把填充遮住。",
    ),
    "lesson.small.question": (
        "Put padding before the text. What moves without the mask, and why does nothing move with it?",
        "在文本前面加填充。没有掩码时什么会变？有掩码时为什么不变？",
    ),
    "lesson.small.answer": (
        "Without it the padding is read like words, and every real token stands at a later position. With it no one looks at padding, "
        "the weight is exactly 0, and positions count real tokens only; what is left is rounding.",
        "没有掩码，填充会被当成词来读，真正的词元位置也都往后挪了。有了掩码，谁也不看填充（权重恰好为 0），位置也只数真正的词元；剩下的只是舍入误差。",
    ),
    "lesson.training.title": ("A model that learns letters", "学字母的模型"),
    "lesson.training.says": (
        "Guess the next character, measure the loss, follow its gradient a small step down, again and again: a tiny GPT learns a "
        "sonnet, a character a token.",
        "猜下一个字符，算损失，沿梯度往下走一小步，一遍又一遍：一个很小的 GPT 在学一首十四行诗，一个字符就是一个词元。",
    ),
    "lesson.training.question": (
        "Move through the updates. What does it learn first: words, frequent letters, or where spaces go?",
        "拖动更新次数。它先学会什么：单词、常见字母，还是空格的位置？",
    ),
    "lesson.training.answer": (
        "First which characters are frequent, then which follow which, so spaces and pieces of words appear; in the end whole "
        "words of the poem. That is memory more than skill: 600 characters are far too few to learn English from.",
        "先学会哪些字符常见，再学会谁跟在谁后面，于是有了空格和单词的碎片；最后是诗里的整个单词。这更像记忆而不是本事：要学会英文，六百个字符太少了。",
    ),
    "lesson.next.title": ("What comes next", "接下来"),
    "lesson.next.says": (
        "Keys and values of earlier tokens never change, so a cache keeps them and each new token costs one step; fused kernels "
        "(flash attention) and rotary positions are the other steps from GPT-2 to the models of today.",
        "前面词元的键和值不会再变，所以用缓存留住它们，每个新词元只花一步；融合的注意力内核（flash attention）和旋转位置编码，是从 GPT-2 走到今天的另外两步。",
    ),
    "lesson.next.question": (
        "Move the text from 64 to 1,024 tokens. How do both curves grow, and what does the cache cost instead?",
        "把文本从 64 个词元调到 1,024 个。两条曲线各怎么涨？缓存的代价又是什么？",
    ),
    "lesson.next.answer": (
        "Without the cache the whole text is read again for each token: more than {times} times the work at 1,024. With it one token is read, "
        "and only looking back grows. The price is memory for every token. Rotary positions turn q and k by their place instead of adding "
        "a vector, as fixed sine waves did before GPT; of two places softmax(q kᵀ) then knows the distance alone.",
        "没有缓存，每写一个词元都要把整段文本重读一遍：1,024 个时是 {times} 倍以上的计算。有缓存只读一个词元，增长的只是回头看的部分；代价是每个词元都要占内存。"
        "旋转位置编码不加向量，而是按位置把 q 和 k 转一个角度（GPT 之前用的是固定的正弦波），这样位置只通过两者的距离影响 softmax(q kᵀ)。",
    ),
}
