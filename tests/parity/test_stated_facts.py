"""Facts stored with the weights: heads, activation and vocabulary, configurations, scales, wrapped names."""

from __future__ import annotations

import argparse
import json
import random
import re
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers import GPT2Config, GPT2ForSequenceClassification, LlamaConfig, LlamaForCausalLM

from gpt import load_model
from gpt.layers import LayerNorm
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.files import WeightsUnknown
from gpt.models.checkpoints.layouts import NamesInferred, NamesUnknown, ScaleUnknown
from gpt.models.checkpoints.translate import strip_wrappers
from gpt.models.checkpoints.vocabularies import Characters, Words, token_table
from tests.gpt.family_configs import randomized
from tests.parity.family_models import family_twins
from tests.parity.named_models import HEADS, SIZE, WIDTH, LectureGPT, NanoGPT, SeqGPT, TiedGPT

IDX = torch.arange(32).view(2, 16) * 7 % 61
LETTERS = [chr(33 + number) for number in range(61)]
WRAPPERS = ("_orig_mod.", "module.", "model.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def assert_same_logits(path: Path, model: nn.Module, **options: object) -> None:
    with torch.no_grad():
        expected = model(IDX)
        torch.testing.assert_close(
            load_model(path, device="cpu", **options).model(IDX),
            getattr(expected, "logits", expected),
            atol=1e-5,
            rtol=0,
        )


@given(st.lists(st.sampled_from(WRAPPERS), max_size=4), st.sampled_from(WRAPPERS))
def test_wrappers_at_the_start_and_inside_of_names_change_nothing(start: list[str], inside: str) -> None:
    for name in NanoGPT().state_dict():
        first, *rest = name.split(".")
        wrapped = "".join(start) + f"{first}." + inside + ".".join(rest)
        assert strip_wrappers(wrapped) == strip_wrappers(name)


def test_a_wrapped_family_model_and_a_wrapped_module_inside_open(tmp_path: Path) -> None:
    twins = family_twins("llama", "grouped, tied")
    state = {
        "module._orig_mod.model." + name.replace(".mlp.", "._checkpoint_wrapped_module.mlp."): value.clone()
        for name, value in twins.reference.state_dict().items()
    }
    torch.save({**state, "optimizer": {"state": {}}, "step": 3}, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text((twins.folder / "config.json").read_text())
    assert_same_logits(tmp_path, twins.reference)


PLACES = [
    lambda facts: {"model_args": facts},
    lambda facts: {"config": facts},
    lambda facts: {"hparams": facts},
    lambda facts: {"hyper_parameters": facts},
    lambda facts: facts,
]


@pytest.mark.parametrize(
    ("place", "name"),
    zip(PLACES, ["n_head", "n_heads", "num_heads", "num_attention_heads", "nhead"], strict=True),
)
def test_heads_and_activation_that_a_checkpoint_states_are_used(tmp_path: Path, place, name: str) -> None:
    model = randomized(SeqGPT())
    facts = place({name: HEADS, "activation": "relu", "lr": 3e-4, "d_model": 24})
    torch.save({"model_state_dict": model.state_dict(), "epoch": 3, **facts}, tmp_path / "mine.pt")
    with pytest.raises(NamesInferred) as unconfirmed:  # asks only about the names
        open_checkpoint(tmp_path / "mine.pt")
    assert (unconfirmed.value.choices, unconfirmed.value.activation) == ([], "relu")
    assert_same_logits(tmp_path / "mine.pt", model, names="infer")


class Config:
    """A class that only the program that saves it has."""

    def __init__(self, **values: object) -> None:
        vars(self).update(values)


class Theirs(nn.Module):
    """The modules of another program's model."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()
        for name, tensor in state.items():
            module: nn.Module = self
            *path, leaf = name.split(".")
            for part in path:
                if part not in module._modules:
                    module.add_module(part, nn.Module())
                module = module.get_submodule(part)
            module.register_buffer(leaf, tensor)


@dataclass(slots=True)
class Slots:
    n_head: int


@pytest.mark.parametrize(
    "entries",
    [
        {"hyper_parameters": {"config": Config(n_head=HEADS)}},
        {"hyper_parameters": Config(_content={"model": Config(_content={"n_head": Config(_val=HEADS)}), "x": Any})},
        {"args": argparse.Namespace(n_head=HEADS)},
        {"config": Slots(HEADS)},
        {"config": defaultdict(list, n_head=HEADS)},
        {"config": OrderedDict(n_head=np.int64(HEADS))},
        {"config": GPT2Config(n_head=HEADS, activation_function="gelu")},
    ],
)
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["state-dict", "module"])
def test_objects_beside_the_weights_are_read_without_their_classes(
    tmp_path: Path, entries: dict[str, object], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [{1, 2}, Counter("aab"), deque([1]), Path("/a"), datetime(2026, 1, 1), range(3), 1j, b"\xff"]
    others += [np.random.get_state(), np.random.default_rng(0), np.float64(1.5), np.arange(3.0), random.getstate()]
    others += [torch.Size([1]), torch.float8_e4m3fn, torch.device("cpu"), nn.Linear, re.compile("a")]
    model = randomized(TiedGPT())
    state = model.state_dict()
    saved = {"model": Theirs(state) if whole else state, "others": others, **entries}
    for protocol in (2, 5):
        torch.save(saved, tmp_path / "mine.pt", pickle_protocol=protocol)
        with monkeypatch.context() as patch:
            for name in ("Config", "Slots", "Theirs"):
                patch.delattr(sys.modules[__name__], name)
            assert_same_logits(tmp_path / "mine.pt", model)


def test_of_several_models_in_a_file_one_is_chosen_by_its_name(tmp_path: Path) -> None:
    net, ema = randomized(TiedGPT()), randomized(TiedGPT(), std=0.1)
    saved = {"net": net.state_dict(), "ema": ema.state_dict(), "scaler": {"scale": torch.ones(1)}}
    torch.save({**saved, "n_head": HEADS}, tmp_path / "mine.pt")
    with pytest.raises(WeightsUnknown, match="contains these models: net, ema") as unclear:
        open_checkpoint(tmp_path / "mine.pt")
    assert unclear.value.choices == ["net", "ema"]
    assert_same_logits(tmp_path / "mine.pt", ema, weights="ema")
    with pytest.raises(WeightsUnknown):
        open_checkpoint(tmp_path / "mine.pt", weights="other")


def test_a_config_json_beside_inferred_names_counts_and_a_contradiction_names_both_values(tmp_path: Path) -> None:
    model = randomized(SeqGPT())
    for norm in (module for module in model.modules() if isinstance(module, LayerNorm)):
        norm.eps = 0.1
    torch.save(model.state_dict(), tmp_path / "mine.pt")
    stated = {"n_head": 3, "activation_function": "relu", "layer_norm_epsilon": 0.1, "d_model": 24}
    (tmp_path / "config.json").write_text(json.dumps(stated))
    assert_same_logits(tmp_path / "mine.pt", model, names="infer")
    gpt2 = {"model_type": "gpt2", "n_embd": 24, "n_layer": 2, "vocab_size": 61, "n_positions": 16, **stated}
    (tmp_path / "config.json").write_text(json.dumps(gpt2))
    assert_same_logits(tmp_path / "mine.pt", model, names="infer")
    with pytest.raises(ValueError, match="n_head is 3 in the checkpoint, not 4"):
        open_checkpoint(tmp_path / "mine.pt", names="infer", n_head=4)
    (tmp_path / "config.json").write_text(json.dumps({**stated, "n_layer": 5}))
    with pytest.raises(ValueError, match="n_layer is 5 in the configuration, but 2 in the weights"):
        open_checkpoint(tmp_path / "mine.pt", names="infer")


@pytest.mark.parametrize(
    "entries",
    [
        {"stoi": {letter: number for number, letter in enumerate(LETTERS)}},
        {"itos": dict(enumerate(LETTERS))},
        {"chars": "".join(LETTERS)},
        {"vocab": {"stoi": {letter: number for number, letter in enumerate(LETTERS)}}},
        {"config": {"vocab": LETTERS}},
        {"alphabet": LETTERS[:2], "vocab": LETTERS[:50]},
        {"tokenizer": {"idx_to_char": {str(number): letter for number, letter in enumerate(LETTERS)}}},
    ],
)
def test_a_table_of_characters_in_a_checkpoint_is_its_vocabulary(tmp_path: Path, entries: dict[str, object]) -> None:
    torch.save({"model": TiedGPT().state_dict(), "n_head": 3, **entries}, tmp_path / "mine.pt")
    tokenizer = load_model(tmp_path / "mine.pt", device="cpu").tokenizer
    assert isinstance(tokenizer, Characters)
    assert tokenizer.encode("%!A") == [4, 0, 32]


def test_a_table_of_words_splits_texts_at_spaces_and_punctuation_and_writes_them_again() -> None:
    words = token_table(["<unk>", "<eos>", "the", "cat", ".", ",", "sat", "don't", "--", "On"])
    assert isinstance(words, Words)
    ids = words.encode("The cat, the   dog -- don't sat. On")
    assert ids == [2, 3, 5, 2, 0, 8, 7, 6, 4, 9]
    assert words.decode(ids) == "the cat, the <unk> -- don't sat. On"
    assert (words.eot_id, words.special_ids, words.strips_space) == (1, {0, 1}, True)
    assert words.encode("the <eos>") == [2, 0, 0, 0]  # "<", "eos" and ">", not the control token
    spaced = token_table(["a", "word", " ", "\n", "."])
    assert spaced.encode("a word.\na") == [0, 2, 1, 4, 3, 0]
    assert spaced.decode([0, 2, 1, 4, 3, 0]) == "a word.\na"
    with pytest.raises(ValueError, match="does not know “dog”, only these 5: a word"):
        spaced.encode("a dog")


@pytest.mark.parametrize(("words", "file"), [(["a", "b"], "characters.json"), (["the", "cat"], "words.json")])
def test_a_table_is_saved_and_read_again(tmp_path: Path, words: list[str], file: str) -> None:
    from gpt import GPT, GPTConfig, save_model  # noqa: PLC0415

    save_model(tmp_path, GPT(GPTConfig(2, 4, n_layer=1, n_head=1, n_embd=4)), token_table(words))
    assert (tmp_path / file).is_file()
    assert load_model(tmp_path, device="cpu").tokenizer.tokens == words


def scaled_by_width(model: LectureGPT) -> LectureGPT:
    """Return the model with scores divided by sqrt(width), expressed as queries smaller by sqrt(head size / width)."""
    smaller = deepcopy(model)
    with torch.no_grad():
        for block in smaller.gpt.h:
            block.attn.c_attn.weight[:WIDTH] *= (SIZE / WIDTH) ** 0.5
    return smaller


@pytest.mark.parametrize("scale", ["n_embd", WIDTH**-0.5])
def test_a_module_for_each_head_asks_for_the_scale_and_takes_it_from_any_place(
    tmp_path: Path, scale: str | float
) -> None:
    model = randomized(LectureGPT())
    torch.save(model.state_dict(), tmp_path / "mine.pt")
    with pytest.raises(ScaleUnknown, match="attn_scale='n_embd'") as unclear:
        load_model(tmp_path / "mine.pt")
    assert unclear.value.values == {"head_size": SIZE, "n_embd": WIDTH}
    assert_same_logits(tmp_path / "mine.pt", model, attn_scale="head_size")
    assert_same_logits(tmp_path / "mine.pt", scaled_by_width(model), attn_scale=scale)
    (tmp_path / "config.json").write_text(json.dumps({"attn_scale": scale}))
    assert_same_logits(tmp_path / "mine.pt", scaled_by_width(model))
    with pytest.raises(ValueError, match=r"attn_scale is .* in the checkpoint, not head_size"):
        load_model(tmp_path / "mine.pt", attn_scale="head_size")


def meta_llama(**options: object) -> tuple[LlamaForCausalLM, dict[str, Tensor]]:
    """Return a random Llama, and its weights as stored by Meta's code and llama2.c.

    The permutation is the inverse of the one in transformers' convert_llama_weights_to_hf.py.
    """
    sizes = {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2}
    config = LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, **{"rms_norm_eps": 1e-5, **options})
    model = randomized(LlamaForCausalLM(config))
    words = {
        "embed_tokens": "tok_embeddings",
        "self_attn.q_proj": "attention.wq",
        "self_attn.k_proj": "attention.wk",
        "self_attn.v_proj": "attention.wv",
        "self_attn.o_proj": "attention.wo",
        "mlp.gate_proj": "feed_forward.w1",
        "mlp.down_proj": "feed_forward.w2",
        "mlp.up_proj": "feed_forward.w3",
        "input_layernorm": "attention_norm",
        "post_attention_layernorm": "ffn_norm",
        "lm_head": "output",
        "model.": "",
    }
    state: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        if "q_proj" in name or "k_proj" in name:
            n_head = 4 if "q_proj" in name else 2
            value = value.view(n_head, 2, 3, 24).transpose(1, 2).reshape(-1, 24).contiguous()
        for theirs, metas in words.items():
            name = name.replace(theirs, metas)
        state[name] = value.clone()
    return model, state


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("tied", [True, False])
def test_files_of_llama2c_give_transformers_logits(tmp_path: Path, version: int, tied: bool) -> None:
    """The order is that of llama2.c's export.py, `legacy_export` and `version1_export`."""
    model, state = meta_llama(tie_word_embeddings=tied)

    def blocks(*names: str) -> list[Tensor]:
        return [state[f"layers.{layer}.{name}.weight"] for name in names for layer in range(2)]

    matrices = [f"attention.w{letter}" for letter in "qkvo"], [f"feed_forward.w{number}" for number in (1, 2, 3)]
    embedding, norm, head = state["tok_embeddings.weight"], state["norm.weight"], state["output.weight"]
    if version == 0:
        parts = [embedding, *blocks("attention_norm", *matrices[0], "ffn_norm", *matrices[1]), norm]
        parts += [torch.ones(2, 32, 3)]  # cosines and sines
    else:
        parts = [*blocks("attention_norm", "ffn_norm"), norm, embedding, *blocks(*matrices[0], *matrices[1])]
    sizes = struct.pack("<7i", 24, 40, 2, 4, 2, 61 if tied or version else -61, 32)
    header = sizes if version == 0 else (b"24ka" + struct.pack("<i", 1) + sizes + bytes([tied])).ljust(256, b"\0")
    data = b"".join(part.numpy().tobytes() for part in [*parts, *([] if tied else [head])])
    (tmp_path / "model.bin").write_bytes(header + data)
    assert_same_logits(tmp_path, model)
    assert open_checkpoint(tmp_path / "model.bin").config.block_size == 32
    (tmp_path / "model.bin").write_bytes(header + data[:-8])
    with pytest.raises(ValueError, match=r"model\.bin is damaged or cut short"):
        open_checkpoint(tmp_path)


def test_llama_with_metas_names_gives_transformers_logits(tmp_path: Path) -> None:
    model, state = meta_llama()
    args = {"dim": 24, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "max_seq_len": 32, "dropout": 0.0}
    wrapped = {f"_orig_mod.{name}": value for name, value in state.items()}
    torch.save({"model": {**wrapped, "freqs_cos": torch.ones(32, 3)}, "model_args": args}, tmp_path / "ckpt.pt")
    assert_same_logits(tmp_path, model)
    assert open_checkpoint(tmp_path).config.block_size == 32


def test_a_model_like_llama_gets_a_file_of_names_that_expresses_it(tmp_path: Path) -> None:
    model, state = meta_llama()
    renamed = {name.replace("layers", "stack").replace("tok_embeddings", "wte"): value for name, value in state.items()}
    torch.save(renamed, tmp_path / "mine.pt")
    with pytest.raises(NamesUnknown, match="no position embeddings, so positions are rotary") as unclear:
        open_checkpoint(tmp_path / "mine.pt")
    draft = json.loads(unclear.value.values["draft"])
    assert (draft["norm"], draft["rotary_pairs"]) == ("rms", "?")
    assert draft["names"]["h.{n}.mlp.c_gate"] == "stack.{n}.feed_forward.w1"
    (tmp_path / "names.json").write_text(json.dumps(draft))
    with pytest.raises(ValueError, match="rotary_pairs must be one of half, interleaved"):
        open_checkpoint(tmp_path / "mine.pt", n_head=4)
    filled = {**draft, "rotary_pairs": "interleaved", "n_kv_head": 2}
    with pytest.raises(ValueError, match=r"there is no file or folder nowhere\.json"):
        open_checkpoint(tmp_path / "mine.pt", n_head=4, names="nowhere.json")
    (tmp_path / "names.json").write_text(json.dumps(filled))
    assert_same_logits(tmp_path / "mine.pt", model, n_head=4)


def test_what_a_trainer_leaves_beside_the_weights_is_no_model(tmp_path: Path) -> None:
    model = randomized(NanoGPT())
    beside = ("optimizer.pt", "optim_000100_rank0.pt", "model_optim.pt", "mp_rank_00_optim_states.pt", "scheduler.pt")
    for name in (*beside, "rng_state.pth", "training_args.bin", "scaler.pt", "train.bin"):
        torch.save({"state": {}}, tmp_path / name)
    with pytest.raises(ValueError, match="no weight file here"):
        open_checkpoint(tmp_path)
    torch.save(model.state_dict(), tmp_path / "optimized.ckpt")
    assert_same_logits(tmp_path, model, n_head=3)


def test_weights_that_do_not_change_the_logits_are_left_out(tmp_path: Path) -> None:
    model, head = randomized(NanoGPT()), nn.Linear(WIDTH, 61)
    others = {
        "v_head.summary.weight": torch.ones(1, WIDTH),
        "multiple_choice_head.bias": torch.ones(1),
        "n_averaged": torch.tensor(3),
    }
    others |= {"transformer.h.0.attn._extra_state": torch.ones(3), "transformer.h.0.mlp.steps": torch.tensor(9)}
    others |= {f"lm_head2.{name}": value for name, value in head.state_dict().items()}
    torch.save({**model.state_dict(), **others}, tmp_path / "mine.pt")
    headless = {name.removeprefix("transformer."): value for name, value in model.state_dict().items()}
    del headless["lm_head.weight"]
    torch.save({**headless, **others}, tmp_path / "headless.pt")
    with pytest.raises(ValueError, match=r"unexpected: lm_head2\.weight"):  # may be the model's own head
        load_model(tmp_path / "headless.pt", n_head=3)
    assert_same_logits(tmp_path / "mine.pt", model, n_head=3)


def test_a_classifier_is_called_one(tmp_path: Path) -> None:
    sizes = {"vocab_size": 61, "n_positions": 16, "n_embd": 24, "n_layer": 1, "n_head": 3, "pad_token_id": 0}
    GPT2ForSequenceClassification(GPT2Config(**sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"is a classifier \(GPT2ForSequenceClassification\)"):
        open_checkpoint(tmp_path, n_head=3)


def test_options_in_files_of_other_programs_count(tmp_path: Path) -> None:
    rope = {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    }
    rope |= {"original_max_position_embeddings": 8192}
    model, state = meta_llama(rope_parameters=rope, rms_norm_eps=0.1, max_position_embeddings=10**6)
    torch.save(state, tmp_path / "consolidated.00.pth")
    params = {
        "dim": 24,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "vocab_size": -1,
        "norm_eps": 0.1,
        "multiple_of": 4,
    }
    params |= {"rope_theta": 500000.0, "use_scaled_rope": True, "ffn_dim_multiplier": 1.3}
    file = "params.json"
    (tmp_path / file).write_text(json.dumps(params))
    assert_same_logits(tmp_path, model)
    (tmp_path / file).write_text(json.dumps({**params, "n_layers": 3}))
    with pytest.raises(ValueError, match="n_layer is 3 in the configuration, but 2 in the weights"):
        open_checkpoint(tmp_path)
