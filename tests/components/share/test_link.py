"""Links round-trip, and no link, however malformed, breaks anything."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from components.share.link import MAX_LINK, PARAMETERS, decode, document_values, encode, replay
from components.state.example import shown_prompt
from components.state.settings import INTEGERS, LIMITS, params_of, sampling_params
from gpt import Generation, SamplingParams
from tests.gpt.fake_models import EOT, N_VOCAB, tiny_model

TINY = tiny_model(block_size=32, n_layer=1)
NOW = SamplingParams(temperature=0.8, top_k=20, seed=5)

seeds = st.integers(0, 10**18)
numbers = st.floats(1e-6, 50, allow_nan=False).map(abs)
shares = st.floats(1e-6, 1, exclude_min=True)
params = st.builds(  # settings that may have sampled a token
    SamplingParams,
    temperature=st.one_of(st.just(0), st.just(1), numbers),
    top_k=st.none() | st.integers(1, 10**4),
    top_p=st.none() | shares,
    min_p=st.none() | shares,
    repetition_penalty=st.none() | numbers,
    repetition_window=st.none() | st.integers(1, 10**4),
    temperature_last=st.booleans(),
    seed=seeds,
)
sliders = {
    name: st.integers(int(limit.low), int(limit.high)) if name in INTEGERS else st.floats(limit.low, limit.high)
    for name, limit in LIMITS.items()
}
sliders = {name: values.filter(lambda x: x == 0 or x > 1e-9) for name, values in sliders.items()}
screens = st.builds(lambda seed, of: sampling_params(**of, seed=seed), seeds, st.fixed_dictionaries(sliders))


@given(st.dictionaries(st.sampled_from([*PARAMETERS, "__theme", "utm", ""]), st.text(max_size=30)))
@example({"text": "9" * 5000})
@example({"text": "1t1e-999s1", "temperature": "1e400", "seed": "١٢"})
def test_any_values_give_sound_ones_or_the_names_of_those_that_are_not(values):
    found, refused = decode(urlencode(values, errors="replace"))
    assert not found.keys() & set(refused)
    assert found.keys() | set(refused) == values.keys() & PARAMETERS.keys()
    assert decode(encode(found)) == (found, [])


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("temperature=hot&prompt=a", ["temperature"]),
        ("&".join(f"{name}=nan" for name in LIMITS), sorted(LIMITS)),
        (
            "temperature=2.01&top_k=-1&top_p=0&repetition_penalty=inf",
            ["repetition_penalty", "temperature", "top_k", "top_p"],
        ),
        ("seed=-1&length=0&position=1.5&layer=%00&head=None", ["head", "layer", "length", "position", "seed"]),
        ("text=40x&tab=<script>&prompt_ids=1--2", ["prompt_ids", "tab", "text"]),
        ("text=4t0.5&seed=True", ["seed", "text"]),  # settings without a seed
        ("text=4p2s1", ["text"]),  # settings that no model accepts
        ("text=4t1s1;x=1", ["text"]),
        ("edits=" + "a" * 3000, ["edits"]),
        ("a=1&" * 65 + "prompt=x", ["link"]),
        ("prompt=" + "x" * 5 * MAX_LINK, ["link"]),
        ("__theme=dark&utm_source=x&lang=fr", []),
    ],
)
def test_unreadable_parts_are_named(query, refused):
    assert decode(query)[1] == refused


def written(data):
    """A document with arbitrary edits, and the displayed settings."""
    document = Generation(TINY, data.draw(st.sampled_from(["the cat", "", [256, 97], [0xF0, 0x9F], "é 你\n&#=+%"])))
    drawn = [data.draw(params) for _ in range(2)] + [NOW]
    for deed in data.draw(st.lists(st.sampled_from(["write", "step", "choose", "type", "back"]), max_size=6)):
        if deed == "write":
            list(document.steps(data.draw(st.sampled_from(drawn)), 3))
        elif deed == "step":
            document.step(data.draw(st.sampled_from(drawn)))
        elif deed == "choose":
            document.append(data.draw(st.sampled_from([0, 99, EOT, N_VOCAB - 1])))
        elif deed == "type":
            document.append_text(data.draw(st.sampled_from([" a", "the & ", [0x9F]])))
        else:
            document.go_back(data.draw(st.integers(0, len(document.ids) - 1)))
    return document, data.draw(st.just(NOW) | screens)


@given(st.data())
def test_opening_a_link_writes_the_same_tokens_each_in_the_same_way(data):
    torch.manual_seed(0)
    document, now = written(data)
    values, refused = decode(encode(document_values(document, now)))
    assert refused == []
    again = Generation(TINY, values.get("prompt", values.get("prompt_ids")))
    given = {name: values[name] for name in (*LIMITS, "seed") if name in values}
    list(replay(again, values["text"], params_of(given)))
    assert again.ids == document.ids
    positions = range(document.n_prompt, len(document.ids))
    assert [again.origin(i) for i in positions] == [document.origin(i) for i in positions]
    assert shown_prompt(again) == shown_prompt(document)


def test_the_usual_link_is_short_and_can_be_read():
    document = Generation(TINY, "the cat")
    list(document.steps(SamplingParams(temperature=0.8, seed=5), 4))
    query = encode(document_values(document, SamplingParams(temperature=0.8)))
    assert query == "model=tiny&prompt=the%20cat&temperature=0.8&seed=5&text=4"


@pytest.mark.parametrize("text", ["65536", "c260", "t1-2147483648", "_".join(["c1"] * 100)])
def test_a_text_that_fits_no_model_is_refused_where_it_stops_to_fit(text):
    document = Generation(TINY, "the cat")
    with pytest.raises(ValueError, match=r"context|vocabulary|token"):
        list(replay(document, decode(f"text={quote(text)}")[0]["text"], SamplingParams(temperature=0, seed=1)))
    assert len(document.ids) <= TINY.model.config.block_size + 1
