"""Links and files: what one visitor takes along, another one opens."""

import csv
import io
import json
import re
import struct
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import ONE_MORE, written

CHIPS = "#strip .gb-strip [role=option]"
DARK = "rgb(55, 87, 126)"  # of the first bars
LINK = "?prompt=The%20dog&temperature=0.8&seed=3&text=6&length=6&lang=en"


@pytest.fixture
def opened(stay, site):
    """A short text of known settings, written because a link asked for it."""
    return stay(lambda page: follow(page, site + LINK, 8))


def follow(page, link, length):
    page.goto(link)
    expect(page.locator(CHIPS)).to_have_count(length)
    expect(page.locator("#status")).to_contain_text("length reached")
    expect(page.locator("#generate")).to_be_enabled()
    return page


def text(page):
    return "".join(page.locator(CHIPS).all_text_contents())


def says(page, elem_id):
    return page.locator(f"#{elem_id} .gb-says")


def press(page, menu, what):
    button = page.locator(f"#{menu} button[data-what={what}]")
    if not button.is_visible():
        page.locator(f"#{menu} summary").click()
    button.click()


def shown(page, menu):
    """What the menu put on the clipboard."""
    expect(page.locator(f"#{menu} .gb-share-says")).to_contain_text("copied")
    return page.locator(f"#{menu} textarea").input_value()


def saved(page, what):
    with page.expect_download() as download:
        press(page, "share-files", what)
    expect(page.locator("#share-files .gb-share-says")).to_contain_text(download.value.suggested_filename)
    return download.value.suggested_filename, download.value.path().read_bytes()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (
            "model=../../etc/passwd&text=c1&temperature=hot&tab=%3Cscript%3E&layer=99",
            "tab, temperature, model, text, layer",
        ),
        ("text=2_c99999999", "text"),
    ],
)
def test_what_a_link_cannot_have_is_named_and_the_rest_is_followed(page, site, query, names):
    page.goto(f"{site}?prompt=%3Cimg%20src=x%20onerror=alert(1)%3E&seed=1&length=2&{query}")
    expect(page.locator("#notice")).to_contain_text(f": {names}.")
    written(page)
    assert text(page).startswith("<img")
    expect(page.locator("#seed input, #seed textarea").first).to_have_value("1")
    assert page.locator("#strip img, #notice script").count() == 0
    page.locator("#step").click()
    expect(page.locator("#status")).to_contain_text(ONE_MORE)


def test_a_link_that_would_be_too_long_offers_the_file(opened, monkeypatch):
    monkeypatch.setattr("components.share.handlers.MAX_LINK", 20)
    press(opened, "share-link", "link")
    expect(opened.locator("#share-link .gb-share-says")).to_contain_text("Save the document")
    expect(opened.locator("#share-link textarea")).to_be_hidden()


def test_the_program_prints_the_text(opened):
    press(opened, "share-files", "python")
    program = shown(opened, "share-files")
    ran = subprocess.run([sys.executable, "-X", "utf8", "-c", program], capture_output=True, check=True)
    assert ran.stdout.decode().rstrip("\n") == text(opened)


def test_text_document_and_probabilities_are_saved_and_the_document_opens_again(opened, tmp_path):
    name, content = saved(opened, "text")
    assert name.endswith(".txt")
    assert content.decode() == text(opened)
    name, content = saved(opened, "csv")
    table = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert len(table) == 4096
    assert sum(float(row["final_probability"]) for row in table) == pytest.approx(1, abs=1e-4)
    name, content = saved(opened, "document")
    kept = tmp_path / name
    kept.write_bytes(content)
    before = text(opened)
    opened.locator("#clear").click()
    expect(opened.locator(CHIPS)).to_have_count(0)
    pick = opened.locator("#share-files input[type=file]")
    pick.set_input_files(str(kept))
    expect(opened.locator("#share-files .gb-share-says")).to_contain_text("8 tokens")
    expect(opened.locator(CHIPS)).to_have_count(8)
    assert text(opened) == before
    expect(opened.locator("#prompt textarea")).to_have_value("The dog")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"<script>alert(1)</script>", "the file is not JSON"),
        (b"x" * 4_000_001, "at most 4 MB"),
        (b'{"format": "glassbox-gpt document", "version": 9}', "has version 9"),
        ("model", "not in the list of models"),
    ],
)
def test_a_file_that_is_no_document_is_a_sentence_and_the_text_stays(opened, tmp_path, content, sentence):
    if content == "model":
        content = json.loads(saved(opened, "document")[1]) | {"model": "<img src=x onerror=alert(1)>"}
        content = json.dumps(content).encode()
    (tmp_path / "a.json").write_bytes(content)
    before = text(opened)
    opened.locator("#share-files input[type=file]").set_input_files(str(tmp_path / "a.json"))
    expect(opened.locator("#share-files .gb-share-says")).to_contain_text(sentence)
    assert text(opened) == before
    assert opened.locator("#share-files img").count() == 0


def test_what_is_wrong_with_a_file_is_said_in_the_language_of_the_page(page, site, tmp_path):
    page.goto(site + LINK.replace("lang=en", "lang=zh"))
    expect(page.locator(CHIPS)).to_have_count(8)
    (tmp_path / "a.json").write_bytes(b"{]")
    page.locator("#share-files input[type=file]").set_input_files(str(tmp_path / "a.json"))
    expect(page.locator("#share-files .gb-share-says")).to_contain_text("文件不是 JSON")
    page.locator("#strip").click()  # elsewhere: what was said is no longer in the way
    expect(page.locator("#share-files .gb-share-out")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chart_is_saved_as_it_looks(opened, theme):
    page = opened
    if theme == "dark":
        page.locator("#theme").click()
        expect(page.locator("body")).to_have_class(re.compile("dark"))
        expect(page.locator("#bars .bars path").first).to_have_css("fill", DARK)
    page.locator("#bars figure").hover()
    files = {}
    for kind in ("PNG", "SVG"):
        with page.expect_download() as download:
            page.locator("#bars").get_by_role("button", name=f"Save this picture as {kind}").click()
        assert download.value.suggested_filename == f"glassbox-bars.{kind.lower()}"
        files[kind] = download.value.path().read_bytes()
    assert files["PNG"].startswith(b"\x89PNG")
    width, height = struct.unpack(">II", files["PNG"][16:24])
    plot = page.locator("#bars .gb-plot").bounding_box()
    assert (width, height) == (pytest.approx(2 * plot["width"], abs=4), pytest.approx(2 * plot["height"], abs=4))
    picture = files["SVG"].decode()
    assert picture.startswith("<svg")
    ground = re.search(r'<rect x="0" y="0"[^>]*fill: rgb\((\d+), \d+, \d+\)', picture)
    assert (int(ground[1]) > 200) == (theme == "light")
    if theme == "dark":
        page.locator("#theme").click()
        expect(page.locator("#bars .bars path").first).not_to_have_css("fill", DARK)


def test_a_link_opens_the_same_text_place_and_tab(page, site):
    opened = follow(page, site + LINK, 8)
    opened.locator("#bars .gb-rows button").nth(1).click()  # a choice by hand
    expect(opened.locator(CHIPS)).to_have_count(9)
    opened.locator("#temperature input[type=number]").fill("1.5")
    opened.locator("#temperature input[type=number]").press("Tab")
    opened.locator("#step").click()
    expect(opened.locator(CHIPS)).to_have_count(10)
    expect(says(opened, "bars")).to_contain_text("After")
    opened.locator(CHIPS).nth(4).click()
    expect(opened.locator(CHIPS).nth(4)).to_have_attribute("aria-selected", "true")
    expect(says(opened, "bars")).to_contain_text("Chosen")
    written, said = text(opened), says(opened, "bars").text_content()
    opened.locator("#shading label", has_text="entropy").click()
    expect(opened.locator("#hint")).to_contain_text("less sure")
    opened.get_by_role("tab", name="Why?").click()
    press(opened, "share-link", "link")
    link = shown(opened, "share-link")
    asked = parse_qs(urlsplit(link).query)
    assert asked["tab"] == ["why"]
    assert asked["temperature"] == ["1.5"]
    assert asked["shading"] == ["entropy"]
    assert re.fullmatch(r"6t0\.8s3_c\d+_1", asked["text"][0])

    page.goto(link)  # a visitor of whom the server knows nothing
    expect(page.get_by_role("tab", name="Why?")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Playground").click()
    expect(page.locator(CHIPS)).to_have_count(10)
    assert text(page) == written
    expect(page.locator("#shading label.selected")).to_have_text("entropy")
    expect(page.locator("#hint")).to_contain_text("less sure")
    expect(page.locator(CHIPS).nth(4)).to_have_attribute("aria-selected", "true")
    expect(says(page, "bars")).to_have_text(said)
    expect(page.locator("#temperature input[type=number]")).to_have_value("1.5")
    expect(page.locator("#prompt textarea")).to_have_value("The dog")
