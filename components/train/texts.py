"""The words of the Train tab, in English and in Simplified Chinese."""

TRAIN: dict[str, tuple[str, str]] = {
    "tab.train": ("Train", "训练"),
    "train.question": ("How does a GPT learn?", "GPT 是怎样学习的？"),
    "train.lead": (
        "It guesses the next token, hears the right one, and every weight moves a little so that the guess would have been better. Start one here, with random weights, and watch it get there.",
        "它猜下一个词元，得知正确答案，然后每个权重都挪动一点点，好让刚才的猜测更准。在这里从随机权重开始训练一个，看着它学会。",
    ),
    # what to learn
    "train.task": ("What to learn", "学什么"),
    "train.task.sort": ("Sort letters", "字母排序"),
    "train.task.reverse": ("Reverse", "倒着写"),
    "train.task.add": ("Add", "加法"),
    "train.task.copy": ("Copy", "隔空照抄"),
    "train.task.text": ("Your text", "你的文本"),
    "train.about.sort": (
        "Eight letters, then the same letters in the order of the alphabet: {example}. One example in ten is never trained on; those are the exam.",
        "先给八个字母，再按字母表顺序写出：{example}。每十个例子里有一个从不参与训练，留作考试。",
    ),
    "train.about.reverse": (
        "Eight letters, then the same letters backwards: {example}. One example in ten is never trained on; those are the exam.",
        "先给八个字母，再倒着写出：{example}。每十个例子里有一个从不参与训练，留作考试。",
    ),
    "train.about.add": (
        "Two numbers of two digits and their sum, digit by digit: {example}. One sum in ten is never trained on, in either order; those are the exam.",
        "两个两位数和它们的和，逐位写出：{example}。每十道题里有一道（交换加数也算同一道）从不参与训练，留作考试。",
    ),
    "train.about.copy": (
        "Letters, a gap, one of the letters again, then what followed it before: {example}. To look up what came next last time is what an induction head does. One example in ten is never trained on; those are the exam.",
        "几个字母，一段空隙，其中一个字母再次出现，然后写出上次跟在它后面的字母：{example}。查找“上次它后面是什么”正是归纳头做的事。每十个例子里有一个从不参与训练，留作考试。",
    ),
    "train.about.text": (
        "Paste a text or upload a UTF-8 file of up to 1 MB. The model learns it character by character; the last tenth is held back to see whether it learned more than the words by heart.",
        "粘贴一段文本，或上传不超过 1 MB 的 UTF-8 文件。模型逐字符学习；最后十分之一不参与训练，用来检验它是不是只会死记硬背。",
    ),
    "train.text": ("Text", "文本"),
    "train.text.placeholder": ("Paste at least a page; more is better.", "至少粘贴一页，越多越好。"),
    "train.upload": ("Upload a text file", "上传文本文件"),
    "train.example": ("Take the code of this model", "用这个模型自己的代码"),
    "train.example.name": ("the code of this model", "这个模型的代码"),
    "train.source": (
        "To be learned: {name}, {n} characters, {different} different ones.",
        "将要学习：{name}，{n} 个字符，其中不同的有 {different} 个。",
    ),
    # the model
    "train.settings": ("The model and its training", "模型与训练设置"),
    "train.n_layer": ("Layers", "层数"),
    "train.n_head": ("Heads in each layer", "每层头数"),
    "train.n_embd": ("Width", "宽度"),
    "train.steps": ("Steps", "步数"),
    "train.steps.info": ("updates of all weights", "更新全部权重的次数"),
    "train.rate": ("Learning rate", "学习率"),
    "train.rate.info": ("how far each step goes; 30 breaks it", "每一步走多远；30 就会学坏"),
    "train.seconds": ("Time limit", "时间上限"),
    "train.seconds.info": ("seconds, pauses included", "秒，含暂停时间"),
    # the run
    "train.start": ("Start training", "开始训练"),
    "train.pause": ("Pause", "暂停"),
    "train.continue": ("Continue", "继续"),
    "train.cancel": ("Cancel", "取消"),
    "train.factor": ("While it trains: rate ×", "训练中：学习率 ×"),
    "train.open": ("Open it in every tab", "在所有标签页中打开"),
    "train.download": ("Download the model", "下载模型"),
    "train.idle": ("Nothing is being trained.", "现在没有训练。"),
    "train.waiting": (
        "Waiting for a free processor: place {place} in the queue.",
        "正在等待空闲的处理器：排在第 {place} 位。",
    ),
    "train.training": (
        "Training: step {step} of {steps} · {rate} steps/s · {seconds} s · {parameters} parameters · learning rate {lr}",
        "训练中：第 {step} / {steps} 步 · 每秒 {rate} 步 · {seconds} 秒 · {parameters} 个参数 · 学习率 {lr}",
    ),
    "train.paused": (
        "Paused at step {step} of {steps} · {seconds} s, and the time limit runs on.",
        "已暂停在第 {step} / {steps} 步 · {seconds} 秒，时间上限仍在计时。",
    ),
    "train.finished": (
        "Finished after {step} steps and {seconds} s · {parameters} parameters.",
        "训练完成：{step} 步，{seconds} 秒 · {parameters} 个参数。",
    ),
    "train.early": (
        "The time limit of {limit} s was over after {step} of {steps} steps: this is what it has learned so far · {parameters} parameters.",
        "{limit} 秒的时间上限已到，完成了 {step} / {steps} 步：这是到此为止学到的 · {parameters} 个参数。",
    ),
    "train.cancelled": ("Cancelled at step {step}.", "已取消，停在第 {step} 步。"),
    "train.infinite": (
        "The loss became infinite at step {step}: the steps were too large. Start again with a lower learning rate.",
        "损失在第 {step} 步变成了无穷大：步子迈得太大了。请降低学习率，重新开始。",
    ),
    "train.broke": (
        "The training broke off at step {step}; the log of the server says why.",
        "训练在第 {step} 步意外中断；原因在服务器日志里。",
    ),
    "train.gone": ("This training is gone: start another one.", "这次训练已不存在：请重新开始。"),
    "train.opened": (
        "It is in the list of models at the top of the page, for you alone, until you leave the page.",
        "它已出现在页面顶部的模型列表里，只有你能看到，离开页面后消失。",
    ),
    "train.model.name": ("{task} · trained by you", "{task} · 由你训练"),
    # the curve
    "train.curve.question": ("How wrong is it?", "它错得有多厉害？"),
    "train.curve.step": ("step", "步"),
    "train.curve.loss": ("loss, nats", "损失（奈特）"),
    "train.curve.training": ("on what it trains on", "训练数据"),
    "train.curve.held_back": ("on what it never saw", "从未见过的数据"),
    "train.curve.guessing": ("guessing: ln {n}", "瞎猜：ln {n}"),
    "train.curve.accuracy": ("right, %", "答对 %"),
    "train.curve.rate": ("rate", "学习率"),
    "train.curve.says": (
        "Step {step}: {loss} nats a token on what it has never seen; pure guessing costs {guessing}.",
        "第 {step} 步：在从未见过的数据上，每个词元 {loss} 奈特；纯靠瞎猜是 {guessing}。",
    ),
    "train.curve.says.accuracy": (
        " {accuracy} of {n} unseen examples are entirely right.",
        "{n} 个没见过的例子中，{accuracy} 全对。",
    ),
    "train.curve.says.goal": (" 99 % were reached at step {step}.", "第 {step} 步达到 99%。"),
    "train.curve.note": (
        "Small jumps in the training line are batches that were easier or harder. Click a step to see the model of that moment.",
        "训练那条线上的小起伏，是因为各批数据难易不同。点击某一步，可以看那一刻的模型。",
    ),
    # samples and attention
    "train.moment": ("Step to look at", "查看哪一步"),
    "train.moment.info": ("at the right end: the newest", "最右端：最新的一步"),
    "train.samples.question": ("What does it write?", "它写出什么？"),
    "train.samples.given": ("given", "给出"),
    "train.samples.written": ("it writes", "它写的"),
    "train.samples.expected": ("right answer", "正确答案"),
    "train.samples.right": ("✓ right", "✓ 对"),
    "train.samples.wrong": ("✗ wrong", "✗ 错"),
    "train.samples.says": (
        "At step {step}: {right} of these {n} are right. It has never trained on them.",
        "第 {step} 步：这 {n} 个里对了 {right} 个。训练时从未用过它们。",
    ),
    "train.samples.says.text": (
        "At step {step}, at temperature 0.8, after the first character of the text:",
        "第 {step} 步，温度 0.8，从文本的第一个字符接着写：",
    ),
    "train.attention.question": ("Where does it look?", "它看向哪里？"),
    "train.attention.says": (
        "Step {step}, layer {layer} head {head}: about to write {next}, it looks most at {targets}.",
        "第 {step} 步，第 {layer} 层第 {head} 个头：即将写 {next} 时，主要看向 {targets}。",
    ),
    "train.attention.heads": (
        "All heads on one example that is never trained on. At step {step} head {head} of layer {layer} looks most at what has to be written next: {share} of its weight.",
        "所有的头，看的是同一个从不参与训练的例子。第 {step} 步时，第 {layer} 层第 {head} 个头最关注接下来该写的词元：占它权重的 {share}。",
    ),
    "train.attention.keys": (
        "A row for each layer, a picture for each head, in its own colour. Click a head to enlarge it; arrow keys and Enter do the same.",
        "每行一层，每张小图一个头，颜色各不相同。点击某个头可以放大；也可用方向键和回车键。",
    ),
    # refusals
    "train.error.empty": (
        "There is no text to learn from: paste one or upload a file.",
        "没有可学的文本：请粘贴一段，或上传文件。",
    ),
    "train.error.short": (
        "The text has {n} characters, and {limit} are the least that can be learned from.",
        "文本只有 {n} 个字符，至少要有 {limit} 个才能学。",
    ),
    "train.error.large": (
        "The text has {n} bytes, more than the {limit} that can be learned here.",
        "文本有 {n} 字节，超过了这里能学的 {limit} 字节。",
    ),
    "train.error.not_text": (
        "{name} is not text in UTF-8. Save it as plain text with the encoding UTF-8 and upload it again.",
        "{name} 不是 UTF-8 编码的文本。请另存为 UTF-8 编码的纯文本后再上传。",
    ),
    "train.error.choice": ("{name} must be one of {choices}.", "{name}必须是以下之一：{choices}。"),
    "train.error.number": ("{name} must be a number from {low} to {high}.", "{name}必须是 {low} 到 {high} 之间的数。"),
    "train.error.busy": (
        "One training at a time: cancel the one at hand, or wait for its end.",
        "一次只能训练一个：请取消正在进行的训练，或等它结束。",
    ),
    "train.error.full": (
        "Too many visitors are waiting to train: try again in a few minutes.",
        "排队训练的人太多了：请几分钟后再试。",
    ),
    # scaling
    "scaling.question": ("Does a bigger one learn more?", "模型越大，学得越多吗？"),
    "scaling.lead": (
        "Three models of different size have read the same stories in the same order, beforehand. Each curve is one model as it reads on.",
        "三个大小不同的模型，事先按同样的顺序读了同样的故事。每条曲线是一个模型在阅读过程中的变化。",
    ),
    "scaling.name": ("{n} parameters", "{n} 个参数"),
    "scaling.tokens": ("tokens read", "读过的词元数"),
    "scaling.flops": ("operations spent on training", "训练所用的运算次数"),
    "scaling.parameters": ("parameters, without embeddings", "参数量（不含嵌入）"),
    "scaling.loss": ("loss, nats per token", "损失（奈特/词元）"),
    "scaling.after": ("after {n} tokens", "读过 {n} 个词元"),
    "scaling.end": ("at the end", "最后"),
    "scaling.bundled": ("Stories, this app's model", "小故事（本应用的模型）"),
    "scaling.by.tokens": (
        "More text helps all; after {tokens} tokens the largest of the three is {gain} nats ahead of the smallest.",
        "读得越多，损失越低；读过 {tokens} 个词元后，最大的比最小的低 {gain} 奈特。",
    ),
    "scaling.by.flops": (
        "For the same work: after {flops} operations the model with {best} is ahead of the other two. A larger one pays when it is trained for longer: Stories took {times} times as many operations.",
        "同样的运算量：用了 {flops} 次运算时，三个中领先的是 {best} 的模型。更大的模型要训练得更久才划算：小故事用了它的 {times} 倍运算。",
    ),
    "scaling.by.parameters": (
        "Each line is one moment of the three trainings: the lower it lies, the more was read. The steeper it falls, the more the size matters.",
        "每条线是同一时刻：越往下，读得越多；线越陡，模型大小越重要。",
    ),
    "scaling.honest": (
        "The same for all: vocabulary of {vocabulary} tokens, context of 256, recipe, held-back stories. Different: the three read {tokens} tokens each; {name} ({parameters} parameters without embeddings) read at least {more} times as many, in larger batches, and stands at {loss} nats per token, {bits} bits per byte. Embeddings are left out because the vocabulary decides most of their size. In the second half of a training the learning rate falls, which lowers the last points. Losses per token compare only between models of one vocabulary. Made with: {command}",
        "相同的：{vocabulary} 个词元的词表、256 的上下文、训练方法、留作检验的故事。不同的：三个模型各读了 {tokens} 个词元；{name}（不含嵌入 {parameters} 个参数）读了至少 {more} 倍，每批也更大，达到每词元 {loss} 奈特、每字节 {bits} 比特。不计嵌入，是因为嵌入的大小主要由词表决定。训练后半程学习率逐渐下降，这会压低最后几个点。每词元的损失只能在词表相同的模型之间比较。生成命令：{command}",
    ),
    "scaling.missing": ("The recorded run is not there: {message}", "没有找到训练记录：{message}"),
}
