"""The words of the Change tab, as in components.texts."""

CHANGE: dict[str, tuple[str, str]] = {
    "tab.change": ("Change it", "改动"),
    "change.question": ("What happens if a part of the model is changed?", "改动模型的一部分会怎样？"),
    "change.nothing": (
        "Nothing is changed: switch something off, or try one of the experiments.",
        "还没有任何改动：关掉一个部件，或者试试下面的实验。",
    ),
    "change.now": ("Changed: {changes}. The model itself stays as it is.", "已改动：{changes}。模型本身不变。"),
    "change.no_edit": ("no change", "没有改动"),
    "change.more": ("{n} more", "另外 {n} 处"),
    "change.off": (" off", "关闭"),
    "change.times": (" × {factor}", "乘以 {factor}"),
    "change.part.head": ("layer {layer} head {head}", "第 {layer} 层第 {head} 个头"),
    "change.part.heads": ("all heads of layer {layer}", "第 {layer} 层全部头"),
    "change.part.attention": ("attention of layer {layer}", "第 {layer} 层的注意力"),
    "change.part.feed": ("feed-forward part of layer {layer}", "第 {layer} 层的前馈部分"),
    "change.part.layer": ("layer {layer}", "第 {layer} 层"),
    "change.part.attentions": ("attention of every layer", "每一层的注意力"),
    "change.part.feeds": ("feed-forward part of every layer", "每一层的前馈部分"),
    "change.swapped": ("{new} in place of {old}", "用 {new} 代替 {old}"),
    "change.no_positions": ("no positions", "去掉位置"),
    "change.patched": (
        "{name} of layer {layer} at position {position} taken from prompt A",
        "第 {layer} 层位置 {position} 的{name}取自提示词 A",
    ),
    "change.reset": ("Reset", "重置"),
    "change.dropped": (
        "This model has no such parts, so these changes were dropped: {changes}.",
        "这个模型没有相应的部件，因此取消了这些改动：{changes}。",
    ),
    "change.waits": (
        "The model is writing in the Playground; this page follows when it has finished.",
        "试验台里的模型正在写；写完后本页会更新。",
    ),
    "change.not_edits": ("These switches could not be read: {problem}.", "无法读取这些开关：{problem}。"),
    # the switches
    "change.switches.name": ("Switches, a row for each layer", "开关，每层一行"),
    "change.switches.layer": ("layer {layer}", "第 {layer} 层"),
    "change.switches.all": ("every layer", "每一层"),
    "change.switches.head": ("head {head}", "第 {head} 个头"),
    "change.switches.attention": ("attention", "注意力"),
    "change.switches.feed": ("feed-forward", "前馈部分"),
    "change.switches.on": ("on", "开"),
    "change.switches.off": ("off", "关"),
    "change.switches.state": ("{part}: {state}", "{part}：{state}"),
    "change.switches.times": ("× {factor}", "乘以 {factor}"),
    "change.switches.cost": ("its removal changes {bits} bits", "去掉它改变 {bits} 比特"),
    "change.switches.legend": (
        "Stronger colour: switching this head off changes the predictions on the first {n} tokens of this text more (up to {most} bits a position).",
        "颜色越浓：关掉这个头，对这段文本前 {n} 个词元的预测改变越大（每个位置最多 {most} 比特）。",
    ),
    "change.switches.keys": (
        "Click: off and on. Shift+click selects for the slider. Keys: arrows, Space, + and −. Layers and heads count from 0.",
        "点击：关闭或打开。Shift+点击：只选中，用滑块调节。键盘：方向键、空格、+ 和 −。层和头都从 0 开始数。",
    ),
    "change.switches.short": ("attn|feed", "注意力|前馈"),
    # the other controls
    "change.activation": ("Activation", "激活函数"),
    "change.positions": ("Drop the positions", "去掉位置"),
    "change.positions.info": ("the model no longer knows which token came first", "模型不再知道哪个词元在前"),
    "change.try": ("Try one", "试一试"),
    "change.try.attention_0": ("Layer 0 without attention", "第 0 层没有注意力"),
    "change.try.feed_0": ("Layer 0 without feed-forward", "第 0 层没有前馈部分"),
    "change.try.attention_all": ("No attention at all", "完全没有注意力"),
    "change.try.no_positions": ("No positions", "没有位置"),
    "change.try.relu": ("ReLU for GELU", "用 ReLU 代替 GELU"),
    "change.try.other_gelu": ("The other GELU", "另一种 GELU"),
    "change.try.attention_0.says": (
        "The first layer no longer mixes tokens; the later ones must do without.",
        "第一层不再混合各个词元，后面的层只能自己应付。",
    ),
    "change.try.feed_0.says": (
        "Every later layer reads what this part makes of each token.",
        "后面的每一层读到的，都是这一部分对各词元加工后的结果。",
    ),
    "change.try.attention_all.says": (
        "Each token stands alone: what comes next depends on this token and its position only.",
        "每个词元都孤立无援：接下来是什么只取决于这个词元和它的位置。",
    ),
    "change.try.no_positions.says": (
        "Only the causal mask still tells the model anything about order.",
        "只有因果掩码还能让模型了解一点顺序。",
    ),
    "change.try.relu.says": (
        "ReLU cuts off what GELU lets through a little below zero; the weights were trained with the other.",
        "GELU 在零以下还会放过一点，ReLU 全部截掉；而权重是用前者训练的。",
    ),
    "change.try.other_gelu.says": (
        "The exact formula and the tanh approximation differ by less than 0.0005 anywhere.",
        "精确公式和 tanh 近似在任何地方都相差不到 0.0005。",
    ),
    "change.try.costliest": ("The head it needs most", "它最需要的头"),
    "change.costs.doing": (
        "Switching off one head after the other: {n} of {total} …",
        "正在逐个关掉头：{n} / {total}……",
    ),
    "change.stop": ("Stop", "停止"),
    # both texts
    "change.texts.question": ("What does it write now?", "现在它会写什么？"),
    "change.both": ("Generate both", "同时生成"),
    "change.original": ("Original", "原来的模型"),
    "change.edited": ("Changed", "改动后的模型"),
    "change.hint": (
        "Click a token of the original to see what comes next there, before and after.",
        "点击原来的模型写的词元，查看那里接下来是什么：改动前和改动后。",
    ),
    "change.edited.empty": (
        "Generate both: the same prompt, seed and settings, token by token.",
        "按“同时生成”：提示词、种子和设置都相同，逐个词元地写。",
    ),
    "change.parted": (
        "With {changes}, the texts part at position {position}: {original} there, {edited} here. Seed {seed}.",
        "改动（{changes}）后，两段文本在位置 {position} 分开：原来是 {original}，现在是 {edited}。种子 {seed}。",
    ),
    "change.parted.never": (
        "With {changes}, both texts agree as far as both go. Seed {seed}.",
        "改动（{changes}）后，两段文本在共同的长度内完全相同。种子 {seed}。",
    ),
    "change.own": (
        "This text was made here; Reset goes back to the one in the Playground.",
        "这段文本是在本页得到的；按“重置”回到试验台的文本。",
    ),
    # what comes next
    "change.bars.question": ("What comes next, before and after?", "接下来是什么：改动前和改动后？"),
    "change.bars.before": ("original", "原来"),
    "change.bars.after": ("changed", "改动后"),
    "change.bars.chosen": ("in the text", "文本中的"),
    "change.bars.same": (
        "After {token}: {best} {p}. Nothing is changed yet.",
        "在 {token} 之后：{best} {p}。还没有改动。",
    ),
    "change.bars.says": (
        "After {token}, this took {most} from {before} to {after}: {changes}. The predictions lie {bits} bits apart.",
        "在 {token} 之后，改动（{changes}）使 {most} 从 {before} 变为 {after}。两个预测相差 {bits} 比特。",
    ),
    "change.bars.best": (" The best guess was {old} and is now {new}.", "原来最看好 {old}，现在是 {new}。"),
    # how far apart
    "change.divergence.question": ("Where does it matter?", "在哪里有影响？"),
    "change.bits": ("bits", "比特"),
    "change.divergence.nothing": (
        "Nothing is changed yet. As soon as something is, a bar for each token shows how far the predictions move there.",
        "还没有任何改动。一旦有改动，每个词元会有一根柱子，显示那里的预测变动了多少。",
    ),
    "change.divergence.none": ("The predictions are the same at every position.", "每个位置的预测都相同。"),
    "change.divergence.says": (
        "On the original's text the predictions lie {mean} bits apart on average, most after {token} (position "
        "{position}): {most} bits.",
        "在原来的文本上，两个预测平均相差 {mean} 比特，差得最多的是 {token}（位置 {position}）之后：{most} 比特。",
    ),
    "change.divergence.cost": (
        " The text itself costs {before} bits a token before, {after} after.",
        "文本本身每个词元的代价：改动前 {before} 比特，改动后 {after} 比特。",
    ),
    "change.divergence.note": (
        "Kullback–Leibler divergence Σ p log₂(p / q) of what follows each token; p the original's, q the changed model's "
        "probabilities, both reading the same tokens. Click a bar.",
        "每个词元之后预测的 KL 散度 Σ p log₂(p / q)；p 是原来的概率，q 是改动后的概率，两者读同样的词元。可以点击柱子。",
    ),
    "change.window": (" Shown: positions {start} to {end} of {n}.", "图中为位置 {start} 到 {end}，共 {n} 个。"),
    "change.python": ("Copy Python", "复制 Python 代码"),
    "change.python.label": ("This comparison as a program", "这个比较的程序"),
    # activation patching
    "change.patch.question": ("Where is the answer on its way?", "答案走到了哪里？"),
    "change.patch.says": (
        "Two prompts of the same number of tokens with different answers. One activation of A at a time is put into the "
        "run on B: where the answer of A returns, that place carries it (activation patching, on the unchanged model).",
        "两个词元数相同、答案不同的提示词。每次把 A 的一个激活值放进读 B 的过程：如果 A 的答案回来了，答案就在那里"
        "（激活修补，用未改动的模型）。",
    ),
    "change.patch.clean": ("Prompt A", "提示词 A"),
    "change.patch.corrupted": ("Prompt B", "提示词 B"),
    "change.patch.example.names": ("Names swapped", "互换名字"),
    "change.patch.example.animals": ("Dog or cat", "狗还是猫"),
    "change.patch.answer": ("Answer of A", "A 的答案"),
    "change.patch.other": ("Answer of B", "B 的答案"),
    "change.patch.found": ("left empty: found by measuring", "留空：测量时自动找出"),
    "change.patch.name": ("What is put in", "放进去的"),
    "change.patch.resid_pre": ("residual stream", "残差流"),
    "change.patch.resid_mid": ("residual stream between attention and feed-forward", "注意力与前馈之间的残差流"),
    "change.patch.resid_post": ("residual stream at the end", "末尾的残差流"),
    "change.patch.attn_out": ("attention output", "注意力输出"),
    "change.patch.mlp_out": ("feed-forward output", "前馈输出"),
    "change.patch.measure": ("Measure", "测量"),
    "change.patch.doing": (
        "Putting in one after the other: {n} of {total} passes …",
        "正在逐个放入：{n} / {total} 次……",
    ),
    "change.patch.empty": ("Type both prompts, or take an example.", "请输入两个提示词，或者选一个例子。"),
    "change.patch.lengths": (
        "A has {a} tokens and B has {b}: they must have the same number, so that each position has a partner. Swap one "
        "word for another of one token, or take an example.",
        "A 有 {a} 个词元，B 有 {b} 个：两者必须一样多，每个位置才有对应。把一个词换成另一个单词元的词，或者选一个例子。",
    ),
    "change.patch.same": ("Both prompts are the same.", "两个提示词相同。"),
    "change.patch.long": (
        "{n} tokens are too many here: at most {limit}.",
        "{n} 个词元太多了：这里最多 {limit} 个。",
    ),
    "change.patch.flat": (
        "Both prompts give {answer} and {other} the same difference of logits: nothing to recover. Choose other answers.",
        "两个提示词给 {answer} 和 {other} 的 logit 差相同，没有可恢复的。请换一对答案。",
    ),
    "change.patch.token": (
        "{text} is not one token of this vocabulary: choose from the list.",
        "{text} 不是这个词表中的单个词元：请从列表中选择。",
    ),
    "change.patch.alike": ("The two answers must differ.", "两个答案必须不同。"),
    "change.patch.scale": ("way back from B to A", "从 B 回到 A 的程度"),
    "change.patch.map": (
        "{answer} less {other}: logit difference {clean} after A, {corrupted} after B. Most returns with the {name} of "
        "layer {layer} at {token} (position {position}): {share}.",
        "{answer} 减 {other} 的 logit 差：A 之后 {clean}，B 之后 {corrupted}。恢复最多的是第 {layer} 层 {token}（位置 "
        "{position}）的{name}：{share}。",
    ),
    "change.patch.note": (
        "Each cell: (difference after B with the patch − after B) / (after A − after B). 0: still B's answer; 100 %: A's. "
        "Click a cell.",
        "每一格：（放入后 B 的差 − B 的差）/（A 的差 − B 的差）。0：仍是 B 的答案；100 %：A 的答案。可以点击。",
    ),
    "change.patch.cell": (
        "Layer {layer}, {token} (position {position}): with the {name} of A the difference goes from {corrupted} to "
        "{value}, {share} of the way to {clean}.",
        "第 {layer} 层，{token}（位置 {position}）：放入 A 的{name}后，差从 {corrupted} 变为 {value}，走了到 {clean} 的 {share}。",
    ),
    "change.patch.keep": ("Keep this patch, on prompt B", "保留这处修补，用于提示词 B"),
}
