"""Lesson pictures at the limits of their controls and for any model, compared with the model itself."""

import math
import re

import numpy as np
import pytest
import torch

from components.i18n import t
from components.tabs.lessons.course import HEADS, POEM
from components.tabs.lessons.figure import EXAMPLE, Open, SliderSpec, checked_ids, traced
from components.tabs.lessons.pictures import PICTURES, llama_pictures, shape_pictures, training_pictures, verse_pictures
from components.tabs.lessons.tab import move
from gpt import GPT, GPTConfig, LoadedModel, get_model
from gpt.experiments.architectures import neuron_counts, norm_effect
from gpt.model import meta_model
from gpt.models.checkpoints.token_table import Characters
from gpt.models.sources import LLAMA_MODEL, POEMS_MODEL
from tests.components.tabs.lesson_session import new_page, opened


@pytest.fixture
def page():
    return new_page()


def drawn(page, key, **controls):
    """Return the data of a lesson's figure; its first choice is chosen unless another is given."""
    controls = {"choice": (PICTURES[key].choices or ("",))[0]} | controls
    views = opened(page, key, **controls)
    assert views["notice"]["text"] == ""
    return views


def is_drawn(views):
    names = {"chart": "figure", "strip": "lines", "table": "rows"}
    return any(views[view][field] for view, field in names.items())


@pytest.mark.thorough
@pytest.mark.parametrize("key", sorted(PICTURES.keys() - {"training"}))
def test_every_picture_can_be_drawn_at_both_ends_of_its_controls(page, key):
    picture, config = PICTURES[key], get_model().model.config
    for end in ("low", "high"):
        a, b = (
            0 if knob is None else knob.low if end == "low" else knob.top(config) for knob in (picture.a, picture.b)
        )
        for choice in picture.choices or ("",):
            if key == "configuration":
                a, b = (64, 1) if end == "low" else (1600, 25)
            assert is_drawn(drawn(page, key, a=a, b=b, choice=choice))


OF_OTHER_MODELS = (llama_pictures.PICTURES | verse_pictures.PICTURES).keys() | {
    "training",
    "configuration",
    "untrained",
}


@pytest.mark.parametrize("key", sorted(PICTURES.keys() - OF_OTHER_MODELS))
def test_every_picture_can_be_drawn_of_the_smallest_models(key):
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    tiny = LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32")
    page = new_page()
    views = opened(page, key, loaded=tiny)
    assert len(letters.encode(page.session.state(Open).text)) <= config.block_size
    for moved in (0, 1, math.inf):
        for name in ("a", "b"):
            move(name, page.session, moved)
        views = {name.removeprefix("lesson-"): view for name, view in page.update().items()}
        assert views["notice"]["text"] == ""
        assert is_drawn(views)


def test_a_slider_keeps_anything_within_its_ends():
    config = GPTConfig(n_layer=3)
    knob = SliderSpec("attention.layer", 0, lambda config: config.n_layer - 1, 1, 1)
    for sent, kept in ((7, 2), (-1, 0), (1.6, 1), ("2", 1), (None, 1), (True, 1), (math.nan, 1), (math.inf, 2)):
        assert knob.clamped(sent, config) == kept


def test_wrong_heads_and_wrong_texts_are_explained(page):
    assert "768" in opened(page, "configuration", a=768, b=10)["notice"]["text"]
    for text, key in (("", "empty"), ("word " * 60, "long"), ("x" * 401, "long")):
        assert opened(page, "attention", text=text)["notice"]["text"] == t(f"picture.{key}", limit=40)
    assert "two tokens" in opened(page, "loss", text="a")["notice"]["text"]


def test_the_parameters_are_those_of_the_curriculum(page):
    untied = drawn(page, "parameters", choice="untied")
    assert untied["says"]["text"].startswith("163,009,536")
    assert "621.83 MiB" in untied["table"]["rows"][1]
    assert drawn(page, "parameters", choice="tied")["says"]["text"].startswith("124,412,160")


def test_dropout_lists_what_it_drops_and_how_it_scales_the_rest(page):
    for p, share in ((0.1, "1.11"), (0.5, "2")):
        views = drawn(page, "dropout", a=p, b=1)
        assert f"1 / (1 − p) = {share}, which keeps the mean the same." in views["says"]["text"]
        assert len(views["table"]["rows"]) == 5
        one, two, three, four = (values["y"] for values in views["chart"]["figure"]["data"])
        assert (one == two, three == four) == (False, True)


def test_the_loss_is_the_models_own(page):
    ids = torch.tensor([checked_ids(get_model(), EXAMPLE)])
    loss = get_model().model.loss(ids[:, :-1], ids[:, 1:]).item()
    assert f"{loss:.2f} nats" in drawn(page, "loss", text=EXAMPLE)["chart"]["text"]


def test_stopped_after_every_layer_the_model_says_what_it_says(page):
    config, ids = get_model().model.config, torch.tensor([checked_ids(get_model(), EXAMPLE)])
    with torch.inference_mode():
        best = get_model().model(ids)[0, -1].softmax(0).max().item()
    assert f"at {100 * best:.0f}" in drawn(page, "model", a=config.n_layer)["chart"]["text"]


@pytest.mark.parametrize("layout", ["hugging_face", "nanogpt", "book"])
def test_no_number_is_lost_between_layouts(layout):
    rows = shape_pictures.name_rows(layout)
    weights = meta_model(GPTConfig(n_layer=1)).state_dict()
    there = sum(math.prod(map(int, shape[1:-1].split(","))) for _, shape, _, _ in rows)
    assert there == sum(tensor.numel() for tensor in weights.values())
    assert {here for _, _, here, _ in rows} == weights.keys()
    assert len({name for name, *_ in rows}) == len(rows)


@pytest.mark.thorough
def test_the_pupil_begins_at_chance_and_learns():
    run = training_pictures.run()
    assert abs(run.losses[0] - math.log(run.n_characters)) < 0.2
    assert np.mean(run.losses[-10:]) < run.losses[0] / 2
    best = int(np.argmin(run.held_out))
    assert 0 < best < len(run.held_out) // 2, "then it memorises"
    assert run.held_out[-1] > run.held_out[best] + 0.5
    assert len(run.samples) == len(run.losses) // training_pictures.EVERY + 1


@pytest.mark.parametrize(("n_layer", "growth"), [(4, "2.2"), (24, "5.2")])
def test_vectors_grow_as_the_lesson_on_initialisation_says(page, n_layer, growth):
    assert f"without it, to {growth} times" in drawn(page, "initialisation", a=n_layer)["chart"]["text"]
    answer = t("lesson.initialisation.answer")
    assert re.search(rf"{growth} times( their length)? with {n_layer}", answer)


def test_rms_norm_divides_the_mean_too_even_in_the_first_layer(page):
    effect = norm_effect(get_model(LLAMA_MODEL).model, checked_ids(get_model(LLAMA_MODEL), EXAMPLE), 0)
    assert effect.mean_after == pytest.approx(effect.mean_before / effect.rms_before, rel=0.01)
    assert abs(effect.mean_after) > abs(effect.mean_before)
    assert "becomes −0.05. Both bring the root mean square to 1.00" in drawn(page, "rms_norm", a=0)["chart"]["text"]


def test_active_neurons_are_counted_by_magnitude():
    counts = neuron_counts(get_model().model, [1, 2, 3], 1)
    assert counts.active == pytest.approx(float((counts.values.abs() > 0.1).float().mean()))
    assert counts.active != pytest.approx(float((counts.values > 0.1).float().mean()))


def test_dot_products_of_vectors_of_one_length_are_largest_with_itself(page):
    says = drawn(page, "dot_products", a=7)["chart"]["text"]
    assert "scores 192 with itself" in says, "the width: the squared length of a normalised vector"


def test_adamw_goes_down_a_valley_at_a_rate_at_which_plain_descent_leaves_it():
    for rate in (0.1, 0.12):
        adamw, descent = training_pictures.valley("adamw", rate), training_pictures.valley("descent", rate)
        assert adamw[-1] < adamw[0] / 10
        assert descent[0] < descent[-1] < math.inf


@pytest.mark.parametrize(("choice", "least"), [("counts", 0.9), ("rhymes", 0.9), ("above", 0.6)])
def test_the_heads_of_the_lesson_look_where_it_says(choice, least):
    layer, head = HEADS[choice]
    poems = get_model(POEMS_MODEL)
    weights = traced(poems, checked_ids(poems, POEM, whole=True)).layers[layer].attn_weights[0, head]
    looked = verse_pictures.looked_at(choice)
    assert sum(weights[i, j].item() for i, j in looked) / len(looked) > least


def test_without_the_head_that_counts_verses_lose_their_length_and_without_the_one_that_rhymes_only_the_rhyme(
    page,
):
    written = {choice: drawn(page, "verse", choice=choice)["table"]["rows"][1:] for choice in HEADS}
    (_, whole), (_, uncounted) = written["counts"]
    (_, again), (_, unrhymed) = written["rhymes"]
    assert whole == again

    def lengths(poem):
        return {len(verse) for verse in re.split("[，。\n]+", poem)[:-1]}

    assert lengths(whole) == lengths(unrhymed) == {5}
    assert len(lengths(uncounted)) > 1
    ends = [set(re.findall("(.)。", poem)) for poem in (whole, unrhymed)]
    assert ends[0] == set("苍长忙伤")
    assert not ends[1] & set("苍长忙伤")
