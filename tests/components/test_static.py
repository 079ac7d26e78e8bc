from __future__ import annotations

import re
from pathlib import Path

from starlette.applications import Starlette
from starlette.testclient import TestClient

from components import assets as static

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
    assert not re.search(r"^(export|import) (?!const modules|\{ modules \}|\"./more.js\")", text, re.MULTILINE)


def test_no_rule_searches_the_whole_page():
    """Such rules make a browser search the whole page on each change: choosing a token in Why? took 2 s instead of 0.2
    s.
    """
    whole = re.compile(r"(?:body|html|:root)[^\s,{]*:has\(")
    rules = {path.name: whole.findall(path.read_text(encoding="utf-8")) for path in COMPONENTS.rglob("*.css")}
    assert len(rules) > 10
    assert not any(rules.values()), rules
