"""The course: the lessons in order, the code and the panels of each, and its place in the app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from components.events import Events
from components.localized import Localizer
from components.panels.feed_forward import build_feed_forward
from components.panels.initialisation import build_initialisation
from components.panels.kernels import build_kernels
from components.panels.layer_norm import build_layer_norm
from components.panels.layer_times import build_layer_times
from components.panels.masks import build_masks
from components.panels.norm_placement import build_norm_placement
from components.panels.notebook import build_notebook
from components.panels.panel import IsOpen
from components.panels.positions import build_positions
from components.panels.prefill import build_prefill
from components.panels.shortcuts import build_shortcuts
from components.panels.skeleton import build_skeleton
from components.panels.tokenizer import build_tokenizer
from components.panels.tying import build_tying
from components.tabs.lessons.code_view import Code
from gpt.config import GPTConfig
from gpt.experiments.shapes import UNTIED_124M
from gpt.presets import PRESETS

# A configuration small enough to be drawn interactively.
SMALL = GPTConfig(vocab_size=10_000, block_size=128, n_layer=2, n_head=4, n_embd=128, n_ff=512)
PanelBuilder = Callable[[Localizer, Events, str, IsOpen], None]
Part = Literal["prediction", "tokens", "sampling", "attention", "block", "model", "training", "details"]


@dataclass(frozen=True)
class Place:
    """A place in the app, which opens with the text of the lesson's figure.

    tab: its id. shape: configuration for the Shapes tab, and whether it is a skeleton; settings: for the Playground's
    sliders, by name; sliders: the figure's slider, "a" or "b", that gives the value of a setting; selects_head: whether
    to select the lesson's layer and head.
    """

    tab: Literal["playground", "inside", "why", "activations", "shapes", "loss", "train"]
    shape: GPTConfig | None = None
    skeleton: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    sliders: dict[str, Literal["a", "b"]] = field(default_factory=dict)
    selects_head: bool = False


@dataclass(frozen=True)
class Lesson:
    """A lesson. key: of its texts, `lesson.<key>.title` and so on, and of its figure.

    part: of the course. topic: its number among the twenty topics of a GPT built from nothing, by which the list finds
    it. idea: names in `gpt.experiments.minimal`, the shortest code of it. code: excerpts of what runs here. panels:
    builders of what is shown below its figure, or instead of one. beat: the name of the film's beat that shows it, ""
    for none.
    """

    key: str
    part: Part
    topic: int
    idea: tuple[str, ...]
    code: tuple[Code, ...]
    place: Place
    panels: tuple[PanelBuilder, ...] = ()
    beat: str = ""


LESSONS: tuple[Lesson, ...] = (
    Lesson(
        "greedy",
        "prediction",
        14,
        ("continue_text",),
        (Code("gpt.generate", "generate_greedy"),),
        Place("playground", settings={"temperature": 0}),
        beat="logits",
    ),
    Lesson(
        "tokenizer",
        "tokens",
        2,
        ("encode_word",),
        (Code("gpt.experiments.tokens", "merge_steps"),),
        Place("playground"),
        (build_tokenizer,),
        beat="tokens",
    ),
    Lesson(
        "sampling",
        "sampling",
        15,
        ("sample",),
        (
            Code(
                "gpt.sampling",
                "stage_logits",
                ("penalised =", "scaled =", "top_k =", "top_p =", "return [raw, penalised, scaled, top_k"),
            ),
            Code("gpt.sampling", "keep_top_k"),
            Code("gpt.sampling", "inverse_cdf", ("target =", "descending =", "sums =", "rank =", "tied =", "return")),
        ),
        Place("playground", sliders={"temperature": "a", "top_k": "b"}),
        beat="temperature",
    ),
    Lesson(
        "attention",
        "attention",
        8,
        ("attention", "multi_head_attention"),
        (Code("gpt.model", "CausalSelfAttention.eager_attention"),),
        Place("inside", selects_head=True),
        beat="scores",
    ),
    Lesson(
        "positions",
        "attention",
        20,
        ("embed", "rotate"),
        (Code("gpt.experiments.positions", "sinusoidal_positions"), Code("gpt.rotary", "apply_rotary")),
        Place("inside"),
        (build_positions,),
        beat="position",
    ),
    Lesson(
        "block",
        "block",
        9,
        ("block",),
        (
            Code("gpt.model", "TransformerBlock.forward"),
            Code("gpt.experiments.norm_placement", "PostNormBlock.forward"),
        ),
        Place("inside"),
        (build_norm_placement,),
        beat="residual",
    ),
    Lesson(
        "layer_norm",
        "block",
        4,
        ("layer_norm",),
        (Code("gpt.layers", "LayerNorm.formula"), Code("gpt.layers", "LayerNorm.forward")),
        Place("inside"),
        (build_layer_norm,),
        beat="norm",
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
        beat="residual",
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
            Code("gpt.model", "CausalSelfAttention.eager_attention", ("y.append",)),
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
            Code("gpt.models.checkpoints.hugging_face", "transposed"),
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
)
BY_KEY = {lesson.key: lesson for lesson in LESSONS}
