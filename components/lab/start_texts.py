"""The words of the panels on initialisation and weight tying, as in components.texts."""

STARTS: dict[str, tuple[str, str]] = {
    "start.question": ("Where does a model start from?", "一个模型从哪里开始？"),
    "start.layers": ("Layers", "层数"),
    "start.width": ("Width", "宽度"),
    "start.vocabulary": ("Vocabulary", "词表大小"),
    "start.std": ("First weights", "初始权重"),
    "start.std.info": ("standard deviation; GPT-2's is 0.02", "标准差；GPT-2 用 0.02"),
    "start.seed": ("Seed", "随机种子"),
    "start.says": (
        "A fresh model's loss is {loss} nats; knowing nothing costs ln {vocabulary} = {uniform}. {verdict}",
        "全新模型的损失是 {loss} 奈特；一无所知的代价是 ln {vocabulary} = {uniform}。{verdict}",
    ),
    "start.verdict.near": ("It starts without opinions.", "它起步时没有任何成见。"),
    "start.verdict.far": (
        "Weights this large make it sure of nonsense before it has read a word.",
        "这么大的权重让它一个字没读就对胡言乱语深信不疑。",
    ),
    "start.logit": ("logit", "logit 分数"),
    "start.share": ("share of the vocabulary", "占词表的比例"),
    "start.logits.says": (
        "The logits after one text: standard deviation {std}; the best token has probability {best}, an even share "
        "would be {even}.",
        "一段文本之后的 logit 分数：标准差 {std}；最可能的词元概率 {best}，平均分配则是 {even}。",
    ),
    "start.norms.question": ("How long does a token's vector become?", "词元的向量会变多长？"),
    "start.scaled": ("residual projections × 1/√(2 × layers)", "残差投影 × 1/√(2 × 层数)"),
    "start.unscaled": ("without that", "不缩放"),
    "start.trained": (
        "The model that is running now goes from {begin} to {end} on the Playground's text.",
        "现在运行的模型在试验台的文本上，从 {begin} 增长到 {end}。",
    ),
    "start.after": ("after layer", "层之后"),
    "start.norm": ("mean length", "平均长度"),
    "start.norms.says": (
        "Every layer adds to the residual stream twice. From {begin} the length grows to {scaled} with GPT-2's scaling "
        "by {factor}, and to {unscaled} without.",
        "每一层向残差流相加两次。长度从 {begin} 起，按 GPT-2 的做法乘 {factor} 时增长到 {scaled}，不缩放则到 {unscaled}。",
    ),
    # weight tying
    "tying.question": ("What if embedding and head are one matrix?", "嵌入和输出头共用一个矩阵会怎样？"),
    "tying.shape": ("Shape", "结构"),
    "tying.shape.picked": ("the model picked above", "上方选中的模型"),
    "tying.shape.untied": ("GPT-2 small, no QKV bias", "GPT-2 small，无 QKV 偏置"),
    "tying.tied": ("Tied", "共享"),
    "tying.says": (
        "{now} parameters {state}; {other} {other_state}. Sharing saves {saved} = {vocabulary} × {width}, {share} of them.",
        "{state}时 {now} 个参数，{other_state}时 {other} 个。共享省下 {saved} = {vocabulary} × {width}，占 {share}。",
    ),
    "tying.state.tied": ("tied", "共享"),
    "tying.state.untied": ("untied", "不共享"),
    "tying.taught.question": ("What does one matrix change?", "共用一个矩阵改变了什么？"),
    "tying.taught": (
        "A small fresh model, {state}: {own} of the tokens score highest at the head when their own embedding comes "
        "there directly, and one update on {tokens} tokens teaches {rows} of the embedding's rows.",
        "一个全新的小模型（{state}）：把词元自己的嵌入直接送到输出头，{own} 的词元给自己打分最高；用 {tokens} 个词元更新一次，"
        "会改变嵌入矩阵中 {rows} 的行。",
    ),
    "tying.near.question": ("Which rows lie together?", "哪些行靠得最近？"),
    "tying.near": (
        "Rows of the running model's embedding nearest to that of {token}, the token selected in the Playground, by "
        "cosine.",
        "在正在运行的模型的嵌入中，与试验台所选词元 {token} 的行最接近的行（余弦相似度）。",
    ),
    "tying.near.token": ("token", "词元"),
    "tying.near.similarity": ("cosine", "余弦"),
}
