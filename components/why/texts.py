"""The words of the Why tab, as in components.texts."""

WHY: dict[str, tuple[str, str]] = {
    "tab.why": ("Why?", "为什么"),
    "why.question": ("Why this token?", "为什么是这个词元？"),
    "why.lead": (
        "After {here}, position {position}, the model gave {token} {p}: rank {rank} of {total}.",
        "在位置 {position} 的 {here} 之后，模型给 {token} 的概率是 {p}：{total} 个词元中的第 {rank} 名。",
    ),
    "why.lead.follows": (" It is what the text goes on with.", "文本接下来就是它。"),
    "why.lead.best": (" Its best guess was {best}, {p}.", "模型最看好的是 {best}，{p}。"),
    "why.token": ("Ask about", "询问"),
    "why.waits": ("The model is writing; this page follows when it has finished.", "模型正在写；写完后本页会更新。"),
    "why.doing.reading": ("Reading the text …", "正在读文本……"),
    "why.doing.gradient": ("Going back through the model for the gradient …", "正在反向通过模型求梯度……"),
    "why.doing.left_out": (
        "Leaving out one token after the other: {n} of {total} …",
        "正在逐个去掉词元：{n} / {total}……",
    ),
    "why.doing.roles": ("Measuring what each head does …", "正在测量每个头的作用……"),
    # the text
    "why.text.question": ("Which tokens does it hang on?", "它取决于哪些词元？"),
    "why.method": ("Measured by", "衡量方法"),
    "why.method.gradient": ("gradient", "梯度"),
    "why.method.left_out": ("leaving out", "逐个去掉"),
    "why.method.gradient.says": (
        "Input × gradient: how far the log probability of {token} would fall, to first order, if a token's embedding "
        "faded away. Click a token to ask about what follows it.",
        "输入 × 梯度：如果某个词元的嵌入逐渐消失，{token} 的对数概率（一阶近似）会降低多少。点击词元可询问它后面的词元。",
    ),
    "why.method.left_out.says": (
        "How far the log probability of {token} really falls when a token is left out and the rest moves up. Click a "
        "token to ask about what follows it.",
        "去掉某个词元、后面的依次前移时，{token} 的对数概率实际降低多少。点击词元可询问它后面的词元。",
    ),
    "why.influence": ("share of the influence", "影响占比"),
    "why.influence.says": (" Most for {token}: {most}.", "最支持 {token} 的是：{most}。"),
    "why.influence.against": (" Most against {token}: {least}.", "最反对 {token} 的是：{least}。"),
    "why.influence.window": (
        " Only the last {n} tokens before it were left out; the text is long.",
        "文本较长，只逐个去掉了它前面的最后 {n} 个词元。",
    ),
    "why.influence.long": (
        "For a gradient this model can take {limit} tokens at most, and {n} stand before the prediction. Choose an "
        "earlier token, or leave tokens out.",
        "这个模型求梯度最多用 {limit} 个词元，而预测之前有 {n} 个。请选择更靠前的词元，或改用“逐个去掉”。",
    ),
    "why.influence.one": (
        "Nothing stands before this token, so nothing can be left out.",
        "这个词元之前没有别的词元，无法去掉。",
    ),
    "why.nats": ("{value} nats", "{value} 奈特"),
    # the lens
    "why.lens.question": ("When does the model know it?", "模型什么时候知道的？"),
    "why.lens.says": (
        "Each cell: the token the model would bet on if it ended there. Above, what it read; below, what really came.",
        "每一格：如果模型到此为止，它最看好的词元。上方是读入的词元，下方是实际出现的词元。",
    ),
    "why.lens.scale": ("probability of the best token", "最佳词元的概率"),
    "why.lens.early": (
        "At {here}, the final best token {best} leads from layer {layer} on.",
        "在 {here} 处，最终的最佳词元 {best} 从第 {layer} 层起一直领先。",
    ),
    "why.lens.after": (
        "At {here}, the final best token {best} leads only after the last feed-forward part.",
        "在 {here} 处，最终的最佳词元 {best} 要到最后一个前馈部分之后才领先。",
    ),
    "why.lens.late": (
        "At {here}, the final best token {best} leads only in the last layer.",
        "在 {here} 处，最终的最佳词元 {best} 到最后一层才领先。",
    ),
    "why.lens.window": (" Shown: positions {start} to {end} of {n}.", "图中为 {n} 个位置中的 {start} 到 {end}。"),
    "why.lens.tip": (
        "{where}, after {here}: {best} {p}, entropy {entropy} bits",
        "{where}，{here} 之后：{best} {p}，熵 {entropy} 比特",
    ),
    "why.stage": ("Looked at", "查看位置"),
    "why.stage.resid_mid": ("after attention", "注意力之后"),
    "why.stage.resid_post": ("after feed-forward", "前馈层之后"),
    "why.stage.resid_mid.of": ("layer {layer} after attention", "第 {layer} 层注意力之后"),
    "why.stage.resid_post.of": ("layer {layer} after feed-forward", "第 {layer} 层前馈层之后"),
    "why.cell.question": ("What would it say there?", "它在那里会说什么？"),
    "why.cell.says": (
        "In {where}, after {here}: {best} {p}. Click another cell to open it.",
        "{where}，{here} 之后：{best} {p}。点击其他格可打开。",
    ),
    "why.path.question": ("How does {token} rise?", "{token} 怎样上升？"),
    "why.path.rank": ("rank", "名次"),
    "why.path.says": (
        "{token} starts at rank {first} and ends at rank {last} with {p}.",
        "{token} 从第 {first} 名开始，最后是第 {last} 名，概率 {p}。",
    ),
    "why.path.best": (" It is first the best in {where}.", "它最早在{where}成为最佳。"),
    # what adds to the logit
    "why.parts.question": ("What adds to its score?", "它的得分由什么相加而成？"),
    "why.parts.says": (
        "The score of a token, its logit, is a sum: each part of the model adds to it or takes away from it.",
        "词元的得分（logit）是一个和：模型的每个部分各自加上或减去一些。",
    ),
    "why.order": ("Order", "排序"),
    "why.order.size": ("largest first", "从大到小"),
    "why.order.layer": ("by layer", "按层"),
    "why.against": ("Against", "对比"),
    "why.against.none": ("nothing", "无"),
    "why.part.embedding": ("embedding", "嵌入"),
    "why.part.position": ("position", "位置"),
    "why.part.biases": ("biases", "偏置"),
    "why.part.embedding.short": ("emb.", "嵌入"),
    "why.part.position.short": ("pos.", "位置"),
    "why.part.biases.short": ("bias", "偏置"),
    "why.part.head": ("layer {layer} head {head}", "第 {layer} 层头 {head}"),
    "why.part.mlp": ("layer {layer} feed-forward", "第 {layer} 层前馈"),
    "why.part.rest": ("the other {n} parts", "其余 {n} 个部分"),
    "why.parts.attention": ("heads together", "各头之和"),
    "why.parts.mlp": ("feed-forward", "前馈层"),
    "why.parts.logit": ("added to the logit", "加到 logit 上"),
    "why.parts.sum": (
        "Embedding {embedding}, position {position}, heads {heads}, feed-forward {mlp}, biases {biases}: together "
        "{total}, the logit of {token}.",
        "嵌入 {embedding}，位置 {position}，各头 {heads}，前馈层 {mlp}，偏置 {biases}：合计 {total}，即 {token} 的 logit。",
    ),
    "why.parts.difference": (
        "Embedding {embedding}, position {position}, heads {heads}, feed-forward {mlp}, biases {biases}: together "
        "{total}, the logit of {token} less that of {against}.",
        "嵌入 {embedding}，位置 {position}，各头 {heads}，前馈层 {mlp}，偏置 {biases}：合计 {total}，即 {token} 的 logit 减去 "
        "{against} 的 logit。",
    ),
    "why.parts.frozen": (
        "The last LayerNorm divides everything by {scale} here; with that number held fixed (“frozen”) the sum is "
        "exact. What a part does through later layers is not counted.",
        "最后的 LayerNorm 在这里把一切除以 {scale}；把这个数固定（“冻结”）后，求和是精确的。各部分经由后面的层产生的作用不计在内。",
    ),
    "why.heads.says": (
        "Most: {most}. Least: {least}. Click a head to open it.",
        "最多：{most}。最少：{least}。点击一个头可打开它。",
    ),
    # what heads do
    "why.roles.question": ("What is each head for?", "每个头负责什么？"),
    "why.role": ("Role", "作用"),
    "why.role.previous_token": ("previous token", "前一个词元"),
    "why.role.first_token": ("first token", "第一个词元"),
    "why.role.same_token": ("same token", "相同词元"),
    "why.role.induction": ("induction", "归纳"),
    "why.role.previous_token.is": (
        "The attention that goes to the token just before, on average over the text.",
        "投向紧挨着的前一个词元的注意力，取全文平均。",
    ),
    "why.role.first_token.is": (
        "The attention that goes to the first token, where heads with nothing to do rest; average over the text.",
        "投向第一个词元的注意力，取全文平均；无事可做的头常停在那里。",
    ),
    "why.role.same_token.is": (
        "The attention that goes to earlier copies of the same token; average over the tokens that occurred before.",
        "投向前面相同词元的注意力，对前面出现过的词元取平均。",
    ),
    "why.role.induction.is": (
        "The attention that goes to what came after earlier copies of the same token: “A B … A” looks at B. Average "
        "over the tokens that have such a place.",
        "投向前面相同词元之后那个词元的注意力：“A B … A”看向 B。对有这种位置的词元取平均。",
    ),
    "why.sample": ("Measured on", "测量文本"),
    "why.sample.text": ("this text", "这段文本"),
    "why.sample.noise": ("random tokens, twice", "重复两遍的随机词元"),
    "why.roles.scale": ("share of the attention", "注意力占比"),
    "why.roles.says": (
        "Strongest: {most}. Measured on {n} tokens. Click a head to open it.",
        "最强的是：{most}。共测量 {n} 个词元。点击一个头可打开它。",
    ),
    "why.roles.none": (
        "No token of this text has a place to measure this at. Try the random tokens that come twice.",
        "这段文本里没有可以测量它的位置。可以改用重复两遍的随机词元。",
    ),
    # the head that is open
    "why.head.question": ("Where does the open head look?", "打开的头看向哪里？"),
    "why.head.says": (
        "The head that is selected in every tab, from the position that is asked about.",
        "所有标签页中选中的那个头，从所询问的位置看出去。",
    ),
}
