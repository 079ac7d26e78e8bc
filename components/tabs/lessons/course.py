"""The course: the lessons in order, from a text's tokens to what has changed since GPT-2."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gpt.config import PRESETS, GPTConfig
from gpt.experiments.shapes import UNTIED_124M
from gpt.models.sources import LLAMA_MODEL, POEMS_MODEL

Chapter = Literal["vectors", "layers", "attention", "model", "loss", "generation", "training", "use", "llama"]


@dataclass(frozen=True)
class Destination:
    """A place in the app, which opens with the text of the lesson's figure.

    Attributes:
        shape, skeleton: Configuration for the Shapes tab, and whether to show its skeleton.
        settings: Values for Write's sliders, keyed by name.
        follows: Names of Write's settings that take the figure's values.
        model: Name of the model that continues the text; "" for the lessons' default model.
        text: A text that replaces the figure's; "" to keep it.
    """

    tab: Literal["playground", "inside", "why", "concepts", "activations", "shapes", "loss", "train"]
    shape: GPTConfig | None = None
    skeleton: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    selects_head: bool = False
    head: tuple[int, int] | None = None
    model: str = ""
    text: str = ""


@dataclass(frozen=True)
class Lesson:
    """A lesson.

    Attributes:
        key: Identifies its texts (`lesson.<key>.title` and so on), its figure, its link, and the section
            of `gpt.experiments.minimal` that it prints.
        topic: Number of its topic among the twenty topics of building a GPT from scratch; searchable in the list.
        code: Definitions that run in this app, as "module:name" in gpt, separated by spaces.
        beat: Name of the film beat that shows it; "" for none.
    """

    key: str
    part: Chapter
    topic: int
    code: str
    place: Destination
    beat: str = ""


# A configuration small enough to draw interactively.
SMALL = GPTConfig(vocab_size=10_000, block_size=128, n_layer=2, n_head=4, n_embd=128, n_ff=512)
# The first half of Du Fu's 春望, and heads in the poem model as (layer, head).
POEM = "国破山河在，城春草木深。\n感时花溅泪，恨别鸟惊心。\n"
HEADS = {"counts": (1, 5), "rhymes": (4, 3), "above": (4, 5)}

WRITE, INSIDE, TRAIN, WHY = (Destination(tab) for tab in ("playground", "inside", "train", "why"))
ACTIVATIONS, CONCEPTS = Destination("activations"), Destination("concepts")
HEAD = Destination("inside", selects_head=True)
LLAMA = Destination("inside", model=LLAMA_MODEL)
VERSE = Destination("inside", model=POEMS_MODEL, text=POEM, head=HEADS["counts"])
GREEDY = Destination("playground", settings={"temperature": 0})
SAMPLING = Destination("playground", follows=("temperature", "top_k"))
GPT2_SHAPE = Destination("shapes", PRESETS["gpt2"])
SKELETON = Destination("shapes", PRESETS["gpt2"], skeleton=True)

LESSONS: tuple[Lesson, ...] = (
    Lesson("tokenizer", "vectors", 2, "experiments.tokens:merge_steps", WRITE, "rows"),
    Lesson("merges", "vectors", 2, "experiments.tokens:split_words", WRITE, "rows"),
    Lesson("embedding", "vectors", 10, "model:GPT.hidden_states_in", INSIDE, "rows"),
    Lesson("positions", "vectors", 20, "experiments.positions:sinusoidal_positions", INSIDE, "rows"),
    Lesson("configuration", "vectors", 1, "config:GPTConfig", GPT2_SHAPE),
    Lesson("layer_norm", "layers", 4, "layers:LayerNorm.formula layers:LayerNorm.forward", INSIDE, "ask"),
    Lesson("activations", "layers", 5, "layers:GELU.formula layers:GELU.forward", ACTIVATIONS, "neurons"),
    Lesson("feed_forward", "layers", 6, "model:FeedForward.forward", HEAD, "neurons"),
    Lesson("average", "attention", 8, "model:causal_mask", INSIDE),
    Lesson("dot_products", "attention", 8, "layers:attention_scores", HEAD, "answer"),
    Lesson(
        "queries", "attention", 8, "model:CausalSelfAttention.__init__ model:CausalSelfAttention.forward", HEAD, "ask"
    ),
    Lesson("attention", "attention", 8, "model:CausalSelfAttention.eager_attention", HEAD, "answer"),
    Lesson("verse", "attention", 8, "edits:Edits.scale_heads", VERSE, "answer"),
    Lesson("shortcuts", "model", 7, "experiments.initialisation:shortcut_gradients", WHY, "add"),
    Lesson(
        "block", "model", 9, "model:TransformerBlock.forward experiments.layers:PostNormBlock.forward", INSIDE, "add"
    ),
    Lesson("model", "model", 10, "model:GPT.__init__", WHY, "layers"),
    Lesson(
        "skeleton",
        "model",
        3,
        "experiments.random_models:IdentityBlock.forward experiments.random_models:skeleton",
        SKELETON,
    ),
    Lesson("initialisation", "model", 12, "model:GPT.__init__ model:GPT.init_weights", GPT2_SHAPE),
    Lesson("parameters", "model", 11, "experiments.shapes:parameter_parts", Destination("shapes", UNTIED_124M)),
    Lesson("untrained", "model", 16, "models.loading:build", Destination("shapes")),
    Lesson("batches", "loss", 13, "training.trainer:Batch.of_rows training.data:TextDataset.batch", TRAIN),
    Lesson("loss", "loss", 13, "model:GPT.loss", Destination("loss")),
    Lesson("greedy", "generation", 14, "generate:generate_greedy", GREEDY, "next"),
    Lesson(
        "sampling",
        "generation",
        15,
        "sampling:STAGES sampling:stage_logits sampling:keep_top_k sampling:inverse_cdf",
        SAMPLING,
        "draw",
    ),
    Lesson("small", "generation", 18, "model:GPT.hidden_states", Destination("shapes", SMALL)),
    Lesson("optimizer", "training", 19, "training.trainer:make_optimizers", TRAIN),
    Lesson("training", "training", 19, "training.trainer:Trainer.update", TRAIN),
    Lesson("schedule", "training", 19, "training.recipe:Recipe.lr_factor training.trainer:Trainer.update", TRAIN),
    Lesson("dropout", "training", 10, "layers:Dropout.formula model:FeedForward.forward", TRAIN),
    Lesson("layouts", "use", 17, "models.checkpoints.layouts:BOOK_NAMES models.checkpoints.layouts:MATRICES", WRITE),
    Lesson("next", "use", 20, "cache:KVCache.update model:CausalSelfAttention.sdpa_attention", WRITE),
    Lesson(
        "concepts",
        "use",
        20,
        "analysis.concepts:Dictionary.activity analysis.concepts:Dictionary.reconstruction",
        CONCEPTS,
    ),
    Lesson("rotary", "llama", 20, "rotary:apply_rotary model:CausalSelfAttention.forward", LLAMA, "ask"),
    Lesson("rms_norm", "llama", 4, "layers:RMSNorm.formula layers:make_norm", LLAMA, "ask"),
    Lesson("swiglu", "llama", 6, "model:FeedForward.forward", LLAMA, "neurons"),
    Lesson("grouped_queries", "llama", 8, "model:CausalSelfAttention.__init__", LLAMA, "answer"),
    Lesson("no_biases", "llama", 11, "experiments.architectures:bias_effect", LLAMA, "layers"),
)
BY_KEY = {lesson.key: lesson for lesson in LESSONS}

# Synonyms in all languages; searchable in the list.
SYNONYMS = {
    "tokenizer": "BPE byte-pair encoding tiktoken 字节对编码 分词",
    "merges": "BPE byte-pair encoding train tokenizer vocabulary 字节对编码 训练分词器 词表 合并",
    "embedding": "wte word vector lookup 词嵌入 词向量 词元嵌入",
    "positions": "wpe positional encoding sinusoidal learned 位置嵌入 位置编码 正弦",
    "configuration": "config hyperparameter preset context window 超参数 上下文长度",
    "layer_norm": "LayerNorm normalization variance 归一化 方差",
    "activations": "activation function nonlinearity SiLU 激活函数 非线性",
    "feed_forward": "FFN MLP neurons 前馈网络 神经元",
    "average": "mean of the past causal mask bag of words 平均 因果掩码",
    "dot_products": "similarity dot product softmax scores 点积 相似度 注意力分数",
    "queries": "QKV query key value head scaled 查询 键 值 缩放",
    "attention": "multi-head MHA causal mask previous-token head 多头注意力 因果掩码",
    "verse": "poem head switch ablation counting position Chinese 古诗 律诗 对仗 数数 关掉头 消融",
    "shortcuts": "skip connection residual connection vanishing gradient 残差连接 快捷连接 跳跃连接 梯度消失",
    "block": "layer pre-norm post-norm residual stream 残差流 层",
    "model": "decoder-only transformer logits head lm_head logit lens 解码器 输出头",
    "skeleton": "placeholder dummy identity shapes 占位 恒等映射 形状",
    "initialisation": "weight sharing tied embeddings initialization 权重绑定 权重共享 初始化",
    "parameters": "124M size memory count MiB 参数量 内存",
    "untrained": "random weights gibberish seed 随机权重 乱码",
    "batches": "targets shift get_batch dataloader data set 目标 批次 错位 数据集",
    "loss": "cross-entropy cross entropy perplexity surprisal negative log likelihood 交叉熵 困惑度",
    "greedy": "argmax autoregressive crop context next token 自回归 贪心 截断",
    "sampling": "temperature top-k top k top-p nucleus softmax multinomial 温度 采样 随机",
    "small": "padding attention mask batch left padding 填充 掩码 占位",
    "optimizer": "Adam AdamW SGD momentum weight decay gradient descent Muon 优化器 动量 权重衰减 梯度下降",
    "training": "training loop validation held-out overfitting character-level nanoGPT 验证集 过拟合 训练循环",
    "schedule": "learning rate warmup warm-up cosine decay gradient clipping 学习率 预热 余弦 梯度裁剪",
    "dropout": "regularization eval mode model.eval 正则化 随机失活",
    "layouts": "pretrained checkpoint load weights Hugging Face nanoGPT state_dict Conv1D 预训练 加载权重",
    "next": "KV cache SDPA flash attention FlashAttention speed KV 缓存 键值缓存 速度",
    "concepts": "sparse autoencoder SAE feature dictionary steering superposition 稀疏自编码器 特征 字典 叠加",
    "rotary": "RoPE rotary position embedding relative 旋转位置编码 相对位置",
    "rms_norm": "RMS root mean square normalization 均方根归一化",
    "swiglu": "GLU SiLU gated swish 门控 前馈",
    "grouped_queries": "GQA MQA multi-query attention 分组查询注意力 多查询",
    "no_biases": "bias Llama block 偏置",
}
