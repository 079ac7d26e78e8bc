"""The whole page: what it exposes to strangers, how it is built, and its static files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components import assets as static
from components.events import Events
from components.page import build_app, public_name
from components.render import Renderer
from components.session_events import network
from gpt import GPT, GPTConfig
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.checkpoints.writing import save_model
from gpt.models.registry import remove_model
from tests.components.drawing import spoken_in


@pytest.mark.parametrize("uploads", [False, pytest.param(True, marks=pytest.mark.thorough)])
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


def test_every_component_is_built_with_the_properties_that_a_new_visitor_sees(monkeypatch):
    """Otherwise a page that arrives late would overwrite what the visitor has clicked."""
    shown, built = [], []
    monkeypatch.setattr(Events, "show", lambda events, component, draw: shown.append((component, draw)))
    monkeypatch.setattr(Renderer, "build", lambda renderer, session: built.append(session))
    build_app(uploads=True)
    snapshot = built[0].snapshot()
    assert len(shown) > 20
    for component, draw in shown:
        config = component.get_config()
        config |= config.get("props") or {}
        for name, value in draw(snapshot).items():
            if name not in ("selected", "at"):  # tabs start with the first one
                assert config[name] == value, (component.elem_id, name)
        for name, value in spoken_in("zh", draw, snapshot).items():
            assert name != "label" or value != config[name], component.elem_id


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


COMPONENTS = Path(static.__file__).parent


def test_plotly_is_served_packed_for_good_and_by_an_address_that_shows_no_path() -> None:
    client = TestClient(Starlette(routes=static.ROUTES))
    packed = client.get(static.PLOTLY_URL, headers={"Accept-Encoding": "gzip"})
    plain = client.get(static.PLOTLY_URL, headers={"Accept-Encoding": "identity"})
    assert packed.text == plain.text
    assert b"plotly.js v" in plain.content[:200]
    assert int(packed.headers["content-length"]) < 0.4 * len(plain.content)
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert "immutable" in packed.headers["cache-control"]
    assert static.PLOTLY_URL.count("/") == 1
    assert f'"plotly": "{static.PLOTLY_URL}"' in static.HEAD


def test_every_module_is_bundled_once_after_its_imports() -> None:
    text = "".join(static.bundles().values())
    names = re.findall(r'^modules\["(.*)"\] = ', text, re.MULTILINE)
    found = {path.relative_to(COMPONENTS).as_posix() for path in COMPONENTS.rglob("*.js")}
    assert sorted(names) == sorted(found - {"first_screen/first_screen.js"})
    for before, name in enumerate(names):
        wanted = re.findall(r' = modules\["(.*)"\];$', text.split(f'modules["{name}"] = ')[1].split("})();")[0], re.M)
        assert set(wanted) <= set(names[:before])
    assert not re.search(r"^(export|import) (?!const modules|\{ modules \})", text, re.MULTILINE)


def test_no_rule_searches_the_whole_page():
    """Such rules make a browser search the whole page on each change: choosing a token in Why? took 2 s instead of 0.2
    s.
    """
    whole = re.compile(r"(?:body|html|:root)[^\s,{]*:has\(")
    rules = {path.name: whole.findall(path.read_text(encoding="utf-8")) for path in COMPONENTS.rglob("*.css")}
    assert len(rules) > 10
    assert not any(rules.values()), rules
