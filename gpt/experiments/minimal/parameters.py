"""Count the parameters in a GPT-2."""

from gpt.experiments.minimal.configuration import Config


def n_parameters(config: Config, tied: bool = True, qkv_bias: bool = True) -> int:
    """Return the number of parameters in a GPT."""
    C = config.n_embd
    embeddings = config.vocab_size * C + config.block_size * C
    qkv = C * 3 * C + (3 * C if qkv_bias else 0)
    attention = qkv + C * C + C  # and c_proj
    feed_forward = C * 4 * C + 4 * C + 4 * C * C + C  # c_fc, c_proj
    norm = 2 * C
    block = norm + attention + norm + feed_forward
    head = 0 if tied else config.vocab_size * C
    return embeddings + config.n_layer * block + norm + head
