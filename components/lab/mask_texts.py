"""The words of the panel on masks, as in components.texts."""

MASKS: dict[str, tuple[str, str]] = {
    "masks.question": ("What must a token not see?", "一个词元不该看到什么？"),
    "masks.position": ("Exchanged token", "被替换的词元"),
    "masks.position.info": (
        "its position; what the model liked best instead is put there",
        "它的位置；换成模型当时最看好的另一个词元",
    ),
    "masks.says": (
        "{old} at position {position} becomes {new}. With the causal mask no earlier prediction moves; without it they "
        "move by up to {most}: every one of them would have seen the future.",
        "位置 {position} 的 {old} 换成 {new}。有因果掩码时，前面的预测都不变；没有它，最多会变动 {most}：每个预测都偷看了未来。",
    ),
    "masks.with": ("with the mask", "有掩码"),
    "masks.without": ("without it", "没有掩码"),
    "masks.moved": ("part of the prediction that moves", "预测中变动的部分"),
    "masks.exchanged": ("exchanged", "被替换"),
    "masks.token": ("the prediction after this token", "这个词元之后的预测"),
    "masks.causal.picture": (
        "How much of the prediction after each token moves: half the sum of all changes of probability. With the mask "
        "the largest before the exchanged token is {kept}, without it {leaked}.",
        "每个词元之后的预测变动了多少：所有概率变化之和的一半。在被替换的词元之前，有掩码时最大 {kept}，没有掩码时 {leaked}。",
    ),
    "masks.padding.question": ("What does padding do to a text?", "填充会怎样影响文本？"),
    "masks.padding": ("Padding", "填充"),
    "masks.padding.info": ("tokens that only fill up the row", "只为凑齐长度的词元数"),
    "masks.side": ("Side", "位置"),
    "masks.side.left": ("left", "左侧"),
    "masks.side.right": ("right", "右侧"),
    "masks.padding.picture": (
        "{n} end-of-text tokens stand on the {side}. With the padding mask no prediction moves by more than {kept}, "
        "without it by up to {moved}.",
        "{side}有 {n} 个文本结束词元。有填充掩码时，预测的变动不超过 {kept}；没有时最多 {moved}。",
    ),
    "masks.padding.right": (
        " On the right it changes nothing: the causal mask already hides what comes later.",
        "放在右侧没有任何影响：因果掩码本来就挡住了后面的内容。",
    ),
    "masks.learn.question": ("Why would it never learn to write?", "为什么那样学不会写作？"),
    "masks.learn": ("Let both learn random letters", "让两个模型学习随机字母"),
    "masks.learn.says": (
        "Two tiny models learn letters drawn by pure chance; nobody can know the next one. The one without the mask "
        "looks it up, and learns nothing else. It takes some seconds.",
        "两个微型模型学习完全随机的字母，谁也不可能知道下一个。没有掩码的那个直接偷看答案，别的什么也没学会。需要几秒钟。",
    ),
    "masks.learn.picture": (
        "After {steps} updates the loss is {kept} with the mask and {cheated} without it. The best honest loss is "
        "{floor}, ln 8.",
        "更新 {steps} 次后，有掩码的损失是 {kept}，没有掩码的是 {cheated}。诚实的模型最好也只能到 {floor}，即 ln 8。",
    ),
    "masks.update": ("update", "更新次数"),
    "masks.loss": ("loss, nats", "损失（奈特）"),
    "masks.floor": ("best honest loss", "诚实的最低损失"),
    "masks.error.short": (
        "Two tokens are needed to exchange one and see what it does: write a little more in the Playground.",
        "至少要有两个词元才能替换其中一个：请在试验台多写一点。",
    ),
}
