"""The small experiments of the curriculum: functions that return plain numbers in frozen dataclasses."""

from gpt.experiments.activations import Curve, activation_curve, gelu_difference, lowest_point, pre_activations
from gpt.experiments.initialisation import (
    FirstPrediction,
    ResidualNorms,
    first_prediction,
    model_norms,
    residual_norms,
)
from gpt.experiments.masks import Cheating, MaskEffect, chance_losses, future_leak, learn_chance, padding_effect
from gpt.experiments.normalisation import Normalised, NormInput, linear_relu_rows, norm_input, normalise
from gpt.experiments.positions import Extrapolation, extrapolation, extrapolation_steps, rotary_closeness
from gpt.experiments.shortcuts import ShortcutGradients, shortcut_gradients
from gpt.experiments.speed import Cost, SpeedRow, bytes_per_token, measure_speed, next_token_cost
from gpt.experiments.tokens import (
    SAMPLES,
    MergeStep,
    Piece,
    SideBySide,
    TextCost,
    gpt2_copy,
    language_costs,
    merge_steps,
    pieces,
    side_by_side,
    text_cost,
    words,
)
from gpt.experiments.tying import SharedMatrix, Tying, shared_matrix, tying

__all__ = [
    "SAMPLES",
    "Cheating",
    "Cost",
    "Curve",
    "Extrapolation",
    "FirstPrediction",
    "MaskEffect",
    "MergeStep",
    "NormInput",
    "Normalised",
    "Piece",
    "ResidualNorms",
    "SharedMatrix",
    "ShortcutGradients",
    "SideBySide",
    "SpeedRow",
    "TextCost",
    "Tying",
    "activation_curve",
    "bytes_per_token",
    "chance_losses",
    "extrapolation",
    "extrapolation_steps",
    "first_prediction",
    "future_leak",
    "gelu_difference",
    "gpt2_copy",
    "language_costs",
    "learn_chance",
    "linear_relu_rows",
    "lowest_point",
    "measure_speed",
    "merge_steps",
    "model_norms",
    "next_token_cost",
    "norm_input",
    "normalise",
    "padding_effect",
    "pieces",
    "pre_activations",
    "residual_norms",
    "rotary_closeness",
    "shared_matrix",
    "shortcut_gradients",
    "side_by_side",
    "text_cost",
    "tying",
    "words",
]
