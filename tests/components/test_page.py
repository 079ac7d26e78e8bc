"""Sessions that begin at once are still sessions of their own."""

import gc
import json
import weakref
from collections.abc import Iterator
from datetime import timedelta

import gradio as gr
import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from components.gradio_page import Page
from components.page import build_app, public_name
from components.render import Renderer
from gpt import GPT, GPTConfig
from gpt.models.checkpoints import save_model
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.registry import remove_model

USED = (gr.Textbox, gr.State, gr.HTML)


def counting_page() -> Page:
    with Page() as page:
        said, count, shown = gr.Textbox(value="start"), gr.State([]), gr.HTML()
        gr.Markdown("nothing changes this")

        def add(word: str, words: list[str]) -> tuple[list[str], str]:
            return [*words, word], " ".join([*words, word])

        said.submit(add, [said, count], [count, shown], api_name="add")
    return page


def test_every_visitor_has_a_state_of_his_own_and_no_description_of_the_page():
    page = counting_page()
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False)
    try:
        one, other = (Client(url, verbose=False) for _ in range(2))
        assert one.predict("a", api_name="/add") == "a"
        assert other.predict("b", api_name="/add") == "b"
        assert one.predict("c", api_name="/add") == "a c"
        sessions = page.state_holder.session_data
        described = {key for session in sessions.values() for key in session.config_values}
        assert described == {block._id for block in page.blocks.values() if isinstance(block, USED)}
    finally:
        page.close()


class Kept:
    """What a handler changes in place, as gradio does not see."""

    def __init__(self) -> None:
        self.words: list[str] = []


@pytest.fixture
def keeping_page() -> Iterator[tuple[Page, str]]:
    with Page() as page:
        said, kept = gr.Textbox(), gr.State(Kept())

        def add(word: str, kept: Kept) -> str:
            kept.words.append(word)
            return " ".join(kept.words)

        said.submit(add, [said, kept], said, api_name="add")
        said.submit(str.upper, said, said, api_name="shout")
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False)
    yield page, url
    page.close()


def wait_untouched(page: Page, **long: float) -> None:
    """As if nobody had touched anything for so long."""
    holder = page.state_holder
    for session_id in holder.time_last_used:
        holder.time_last_used[session_id] -= timedelta(**long)
    holder.delete_all_expired_state()


@pytest.mark.parametrize(("closed", "stays", "goes"), [(True, 29, 2), (False, 7.9 * 60, 12)])
def test_what_a_visitor_had_open_goes_after_a_while_and_who_comes_back_is_told(keeping_page, closed, stays, goes):
    page, url = keeping_page
    visitor = Client(url, verbose=False)
    assert visitor.predict("a", api_name="/add") == "a"
    (session,) = page.state_holder.session_data.values()
    session.is_closed = closed  # as gradio says it when a page goes
    kept = weakref.ref(next(iter(session.state_data.values())))
    wait_untouched(page, minutes=stays)
    assert kept() is not None
    wait_untouched(page, minutes=goes)
    del session
    gc.collect()
    assert kept() is None
    assert not page.state_holder.session_data
    for _ in range(2):
        with pytest.raises(AppError, match=r"Nobody touched this page for a long time.*请刷新页面"):
            visitor.predict("b", api_name="/add")
    assert Client(url, verbose=False).predict("b", api_name="/add") == "b"


def test_touching_a_page_keeps_what_it_has_open(keeping_page):
    page, url = keeping_page
    visitor = Client(url, verbose=False)
    for said in ("a", "a b", "a b c"):
        assert visitor.predict(said[-1], api_name="/add") == said
        wait_untouched(page, hours=6)


def test_a_program_that_keeps_nothing_is_forgotten_soon_and_can_go_on(keeping_page):
    page, url = keeping_page
    program = Client(url, verbose=False)
    assert program.predict("a", api_name="/shout") == "A"
    wait_untouched(page, minutes=11)
    assert not page.state_holder.session_data
    assert program.predict("a", api_name="/shout") == "A"


def test_a_call_that_lacks_values_is_told_how_many(keeping_page):
    _, url = keeping_page
    call = f"{url}gradio_api/call/shout"
    event = httpx.post(call, json={"data": []}).json()["event_id"]
    answer = httpx.get(f"{call}/{event}").text
    assert answer.startswith("event: error")
    assert "/shout: 0 of 1 values came" in answer


@pytest.fixture(scope="module")
def sliding_page() -> Iterator[str]:
    with Page() as page:
        slider, said = gr.Slider(2, 8, value=3, label="heads"), gr.Textbox()
        slider.input(str, slider, said, api_name="tell")
        said.submit(lambda word: gr.update(maximum=int(word)), said, slider, api_name="stretch")
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False)
    yield url
    page.close()


@pytest.mark.parametrize(
    ("typed", "taken"), [(5, "5"), (50, "8"), (-1, "2"), (None, "2"), (10**400, "8"), (2.5, "2.5")]
)
def test_a_number_that_a_slider_cannot_stand_at_is_the_nearest_that_it_can(sliding_page, typed, taken):
    assert Client(sliding_page, verbose=False).predict(typed, api_name="/tell") == taken


def test_a_slider_that_was_stretched_goes_further_for_this_visitor_alone(sliding_page):
    one, other = (Client(sliding_page, verbose=False) for _ in range(2))
    one.predict("20", api_name="/stretch")
    assert one.predict(50, api_name="/tell") == "20"
    assert other.predict(50, api_name="/tell") == "8"


@pytest.mark.parametrize("typed", ["5", [5], {"a": 5}, True])
def test_what_is_no_number_is_refused_by_the_slider_s_name(sliding_page, typed):
    with pytest.raises(AppError, match="heads must be a number between 2 and 8"):
        Client(sliding_page, verbose=False).predict(typed, api_name="/tell")


def test_a_widget_is_told_all_its_properties_or_none():
    with Page() as page:
        label, strip = gr.Textbox(), gr.HTML(ids=True, labels={"name": "tokens"}, size=1)
        gr.Button().click(lambda word: {strip: word}, label, [strip, label], api_name="tell")
        gr.Button().click(lambda: {strip: gr.update(labels={"name": "词元"})}, None, [strip, label], api_name="words")
        gr.Button().click(lambda: {strip: gr.update(value="a", size=2)}, None, [strip, label], api_name="both")
        gr.Button().click(lambda: {label: "b"}, None, [strip, label], api_name="other")
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False)
    try:
        visitor = Client(url, verbose=False)
        words, _ = visitor.predict(api_name="/words")
        assert words["props"] == {"ids": True, "labels": {"name": "词元"}, "size": 1}
        both, _ = visitor.predict(api_name="/both")
        assert (both["value"], both["props"]) == ("a", {"ids": True, "labels": {"name": "词元"}, "size": 2})
        skipped, other = visitor.predict(api_name="/other")
        assert (skipped, other) == ({"__type__": "update"}, "b")
        assert visitor.predict("c", api_name="/tell")[0] == "c"
    finally:
        page.close()


def test_the_browser_is_told_of_the_same_blocks():
    with gr.Blocks() as plain:
        gr.Textbox()
    with Page() as page:
        gr.Textbox()
    assert page.get_config_file()["page"].keys() == plain.get_config_file()["page"].keys()
    assert page.get_block_name() == plain.get_block_name() == "blocks"


@pytest.mark.parametrize("uploads", [False, True])
def test_strangers_read_only_the_end_of_a_path(tmp_path, uploads):
    folder = tmp_path / "secret" / "out" / "mine"
    save_model(folder, GPT(GPTConfig(7, 16, n_layer=1, n_head=1, n_embd=8)), Characters(list(" adnort")))
    page = build_app(str(folder), uploads=uploads)
    try:
        config = json.dumps(page.get_config_file(), default=str)
        assert "out/mine" in config
        assert ("secret" in config) == uploads
    finally:
        remove_model(str(folder))
        remove_model("out/mine")


def test_only_paths_are_shortened():
    assert [public_name(name) for name in ("stories", "owner/name", "a/b/c", "/ckpt.pt", "../x/y/ckpt.pt")] == [
        *("stories", "owner/name", "a/b/c", "/ckpt.pt", "y/ckpt.pt")
    ]


def test_every_component_is_built_as_its_control_draws_it_for_a_new_visitor(monkeypatch):
    """So an arriving page sets none of them over what a person has typed already."""
    built = []
    monkeypatch.setattr(Renderer, "build", lambda renderer, session: built.extend((renderer, session)))
    build_app()
    renderer, first = built
    snapshot, controls = first.snapshot(), [control for tab in renderer.controls.values() for control in tab]
    assert len(controls) > 100
    for control in controls:
        config = control.component.get_config()
        config |= config.get("props") or {}
        for name, value in control.draw(snapshot).items():
            if name == "choices":
                value = [each if isinstance(each, tuple | list) else (str(each), each) for each in value]
                assert [*map(tuple, config[name])] == [*map(tuple, value)], control.component.elem_id
            elif name != "selected":  # tabs begin with the first
                found = "" if config[name] is None and value == "" else config[name]
                assert found == value, (control.component.elem_id, name)
