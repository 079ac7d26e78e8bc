"""The whole page: what it exposes to strangers, and how it is built."""

import json

import gradio as gr
import pytest

from components.page import build_app, public_name
from components.render import Renderer
from components.session_events import network
from gpt import GPT, GPTConfig
from gpt.models.checkpoints import save_model
from gpt.models.checkpoints.token_table import Characters
from gpt.models.registry import remove_model


@pytest.mark.parametrize("uploads", [False, True])
def test_strangers_read_only_the_end_of_a_path_and_upload_nothing(tmp_path, uploads):
    folder = tmp_path / "secret" / "out" / "mine"
    save_model(folder, GPT(GPTConfig(7, 16, n_layer=1, n_head=1, n_embd=8)), Characters(list(" adnort")))
    page = build_app(str(folder), uploads=uploads)
    try:
        config = json.dumps(page.get_config_file(), default=str)
        assert "out/mine" in config
        assert ("secret" in config) == ('"elem_id": "upload"' in config) == uploads
    finally:
        remove_model(str(folder))
        remove_model("out/mine")


def test_only_paths_are_shortened():
    assert [public_name(name) for name in ("stories", "owner/name", "a/b/c", "/ckpt.pt", "../x/y/ckpt.pt")] == [
        *("stories", "owner/name", "a/b/c", "/ckpt.pt", "y/ckpt.pt")
    ]


def test_every_component_is_built_as_its_control_draws_it_for_a_new_visitor(monkeypatch):
    """Otherwise a page that arrives late would overwrite what the visitor has typed."""
    built = []
    monkeypatch.setattr(Renderer, "build", lambda renderer, session: built.extend((renderer, session)))
    build_app()
    renderer, first = built
    snapshot, controls = first.snapshot(), [control for tab in renderer.controls.values() for control in tab]
    assert len(controls) > 30
    for control in controls:
        config = control.component.get_config()
        config |= config.get("props") or {}
        for name, value in control.draw(snapshot).items():
            if name == "choices":
                value = [each if isinstance(each, tuple | list) else (str(each), each) for each in value]
                assert [*map(tuple, config[name])] == [*map(tuple, value)], control.component.elem_id
            elif name not in ("selected", "at"):  # tabs start with the first one
                found = "" if config[name] is None and value == "" else config[name]
                assert found == value, (control.component.elem_id, name)
    monkeypatch.undo()
    renderer.build(first)
    first.language = "zh"
    assert "续写" in json.dumps(json.loads(renderer.frame(first))["controls"], ensure_ascii=False)


def test_a_list_that_is_filled_later_accepts_what_is_chosen_from_it():
    blocks = build_app(uploads=True).blocks.values()
    lists = [
        each for each in blocks if isinstance(each, gr.Radio | gr.Dropdown | gr.CheckboxGroup) and not each.choices
    ]
    assert {each.elem_id: each.preprocess("ema") for each in lists} == {"upload-weights": "ema", "upload-heads": "ema"}


@pytest.mark.parametrize(
    ("host", "whose"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0%", "fe80::1%eth0%"),
        ("testclient", "testclient"),
    ],
)
def test_addresses_of_one_network_are_one_visitor(host: str, whose: str) -> None:
    assert network(host) == whose
