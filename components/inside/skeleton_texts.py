"""The words of the skeleton in the machine's place, as in `texts`."""

SKELETON: dict[str, tuple[str, str]] = {
    "bare.shown": ("Model in the picture", "图中的模型"),
    "bare.whole": ("whole model", "完整模型"),
    "bare.skeleton": ("skeleton", "骨架"),
    "bare.lead": (
        "The skeleton: this model's own embeddings and head; every block and norm between them is an identity, which hands "
        "on what it gets. No token looks at another.",
        "骨架：嵌入和输出头都是这个模型自己的，中间的每个块、每次归一化都换成恒等映射，原样传递。词元之间谁也不看谁。",
    ),
    "bare.title": ("{n} blocks, each an identity", "{n} 个块，个个都是恒等映射"),
    "bare.identity": ("identity", "恒等"),
    "bare.name": ("The way of each token through the skeleton", "每个词元穿过骨架的路"),
    "bare.keys": (
        "Click a token. With the keyboard: Tab moves from part to part, ↑ ↓ change the token.",
        "点击词元。键盘：Tab 逐个移动，↑ ↓ 换词元。",
    ),
    "bare.stack": (
        "The other layers\nEach is an identity: what goes in comes out.\nx → x, |x| = {norm}",
        "其余各层\n每层都是恒等映射：进去什么，出来就是什么。\nx → x，|x| = {norm}",
    ),
    "bare.pre": (
        "Residual stream\nWhat was embedded; nothing else is ever written here.\n|x| = {norm}",
        "残差流\n就是嵌入的结果；这里再也不会写入别的东西。\n|x| = {norm}",
    ),
    "bare.attn": (
        "Attention: identity\nNothing is computed here, and no token looks at another.\nx → x, |x| = {norm}",
        "注意力：恒等\n这里什么也不计算，词元之间谁也不看谁。\nx → x，|x| = {norm}",
    ),
    "bare.mid": (
        "Residual stream, where attention would have added\nThe same vector as before.\n|x| = {norm}",
        "残差流，本该加上注意力的地方\n和之前是同一个向量。\n|x| = {norm}",
    ),
    "bare.mlp": (
        "Feed-forward part: identity\nNothing is computed here.\nx → x, |x| = {norm}",
        "前馈层：恒等\n这里什么也不计算。\nx → x，|x| = {norm}",
    ),
    "bare.post": (
        "Residual stream, after the layer\nThe same vector as before.\n|x| = {norm}",
        "残差流，离开这一层\n和之前是同一个向量。\n|x| = {norm}",
    ),
    "bare.fin": (
        "Last LayerNorm: identity\nThe head reads the embedding as it is.\nx → x, |x| = {norm}",
        "最后的归一化：恒等\n输出头直接读嵌入。\nx → x，|x| = {norm}",
    ),
    "bare.heads": (
        "These are the heads of the whole model: the skeleton has none.",
        "这些是完整模型的头：骨架里没有头。",
    ),
    "bare.says": (
        "The head gets {token} (position {position} of {n}) as it was embedded, and nothing of the tokens before it: the skeleton "
        "expects {best}. The whole model expects {full}.",
        "输出头拿到的 {token}（位置 {position}，共 {n} 个）就是刚嵌入时的样子，没有前面词元的任何内容：骨架预期 {best}。"
        "完整模型预期 {full}。",
    ),
}
