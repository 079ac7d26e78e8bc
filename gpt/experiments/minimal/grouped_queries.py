"""Attention in which several query heads share one key and value head."""

from torch import Tensor, nn
from torch.nn import functional as F

from gpt.experiments.minimal.configuration import Config
from gpt.experiments.minimal.rotary import Rotary


class GroupedQueryAttention(nn.Module):
    """(B, T, C) -> (B, T, C). n_kv_head must divide the number of heads."""

    def __init__(self, config: Config, n_kv_head: int) -> None:
        super().__init__()
        self.sizes = config.n_head, n_kv_head, n_kv_head
        self.c_attn = nn.Linear(config.n_embd, sum(self.sizes) * config.head_size, bias=False)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)
        self.rotary = Rotary(config.head_size)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, sum(self.sizes), -1).transpose(1, 2)
        q, k, v = qkv.split(self.sizes, dim=1)  # (B, nh or kv, T, hs)
        group = self.sizes[0] // self.sizes[1]  # query heads per key head
        k, v = (each.repeat_interleave(group, dim=1) for each in (self.rotary(k), v))
        heads = F.scaled_dot_product_attention(self.rotary(q), k, v, is_causal=True)
        return self.c_proj(heads.transpose(1, 2).reshape(B, T, C))
