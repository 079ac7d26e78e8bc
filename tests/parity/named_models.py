"""Our GPT as other programs store it: with their names, shapes and orders."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gpt import GPT, GPTConfig

VOCAB_SIZE, CONTEXT, WIDTH, HEADS, LAYERS = 61, 16, 24, 3, 2
MASK = torch.triu(torch.ones(CONTEXT, CONTEXT), diagonal=1)
SIZE = WIDTH // HEADS
Names = dict[str, str | dict[str, int] | None]


def renamed(state: dict[str, Tensor], names: Names) -> dict[str, Tensor]:
    """Return weights under other names.

    Args:
        state: The weights of a GPT.
        names: The other name of a module, of a parameter, or of the blocks ("h"). None leaves the module out. For
            c_attn, several names with the number of their part: 0 for the query, 1 for the key, 2 for the value.
    """
    found = {}
    for name, tensor in state.items():
        start, role, leaf = re.fullmatch(r"(h\.\d+\.)?(.+)\.(\w+)", name).groups(default="")
        block = start.replace("h", str(names.get("h", "h")), 1)
        other = names.get(role, role)
        if f"{role}.{leaf}" in names:
            found[f"{block}{names[f'{role}.{leaf}']}"] = tensor
        elif isinstance(other, dict):
            found |= {f"{block}{each}.{leaf}": tensor.chunk(3)[part].clone() for each, part in other.items()}
        elif other is not None:
            found[f"{block}{other}.{leaf}"] = tensor
    return found


class NamedGPT(nn.Module):
    """A GPT whose state dict is that of another program.

    Attributes:
        names: The program's names, for `renamed`.
        options: What its model has besides exact GELU and an untied head.
        buffers_of_block: Names of the buffers that each block also stores.
    """

    names: ClassVar[Names]
    options: ClassVar[dict[str, Any]] = {}
    buffers_of_block: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__()
        usual = {"tie_weights": False, "activation": "gelu"}
        self.gpt = GPT(GPTConfig(VOCAB_SIZE, CONTEXT, LAYERS, HEADS, WIDTH, **(usual | self.options | options)))

    def forward(self, idx: Tensor) -> Tensor:
        return self.gpt(idx)

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        state = renamed(self.gpt.state_dict(), self.names)
        for layer in range(LAYERS):
            state |= {f"{self.names['h']}.{layer}.{name}": 1 - MASK for name in self.buffers_of_block}
        return state


class NanoGPT(NamedGPT):
    """nanoGPT's model: exact GELU, optional biases, a tied head."""

    names: ClassVar[Names] = {name: f"transformer.{name}" for name in ("wte", "wpe", "h", "ln_f")}
    options: ClassVar[dict[str, Any]] = {"tie_weights": True}


class MinGPT(NanoGPT):
    """minGPT's model: tanh GELU, an untied head, and the causal mask as a buffer named bias."""

    options: ClassVar[dict[str, Any]] = {"activation": "gelu_tanh"}
    buffers_of_block: ClassVar[tuple[str, ...]] = ("attn.bias",)

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        state = super().state_dict()
        return {name: value[None, None] if name.endswith(".attn.bias") else value for name, value in state.items()}


class BookGPT(NamedGPT):
    """GPTModel of the "from scratch" books: three matrices for query, key and value, and an untied head."""

    names: ClassVar[Names] = {"h": "trf_blocks", "wte": "tok_emb", "wpe": "pos_emb", "lm_head": "out_head"}
    names |= {"ln_1.weight": "norm1.scale", "ln_1.bias": "norm1.shift", "ln_2.weight": "norm2.scale"}
    names |= {"ln_2.bias": "norm2.shift", "ln_f.weight": "final_norm.scale", "ln_f.bias": "final_norm.shift"}
    names |= {"attn.c_attn": {"att.W_query": 0, "att.W_key": 1, "att.W_value": 2}, "attn.c_proj": "att.out_proj"}
    names |= {"mlp.c_fc": "ff.layers.0", "mlp.c_proj": "ff.layers.2"}
    options: ClassVar[dict[str, Any]] = {"activation": "gelu_tanh", "qkv_bias": False}
    buffers_of_block: ClassVar[tuple[str, ...]] = ("att.mask",)


class TiedGPT(NamedGPT):
    """GPT-2's names around `blocks`, with a tied head."""

    names: ClassVar[Names] = {"h": "blocks"}
    options: ClassVar[dict[str, Any]] = {"tie_weights": True}
    buffers_of_block: ClassVar[tuple[str, ...]] = ("attn.mask",)


class QKVProjGPT(NamedGPT):
    """One projection qkv_proj for query, key and value."""

    names: ClassVar[Names] = {"h": "blocks", "wte": "token_embedding", "wpe": "position_embedding", "ln_1": "ln1"}
    names |= {"ln_2": "ln2", "attn.c_attn": "attn.qkv_proj", "attn.c_proj": "attn.out_proj"}
    names |= {"mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}
    buffers_of_block: ClassVar[tuple[str, ...]] = ("attn.mask",)


class LectureGPT(NamedGPT):
    """A separate module for each head, ReLU, and a head with a bias."""

    names: ClassVar[Names] = {"h": "blocks", "wte": "token_embedding_table", "wpe": "position_embedding_table"}
    names |= {"ln_1": "ln1", "ln_2": "ln2", "attn.c_proj": "sa.proj", "mlp.c_fc": "ffwd.net.0"}
    names |= {"mlp.c_proj": "ffwd.net.2", "attn.c_attn": {"sa.key": 1, "sa.query": 0, "sa.value": 2}}
    options: ClassVar[dict[str, Any]] = {"qkv_bias": False, "head_bias": True, "activation": "relu"}
    buffers_of_block: ClassVar[tuple[str, ...]] = tuple(f"sa.heads.{head}.tril" for head in range(HEADS))

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        found = {}
        for name, tensor in super().state_dict().items():
            if re.search(r"\.sa\.(key|query|value)\.", name):
                for head, part in enumerate(tensor.chunk(HEADS)):
                    found[name.replace(".sa.", f".sa.heads.{head}.")] = part.clone()
            else:
                found[name] = tensor
        return found


class OldMinGPT(NamedGPT):
    """Positions are a bare parameter, and key comes before query."""

    names: ClassVar[Names] = {"h": "blocks", "wte": "tok_emb", "wpe.weight": "pos_emb", "ln_1": "ln1", "ln_2": "ln2"}
    names |= {"attn.c_attn": {"attn.key": 1, "attn.query": 0, "attn.value": 2}, "attn.c_proj": "attn.proj"}
    names |= {"mlp.c_fc": "mlp.0", "mlp.c_proj": "mlp.2", "lm_head": "head"}
    buffers_of_block: ClassVar[tuple[str, ...]] = ("attn.mask",)

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        state = super().state_dict()
        return state | {"pos_emb": state["pos_emb"][None]}


class LensGPT(NamedGPT):
    """Separate (in, out) matrices for each head, with W_ and b_ before their names; tanh GELU; a head with a bias."""

    names: ClassVar[Names] = {"h": "blocks", "wte.weight": "embed.W_E", "wpe.weight": "pos_embed.W_pos"}
    names |= {f"{norm}.{leaf}": f"{theirs}.{leaf[0]}" for norm, theirs in (("ln_1", "ln1"), ("ln_2", "ln2"))
              for leaf in ("weight", "bias")}  # fmt: skip
    names |= {"ln_f.weight": "ln_final.w", "ln_f.bias": "ln_final.b", "attn.c_proj.weight": "attn.W_O"}
    names |= {"attn.c_proj.bias": "attn.b_O", "mlp.c_fc.weight": "mlp.W_in", "mlp.c_fc.bias": "mlp.b_in"}
    names |= {"mlp.c_proj.weight": "mlp.W_out", "mlp.c_proj.bias": "mlp.b_out", "lm_head.weight": "unembed.W_U"}
    names |= {"lm_head.bias": "unembed.b_U", "attn.c_attn": {"attn.Q": 0, "attn.K": 1, "attn.V": 2}}
    options: ClassVar[dict[str, Any]] = {"activation": "gelu_tanh", "head_bias": True}
    buffers_of_block: ClassVar[tuple[str, ...]] = ("attn.mask",)

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        found = {}
        for name, tensor in super().state_dict().items():
            name = re.sub(r"\.([QKV])\.weight", r".W_\1", re.sub(r"\.([QKV])\.bias", r".b_\1", name))
            if re.search(r"\.[Wb]_[QKV]$", name):
                tensor = tensor.unflatten(0, (HEADS, SIZE))
                tensor = tensor.transpose(1, 2) if tensor.dim() == 3 else tensor
            elif name.endswith("W_O"):
                tensor = tensor.t().unflatten(0, (HEADS, SIZE))
            elif re.search(r"W_(in|out|U)$", name):
                tensor = tensor.t()
            found[name] = tensor
        return found


class WqGPT(NamedGPT):
    """Biases only in the norms; square feed-forward matrices; names like wq; another order of modules."""

    names: ClassVar[Names] = {"h": "layers", "wte": "tok_embeddings", "wpe": "positions", "ln_1": "attention_norm"}
    names |= {"attn.c_attn": {"attention.wv": 2, "attention.wk": 1, "attention.wq": 0}, "attn.c_proj": "attention.wo"}
    names |= {"ln_2": "ffn_norm", "mlp.c_fc": "feed_forward.w1", "mlp.c_proj": "feed_forward.w2", "ln_f": "norm"}
    names |= {"lm_head": "output"}
    options: ClassVar[dict[str, Any]] = {"qkv_bias": False, "proj_bias": False, "mlp_bias": False, "n_ff": WIDTH}
    options |= {"activation": "silu"}

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        names = reversed(state := super().state_dict())
        return {name: state[name] for name in sorted(names, key=lambda name: "layers.1." in name)}


class SeqGPT(NamedGPT):
    """A decoder inside a model, a norm called final in each block, and ReLU."""

    names: ClassVar[Names] = {"h": "model.decoder.layers", "wte": "model.decoder.embed_tokens"}
    names |= {
        "wpe": "model.decoder.embed_positions",
        "ln_1": "self_attn_layer_norm",
        "attn.c_proj": "self_attn.out_proj",
    }
    names |= {"attn.c_attn": {"self_attn.k_proj": 1, "self_attn.v_proj": 2, "self_attn.q_proj": 0}, "mlp.c_fc": "fc1"}
    names |= {
        "attn.c_proj": "self_attn.out_proj",
        "mlp.c_proj": "fc2",
        "ln_2": "final_layer_norm",
        "ln_f": "model.decoder.layer_norm",
    }
    options: ClassVar[dict[str, Any]] = {"activation": "relu"}


class NumpyGPT(NamedGPT):
    """The names of OpenAI's release (w, b, g), with (in, out) matrices, bare embeddings, a tied head and tanh GELU."""

    names: ClassVar[Names] = {"h": "blocks", "wte.weight": "wte", "wpe.weight": "wpe", "lm_head": None}
    options: ClassVar[dict[str, Any]] = {"tie_weights": True, "activation": "gelu_tanh"}

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        found = {}
        for name, tensor in super().state_dict().items():
            is_matrix = name.endswith(".weight") and tensor.dim() == 2
            name = name.replace(".weight", ".w" if is_matrix else ".g").replace(".bias", ".b")
            found[name] = tensor.t() if is_matrix else tensor
        return found


class MegatronGPT(NamedGPT):
    """One matrix stores query, key and value head by head, which the file does not reveal."""

    names: ClassVar[Names] = {"h": "layers", "wte": "embedding.word_embeddings", "wpe": "embedding.position_embeddings"}
    names |= {"ln_1": "input_layernorm", "ln_2": "post_attention_layernorm", "attn.c_proj": "self_attention.dense"}
    names |= {"attn.c_attn": "self_attention.query_key_value", "mlp.c_fc": "mlp.dense_h_to_4h", "lm_head": None}
    names |= {"mlp.c_proj": "mlp.dense_4h_to_h", "ln_f": "final_layernorm"}
    options: ClassVar[dict[str, Any]] = {"tie_weights": True, "activation": "gelu_tanh"}

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        state = super().state_dict()
        for name in [name for name in state if "query_key_value" in name]:
            state[name] = state[name].unflatten(0, (3, HEADS, SIZE)).transpose(0, 1).flatten(0, 2)
        return state


class NumberedGPT(NamedGPT):
    """Blocks are lists of two unnamed parts, each with its norm inside. The name to_kqv gives the order."""

    names: ClassVar[Names] = {"h": "layers", "wte": "token_emb", "wpe": "pos_emb", "ln_1": "0.norm", "ln_2": "1.0"}
    names |= {"attn.c_attn": "0.to_kqv", "attn.c_proj": "0.to_out", "mlp.c_fc": "1.1", "mlp.c_proj": "1.4"}
    names |= {"ln_f": "norm", "lm_head": "to_logits"}
    options: ClassVar[dict[str, Any]] = {"qkv_bias": False, "proj_bias": False, "n_ff": 3 * WIDTH}

    def state_dict(self, *_: object, **__: object) -> dict[str, Tensor]:
        state = super().state_dict()
        for name in [name for name in state if "to_kqv" in name]:
            q, k, v = state[name].chunk(3)
            state[name] = torch.cat([k, q, v])
        return state


class EncoderGPT(nn.Module):
    """torch's own nn.TransformerEncoder, with norms first and a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.token_emb, self.position_emb = nn.Embedding(VOCAB_SIZE, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        options = {"activation": "gelu", "batch_first": True, "norm_first": True}
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, **options)
        norm = nn.LayerNorm(WIDTH)
        self.transformer = nn.TransformerEncoder(layer, LAYERS, norm=norm, enable_nested_tensor=False)
        self.fc_out = nn.Linear(WIDTH, VOCAB_SIZE)

    def forward(self, idx: Tensor) -> Tensor:
        T = idx.shape[1]
        x = self.token_emb(idx) + self.position_emb(torch.arange(T))
        return self.fc_out(self.transformer(x, mask=nn.Transformer.generate_square_subsequent_mask(T), is_causal=True))
