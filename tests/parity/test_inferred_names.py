"""Names from any mixture of conventions: each weight is found or reported as unclear, and none is mistaken."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gpt import GPT, GPTConfig
from gpt.models.checkpoints import Hints
from gpt.models.checkpoints.files import Contents
from gpt.models.checkpoints.translate import detect_layout
from gpt.models.checkpoints.vocabularies import PlainIds
from tests.conftest import randomized

CHOICES: dict[str, list[str]] = {
    "wte": [
        "wte",
        "tok_emb",
        "embed_tokens",
        "emb.tok",
        "word_embeddings",
        "tokens",
        "vocab_embedding",
        "embed",
        "W_E",
    ],
    "wpe": ["wpe", "pos_emb", "embed_positions", "emb.pos", "positional_embedding", "pos", "positions", "pe", "W_pos"],
    "h": ["h", "layers", "transformer.blocks", "decoder.layers", "stack", "trf_blocks", "net.blocks"],
    "norms": [
        *("ln_1 ln_2", "norm1 norm2", "attn_norm ffn_norm", "input_layernorm post_attention_layernorm", "ln.0 ln.1"),
        *("pre_attn_norm pre_mlp_norm", "self_attn_layer_norm final_layer_norm", "attn.norm mlp.norm", "sa_ln ff_ln"),
    ],
    "qkv": [
        *("attn.qkv_proj", "attn.Wqkv", "attention.query_key_value", "attn.in_proj", "sa.to_qkv"),
        *("attn.q_proj attn.k_proj attn.v_proj", "attention.query attention.key attention.value"),
        *("attn.w_qs attn.w_ks attn.w_vs", "attn.W_Q attn.W_K attn.W_V"),
    ],
    "output": [
        "attn.c_proj",
        "attention.dense",
        "attn.wo",
        "attn.W_O",
        "self_attn.to_out.0",
        "mha.out",
        "sa.o",
        "attn.fc_out",
    ],
    "mlp": [
        *("mlp.fc1 mlp.fc2", "mlp.up mlp.down", "mlp.0 mlp.2", "ffn.w1 ffn.w2", "ff.net.0 ff.net.3", "ff.a ff.b"),
        *("mlp.fc_in mlp.fc_out", "intermediate.dense output.dense", "mlp.dense_h_to_4h mlp.dense_4h_to_h"),
    ],
    "ln_f": ["ln_f", "norm", "final_layer_norm", "norm_out", "ln"],
    "lm_head": ["lm_head", "head", "out_head", "unembed", "to_logits", "classifier", "decoder", "word_prj", "W_U"],
}


@given(st.fixed_dictionaries({role: st.sampled_from(names) for role, names in CHOICES.items()}), st.booleans())
def test_no_weight_is_mistaken_for_another(names: dict[str, str], has_biases: bool) -> None:
    config = GPTConfig(61, 16, n_layer=2, n_head=3, n_embd=24, tie_weights=False, bias=has_biases, qkv_bias=has_biases)
    model = randomized(GPT(config))
    parts = dict(zip(("ln_1", "ln_2"), names["norms"].split(), strict=True))
    parts |= dict(zip(("mlp.c_fc", "mlp.c_proj"), names["mlp"].split(), strict=True))
    parts |= {"attn.c_proj": names["output"], **{role: names[role] for role in ("wte", "wpe", "ln_f", "lm_head")}}
    state: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        role, leaf = name.rsplit(".", 1)
        block, n = "", role.split(".")[1] if role.startswith("h.") else ""
        if n:
            block, role = f"{names['h']}.{n}.", role.removeprefix(f"h.{n}.")
        theirs = names["qkv"].split() if role == "attn.c_attn" else [parts[role]]
        state |= {f"{block}{each}.{leaf}": p for each, p in zip(theirs, tensor.chunk(len(theirs)), strict=True)}
    _, _, found = detect_layout(Contents(state, PlainIds), Hints(n_head=3, activation="gelu_tanh", names="infer"))
    weights = {name: torch.cat(tensors) for name, tensors in found.items()}
    assert {name for name, tensor in model.state_dict().items() if not torch.equal(weights[name], tensor)} == set()
