"""Models of every family match transformers, and are saved for it."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from gpt import (
    GPT,
    Generation,
    GPTConfig,
    SamplingParams,
    generate,
    generate_batch,
    get_model,
    load_model,
    save_hugging_face,
)
from gpt.analysis import direct_logit_attribution, input_x_gradient, logit_lens, trace_text
from gpt.analysis.saliency import logits_without_each
from gpt.analysis.tracing import trace_window
from gpt.cache import KVCache
from gpt.documents.beam_search import BeamSearch
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.families import FAMILIES
from gpt.trace import Trace
from tests.gpt.family_configs import randomized
from tests.parity.family_models import (
    CASES,
    CONTEXT,
    LINEAR,
    LLAMA3,
    LONG_ROPE,
    OPTIONS,
    SIZES,
    VOCAB_SIZE,
    YARN,
    Twins,
    family_twins,
)

T, TOKEN = 20, 33

IDX = torch.arange(2 * T).view(2, T) * 11 % VOCAB_SIZE

PROMPTS = [[7], [3, 1, 4, 1, 5, 9, 2, 6], [60, 0, 60, 0]]

FIRST = {(family, next(iter(OPTIONS[family]))) for family in ("gpt2", "gpt_neox", "llama", "gemma3_text")}

QUICK = [pytest.param(case, marks=() if case in FIRST else pytest.mark.thorough, id=" - ".join(case)) for case in CASES]

ONE_EACH = [each for each in QUICK if each.values[0][1] == next(iter(OPTIONS[each.values[0][0]]))]


@pytest.fixture(params=QUICK, scope="module")
def twins(request: pytest.FixtureRequest) -> Iterator[Twins]:
    with torch.inference_mode():
        yield family_twins(*request.param)


def test_every_activation_is_that_of_transformers(twins: Twins) -> None:
    expected = twins.reference(IDX, output_attentions=True, output_hidden_states=True)
    trace = Trace()
    traced = twins.ours(IDX, trace=trace)
    assert_close(traced, expected.logits, atol=1e-5, rtol=0)
    assert_close(twins.ours(IDX), expected.logits, atol=1e-5, rtol=0)
    for layer, weights, state in zip(trace.layers, expected.attentions, expected.hidden_states[:-1], strict=True):
        assert_close(layer.attn_weights, weights, atol=1e-5, rtol=0)
        assert_close(layer.resid_pre, state, atol=1e-5, rtol=0)
    assert_close(trace.final_norm, expected.hidden_states[-1], atol=1e-5, rtol=0)


def test_left_padding_and_a_cache_filled_in_chunks_change_nothing(twins: Twins) -> None:
    mask = (torch.arange(T) >= torch.tensor([[0], [7]])).long()
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    expected = twins.reference(IDX, attention_mask=mask, position_ids=positions).logits
    real = mask.bool()
    assert_close(twins.ours(IDX, attention_mask=mask)[real], expected[real], atol=1e-5, rtol=0)
    cache, chunks = KVCache(twins.ours.config, batch_size=2), []
    for chunk in IDX.split([9, 1, 6, 1, 3], dim=1):
        seen = mask[:, : cache.length + chunk.shape[1]]
        chunks.append(twins.ours(chunk, attention_mask=seen, cache=cache))
    assert_close(torch.cat(chunks, dim=1)[real], expected[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", ONE_EACH)
def test_greedy_text_is_that_of_transformers_alone_and_among_others(case: tuple[str, str]) -> None:
    twins = family_twins(*case)
    loaded, greedy, n = load_model(twins.folder, device="cpu"), SamplingParams(temperature=0), 10
    expected = []
    for ids in PROMPTS:
        idx = torch.tensor([ids])
        mask = torch.ones_like(idx)
        text = twins.reference.generate(idx, attention_mask=mask, max_new_tokens=n, do_sample=False, pad_token_id=0)
        expected.append(text[0, len(ids) :].tolist())
    assert [[step.token_id for step in generate(loaded, ids, greedy, n)] for ids in PROMPTS] == expected
    assert generate_batch(loaded, PROMPTS, greedy, n) == expected


def test_weights_that_stay_in_their_files_make_the_same_model(twins: Twins) -> None:
    mapped = open_checkpoint(twins.folder).build(mapped=True)
    assert_close(mapped.state_dict(), twins.ours.state_dict(), atol=0, rtol=0)


@pytest.mark.thorough
@pytest.mark.parametrize("rope", [LINEAR, LLAMA3, YARN], ids=lambda rope: rope["rope_type"])
@torch.inference_mode()
def test_a_text_longer_than_4096_tokens_has_transformers_numbers(rope: dict[str, Any], tmp_path: Path) -> None:
    sizes = SIZES | {"max_position_embeddings": 8192, "num_hidden_layers": 2, "num_attention_heads": 2}
    options = sizes | {"rope_parameters": rope | {"original_max_position_embeddings": 2048}}
    config = AutoConfig.for_model("llama", **options)
    reference = randomized(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
    reference.save_pretrained(tmp_path)
    ids = torch.randint(VOCAB_SIZE, (4500,), generator=torch.Generator().manual_seed(0))
    expected = reference(ids[None], output_attentions=True)
    document = Generation(load_model(tmp_path, device="cpu"), ids[:-9].tolist())
    document.read()
    document.append(*ids[-9:].tolist())
    document.read()
    for position in (5, 4095, 4096, 4499):
        assert_close(document.logits(position), expected.logits[0, position], atol=1e-5, rtol=0)
    found = document.attn_weights(1, 0, start=4400)
    assert_close(found, expected.attentions[1][0, 0, 4400:], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("family", "rope"), [("phi3", LONG_ROPE), ("llama", LINEAR | {"rope_type": "dynamic"})])
@torch.inference_mode()
def test_a_text_that_outgrows_the_original_context_has_transformers_numbers(
    family: str, rope: dict[str, Any], tmp_path: Path
) -> None:
    original, n, greedy = 24, 30, SamplingParams(temperature=0)
    rope = rope | ({"original_max_position_embeddings": original} if family == "phi3" else {})
    sizes = SIZES | {"hidden_size": 32, "max_position_embeddings": CONTEXT if family == "phi3" else original}
    config = AutoConfig.for_model(family, **sizes | {"rope_parameters": rope})
    reference = randomized(AutoModelForCausalLM.from_config(config))
    reference.save_pretrained(tmp_path)
    loaded = load_model(tmp_path, device="cpu")
    loaded.engine._pass_tokens = 7

    def expected(ids: Sequence[int]) -> torch.Tensor:
        fresh = copy.deepcopy(reference)  # with dynamic scaling, a model remembers its longest text
        logits: torch.Tensor = fresh(torch.tensor([ids])).logits
        return logits[0]

    def check(states: torch.Tensor, ids: Sequence[int]) -> None:
        assert_close(loaded.model.logits(states), expected(ids)[-len(states) :], atol=1e-5, rtol=0)

    def read(document: Generation) -> Generation:
        document.read()
        check(document.states(), document.ids)
        return document

    ids = torch.randint(VOCAB_SIZE, (n,), generator=torch.Generator().manual_seed(0)).tolist()
    documents = [read(Generation(loaded, ids[:length])) for length in (original, original + 1, n)]
    documents[-1].go_back(original - 4)
    read(documents[-1])
    for document in documents:
        new = [step.token_id for step in document.steps(greedy, 6)]
        read(document)
        prompt = document.ids[:-6]
        steps = list(generate(loaded, prompt, greedy, 6, trace=True))
        assert [step.token_id for step in steps] == new
        assert steps[-1].trace is not None
        check(steps[-1].trace.final_norm[0], document.ids[:-1])
        assert list(BeamSearch(Generation(loaded, prompt), 1, 6).run().ids) == new
    prompts = [document.ids[:-6] for document in documents]
    assert generate_batch(loaded, prompts, greedy, 6) == [document.ids[-6:] for document in documents]
    check(trace_window(loaded.model, ids, original - 2, original + 2).final_norm[0], ids[: original + 2])
    for length in (original + 1, original + 2):
        found = next(logits_without_each(loaded.model, ids[:length], [[length - 2]]))
        assert_close(found, expected([*ids[: length - 2], ids[length - 1]])[-1:], atol=1e-5, rtol=0)


NORMS = ("norm", "decoder.final_layer_norm", "final_layer_norm", "final_layernorm", "ln_f")


def test_the_lens_and_the_parts_of_a_logit_are_those_of_the_hidden_states(twins: Twins) -> None:
    reference, ids, base = twins.reference, IDX[0].tolist(), dict(twins.reference.base_model.named_modules())
    found, trace = reference(IDX[:1], output_hidden_states=True), trace_text(twins.ours, ids)
    norm, head = next(base[name] for name in NORMS if name in base), reference.get_output_embeddings()
    cap = getattr(reference.config, "final_logit_softcapping", None)
    logits = torch.stack([head(each)[0] for each in (*map(norm, found.hidden_states[1:-1]), found.hidden_states[-1])])
    p = (logits if cap is None else cap * torch.tanh(logits / cap)).softmax(dim=-1)
    lens = logit_lens(twins.ours, trace, chosen=TOKEN)
    assert_close(lens.chosen_probability[:, 1], p[..., TOKEN], atol=1e-5, rtol=1e-3)
    assert_close(lens.probability[:, 1], p.amax(dim=-1), atol=1e-5, rtol=1e-3)
    parts = direct_logit_attribution(twins.ours, trace, T - 1, TOKEN, against=12)
    assert parts.total == pytest.approx((logits[-1, -1, TOKEN] - logits[-1, -1, 12]).item(), abs=1e-3)  # before a cap


@pytest.mark.parametrize("case", [each for each in ONE_EACH if each.id != "nanochat - grouped"])
def test_input_x_gradient_is_that_of_the_embeddings(case: tuple[str, str]) -> None:
    """Transformers' nanochat still normalises its embeddings; ours are stored normalised."""
    twins = family_twins(*case)
    with torch.inference_mode(False):
        x = twins.reference.get_input_embeddings()(IDX[:1]).detach().requires_grad_()
        twins.reference(inputs_embeds=x).logits[0, -1].log_softmax(dim=-1)[TOKEN].backward()
        expected = (x * x.grad)[0].sum(dim=-1).detach()
        assert_close(input_x_gradient(twins.ours, IDX[0].tolist(), TOKEN), expected, atol=1e-4, rtol=1e-3)


def changed_weights(twins: Twins, folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    """Return a copy of a model's folder with changed weights."""
    shutil.copytree(twins.folder, folder)
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize(("family", "name"), [("gpt2", "untied, narrow"), ("llama", "llama 3")], ids=["gpt2", "llama"])
def test_an_untied_model_without_its_head_is_refused(tmp_path: Path, family: str, name: str) -> None:
    folder = changed_weights(
        family_twins(family, name), tmp_path / "headless", lambda weights: weights.pop("lm_head.weight")
    )
    with pytest.raises(ValueError, match=r"missing: lm_head\.weight"):
        open_checkpoint(folder)


@pytest.mark.parametrize(
    ("family", "name"), [("gpt2", "three heads"), ("llama", "grouped, tied")], ids=["gpt2", "llama"]
)
@pytest.mark.parametrize("stored", ["another head", "the same head", "no embedding"])
@torch.inference_mode()
def test_a_tied_head_is_read_as_transformers_reads_it(tmp_path: Path, family: str, name: str, stored: str) -> None:
    def change(weights: dict[str, torch.Tensor]) -> None:
        embedding = next(key for key in weights if key.endswith(("wte.weight", "embed_tokens.weight")))
        weights["lm_head.weight"] = weights[embedding] * (2.0 if stored == "another head" else 1.0)
        if stored == "no embedding":
            del weights[embedding]

    folder = changed_weights(family_twins(family, name), tmp_path / "changed", change)
    expected = AutoModelForCausalLM.from_pretrained(folder).eval()
    ours = open_checkpoint(folder).build()
    assert ours.config.tie_weights == (stored != "another head")
    assert_close(ours(IDX), expected(IDX).logits, atol=1e-5, rtol=0)


def test_a_config_of_gpt2_without_its_type_states_the_options(tmp_path: Path) -> None:
    twins = family_twins("gpt2", "exact gelu, another eps")
    shutil.copytree(twins.folder, tmp_path / "old")
    file = tmp_path / "old" / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({name: value for name, value in config.items() if name != "model_type"}))
    assert open_checkpoint(tmp_path / "old").config == twins.ours.config


OTHER_DROPOUTS = {"classifier_dropout", "summary_first_dropout", "layerdrop"}  # of classifiers, and of whole layers

RANDOM = torch.randint(VOCAB_SIZE, (2, 20), generator=torch.Generator().manual_seed(0))


@pytest.mark.thorough
@pytest.mark.parametrize(("family", "name"), CASES)
def test_a_model_is_written_in_its_family_with_equal_logits(family: str, name: str, tmp_path: Path) -> None:
    twins = family_twins(family, name)
    loaded = load_model(twins.folder, device="cpu", trainable=True)
    save_hugging_face(loaded, tmp_path / "out")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    assert type(theirs).__name__ == type(twins.reference).__name__ == FAMILIES[family].model_class
    with torch.inference_mode():
        assert_close(theirs(RANDOM).logits, twins.reference(RANDOM).logits, atol=1e-5, rtol=1e-5)
        assert_close(
            load_model(tmp_path / "out", device="cpu").model(RANDOM), loaded.model(RANDOM), atol=1e-4, rtol=1e-4
        )


@pytest.mark.thorough
@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_trains_with_the_models_dropout_and_computes_in_float32(family: str, tmp_path: Path) -> None:
    twins = family_twins(*next(case for case in CASES if case[0] == family))
    loaded = load_model(twins.folder, device="cpu", trainable=True)
    for dropout in (0.0, 0.25):
        loaded.model.config = replace(loaded.model.config, dropout=dropout)
        save_hugging_face(loaded, tmp_path, dtype=torch.float16, overwrite=True)
        theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert type(theirs) is type(twins.reference)
        names = {name for name in theirs.config.to_dict() if "drop" in name} - OTHER_DROPOUTS
        assert {name: getattr(theirs.config, name) for name in names} == dict.fromkeys(names, dropout)
        assert {weight.dtype for weight in theirs.parameters()} == {torch.float32}
        with torch.inference_mode():
            assert_close(
                theirs.eval()(RANDOM).logits, load_model(tmp_path, device="cpu").model(RANDOM), atol=1e-4, rtol=1e-4
            )
            assert torch.equal(theirs.train()(RANDOM).logits, theirs.eval()(RANDOM).logits) == (dropout == 0.0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["stories", "stories-llama"])
def test_the_bundled_models_write_the_same_text_in_transformers(name: str, tmp_path: Path) -> None:
    save_hugging_face(name, tmp_path / "out")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    prompt = tokenizer("Once upon a time", return_tensors="pt").input_ids
    assert prompt[0].tolist() == get_model(name).tokenizer.encode("Once upon a time")
    written = theirs.generate(prompt, max_new_tokens=8, do_sample=False)[0, prompt.shape[1] :]
    steps = generate(name, "Once upon a time", SamplingParams(temperature=0), 8)
    assert written.tolist() == [step.token_id for step in steps]


@pytest.mark.thorough
def test_a_gpt_of_ones_own_is_opened_by_transformers_with_zeros_for_the_biases_it_lacks(tmp_path: Path) -> None:
    model = GPT(GPTConfig(vocab_size=VOCAB_SIZE, block_size=32, n_layer=2, n_head=2, n_embd=16, bias=False)).eval()
    save_hugging_face(model, tmp_path / "out")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    with torch.inference_mode():
        assert_close(theirs(RANDOM).logits, model(RANDOM), atol=1e-5, rtol=1e-5)


@pytest.mark.thorough
def test_transformer_lens_opens_what_is_written(tmp_path: Path) -> None:
    lens = pytest.importorskip("transformer_lens.model_bridge", reason="transformer_lens is not installed")
    save_hugging_face("stories", tmp_path / "out")
    bridge = lens.TransformerBridge.boot_transformers(str(tmp_path / "out"))
    idx = torch.tensor([get_model("stories").tokenizer.encode("Lily had a cat. She")])
    with torch.inference_mode():
        logits, cache = bridge.run_with_cache(idx)
        trace = get_model("stories").trace(idx[0])
    assert_close(logits, trace.logits, atol=1e-4, rtol=1e-4)
    assert_close(cache["blocks.3.hook_resid_post"], trace["layers.3.resid_post"], atol=1e-4, rtol=1e-4)
