"""The course: the lessons in order."""

from __future__ import annotations

from components.panels.feed_forward import build_feed_forward
from components.panels.initialisation import build_initialisation
from components.panels.kernels import build_kernels
from components.panels.layer_norm import build_layer_norm
from components.panels.layer_times import build_layer_times
from components.panels.masks import build_masks
from components.panels.norm_placement import build_norm_placement
from components.panels.notebook import build_notebook
from components.panels.positions import build_positions
from components.panels.prefill import build_prefill
from components.panels.shortcuts import build_shortcuts
from components.panels.skeleton import build_skeleton
from components.panels.tokenizer import build_tokenizer
from components.panels.tying import build_tying
from components.tabs.lessons.code_view import Code
from components.tabs.lessons.lesson import Lesson, Place
from gpt.config import GPTConfig
from gpt.experiments.shapes import UNTIED_124M
from gpt.presets import PRESETS

# A configuration small enough to be drawn interactively.
SMALL = GPTConfig(vocab_size=10_000, block_size=128, n_layer=2, n_head=4, n_embd=128, n_ff=512)

LESSONS: tuple[Lesson, ...] = (
    Lesson(
        "greedy",
        "prediction",
        14,
        ("continue_text",),
        (Code("gpt.generate", "generate_greedy"),),
        Place("playground", settings={"temperature": 0}),
        beat="next",
    ),
    Lesson(
        "tokenizer",
        "tokens",
        2,
        ("encode_word",),
        (Code("gpt.experiments.tokens", "merge_steps"),),
        Place("playground"),
        (build_tokenizer,),
        beat="rows",
    ),
    Lesson(
        "sampling",
        "sampling",
        15,
        ("sample",),
        (
            Code("gpt.sampling", "STAGES"),
            Code("gpt.sampling", "stage_logits", ("raw =", "rows =", "for name, stage in")),
            Code("gpt.sampling", "keep_top_k"),
            Code("gpt.sampling", "inverse_cdf", ("target =", "descending =", "sums =", "rank =", "tied =", "return")),
        ),
        Place("playground", sliders={"temperature": "a", "top_k": "b"}),
        beat="draw",
    ),
    Lesson(
        "attention",
        "attention",
        8,
        ("attention", "multi_head_attention"),
        (
            Code("gpt.model", "CausalSelfAttention.attention_chunks"),
            Code("gpt.model", "CausalSelfAttention.eager_attention", ("return self.attn_dropout",)),
        ),
        Place("inside", selects_head=True),
        beat="answer",
    ),
    Lesson(
        "positions",
        "attention",
        20,
        ("embed", "rotate"),
        (Code("gpt.experiments.positions", "sinusoidal_positions"), Code("gpt.rotary", "apply_rotary")),
        Place("inside"),
        (build_positions,),
        beat="rows",
    ),
    Lesson(
        "block",
        "block",
        9,
        ("block",),
        (
            Code("gpt.model", "TransformerBlock.forward"),
            Code("gpt.experiments.normalisation", "PostNormBlock.forward"),
        ),
        Place("inside"),
        (build_norm_placement,),
        beat="add",
    ),
    Lesson(
        "layer_norm",
        "block",
        4,
        ("layer_norm",),
        (Code("gpt.layers", "LayerNorm.formula"), Code("gpt.layers", "LayerNorm.forward")),
        Place("inside"),
        (build_layer_norm,),
        beat="ask",
    ),
    Lesson(
        "feed_forward",
        "block",
        6,
        ("feed_forward",),
        (Code("gpt.model", "FeedForward.forward"),),
        Place("inside", selects_head=True),
        (build_feed_forward,),
        beat="neurons",
    ),
    Lesson(
        "activations",
        "block",
        5,
        ("gelu",),
        (Code("gpt.layers", "GELU.formula"), Code("gpt.layers", "GELU.forward")),
        Place("activations"),
        beat="neurons",
    ),
    Lesson(
        "shortcuts",
        "block",
        7,
        ("deep_network",),
        (Code("gpt.experiments.shortcuts", "DeepNetwork.forward"),),
        Place("why"),
        (build_shortcuts,),
        beat="add",
    ),
    Lesson("model", "model", 10, ("gpt_logits",), (Code("gpt.model", "GPT.__init__"),), Place("why"), beat="layers"),
    Lesson(
        "skeleton",
        "model",
        3,
        ("skeleton_logits",),
        (
            Code("gpt.experiments.random_models", "IdentityBlock.forward"),
            Code("gpt.experiments.random_models", "skeleton"),
        ),
        Place("shapes", PRESETS["gpt2"], skeleton=True),
        (build_skeleton,),
    ),
    Lesson("loss", "training", 13, ("cross_entropy",), (Code("gpt.model", "GPT.loss"),), Place("loss")),
    Lesson(
        "untrained",
        "training",
        16,
        ("untrained_model",),
        (Code("gpt.models.loading", "build", ("if untrained",)),),
        Place("shapes"),
        (build_notebook,),
    ),
    Lesson(
        "training",
        "training",
        19,
        ("train",),
        (
            Code(
                "gpt.training.trainer",
                "Trainer.update",
                ("set_lr_factor", "with torch", "norm =", "for optimizer", "self.step"),
            ),
        ),
        Place("train"),
    ),
    Lesson(
        "dropout",
        "training",
        10,
        ("dropout",),
        (
            Code("gpt.layers", "Dropout.formula"),
            Code("gpt.model", "GPT.hidden_states_in", ("x = self.drop",)),
            Code("gpt.model", "CausalSelfAttention.eager_attention", ("return self.attn_dropout",)),
            Code("gpt.model", "CausalSelfAttention.forward", ("return",)),
            Code("gpt.model", "FeedForward.forward", ("return",)),
        ),
        Place("train"),
    ),
    Lesson(
        "layouts",
        "details",
        17,
        ("load_gpt2",),
        (
            Code("gpt.models.checkpoints.layouts", "BOOK_NAMES"),
            Code("gpt.models.checkpoints.writing", "transposed"),
        ),
        Place("playground"),
    ),
    Lesson(
        "small",
        "details",
        18,
        ("padded_attention", "padded_positions"),
        (Code("gpt.model", "GPT.hidden_states", ("if attention_mask is not None",)),),
        Place("shapes", SMALL),
        (build_masks,),
    ),
    Lesson(
        "initialisation",
        "details",
        12,
        ("initialise",),
        (Code("gpt.model", "GPT.__init__", ("if config.tie_weights",)), Code("gpt.model", "GPT.init_weights")),
        Place("shapes", PRESETS["gpt2"]),
        (build_tying, build_initialisation),
    ),
    Lesson(
        "parameters",
        "details",
        11,
        ("n_parameters",),
        (Code("gpt.experiments.shapes", "parameter_parts"),),
        Place("shapes", UNTIED_124M),
    ),
    Lesson(
        "next",
        "details",
        20,
        ("attend_with_cache",),
        (
            Code("gpt.cache", "KVCache.update", ("stored", "return")),
            Code("gpt.model", "CausalSelfAttention.sdpa_attention", ("y = F.scaled",)),
        ),
        Place("playground"),
        (build_prefill, build_kernels, build_layer_times),
    ),
    Lesson(
        "configuration",
        "details",
        1,
        ("Config", "Config.__post_init__"),
        (
            Code(
                "gpt.config",
                "GPTConfig",
                ("vocab_size", "block_size", "n_", "bias", "tie_weights", "activation", "pos"),
            ),
        ),
        Place("shapes", PRESETS["gpt2"]),
    ),
    Lesson(
        "rms_norm",
        "llama",
        4,
        ("layer_norm", "rms_norm"),
        (Code("gpt.layers", "RMSNorm.formula"), Code("gpt.layers", "make_norm")),
        Place("inside"),
        beat="ask",
    ),
    Lesson(
        "rotary",
        "llama",
        20,
        ("embed", "rotate"),
        (
            Code("gpt.rotary", "apply_rotary"),
            Code("gpt.model", "CausalSelfAttention.forward", ("if ctx.rotary", "q, k = apply_rotary")),
        ),
        Place("inside"),
        beat="ask",
    ),
    Lesson(
        "swiglu",
        "llama",
        6,
        ("feed_forward", "swiglu"),
        (Code("gpt.model", "FeedForward.forward"),),
        Place("inside"),
        beat="neurons",
    ),
    Lesson(
        "grouped_queries",
        "llama",
        8,
        ("grouped_query_attention",),
        (Code("gpt.model", "CausalSelfAttention.__init__", ("self.c_attn", "self.c_proj")),),
        Place("inside"),
        beat="answer",
    ),
    Lesson(
        "no_biases",
        "llama",
        11,
        ("llama_block",),
        (Code("gpt.experiments.architectures", "bias_effect", ("biases =", "zeros =", "logits =", "losses =")),),
        Place("inside"),
        beat="layers",
    ),
)
BY_KEY = {lesson.key: lesson for lesson in LESSONS}
