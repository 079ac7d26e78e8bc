"""Every word on the page, in English and in Simplified Chinese; `{...}` is filled in by `i18n.say`."""

from components.change.texts import CHANGE
from components.compare.texts import COMPARE
from components.inside.texts import INSIDE
from components.lab.texts import LABS
from components.lessons.texts import LESSONS
from components.playground.pipeline_texts import PIPELINE
from components.playground.texts import PLAYGROUND
from components.share.texts import SHARE
from components.train.texts import TRAIN
from components.why.texts import WHY

TEXTS: dict[str, tuple[str, str]] = {
    # the frame
    "tagline": (
        "Type a prompt, watch a GPT write, look at every number on the way.",
        "输入提示词，看 GPT 逐个词元地写，途中的每个数字都看得见。",
    ),
    "precision": (
        "Weights in {precision}. On a fixed text, against fp32: {kl} bits lost a token, logits off by up to {logit}, "
        "{top_1} of the best tokens the same.",
        "权重精度为 {precision}。在一段固定文本上与 fp32 相比：每个词元损失 {kl} 比特，logit 最多相差 {logit}，"
        "最可能的词元有 {top_1} 相同。",
    ),
    "precision.unknown": (
        "Weights in {precision}; what that costs against fp32 could not be measured: {problem}.",
        "权重精度为 {precision}；与 fp32 的差别无法测量：{problem}。",
    ),
    "model": ("Model", "模型"),
    "language": ("Language", "语言"),
    "theme": ("◐ Light / dark", "◐ 浅色 / 深色"),
    "tab.playground": ("Playground", "试验台"),
    "model.stories": ("Stories · 4.4M, trained for this app", "小故事 · 440 万参数，为本应用训练"),
    "model.untrained": ("Untrained · same shape, random weights", "未训练 · 结构相同，权重随机"),
    "model.distilgpt2": ("DistilGPT2 · 82M, from the hub", "DistilGPT2 · 8200 万参数，从网上获取"),
    "model.gpt2": ("GPT-2 small · 124M, from the hub", "GPT-2 small · 1.24 亿参数，从网上获取"),
    "model.gpt2-medium": ("GPT-2 medium · 355M, from the hub", "GPT-2 medium · 3.55 亿参数，从网上获取"),
    "model.gpt2-large": ("GPT-2 large · 774M, from the hub", "GPT-2 large · 7.74 亿参数，从网上获取"),
    "model.gpt2-xl": ("GPT-2 XL · 1.6B, from the hub", "GPT-2 XL · 15.6 亿参数，从网上获取"),
    "untrained.note": (
        "This model has never been trained: its weights are random, so its text is noise. Same code, same shape.",
        "这个模型从未训练：权重是随机的，所以写出的只是噪声。代码和结构完全相同。",
    ),
    # a checkpoint of one's own
    "upload": ("Open your own checkpoint", "打开你自己的检查点"),
    "upload.says": (
        "The weights and what lies beside them: a Hugging Face GPT-2 (config.json, model.safetensors, and "
        "vocab.json with merges.txt or tokenizer.json), nanoGPT's ckpt.pt with meta.pkl, minGPT's or the book's state "
        "dict, or this app's own three files. Nothing in a file is ever run.",
        "权重和它旁边的文件：Hugging Face 的 GPT-2（config.json、model.safetensors，以及 vocab.json 加 "
        "merges.txt 或 tokenizer.json），nanoGPT 的 ckpt.pt 和 meta.pkl，minGPT 或书中的 state dict，或本应用自己的三个"
        "文件。文件中的任何代码都不会被执行。",
    ),
    "upload.files": ("Files", "文件"),
    "upload.heads": ("Heads", "头数"),
    "upload.heads.info": ("the files do not say how many", "文件里没有写明"),
    "upload.open": ("Open", "打开"),
    "upload.none": ("Choose the files of a checkpoint first.", "请先选择检查点的文件。"),
    "upload.ask": (
        "These weights do not say how many heads the model has. Choose the number, then open it again.",
        "这些权重没有写明模型有多少个头。请选择头数，然后再次打开。",
    ),
    "upload.opened": (
        "{layout}: {layers} layers, {heads} heads, width {width}, context {context}, vocabulary {vocabulary} ({kind}).",
        "{layout}：{layers} 层，{heads} 个头，宽度 {width}，上下文 {context}，词表 {vocabulary}（{kind}）。",
    ),
    "upload.tokens": ("tokens made of bytes", "字节组成的词元"),
    "upload.characters": ("single characters", "单个字符"),
    "upload.ids": ("none in the files: write token ids", "文件里没有词表：请输入词元编号"),
    # prompt and buttons
    "prompt": ("Prompt", "提示词"),
    "prompt.placeholder": (
        "The model knows simple English stories. Ctrl+Enter generates.",
        "这个模型只懂简单的英文故事。按 Ctrl+Enter 生成。",
    ),
    "prompt.count": ("{n} tokens of at most {limit}", "{n} 个词元，上限 {limit}"),
    "prompt.count.one": ("1 token of at most {limit}", "1 个词元，上限 {limit}"),
    "prompt.empty": (
        "Empty: the model will start from its end-of-text token.",
        "提示词为空：模型将从“文本结束”词元开始。",
    ),
    "prompt.started_empty": (
        "The prompt is empty, so the model starts from its end-of-text token.",
        "提示词为空，因此模型从“文本结束”词元开始写。",
    ),
    "prompt.too_long": (
        "The prompt has {n} tokens, {excess} more than the {limit} this model can read.",
        "提示词有 {n} 个词元，比模型能读的 {limit} 个多 {excess} 个。",
    ),
    "prompt.use_tail": ("Use the last {n} tokens", "只用最后 {n} 个词元"),
    "examples": ("Try one", "试一试"),
    "example.story": ("A story begins", "故事开头"),
    "example.dialogue": ("Someone speaks", "有人说话"),
    "example.who": ("Who is meant?", "指的是谁？"),
    "example.repeat": ("A pattern to copy", "可以照抄的规律"),
    "example.surprise": ("Far from its stories", "远离它的故事"),
    "generate": ("Generate", "生成"),
    "step": ("Step", "单步"),
    "stop": ("Stop", "停止"),
    "clear": ("Clear", "清空"),
    # settings
    "settings": ("Sampling", "采样设置"),
    "temperature": ("Temperature", "温度"),
    "temperature.info": ("0: always the best; higher: bolder", "0：总选最佳；越高越大胆"),
    "top_k": ("Top-k", "Top-k"),
    "top_k.info": ("keep only the k best; 0: all", "只留最好的 k 个；0：全部"),
    "top_p": ("Top-p", "Top-p"),
    "top_p.info": ("keep the best up to this share; 1: all", "留下累计达到此值的最好词元；1：全部"),
    "min_p": ("Min-p", "Min-p"),
    "min_p.info": ("keep this share of the best or more", "留下不低于最佳概率此比例的；0：全部"),
    "repetition_penalty": ("Repetition penalty", "重复惩罚"),
    "repetition_penalty.info": ("lower what is in the text; 1: off", "压低文中已有的词元；1：关闭"),
    "length": ("Length", "长度"),
    "length.info": ("new tokens at most", "最多生成的词元数"),
    "seed": ("Seed", "随机种子"),
    "seed.placeholder": ("new each time", "每次不同"),
    "pace": ("Tokens a second", "每秒词元数"),
    "pace.full": ("full speed", "全速"),
    # the text
    "strip.name": ("The text, token by token", "文本，逐个词元"),
    "strip.empty": ("Nothing yet: type a prompt and press Generate.", "还没有文本：输入提示词，然后按“生成”。"),
    "strip.marks": ("Show spaces", "显示空格"),
    "strip.token": ("token", "词元"),
    "strip.id": ("id", "编号"),
    "strip.probability": ("probability", "概率"),
    "strip.rank": ("rank", "名次"),
    "strip.attention": ("attention", "注意力"),
    # status
    "status.ready": ("Ready", "就绪"),
    "status.example": ("An example that the model wrote when the app started", "应用启动时模型写的一个例子"),
    "status.loading": ("Loading the model …", "正在加载模型……"),
    "status.downloading": ("Downloading the model: {done} of {total} MB …", "正在下载模型：{done} / {total} MB……"),
    "status.reading": ("Reading the prompt …", "正在读提示词……"),
    "status.running": (
        "{n} tokens · {rate} tokens/s in the model · first after {first} ms · context {position}/{limit} · seed {seed}",
        "{n} 个词元 · 模型每秒 {rate} 个 · 首个 {first} 毫秒 · 上下文 {position}/{limit} · 种子 {seed}",
    ),
    "status.one": (
        "1 token · first after {first} ms · context {position}/{limit} · seed {seed}",
        "1 个词元 · 首个 {first} 毫秒 · 上下文 {position}/{limit} · 种子 {seed}",
    ),
    "finish.end_of_text": ("the model ended the text", "模型结束了文本"),
    "finish.max_new_tokens": ("length reached", "已达到设定长度"),
    "finish.context_full": (
        "the context is full: this model reads {limit} tokens at most",
        "上下文已满：这个模型最多读 {limit} 个词元",
    ),
    "finish.stopped": ("stopped", "已停止"),
    # what comes next
    "bars.question": ("What comes next?", "接下来是什么？"),
    "bars.before": ("raw softmax", "原始 softmax"),
    "bars.after": ("after sampling settings", "经过采样设置"),
    "bars.axis": ("probability", "概率"),
    "bars.chosen": ("chosen", "被选中"),
    "bars.says": (
        "After {token}: {best} {before} → {after}. {removed} of {total} tokens removed ({mass} of the probability). "
        "Entropy {raw} → {final} bits.",
        "在 {token} 之后：{best} {before} → {after}。{total} 个词元中去掉了 {removed} 个（占概率 {mass}）。"
        "熵 {raw} → {final} 比特。",
    ),
    "bars.says.chosen": (" Chosen: {chosen}, {p}.", "选中：{chosen}，{p}。"),
    # where it looked
    "attention.question": ("Where did it look?", "它看向哪里？"),
    "attention.layer": ("Layer", "层"),
    "attention.head": ("Head", "头"),
    "attention.average": ("average of heads", "各头平均"),
    "attention.all": ("average", "平均"),
    "attention.query": ("looking token", "观看的词元"),
    "attention.key": ("token looked at", "被看的词元"),
    "attention.weight": ("weight", "权重"),
    "attention.says": (
        "Layer {layer}, {head}: {token} looked most at {targets}. Layers and heads count from 0.",
        "第 {layer} 层，{head}：{token} 主要看向 {targets}。层和头都从 0 开始数。",
    ),
    "attention.head.n": ("head {n}", "第 {n} 个头"),
    "attention.window": (" Shown: positions {start} to {end}.", "图中为位置 {start} 到 {end}。"),
    # errors
    "error.title": ("That did not work", "没有成功"),
    "error.seed": ("The seed must be a whole number of at least 0.", "种子必须是不小于 0 的整数。"),
    "status.waiting": (
        "{before} before you: everybody's turn comes in order",
        "前面还有 {before} 位：按顺序轮到每个人",
    ),
    "error.forgotten": (
        "Nobody touched this page for a long time, so the server has let go of its text. Reload the page.",
        "这个页面闲置了很久，服务器已不再保留它的文本。请刷新页面。",
    ),
    "error.no_text": ("There is no text yet: write something in the Playground.", "还没有文本：请先在试验台里写一段。"),
    "error.full": ("The context of {limit} tokens is full.", "{limit} 个词元的上下文已满。"),
    # shapes and loss
    **LABS,
    # steering
    **PLAYGROUND,
    # the pipeline card
    **PIPELINE,
    # links and files
    **SHARE,
    # inside
    **INSIDE,
    # why
    **WHY,
    # compare
    **COMPARE,
    # change
    **CHANGE,
    # train
    **TRAIN,
    # lessons
    **LESSONS,
}
