"""The words of steering: choosing, branches, the draw, what the tint of the text stands for."""

PLAYGROUND: dict[str, tuple[str, str]] = {
    # buttons
    "undo": ("↶ Undo", "↶ 撤销"),
    "redo": ("↷ Redo", "↷ 重做"),
    "back": ("Back to here", "回到这里"),
    "go_on": ("Continue from here", "从这里继续写"),
    # choosing what comes next
    "bars.choose": (
        "What if? Click a bar to put that token there; at an earlier token this starts a branch.",
        "换一个会怎样？点击一条，就把那个词元放在这里；选中较早的词元时，会从那里开出一个分支。",
    ),
    "bars.row": ("{token}: raw {before}, after the settings {after}", "{token}：原始 {before}，经过设置后 {after}"),
    "box": ("Something else", "换成别的"),
    "box.placeholder": ("any text, a token, or an id", "任意文本、词元或编号"),
    "box.info": (
        "Enter appends it as it stands; a space in front begins a new word.",
        "按 Enter 原样追加；英文开头加一个空格表示新的单词。",
    ),
    "box.name": ("Found in the vocabulary", "在词表中找到的"),
    "box.token": ("token and id", "词元与编号"),
    "box.text": ("Append “{text}” as text: {n} tokens", "把“{text}”作为文本追加：{n} 个词元"),
    "box.text.one": ("Append “{text}” as text: {n} token", "把“{text}”作为文本追加：{n} 个词元"),
    # what a person did
    "status.chosen": ("{token} put in by hand", "手动放入 {token}"),
    "status.typed": ("“{text}” typed", "键入“{text}”"),
    "status.undone": ("Undone", "已撤销"),
    "status.redone": ("Redone", "已重做"),
    "status.back": ("Back to {token}: what stood behind it is a branch now", "回到 {token}：后面的内容成为一个分支"),
    "status.switched": ("Another branch", "已换到另一个分支"),
    "status.position": ("context {position}/{limit}", "上下文 {position}/{limit}"),
    "error.room": (
        "{n} tokens do not fit: there is room for {room} in the context of {limit}.",
        "放不下 {n} 个词元：{limit} 个词元的上下文只剩 {room} 个位置。",
    ),
    # the draw
    "draw.says": (
        "How {token} was drawn: the number {number} of seed {seed} at position {position} fell between {start} and {end}.",
        "{token} 是怎样抽中的：种子 {seed} 在位置 {position} 给出的数 {number} 落在 {start} 与 {end} 之间。",
    ),
    "draw.mark": ("{number} falls here", "{number} 落在这里"),
    "draw.others": ("{n} others", "其余 {n} 个"),
    "draw.greedy": (
        "{token} was not drawn: at temperature 0 the best token is always taken.",
        "{token} 不是抽中的：温度为 0 时总是取最佳词元。",
    ),
    "draw.chosen": ("{token} was not drawn: you chose it.", "{token} 不是抽中的：是你选的。"),
    "draw.typed": ("{token} was not drawn: you typed it.", "{token} 不是抽中的：是你键入的。"),
    # branches
    "tree.says": ("{n} branches: click one to switch to it", "{n} 个分支：点击其中一个切换过去"),
    "tree.says.one": ("The text goes on: click to return to its end", "文本后面还有内容：点击回到末尾"),
    "tree.more": (" ({n} more are not drawn)", "（另有 {n} 个未画出）"),
    "tree.forgotten": (
        "To save memory, what the model made of {n} tokens in old branches was forgotten; it reads them again when you "
        "return.",
        "为节省内存，旧分支中 {n} 个词元的计算结果已被遗忘；回到那里时模型会重新读一遍。",
    ),
    # what the tint stands for
    "strip.hint.probability": (
        "Stronger colour: the model gave it more probability. Click any token to look inside.",
        "颜色越浓，模型给它的概率越高。点击任意词元查看内部。",
    ),
    "strip.hint.rank": (
        "Stronger colour: the token stood higher in the model's list. Click any token to look inside.",
        "颜色越浓，词元在模型的名单上名次越高。点击任意词元查看内部。",
    ),
    "strip.hint.entropy": (
        "Stronger colour: the model was less sure what would come there. Click any token to look inside.",
        "颜色越浓，模型在那里越拿不准。点击任意词元查看内部。",
    ),
    "strip.hint.surprisal": (
        "Stronger colour: the token surprised the model more. Click any token to look inside.",
        "颜色越浓，词元越出乎模型意料。点击任意词元查看内部。",
    ),
    "strip.hint.attention": (
        "Shaded by where {token} looked. Click any token to look inside.",
        "深浅表示 {token} 看向哪里。点击任意词元查看内部。",
    ),
    "strip.shading": ("Shade by", "着色依据"),
    "strip.shading.probability": ("probability", "概率"),
    "strip.shading.rank": ("rank", "名次"),
    "strip.shading.entropy": ("entropy", "熵"),
    "strip.shading.surprisal": ("surprisal", "意外程度"),
    "strip.shading.attention": ("attention", "注意力"),
    # along the text
    "strip.curve": ("Surprise along the text", "沿文本的意外程度"),
    "strip.entropy": ("entropy", "熵"),
    "strip.surprise": ("surprisal", "意外程度"),
    "strip.unit": ("bits", "比特"),
    "strip.here": (
        "“{token}”: surprisal {surprise}, entropy before it {entropy}",
        "“{token}”：意外程度 {surprise}，它之前的熵 {entropy}",
    ),
    "strip.totals": (
        "{n} tokens surprised the model by {mean} each on average: perplexity {perplexity}",
        "{n} 个词元平均每个让模型意外 {mean}：困惑度 {perplexity}",
    ),
}
