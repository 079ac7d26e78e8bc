"""The Compare tab without a browser: two columns, a beam search, and rejected inputs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from components.i18n import speaking
from components.state.jobs import stop
from components.state.session import Session
from components.tabs.compare import beams, columns
from components.tabs.compare.beams import Beams
from components.tabs.compare.columns import Compare, prompts
from components.tabs.compare.pair import Pair
from components.tabs.compare.tab import open_part, open_tab, tab
from gpt import GPT, Generation, GPTConfig, LoadedModel, SamplingParams, get_model
from gpt.documents.beam_search import BeamSearch
from gpt.models.registry import add_upload, remove_model
from gpt.tokenizer import PlainIds
from tests.components.drawing import Drawn

PROMPT = "Once upon a time, there was a little girl named Lily. She"


def new_session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(columns, "TOKENS_PER_SECOND", 1e9)
    monkeypatch.setattr(beams, "STEP_SECONDS", 0)
    opened = Session(Generation(get_model(), PROMPT), PROMPT)
    opened.tab = "compare"
    opened.change(Compare, length=5)
    opened.change(Beams, width=2, length=4)
    return opened


def drawn(session: Session) -> dict[str, Any]:
    """Return the data of both parts' views, each part opened anew."""
    views, opened = dict[str, Any](), session.state(Compare).part
    for part in ("sides", "beams"):
        session.change(Compare, part=part)
        session.sent.clear()
        views |= Drawn(session, tab).update()
    session.change(Compare, part=opened)
    return views


COLD, HOT = SamplingParams(0.3, seed=1), SamplingParams(1.5, seed=1)


def written(left=COLD, right=HOT, *, models=("stories", "stories"), length=6, prompt=PROMPT, other=None):
    pair = Pair(tuple(get_model(name) for name in models), (prompt, other or prompt), (left, right))
    pair.read()
    list(pair.steps(length))
    pair.read()
    pair.comparison.measure()
    return pair


def snapshot_of(pair):
    session = Session(None)
    session.change(Compare, pair=pair)
    return session.snapshot()


# The two columns


def test_the_sentence_on_the_first_difference_applies_both_settings_to_the_same_logits():
    pair = written()
    at = pair.comparison.divergence_index
    with speaking("en", exact=True):
        said = columns.divergence_sentence(pair)
    plain = columns.divergence_sentence(pair)
    left, right = pair.documents
    assert f"(position {at - 1}), the left continues" in said
    assert not {"position", "draw"} & {*plain.split()}
    assert left.ids[:at] == right.ids[:at]
    for document, params in zip(pair.documents, pair.params, strict=True):
        p = (document.logits(at - 1) / params.temperature).softmax(0)[document.ids[at]].item()
        assert f"{100 * p:.0f}" in said.replace("\u00a0", " ") or f"{100 * p:.1f}" in said
    assert left.draw(at) == right.draw(at)
    assert f"Both sides drew the same number, {left.draw(at):.3f}" in said


def test_two_vocabularies_are_shown_and_not_compared():
    config = GPTConfig(vocab_size=12, block_size=24, n_layer=1, n_head=1, n_embd=8)
    other = LoadedModel("other", GPT(config).eval(), PlainIds(12), torch.device("cpu"), "fp32")
    pair = Pair((get_model(), other), ("1 2 3", "1 2 3"), (COLD, HOT))
    pair.read()
    list(pair.steps(3))
    pair.read()
    assert "different vocabularies" in columns.divergence_sentence(pair)
    assert "probabilities cannot be compared" in columns.divergence(snapshot_of(pair))[1]
    assert pair.select(1, side=1)
    assert pair.positions == [None, 1]
    assert all(columns.bars(side, snapshot_of(pair))["bars"] for side in (0, 1))


# The handlers


@pytest.fixture
def session(monkeypatch):
    return new_session(monkeypatch)


def test_both_strips_grow_in_step_and_only_at_their_end(session):
    shown = [drawn(session) for _ in columns.generate(session)]
    shown = [each for each in [*shown, drawn(session)] if each["compare-left-strip"]["lines"]]
    for side in ("left", "right"):
        strips = [each[f"compare-{side}-strip"]["lines"] for each in shown]
        assert all(after[: len(before)] == before for before, after in itertools.pairwise(strips))
        assert len(strips[-1]) - len(strips[0]) == 5
    last, pair = shown[-1], session.state(Compare).pair
    assert "length reached" in last["compare-left-status"]["text"]
    assert last["compare-left-strip"]["parted"] == pair.comparison.divergence_index


@pytest.mark.parametrize(
    ("prompt", "seed", "model", "says"),
    [
        ("word " * 300, "1", "stories", "Left: The prompt has"),
        ("", "-1", "no such model", "seed must be a whole number"),
        ("The dog", "1", "no such model", "There is no model"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_the_last_result_stays(session, prompt, seed, model, says):
    before = Pair((get_model(), get_model()), (PROMPT, PROMPT), (COLD, HOT))
    session.change(Compare, pair=before)
    session.model = model
    columns.type_prompt("prompt", session, prompt)
    columns.COLUMNS[1].seed.set(session, seed)
    list(columns.generate(session))
    notice = drawn(session)["compare-notice"]["text"]
    assert says in notice
    assert "\n" not in notice
    assert session.state(Compare).pair is before
    assert session.state(Compare).job is None


def test_an_adapter_is_compared_with_its_base_model_at_any_strength(session, tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "stories"}')
    C = get_model().model.config.n_embd
    name = "base_model.model.transformer.h.0.attn.c_proj.lora_{}.weight"
    parts = {name.format("A"): torch.randn(1, C), name.format("B"): torch.randn(C, 1)}
    save_file(parts, tmp_path / "adapter_model.safetensors")
    assert columns.adapter_of(session) == ""
    session.model = add_upload([*tmp_path.iterdir()])
    assert columns.adapter_of(session) == session.model == "stories + LoRA"
    list(columns.run_preset("adapter", session))
    base, full = session.state(Compare).pair.documents
    stories = Generation(get_model(), PROMPT)
    stories.read()
    assert_close(base.logits(3), stories.logits(3))
    list(columns.set_strength(columns.COLUMNS[1], session, 0.5))
    base, half = session.state(Compare).pair.documents
    weights = [each.loaded.model.h[0].attn.c_proj.weight for each in (base, half, full)]
    assert_close(weights[1], (weights[0] + weights[2]) / 2)
    assert "adapter" not in drawn(session)["compare-notice"]["text"]
    assert session.state(Compare).pair.comparison.divergences[3].final > 0
    with pytest.raises(ValueError, match="strength must be a number between 0 and 2"):
        list(columns.set_strength(columns.COLUMNS[1], session, 3))
    remove_model(session.model)


def test_stopping_ends_both_columns_and_a_new_run_ends_the_one_before(session):
    session.change(Compare, length=100)
    run = columns.generate(session)
    for _ in range(8):
        next(run)
    stop(Compare, session)
    assert list(run) == []
    pair = session.state(Compare).pair
    assert [document.n_read for document in pair.documents] == [len(document.ids) for document in pair.documents]
    assert "stopped" in drawn(session)["compare-right-status"]["text"]
    old = columns.generate(session)
    for _ in range(5):
        next(old)
    superseded = session.state(Compare).pair
    session.change(Compare, length=3)
    list(columns.generate(session))
    list(old)
    assert superseded.finish_reasons == ["stopped", "stopped"]
    assert session.state(Compare).pair is not superseded


def test_the_prompt_is_the_playground_s_until_it_is_typed_and_the_right_one_is_the_left_one_until_then(
    session,
):
    for text in (PROMPT, "The cat"):
        session.set_typed(text, is_current=False)
        assert prompts(session) == prompts(session.snapshot()) == (text, text)
    columns.type_prompt("right_prompt", session, "The dog")
    list(columns.generate(session))
    assert session.state(Compare).pair.prompts == ("The cat", "The dog")
    columns.type_prompt("prompt", session, "Lily")
    session.set_typed("Tom", is_current=False)
    assert prompts(session) == ("Lily", "The dog")
    columns.type_prompt("right_prompt", session, "word " * 300)
    list(columns.generate(session))
    assert "Right: The prompt has" in drawn(session)["compare-notice"]["text"]
    columns.type_prompt("right_prompt", session, "Lily")
    columns.type_prompt("prompt", session, "Tom")
    assert prompts(session) == ("Tom", "Tom")
    columns.type_prompt("right_prompt", session, "")
    assert prompts(session) == ("Tom", "")
    list(columns.run_preset("seeds", session))
    assert session.state(Compare).pair.prompts == ("Tom", "Tom")


def test_each_part_runs_an_example_when_it_is_first_opened_and_closed_parts_are_not_drawn(session):
    runs = []
    for part in ("beams", "beams"):
        list(open_tab(session))
        list(open_part(session, part))
        runs.append((session.state(Compare).pair, session.state(Beams).search))
    assert None not in runs[0]
    assert runs[1] == runs[0]
    assert not [name for name in Drawn(session, tab).update() if name.startswith("compare-")]


@pytest.fixture(scope="module")
def search():
    made = BeamSearch(Generation(get_model(), PROMPT), 3, 5)
    list(made.steps())
    return made


def test_the_tree_grows_and_a_click_chooses_another_way_unless_there_is_none(session):
    trees = [drawn(session)["beams-tree"]["lines"] for _ in beams.search(session)]
    assert all(after[: len(before)] == before for before, after in itertools.pairwise(trees))
    state = session.state(Beams)
    assert beams.picked(state) == state.search.best.candidate
    beams.choose(session, {"candidate": 3})
    assert "step 1" in drawn(session)["beams-chosen"]["text"]
    assert drawn(session)["beams-tree"]["chosen"] == 3
    for wrong in (-1, 10**6, True, "3", None):
        beams.choose(session, {"candidate": wrong})
        assert beams.picked(session.state(Beams)) == 3


def test_the_chosen_way_becomes_the_text_as_tokens_chosen_by_hand(session):
    list(beams.search(session))
    ids = session.state(Beams).search.ids(beams.picked(session.state(Beams)))
    beams.adopt(session)
    document = session.document
    assert document.ids[-len(ids) :] == list(ids)
    assert document.origin(len(document.ids) - 1).kind == "chosen"
    assert session.tab == "playground"
    assert session.can_undo
