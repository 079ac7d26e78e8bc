"""The lessons' code runs exactly as printed and gives the same results as the model's own code."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from transformers import GPT2Config, GPT2LMHeadModel

from components.tabs.lessons.code_view import printed
from components.tabs.lessons.course import LESSONS
from gpt import GPT, Edits, GPTConfig, SamplingParams, Trace, distribution, get_model, gpt2_tokenizer
from gpt.experiments.random_models import skeleton
from gpt.experiments.shapes import count_parameters
from gpt.generate import generate_greedy
from gpt.rotary import apply_rotary, rotary_angles
from gpt.sampling import inverse_cdf
from gpt.training.recipe import Recipe

CONFIG = GPTConfig(vocab_size=50, block_size=12, n_layer=2, n_head=3, n_embd=24)
LLAMA = Recipe(architecture="llama", bias=False, n_layer=2, n_head=4, n_kv_head=2, n_embd=16).model_config(50)
IDS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8]])


def code(lesson: str) -> SimpleNamespace:
    """Run the printed code of a lesson on its own and return what it defines."""
    names: dict[str, object] = {}
    exec(compile(printed(lesson).text, lesson, "exec", dont_inherit=True), names)
    return SimpleNamespace(**names)


def config_of(config: GPTConfig, **changes: int):
    shape = {each.name: getattr(config, each.name) for each in dataclasses.fields(code("configuration").Config)}
    return code("configuration").Config(**shape | changes)


def loaded_from(made: nn.Module, theirs: nn.Module) -> nn.Module:
    made.load_state_dict(theirs.state_dict())
    return made.eval()


@pytest.fixture(scope="module")
def model() -> GPT:
    return GPT(CONFIG, generator=torch.Generator().manual_seed(0)).eval()


def traced(model: GPT) -> Trace:
    trace = Trace()
    with torch.inference_mode():
        model(IDS, trace=trace)
    return trace


@pytest.mark.parametrize("lesson", [lesson.key for lesson in LESSONS])
def test_the_code_of_a_lesson_runs_as_it_is_printed_and_fits_its_column(lesson):
    assert code(lesson)
    lines = printed(lesson).text.split("\n")
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "text", [" grandmother", "x", "小狗", "It's   1,024 tokens!\n\n ok ", " indivisibilities", "", "🐶", "aaaaa"]
)
def test_a_text_has_the_tokens_of_tiktoken(text):
    tokenizer = gpt2_tokenizer()
    made, ranks = code("tokenizer"), tokenizer.encoding._mergeable_ranks
    assert made.encode(text, ranks) == tokenizer.encode(text)
    assert made.decode(made.encode(text, ranks), ranks) == text


def test_merges_join_the_most_frequent_pair_until_every_word_is_a_token():
    merges = code("merges").Merges(["low", "lower", "lowest"])
    assert (merges.learn(), merges.learn(), merges.learn()) == (b"lo", b"low", b"lowe")
    assert merges.words == [[b"low"], [b"lowe", b"r"], [b"lowe", b"s", b"t"]]
    while merges.learn():
        pass
    assert [len(parts) for parts in merges.words] == [1, 1, 1]
    assert merges.ranks[b"lo"] == 256
    aaaaa = code("merges").Merges(["aaaaa"])
    aaaaa.learn()
    assert aaaaa.words == [[b"aa", b"aa", b"a"]], "from the left, without overlap"
    assert code("merges").Merges([]).learn() is None


@torch.inference_mode()
def test_embeddings_are_those_of_the_model(model):
    tokens = loaded_from(code("embedding").TokenEmbedding(50, 24), model.wte)
    positions = loaded_from(code("positions").PositionEmbedding(12, 24), model.wpe)
    assert_close(positions(tokens(IDS)), traced(model).layers[0].resid_pre)
    one_hot = F.one_hot(IDS, 50).float()
    assert_close(tokens(IDS), one_hot @ tokens.weight)
    waves = code("positions").sine_positions(70, 24)
    assert_close(waves[0], torch.tensor([0.0, 1.0]).repeat(12))
    assert_close(waves[69, :2], torch.tensor([math.sin(69), math.cos(69)]))


@torch.inference_mode()
def test_the_steps_of_attention():
    x = torch.randn(2, 5, 24)
    mean = code("average").mean_of_the_past(x)
    for i in range(5):
        assert_close(mean[:, i], x[:, : i + 1].mean(dim=1))
    dots = code("dot_products").dot_product_attention(x)
    assert_close(dots, F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=1.0))
    head = code("queries").Head(config_of(CONFIG))
    expected = F.scaled_dot_product_attention(head.query(x), head.key(x), head.value(x), is_causal=True)
    assert_close(head(x), expected)
    for step in (code("average").mean_of_the_past, code("dot_products").dot_product_attention):
        assert_close(step(x[:, :1]), x[:, :1]), "one token sees itself"


@torch.inference_mode()
def test_each_part_of_the_forward_pass_is_that_of_the_model(model):
    config, part, seen = config_of(CONFIG), model.blocks[1], traced(model).layers[1]
    norm = loaded_from(code("layer_norm").LayerNorm(24), part.ln_1)
    assert_close(norm(seen.resid_pre), part.ln_1(seen.resid_pre))
    assert_close(norm(torch.full((1, 24), 3.0))[0], part.ln_1.bias), "equal numbers are no division by 0"
    attention = loaded_from(code("attention").CausalSelfAttention(config), part.attn)
    assert_close(attention(norm(seen.resid_pre)), seen.attn_out)
    switched = loaded_from(code("verse").SwitchedAttention(config), part.attn)
    switched.on[1] = 0
    without = Trace()
    model(IDS, trace=without, edits=Edits(head_scale={(1, 1): 0.0}))
    assert_close(switched(norm(seen.resid_pre)), without.layers[1].attn_out)
    assert_close(code("activations").gelu(seen.mlp_pre), seen.mlp_post)
    assert_close(
        loaded_from(code("feed_forward").FeedForward(config), part.mlp)(part.ln_2(seen.resid_mid)), seen.mlp_out
    )
    assert_close(loaded_from(code("block").TransformerBlock(config), part)(seen.resid_pre), seen.resid_post)
    whole = loaded_from(code("model").GPT(config), model)
    assert_close(whole(IDS), model(IDS))
    longest = torch.randint(50, (1, CONFIG.block_size))
    assert_close(whole(longest), model(longest))
    bare = skeleton(CONFIG, generator=torch.Generator().manual_seed(0))
    assert_close(loaded_from(code("skeleton").Skeleton(config), bare)(IDS), bare(IDS))


@torch.inference_mode()
def test_each_part_of_llama_is_that_of_the_model():
    config, model = config_of(LLAMA), GPT(LLAMA, generator=torch.Generator().manual_seed(0)).eval()
    part, seen = model.blocks[1], traced(model).layers[1]
    norm = loaded_from(code("rms_norm").RMSNorm(16), part.ln_1)
    assert_close(norm(seen.resid_pre), part.ln_1(seen.resid_pre))
    assert_close(loaded_from(code("swiglu").SwiGLU(16, 48), part.mlp)(part.ln_2(seen.resid_mid)), seen.mlp_out)
    attention = loaded_from(code("grouped_queries").GroupedQueryAttention(config, 2), part.attn)
    assert_close(attention(norm(seen.resid_pre)), seen.attn_out)
    assert_close(loaded_from(code("no_biases").LlamaBlock(config, 2, 48), part)(seen.resid_pre), seen.resid_post)


def test_a_rotated_score_depends_on_the_content_and_on_the_distance_alone():
    q, k = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    rotate = code("rotary").rotate
    expected = apply_rotary(q[None, None, None], *rotary_angles(torch.tensor([5]), 8))[0, 0, 0]
    assert_close(rotate(q[None], start=5)[0], expected)

    def score(q, k, i, j):
        return float(rotate(q[None], start=i)[0] @ rotate(k[None], start=j)[0])

    assert score(q, k, 9, 4) == pytest.approx(score(q, k, 109, 104), abs=1e-4)
    assert abs(score(q, k, 9, 4) - score(q, k, 9, 5)) > 0.1
    assert score(q, 2 * k, 9, 4) == pytest.approx(2 * score(q, k, 9, 4), abs=1e-4)


def test_initial_weights_are_as_large_as_those_of_the_model_and_norms_begin_at_one():
    config = dataclasses.replace(CONFIG, vocab_size=2000, n_embd=96)
    made, model = code("initialisation").TiedGPT(config_of(config)), GPT(config)
    assert made.lm_head.weight is made.wte.weight
    theirs = dict(model.named_parameters())
    for name, weight in made.named_parameters():
        if weight.dim() == 2:
            assert weight.std().item() == pytest.approx(theirs[name].std().item(), rel=0.05), name
        else:
            assert torch.equal(weight, theirs[name]), name
            assert weight.unique().tolist() == [0.0 if name.endswith("bias") else 1.0]
    one, other = (code("untrained").untrained_model(config_of(CONFIG), seed=7) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("qkv_bias", [False, True])
def test_the_number_of_parameters_is_counted(tied, qkv_bias):
    n_parameters = code("parameters").n_parameters
    for config in (CONFIG, GPTConfig()):
        config = dataclasses.replace(config, tie_weights=tied, qkv_bias=qkv_bias)
        assert n_parameters(config_of(config), tied=tied, qkv_bias=qkv_bias) == count_parameters(config)
    known = {(True, True): 124_439_808, (True, False): 124_412_160, (False, False): 163_009_536}
    assert n_parameters(config_of(GPTConfig()), tied, qkv_bias) == known.get((tied, qkv_bias), 163_037_184)


def test_targets_are_the_tokens_that_follow_and_the_end_is_held_out():
    torch.manual_seed(0)
    parts = code("batches").split(torch.arange(100))
    for part, low, high in zip(parts, (0, 90), (89, 99), strict=True):
        idx, targets = code("batches").batch(part, 8, size=500)
        assert idx.shape == targets.shape == (500, 8)
        assert torch.equal(idx + 1, targets)
        assert (idx.min(), targets.max()) == (low, high), "every row can be drawn, and nothing of the other part"


def test_the_loss_is_that_of_the_model_and_finite_for_an_impossible_token(model):
    with torch.inference_mode():
        assert_close(code("loss").loss(model, IDS), model.loss(IDS[:, :-1], IDS[:, 1:]))
    logits, targets = torch.tensor([[200.0, 0.0]]), torch.tensor([1])
    assert code("loss").cross_entropy(logits, targets).item() == F.cross_entropy(logits, targets).item() == 200


def test_greedy_generation_writes_what_the_engine_writes_beyond_the_context(model):
    made = loaded_from(code("model").GPT(config_of(CONFIG)), model)
    assert torch.equal(code("greedy").generate(made, IDS, 20), generate_greedy(model, IDS, 20))
    assert torch.equal(code("greedy").generate(made, IDS, 0), IDS)


def test_a_draw_gives_the_token_that_the_engine_draws():
    sample = code("sampling").sample
    logits = torch.randn(50, generator=torch.Generator().manual_seed(0))
    for temperature, k in ((0.7, 5), (1.0, 0), (0.0, 0), (0.0, 5), (2.0, 1), (1.0, 50), (1.0, 99)):
        final = distribution(logits, SamplingParams(temperature=temperature, top_k=k or None)).final
        for u in (0.0, 0.2, 0.5, 0.8, 0.95, 0.999, 1 - 2**-53):
            assert sample(logits, temperature, k, u) == inverse_cdf(final, u)


@torch.inference_mode()
def test_padding_on_either_side_is_hidden_and_gives_no_nan(model):
    small = code("small")
    for mask in (
        torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]),
        torch.tensor([[1, 1, 1, 1, 0, 0], [0] * 5 + [1]]),
    ):
        trace = Trace()
        model(IDS, attention_mask=mask, trace=trace)
        seen = trace.layers[0]
        y = small.padded_attention(seen.attn_q, seen.attn_k, seen.attn_v, mask)
        assert_close(y, seen.attn_weights @ seen.attn_v)
        embedded = model.wte(IDS) + model.wpe(small.padded_positions(mask))
        assert_close(embedded, seen.resid_pre)


def test_adamw_takes_the_steps_of_torch():
    one, other = (nn.Linear(4, 3) for _ in range(2))
    other.load_state_dict(one.state_dict())
    unused = nn.Parameter(torch.ones(2))
    ours = code("optimizer").AdamW([*one.parameters(), unused], lr=0.01, decay=0.1)
    theirs = torch.optim.AdamW(other.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(30):
        x = torch.randn(5, 4)
        for layer, optimizer in ((one, ours), (other, theirs)):
            optimizer.zero_grad()
            layer(x).square().sum().backward()
            optimizer.step()
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert_close(a, b)
    assert unused.tolist() == [1, 1]


def test_the_learning_rate_rises_and_falls_and_a_long_gradient_is_shortened():
    learning_rate = code("schedule").learning_rate
    rates = [learning_rate(step, 0.006, 0.0006, warmup=10, steps=100) for step in range(101)]
    assert rates[0] == pytest.approx(0.0006)
    assert max(rates) == rates[9] == rates[10] == pytest.approx(0.006)
    assert rates[55] == pytest.approx((0.006 + 0.0006) / 2)
    assert rates[100] == learning_rate(1000, 0.006, 0.0006, 10, 100) == pytest.approx(0.0006)
    assert learning_rate(0, 1.0, 0.1, 0, 10) == 1.0, "without a warm-up"
    clip = code("schedule").clip_gradient
    ours, theirs = (nn.Parameter(torch.zeros(2)) for _ in range(2))
    for gradient in ([3.0, 4.0], [0.3, 0.4], [0.0, 0.0]):
        ours.grad, theirs.grad = torch.tensor(gradient), torch.tensor(gradient)
        assert clip([ours, nn.Parameter(torch.zeros(1))]) == pytest.approx(
            float(nn.utils.clip_grad_norm_([theirs], 1.0))
        )
        assert_close(ours.grad, theirs.grad)


@torch.inference_mode()
def test_weights_of_transformers_give_the_logits_of_transformers():
    torch.manual_seed(0)
    options = {"vocab_size": 50, "n_positions": 12, "n_embd": 24, "n_layer": 2, "n_head": 3}
    theirs = GPT2LMHeadModel(GPT2Config(**options)).eval()
    ours = code("model").GPT(config_of(CONFIG)).eval()
    code("layouts").load_gpt2(ours, theirs.state_dict())
    assert_close(ours(IDS), theirs(IDS).logits, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match=r"wpe\.weight"):
        code("layouts").load_gpt2(code("model").GPT(config_of(CONFIG, block_size=6)), theirs.state_dict())


@torch.inference_mode()
def test_attention_with_a_cache_is_attention_without_however_the_text_is_divided(model):
    seen, config = traced(model).layers[1], config_of(CONFIG)
    x = model.blocks[1].ln_1(seen.resid_pre)
    for sizes in ([1] * 6, [4, 2], [6]):
        cached = loaded_from(code("next").CachedAttention(config), model.blocks[1].attn)
        assert_close(torch.cat([cached(part) for part in x.split(sizes, dim=1)], dim=1), seen.attn_out)


def test_concepts_are_the_features_of_the_bundled_dictionary():
    loaded = get_model()
    layer, dictionary = next(iter(loaded.concepts.dictionaries.items()))
    TopK = code("concepts").TopK
    made = TopK(192, len(dictionary.bias), dictionary.active)
    made.encoder.weight.data, made.encoder.bias.data = dictionary.encoder, dictionary.bias
    made.decoder.data, made.center.data = dictionary.decoder, dictionary.center
    trace = Trace()
    loaded.model(torch.tensor([loaded.tokenizer.encode("Tom saw a big dog")]), trace=trace)
    x = trace.layers[layer].resid_post[0, 1:]
    assert_close(made.activity(x), dictionary.activity(x))
    assert_close(made(x), dictionary.reconstruction(dictionary.activity(x)))
    assert made.loss(x) < 0.2 * x.square().sum(-1).mean()
    steering = loaded.concepts.steering(layer, 7, 1.5)
    strength = 1.5 * float(dictionary.strengths[7])
    assert_close(made.turn_up(x, 7, strength), x + steering.value)
