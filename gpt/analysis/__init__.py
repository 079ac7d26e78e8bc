"""Analyses of texts: pure functions of a trace, a model and token ids. They never change the model.

The model can be a loaded model, its name, or a GPT. Most functions accept a text instead of a trace, and a list of
texts, for which they return a list of results.

    gpt.analysis.heads              attention rollout, head roles, and the heads that copy
    gpt.analysis.lens               logit lens: the prediction after each layer
    gpt.analysis.attribution        contribution of each component and neuron to a logit
    gpt.analysis.residual           norms along the residual stream, and the strongest neurons
    gpt.analysis.embeddings         similarity of token and position embeddings
    gpt.analysis.patching           activations of a clean run patched into a corrupted run
    gpt.analysis.corpus             activations over many texts: strongest examples, means, steering, mean ablation
    gpt.analysis.saliency           effect of each token on a prediction; predictions without words, heads or concepts
    gpt.analysis.predictions        probability, rank, entropy and surprisal of tokens, and Kullback-Leibler divergence

Results are float32, or float64 for a model in float64.
"""

from gpt.analysis.attribution import Attribution, NeuronAttribution, direct_logit_attribution, neuron_logit_attribution
from gpt.analysis.corpus import mean_ablation, mean_activation, mean_difference, strongest_examples
from gpt.analysis.heads import CopyingHeads, HeadRoles, copying_heads, copying_scores, head_roles, rollout
from gpt.analysis.lens import Lens, logit_lens
from gpt.analysis.patching import PatchSweep, PathSweep, attribution_patching, patch_from, patch_sweep, path_sweep
from gpt.analysis.predictions import kl_bits, token_predictions
from gpt.analysis.saliency import input_x_gradient, leave_one_out
from gpt.analysis.tracing import trace_text

__all__ = [
    "Attribution",
    "CopyingHeads",
    "HeadRoles",
    "Lens",
    "NeuronAttribution",
    "PatchSweep",
    "PathSweep",
    "attribution_patching",
    "copying_heads",
    "copying_scores",
    "direct_logit_attribution",
    "head_roles",
    "input_x_gradient",
    "kl_bits",
    "leave_one_out",
    "logit_lens",
    "mean_ablation",
    "mean_activation",
    "mean_difference",
    "neuron_logit_attribution",
    "patch_from",
    "patch_sweep",
    "path_sweep",
    "rollout",
    "strongest_examples",
    "token_predictions",
    "trace_text",
]
