"""Pure functions of a trace, a model and token ids. Each takes one text and leaves the model unchanged.

    gpt.analysis.heads              attention weights, the roles of heads, and how well a model copies
    gpt.analysis.rollout            attention rollout
    gpt.analysis.lens               logit lens: the prediction after each layer
    gpt.analysis.attribution        contribution of each component, and of each neuron, to a logit
    gpt.analysis.residual           norms along the residual stream, neurons
    gpt.analysis.embeddings         similarity of token and position embeddings
    gpt.analysis.patching           activations of a clean run patched into a corrupted run
    gpt.analysis.saliency           contribution of each token of the text to a prediction
    gpt.analysis.predictions        probability, rank, entropy and surprisal of tokens, and Kullback-Leibler divergence
    gpt.analysis.sampling_stages    the distribution after each sampling stage, and the draw from it
    gpt.analysis.vocabulary_search  tokens by their text

Results are float32, or float64 for a model in float64.
"""
