"""Any GPT built from a tutorial opens, or what is unclear about its names is said; none is mistaken."""

from __future__ import annotations

import json
import runpy
import warnings
from itertools import cycle
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor, nn

from gpt import GPT, Edits, GPTConfig
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.files import Contents
from gpt.models.checkpoints.layouts import HeadsUnknown, Hints, NamesInferred, NamesUnknown
from gpt.models.checkpoints.translate import detect_layout
from gpt.models.sources import load_model
from gpt.tokenizer import PlainIds
from tests.gpt.family_configs import randomized
from tests.parity.named_models import (
    EncoderGPT,
    LectureGPT,
    LensGPT,
    MegatronGPT,
    NumberedGPT,
    NumpyGPT,
    OldMinGPT,
    SeqGPT,
    TiedGPT,
    WqGPT,
)

IDX = torch.arange(32).view(2, 16) * 7 % 61

KNOWN = {
    LectureGPT: ("GPTLanguageModel", {"attn_scale": "head_size"}),
    TiedGPT: ("GPT with blocks", {"n_head": 3}),
}

INFERRED = {
    OldMinGPT: {"n_head": 3},
    LensGPT: {"activation": "gelu_tanh"},
    WqGPT: {"n_head": 3, "activation": "silu"},
    EncoderGPT: {"n_head": 3},
    NumberedGPT: {"n_head": 3},
    NumpyGPT: {"n_head": 3, "activation": "gelu_tanh"},
    SeqGPT: {"n_head": 3, "activation": "relu"},
}


def saved(model: nn.Module, path: Path) -> Path:
    """Save the state dict of the randomized model in the format given by the file name."""
    state = randomized(model).state_dict()
    if path.suffix == ".safetensors":  # it rejects tensors that share memory
        save_file({name: tensor.clone().contiguous() for name, tensor in state.items()}, path)
    else:
        torch.save(state, path)
    return path


def assert_same_logits(path: Path, model: nn.Module, **options: object) -> None:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        logits = load_model(path, device="cpu", **options).model(IDX)
        torch.testing.assert_close(logits, model(IDX), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("kind", "file"), zip(KNOWN, cycle(["mine.pt", "mine.safetensors"])))
def test_names_of_a_known_text_open_at_once(tmp_path: Path, kind: type[nn.Module], file: str) -> None:
    model, (layout, options) = kind(), KNOWN[kind]
    path = saved(model, tmp_path / file)
    assert open_checkpoint(path, **options).layout == layout
    assert_same_logits(path, model, **options)


@pytest.mark.parametrize(("kind", "file"), zip(INFERRED, cycle(["mine.pt", "mine.safetensors"])))
def test_inferred_names_give_the_logits_of_the_model(tmp_path: Path, kind: type[nn.Module], file: str) -> None:
    model, options = kind(), INFERRED[kind]
    path = saved(model, tmp_path / file)
    with pytest.raises(NamesInferred) as unconfirmed:
        open_checkpoint(path, **options)
    assert_same_logits(path, model, names="infer", **options)
    with pytest.warns(UserWarning, match=r'"wte(\.weight)?": '):
        load_model(path, device="cpu", **options)
    # The table of the message is itself a valid file.
    (tmp_path / "names.json").write_text(json.dumps(unconfirmed.value.layout))
    assert_same_logits(path, model, **options)


def test_an_order_that_nothing_tells_is_given_in_a_file(tmp_path: Path) -> None:
    model = MegatronGPT()
    path = saved(model, tmp_path / "mine.pt")
    with pytest.raises(NamesInferred) as unconfirmed:
        open_checkpoint(path)
    layout = tmp_path / "order.json"
    layout.write_text(json.dumps(unconfirmed.value.layout | {"qkv_order": "heads", "activation": "gelu_tanh"}))
    with pytest.raises(HeadsUnknown):
        open_checkpoint(path, names=layout)
    assert_same_logits(path, model, names=layout, n_head=3)


def test_biases_that_only_some_parts_have_are_zeros_in_the_others(tmp_path: Path) -> None:
    model = randomized(SeqGPT())
    for block in model.gpt.h:
        torch.nn.init.zeros_(block.attn.c_attn.bias[24:48])
        torch.nn.init.zeros_(block.mlp.c_proj.bias)
    dropped = ("k_proj.bias", "fc2.bias")
    torch.save({name: t for name, t in model.state_dict().items() if not name.endswith(dropped)}, tmp_path / "mine.pt")
    assert_same_logits(tmp_path / "mine.pt", model, names="infer", n_head=3, activation="relu")


NORM, MATRIX = torch.ones(24), torch.zeros(24, 24)


@pytest.mark.parametrize(
    ("old", "new", "added", "said"),
    [
        ("attention.wq", "attention.alpha", {}, r"nothing looks like h\.\{n\}\.attn\.q"),
        ("attention.wv", "attention.old_k", {}, r"attn\.k could be any of layers\.\{n\}\.attention\.wk, .*old_k"),
        ("_norm", "_norm", {"third_norm.weight": NORM}, "a block needs 2 norms of the model's width, not 3"),
        ("feed_forward.w2", "feed_forward.w2", {"feed_forward.w3.weight": MATRIX}, "needs 2 matrices .*, not 3: .*w3"),
        ("norm.weight", "norm.weight", {"attention.rope.freq.weight": NORM[:4]}, "no place for .*rope"),
    ],
)
def test_what_stays_unclear_is_said(tmp_path: Path, old: str, new: str, added: dict[str, Tensor], said: str) -> None:
    state = {name.replace(old, new): tensor for name, tensor in WqGPT().state_dict().items()}
    state |= {f"layers.{layer}.{name}": tensor.clone() for name, tensor in added.items() for layer in range(2)}
    torch.save(state, tmp_path / "mine.pt")
    with pytest.raises(NamesUnknown, match=said) as unclear:
        load_model(tmp_path / "mine.pt", n_head=3)
    assert '"lm_head": "output"' in unclear.value.values["draft"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"wte": "tok"}, '"names" must give a name'),
        ({"names": {"tok": "wte"}}, "names must be one of wte, .*, not 'tok'"),
        ({"names": {"wte": "tok"}, "rotary": True}, "option that is not implemented: rotary"),
        ({"names": {"wte": "tok"}, "transposed": "wte"}, '"transposed" is no list'),
        ({"names": {"wte": "tok"}}, r"tok\.weight is missing or not a matrix"),
    ],
)
def test_a_wrong_file_of_names_is_a_sentence(tmp_path: Path, content: dict[str, object], said: str) -> None:
    path = saved(WqGPT(), tmp_path / "mine.pt")
    (tmp_path / "names.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=said):
        open_checkpoint(path, n_head=3)


def test_convert_command_shows_the_inferred_names_and_takes_them_when_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = randomized(OldMinGPT())
    torch.save(model.state_dict(), tmp_path / "model.pt")
    command = ["checkpoints", "convert", str(tmp_path / "model.pt"), str(tmp_path / "out"), "--n-head", "3"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match=r'"h\.\{n\}\.attn\.q": "blocks\.\{n\}\.attn\.query"'):
        runpy.run_module("gpt.models.checkpoints", run_name="__main__")
    monkeypatch.setattr("sys.argv", [*command, "--names", "infer", "--activation", "relu"])
    runpy.run_module("gpt.models.checkpoints", run_name="__main__")
    loaded = load_model(tmp_path / "out", device="cpu")
    assert loaded.model.config.activation == "relu"
    with torch.no_grad():
        expected = model.gpt(IDX, edits=Edits(activation="relu"))
        torch.testing.assert_close(loaded.model(IDX), expected, atol=1e-5, rtol=0)


CHOICES: dict[str, list[str]] = {
    "wte": [
        *("wte", "tok_emb", "embed_tokens", "emb.tok", "word_embeddings", "tokens", "vocab_embedding", "embed", "W_E"),
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
        *(
            "attn.c_proj",
            "attention.dense",
            "attn.wo",
            "attn.W_O",
            "self_attn.to_out.0",
            "mha.out",
            "sa.o",
            "attn.fc_out",
        ),
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
