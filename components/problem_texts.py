"""What is said when something cannot be done, in Simplified Chinese; each {} is filled with what stood there."""

PROBLEMS = {
    # the text and its tokens
    "the context of {} tokens is full": "{} 个词元的上下文已满",
    "the prompt has {} tokens, {} more than the context of {}": "提示词有 {0} 个词元，比 {2} 个词元的上下文多 {1} 个",
    "{} tokens do not fit: the context of {} has room for {}": "放不下 {} 个词元：{} 个词元的上下文还剩 {} 个位置",
    "{} tokens do not fit a context of 1 to {}": "{} 个词元放不进上下文：可以是 1 到 {} 个",
    "token id {} does not exist: the vocabulary has ids 0 to {}": "词元编号 {} 不存在：词表的编号是 0 到 {}",
    "token {} does not exist: the vocabulary has ids 0 to {}": "词元 {} 不存在：词表的编号是 0 到 {}",
    "there is no token number {}: the document has 0 to {}": "没有第 {} 号词元：文档中有 0 到 {} 号",
    "there is no position {}: the text has positions 0 to {}": "没有位置 {}：文本的位置是 0 到 {}",
    "position {} does not exist: the text has positions 0 to {}": "位置 {} 不存在：文本的位置是 0 到 {}",
    "position {} has not been read: there are {}": "位置 {} 还没有读过：一共读了 {} 个",
    "layer {} does not exist: the model has layers 0 to {}": "第 {} 层不存在：模型的层是 0 到 {}",
    "head {} does not exist: a layer has heads 0 to {}": "第 {} 个头不存在：每层的头是 0 到 {}",
    "this model does not know “{}”: it was trained on {} characters: {}": "模型不认识“{}”：它只学过 {} 个字符：{}",
    "GPT-2's vocabulary is not on this computer, and could not be fetched: write token ids, numbers from 0 to {} with spaces "
    "between, not {}": (
        "这台电脑上没有 GPT-2 的词表，也无法下载：请输入词元编号，即 0 到 {} 的数字，用空格隔开，而不是 {}"
    ),
    "a prompt must be text, or token ids, which are whole numbers": "提示词必须是文本，或者整数的词元编号",
    "start must be at least 1, not {}: the first token has no probability": "start 至少为 1，而不是 {}：第一个词元没有概率",
    "this computer has no device {} that torch can use: choose cpu": "这台电脑没有 torch 能用的设备 {}：请选择 cpu",
    "batch_size must be at least 1, not {}": "batch_size 至少为 1，而不是 {}",
    "what is patched in must be a tensor, not {}": "放进去的必须是张量，而不是 {}",
    "a part can be multiplied by a finite number, not {}": "只能乘以有限的数，而不是 {}",
    "a patch for {} texts does not fit a batch of {}": "{} 个文本的修补不适合 {} 个文本的批次",
    "this model has no vocabulary: write token ids, numbers from 0 to {} with spaces between, not {}": (
        "这个模型没有词表：请输入词元编号，即 0 到 {} 的数字，用空格隔开，而不是 {}"
    ),
    "this vocabulary has no end-of-text token to start from: the prompt must not be empty": (
        "这个词表没有可以作为开头的文本结束符：提示词不能为空"
    ),
    "this vocabulary has no end-of-text token to start a story from": "这个词表没有可以作为故事开头的文本结束符",
    "a document holds at most {} tokens in all its branches: start a new one": (
        "一个文档的所有分支总共最多 {} 个词元：请新建一个"
    ),
    "there is nothing to undo": "没有可以撤销的操作",
    "there is nothing to redo": "没有可以重做的操作",
    # the settings
    "{} must be a whole number between {} and {}, not {}": "{} 必须是 {} 到 {} 的整数，而不是 {}",
    "{} must be a whole number of at least {}, not {}": "{} 必须是不小于 {} 的整数，而不是 {}",
    "{} must be a number between {} and {}, not {}": "{} 必须是 {} 到 {} 的数，而不是 {}",
    "{} must be a number of at least {}, not {}": "{} 必须是不小于 {} 的数，而不是 {}",
    "temperature must be a number of at least 0, not {}": "温度必须是不小于 0 的数，而不是 {}",
    "top_k must be a whole number of at least 1, not {}": "top_k 必须是不小于 1 的整数，而不是 {}",
    "top_p must be a number above 0 and at most 1, not {}": "top_p 必须大于 0 且不超过 1，而不是 {}",
    "min_p must be a number from 0 to 1, not {}": "min_p 必须是 0 到 1 的数，而不是 {}",
    "repetition_penalty must be a number above 0, not {}": "重复惩罚必须是大于 0 的数，而不是 {}",
    "repetition_penalty {} takes these logits beyond what a float can hold": (
        "重复惩罚 {} 使 logits 超出了浮点数的范围"
    ),
    "seed must be a whole number of at least 0, not {}": "种子必须是不小于 0 的整数，而不是 {}",
    "max_new_tokens must be a whole number of at least 1, not {}": "新词元的个数必须是不小于 1 的整数，而不是 {}",
    "width must be a whole number in 1..{}, not {}": "宽度必须是 1 到 {} 的整数，而不是 {}",
    "length_penalty must be a number in -10..10, not {}": "长度惩罚必须是 -10 到 10 的数，而不是 {}",
    "logits must be finite or -inf: these hold +inf or NaN, or nothing but -inf": (
        "logits 必须是有限的数或负无穷：这里有正无穷或 NaN，或者全部是负无穷"
    ),
    "{} and {} have different vocabularies: no common measure": "{} 和 {} 的词表不同：没有可以比较的量",
    # models and their memory
    "there is no model {}: known models are {}": "没有模型 {}：已知的模型有 {}",
    "there is no model, file or folder {}: known models are {}": "没有模型、文件或文件夹 {}：已知的模型有 {}",
    "{} is no shared model": "{} 不是共享的模型",
    "{} in fp32 needs {} of memory, and {} are free": "fp32 的 {} 需要 {} 内存，只剩 {}",
    "this model needs {} of memory, {} are free": "这个模型需要 {} 内存，只剩 {}",
    "{} needs {} of memory, and models may take {}: choose a smaller one, or give models more memory": (
        "{} 需要 {} 内存，而模型最多可以占用 {}：请选择小一些的模型，或给模型更多内存"
    ),
    "{} needs {} of memory, but other models are in use: try again later": (
        "{} 需要 {} 内存，但其他模型正在使用中：请稍后再试"
    ),
    "{} does not fit in the memory of {}: choose a smaller model": "{} 放不进 {} 的内存：请选择小一些的模型",
    "there is no public model {} on the Hugging Face hub": "Hugging Face 上没有公开的模型 {}",
    "{} has no {} on the hub: other formats are not fetched": "{} 在 Hugging Face 上没有 {}：其他格式不会下载",
    "{} could not be fetched from the Hugging Face hub ({}): connect to the internet and choose it again, the download "
    "goes on where it stopped. The model that comes with the app needs no network": (
        "无法从 Hugging Face 获取 {}（{}）：请连上网络后再选一次，下载会从中断处继续。应用自带的模型不需要网络"
    ),
    "precision int8 needs an x86 CPU: choose fp32 or bf16": "int8 精度需要 x86 的 CPU：请选择 fp32 或 bf16",
    "precision int8 is for CPUs: on {} choose bf16": "int8 精度用于 CPU：在 {} 上请选择 bf16",
    "precision {} needs oneDNN, which this build of torch does not have: choose fp32": (
        "{} 精度需要 oneDNN，而这个版本的 torch 没有：请选择 fp32"
    ),
    # the files of a checkpoint
    "there is no file or folder {}": "没有文件或文件夹 {}",
    "two of the files are named {}": "有两个文件都叫 {}",
    "{} cannot be read: {}": "无法读取 {}：{}",
    "{} gives logits that are NaN or infinite: this training went wrong": "{} 给出的 logits 是 NaN 或无穷大：这次训练出了问题",
    "{} has weights that are NaN or infinite: this training went wrong": (
        "{} 的权重里有 NaN 或无穷大：这次训练出了问题"
    ),
    "there are no weights here: their file ends in .safetensors, .pt, .pth or .bin; unpack a .zip first": (
        "这里没有权重：权重文件以 .safetensors、.pt、.pth 或 .bin 结尾；.zip 请先解压"
    ),
    "there are {} files of weights here: name the one to read": "这里有 {} 个权重文件：请指明要读哪一个",
    "{} has {} parts of a model, but not all: see {}": "{} 只有模型的 {} 个分片，并不齐全：见 {}",
    "{} is damaged: its files do not match the checksum in {}": "{} 已损坏：文件与 {} 中的校验和不符",
    "{} is damaged: {}": "{} 已损坏：{}",
    "{} is damaged or cut short: {}": "{} 已损坏或不完整：{}",
    "{} is damaged or holds more than weights: {}": "{} 已损坏，或者除了权重还有别的内容：{}",
    "{} is damaged: it numbers its values beyond its size": "{} 已损坏：其中的编号超出了文件的大小",
    "{} is damaged: it should hold a {}, not a {}": "{} 已损坏：里面应该是 {}，而不是 {}",
    "{} is damaged: its entries are larger than its {} bytes": "{} 已损坏：里面的内容比文件的 {} 字节还大",
    "{} is damaged: its header of {} bytes does not fit its {} bytes": "{} 已损坏：{} 字节的文件头与文件的 {} 字节不符",
    "{} has more than {} bytes: too many to be what it should": "{} 超过了 {} 字节：作为这种文件太大了",
    "{} has more than {} tuples, which no checkpoint has": "{} 里的元组超过 {} 个，检查点不会有这么多",
    "{} has {} bytes beside its tensors: too much": "{} 除张量外还有 {} 字节：太多了",
    "{} holds no state dict: save model.state_dict()": "{} 里没有 state dict：请保存 model.state_dict()",
    "{} is compressed or encrypted, which torch.save never does: unpack it first": (
        "{} 是压缩或加密过的，而 torch.save 从不这样做：请先解压"
    ),
    "the text is one character again and again: there is nothing to predict": "整个文本只重复一个字符：没有可以预测的",
    "{} is in torch's format of before 2020: save it again with a newer torch": (
        "{} 是 torch 2020 年以前的格式：请用新一些的 torch 重新保存"
    ),
    "{} is neither a safetensors file nor one that torch.save wrote, or it is damaged": (
        "{} 既不是 safetensors 文件，也不是 torch.save 写的文件，或者已损坏"
    ),
    "{} is no checkpoint but a zip file of another kind: save model.state_dict()": (
        "{} 不是检查点，而是别的 zip 文件：请保存 model.state_dict()"
    ),
    "{} needs {} of memory, more than this computer gives": "{} 需要 {} 内存，超出了这台电脑能给的",
    "{} would run code ({}) and was not opened": "{} 会运行代码（{}），因此没有打开",
    "{} would run code ({}) and was not opened: save model.state_dict() alone": (
        "{} 会运行代码（{}），因此没有打开：请只保存 model.state_dict()"
    ),
    "{}: {} claims {} numbers, more than the file holds": "{}：{} 自称有 {} 个数，比文件里的还多",
    "{}: {} is not a plain tensor": "{}：{} 不是普通的张量",
    "this checkpoint does not say how many heads it has: give n_head, a number that divides its width {}": (
        "这个检查点没有写明有多少个头：请给出头数，它要能整除宽度 {}"
    ),
    "this is a {} model: only GPT-2 and models shaped like it can be shown": (
        "这是 {} 模型：只能展示 GPT-2 和结构与它相同的模型"
    ),
    "no layout known here has weights named {}: known are {}, {}, {}, the book's {} and our own": (
        "没有已知的格式会把权重叫做 {}：已知的有 {}、{}、{}、书中的 {} 和本应用自己的"
    ),
    "these weights are in our own layout, but the config.json that belongs to them is missing": (
        "这些权重是本应用自己的格式，但缺少与它们一起的 config.json"
    ),
    "two weights are named {}": "有两个权重都叫 {}",
    "the weights do not fit; missing: {}": "权重不符；缺少：{}",
    "the weights do not fit: {} is missing or no matrix": "权重不符：缺少 {}，或者它不是矩阵",
    "the weights do not fit; {}": "权重不符；{}",
    "{} is {} in the configuration, but {} in the weights": "{} 在配置中是 {}，在权重中却是 {}",
    "{} has an option that is not implemented: {}": "{} 有一个没有实现的选项：{}",
    "{}={} changes the mathematics: only {} is implemented": "{}={} 会改变计算：只实现了 {}",
    "activation_function={} is not implemented: known are {}": "activation_function={} 没有实现：已知的有 {}",
    "n_head is {} in the checkpoint, not {}": "检查点中的头数是 {}，而不是 {}",
    # its vocabulary
    "{} is no byte-level BPE like GPT-2's, the kind that is read here: leave it out to write token ids instead of "
    "text": "{} 不是 GPT-2 那样的字节级 BPE，这里只能读这一种：去掉它，就可以用词元编号代替文本",
    "the tokens of {} and the merges of {} do not belong together: {}": "{} 的词元与 {} 的合并规则不相配：{}",
    "token {} cannot be written as a merge of two others": "词元 {} 不能写成另外两个词元的合并",
    "{} is no vocabulary: it must give each token an id": "{} 不是词表：每个词元都要有编号",
    "{} is no vocabulary: it must hold tokens and merges": "{} 不是词表：里面要有词元和合并规则",
    "{} is no vocabulary: {}": "{} 不是词表：{}",
    "{} is not in the order of the ids of {}: tiktoken would encode differently": (
        "{} 与 {} 的编号顺序不同：tiktoken 会切分成别的词元"
    ),
    "the vocabulary has {} tokens, but the model has {}: they do not belong": (
        "词表有 {} 个词元，模型却有 {} 个：它们不相配"
    ),
    "a vocabulary of characters lists single characters, each once": "字符词表要列出单个的字符，每个一次",
    "{} is no nanoGPT vocabulary of characters: {}": "{} 不是 nanoGPT 的字符词表：{}",
    "{} adds {} to what its merges make, which is not read here: leave it out to write token ids instead of text": (
        "{} 在合并规则之外另加了 {}，这里不支持：去掉这个文件，就可以直接输入词元编号"
    ),
    "{} cannot spell every text, it has no token for byte {}: leave it out to write token ids": (
        "{} 不能拼出所有文本，没有字节 {} 的词元：去掉这个文件，就可以直接输入词元编号"
    ),
    "{} cannot spell every text: it has no token for byte {}": "{} 不能拼出所有文本：没有字节 {} 的词元",
    "{} is no tiktoken vocabulary: its ids are not 0 to {}, each once": (
        "{} 不是 tiktoken 词表：编号不是 0 到 {} 各一次"
    ),
    "{} is no tiktoken vocabulary: {}": "{} 不是 tiktoken 词表：{}",
    # the shape of a model
    "{} must be a whole number of at least 1, not {}": "{} 必须是不小于 1 的整数，而不是 {}",
    "n_embd ({}) must divide by n_head ({}): each head gets an equal share": (
        "宽度（{}）必须能被头数（{}）整除：每个头分到相等的一份"
    ),
    "dropout must lie in [0, 1), not {}": "dropout 必须不小于 0 且小于 1，而不是 {}",
    "activation must be one of {}, not {}": "激活函数必须是 {} 之一，而不是 {}",
    "position must be one of {}, not {}": "位置编码必须是 {} 之一，而不是 {}",
    "rotary positions turn pairs of numbers: a head of {} is odd": "旋转位置编码要成对地旋转数字：每个头宽 {} 是奇数",
    # edits and patches
    "{} is no edit, or is there twice": "{} 不是改动，或者出现了两次",
    "{} is there twice": "{} 出现了两次",
    "{} has a factor beyond {}": "{} 的系数超出了 {}",
    "{} is one of more than {}": "{} 超出了最多 {} 处的限制",
    "{} is not one of {}": "{} 不在 {} 之中",
    "a text of edits has at most {} characters, not {}": "改动的文字最多 {} 个字符，而不是 {} 个",
    "a factor of {} has no place in a text: at most {}, either way": "系数 {} 写不进文字：正负都最多 {}",
    "a patch that is from no text is a vector of numbers, which has no short text": (
        "不是来自文本的修补是一串数字，没有简短的写法"
    ),
    "a patch comes from a text of 1 to {} tokens, not {}": "修补要来自 1 到 {} 个词元的文本，而不是 {} 个",
    "only {} can be patched, not {}": "只能修补 {}，不能修补 {}",
    "position {} cannot be patched: the context has positions 0 to {}": "不能修补位置 {}：上下文的位置是 0 到 {}",
    "position {} was patched: its logits are not the sum of what the parts add": (
        "位置 {} 被修补过：它的 logits 不再是各部分之和"
    ),
    "the two texts must have equally many tokens, not {} and {}": "两段文本的词元数必须相等，而不是 {} 和 {}",
    "both texts give the logit difference {}: there is nothing to recover": (
        "两段文本给出的 logit 差都是 {}：没有可恢复的"
    ),
    "leaving a token out needs a text of at least 2, not {}": "要去掉一个词元，文本至少要有 2 个词元，而不是 {} 个",
    # a saved document
    "the file is no JSON, as a saved document is": "文件不是 JSON，而保存的文档是 JSON",
    'the file is no document of this program: it does not say "format": "{}"': (
        '文件不是本程序的文档：里面没有写 "format": "{}"'
    ),
    "the file is of version {}: this program reads version {}": "文件的版本是 {}：本程序读版本 {}",
    "the file has {} characters: a document has at most {}": "文件有 {} 个字符：文档最多 {} 个",
    'the file has no list "{}"': '文件里没有列表 "{}"',
    "the file has a prompt of {} tokens, and the context is {}": "文件的提示词有 {} 个词元，而上下文是 {} 个",
    "the file has a text of {} tokens, and the context is {}": "文件的文本有 {} 个词元，而上下文是 {} 个",
    "the file is for a vocabulary of {} tokens: that of {} has {}": "文件用的词表有 {} 个词元：{} 的词表有 {} 个",
    "the model must be named in quotes, not be {}": "模型要用引号写出名字，而不是 {}",
    "the edits must stand in quotes, not be {}": "改动要写在引号里，而不是 {}",
    "a document holds 1 to {} tokens, not {}": "文档有 1 到 {} 个词元，而不是 {} 个",
    "a token must be an object with id, after and how, not {}": "词元必须是带有 id、after 和 how 的对象，而不是 {}",
    "a token is typed, sampled or chosen, not {}": "词元是 typed、sampled 或 chosen 之一，而不是 {}",
    "a token is said to be sampled, but the file has no settings": "有词元写着是抽样得来的，但文件里没有设置",
    '"after" must be the number of a token, not {}': '"after" 必须是词元的编号，而不是 {}',
    '"{}" must be a whole number in {}..{}, not {}': '"{}" 必须是 {} 到 {} 的整数，而不是 {}',
    "settings are an object of {}, not {}": "设置是由 {} 组成的对象，而不是 {}",
    "settings need a seed, and these have none: {}": "设置需要种子，而这里没有：{}",
    "the first token must be typed": "第一个词元必须是输入的",
    "the first token has none before it, but is said to follow number {}": (
        "第一个词元前面没有别的，却写着跟在 {} 号之后"
    ),
    "token number {} must follow one of 0 to {}, not {}": "{} 号词元必须跟在 0 到 {} 号之一后面，而不是 {}",
    "the first {} tokens are the prompt: each must be typed and follow the one before": (
        "前 {} 个词元是提示词：每个都必须是输入的，并跟在前一个之后"
    ),
    # a training on the page
    "the loss became infinite at step {}: try a lower learning rate": "第 {} 步的损失变成无穷大：请试试低一些的学习率",
    "the text is empty: there is nothing to learn from": "文本是空的：没有可学的内容",
    "the text has {} bytes: at most {} can be learned from": "文本有 {} 字节：最多能学 {} 字节",
    "the text has {} {}: with a context of {} it needs {}": "文本有 {} 个 {}：上下文是 {} 时需要 {} 个",
    "the text has {} different characters, and {} can be told apart: learn its bytes instead": (
        "文本有 {} 种字符，只能区分 {} 种：请改为学习它的字节"
    ),
    "{} has {} bytes: at most {} can be learned from": "{} 有 {} 字节：最多能学 {} 字节",
    "{} is not UTF-8 text: its byte {} is none of a character": "{} 不是 UTF-8 文本：第 {} 个字节不属于任何字符",
    "{} is not text: it holds a zero byte": "{} 不是文本：里面有零字节",
    "{} trainings are waiting already, which is the limit: try again later": (
        "已有 {} 个训练在等待，达到了上限：请稍后再试"
    ),
    "one training at a time: cancel the one at hand, or wait for its end": "一次只能训练一个：请取消当前的，或等它结束",
    "the learning rate can be multiplied by 0 to 100, not {}": "学习率可以乘以 0 到 100，而不是 {}",
    "this training is {}: there is a model when it has finished": "这次训练还没有结束（{}）：结束后才有模型",
    "{} must be at most {} for a training to be watched, not {}": "要能观看训练，{} 最多是 {}，而不是 {}",
    # the lab
    "std must be a number of at least 0, not {}": "标准差必须是不小于 0 的数，而不是 {}",
    "position must lie in 0..{}, not {}": "位置必须是 0 到 {}，而不是 {}",
    "eps must be above 0, not {}: a row of equal numbers would be divided by zero": (
        "eps 必须大于 0，而不是 {}：一行相等的数会被零除"
    ),
    "this shape needs {} of memory, at most {} are lent": "这个结构需要 {} 内存，最多借出 {}",
    "this shape needs {} of memory, which others are using: try again later": (
        "这个结构需要 {} 内存，别人正在使用：请稍后再试"
    ),
    "a vocabulary of {} tokens that is not made of bytes cannot be cut to {}": (
        "{} 个词元的词表不是由字节组成的，不能缩减到 {} 个"
    ),
    "a vocabulary of bytes needs at least 257 tokens to spell every text, not {}": (
        "字节词表至少要有 257 个词元才能拼出所有文本，而不是 {} 个"
    ),
    "the text is empty: nothing to count": "文本是空的：没有可数的",
    "the text is empty: nothing to measure": "文本是空的：没有可测量的",
    "{} is cut into {} words before anything is joined: give one of them": (
        "{} 在合并之前就被切成了 {} 个词：请只给其中一个"
    ),
    "a loss needs at least two tokens, not {}: the first has nothing before it": (
        "损失至少需要两个词元，而不是 {} 个：第一个词元前面什么也没有"
    ),
    "stride must be a whole number in 1..{}, not {}": "步幅必须是 1 到 {} 的整数，而不是 {}",
    "there is no file {}: python -m gpt.experiments.scaling writes it": (
        "没有文件 {}：python -m gpt.experiments.scaling 会写出它"
    ),
}
