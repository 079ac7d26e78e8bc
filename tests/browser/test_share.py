"""Links and files: what one visitor takes along, another one opens."""

import re
import struct
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.playground_page import (
    CHIPS,
    open_more,
    open_strip,
    open_tab,
    says,
    set_slider,
    switch_theme,
    text,
    written,
)

LINK = "?prompt=The%20dog&temperature=0.8&seed=3&text=6&length=6&lang=en"


@pytest.fixture
def opened(stay, site):
    """A short text of known settings, written because a link asked for it."""
    return stay(lambda page: follow(page, site + LINK, 8))


def follow(page, link, length):
    page.goto(link)
    expect(page.locator(CHIPS)).to_have_count(length)
    written(page)
    open_strip(page)
    return page


def press(page, menu, what):
    button = page.locator(f"#{menu} button[data-what={what}]")
    if menu == "share-link":
        open_more(page)  # which draws it
    elif not button.is_visible():
        page.locator(f"#{menu} summary").click()
    button.click()


def unfold_bars(page):
    """Show the chart of the probabilities."""
    if not page.locator("#pipeline-bars .main-svg").first.is_visible():
        page.locator("#pipeline > summary").click()
    expect(page.locator("#pipeline-bars .main-svg").first).to_be_visible()


def told(page):
    return page.locator("#share-files .gb-share-says")


def test_what_a_link_cannot_have_is_named_and_a_link_that_was_copied_opens_the_same_text_place_and_tab(page, site):
    page.goto(f"{site}?model=../../etc/passwd&seed=1&length=2&prompt=%3Cimg%20src=x%20onerror=alert(1)%3E")
    expect(page.locator("#notice")).to_contain_text(": model.")
    written(page)
    assert text(page).startswith("<img")
    expect(page.locator("#seed").locator("input, textarea")).to_have_value("1")
    follow(page, site + LINK, 8)  # another link in the same browser tab
    page.locator("#bars [role=option]").nth(1).click()  # a choice by hand
    expect(page.locator(CHIPS)).to_have_count(9)
    set_slider(page, "temperature", 1.5)
    page.locator("#step").click()
    expect(page.locator(CHIPS)).to_have_count(10)
    page.locator(CHIPS).nth(4).click()
    chosen = page.locator(CHIPS).nth(4).text_content().strip()
    page.locator("#shading label", has_text="entropy").click()
    expect(page.locator("#hint")).to_contain_text("less certain")
    expect(says(page, "bars")).to_contain_text("Chosen")
    before, said = text(page), says(page, "bars").text_content()
    open_tab(page, "why")
    expect(page.locator("#selected")).to_contain_text(f"“{chosen}” · layer")
    press(page, "share-link", "link")
    expect(page.locator("#share-link .gb-share-says")).to_contain_text("copied")
    link = page.locator("#share-link textarea").input_value()
    asked = parse_qs(urlsplit(link).query)
    assert (asked["tab"], asked["temperature"], asked["shading"]) == (["why"], ["1.5"], ["entropy"])
    assert re.fullmatch(r"6t0\.8s3_c\d+_1", asked["text"][0])
    address = parse_qs(urlsplit(page.url).query)
    assert {"model": ["stories"]} | address == asked  # the address is the link, and need not name the page's own model
    page.evaluate("sessionStorage.clear()")  # a visitor of whom the server knows nothing
    page.goto(link)
    expect(page.get_by_role("tab", name="Causes")).to_have_attribute("aria-selected", "true")
    open_tab(page, "playground")
    expect(page.locator(CHIPS)).to_have_count(10)
    assert text(page) == before
    expect(page.locator("#shading label.selected")).to_have_text("entropy")
    expect(page.locator(CHIPS).nth(4)).to_have_attribute("aria-selected", "true")
    expect(says(page, "bars")).to_have_text(said)
    expect(page.locator("#temperature input[type=number]")).to_have_value("1.5")
    expect(page.locator("#prompt textarea")).to_have_value(before)


@pytest.mark.thorough
def test_a_duplicate_of_a_browser_tab_has_the_same_text_and_a_session_of_its_own(opened):
    before, session = text(opened), "sessionStorage.getItem('glassbox-session')"
    with opened.expect_popup() as popup:
        opened.evaluate("window.open(location.href)")
    duplicate = popup.value
    expect(duplicate.locator(CHIPS)).to_have_count(opened.locator(CHIPS).count())
    assert text(duplicate) == before
    assert duplicate.evaluate(session) != opened.evaluate(session)
    duplicate.close()


def test_a_document_that_was_saved_opens_again_and_a_file_that_is_none_is_a_sentence(opened, tmp_path):
    with opened.expect_download() as download:
        press(opened, "share-files", "document")
    expect(told(opened)).to_contain_text(download.value.suggested_filename)
    kept, before = tmp_path / "kept.json", text(opened)
    download.value.save_as(kept)
    pick = opened.locator("#share-files input[type=file]")
    for content, sentence in (
        (b"<script>alert(1)</script>", "the file is not JSON"),
        (b"x" * 4_000_001, "the limit is 4 MB"),
        (kept.read_bytes().replace(b'"stories"', b'"<img src=x onerror=alert(1)>"'), "not in the list of models"),
    ):
        (tmp_path / "a.json").write_bytes(content)
        pick.set_input_files(str(tmp_path / "a.json"))
        expect(told(opened)).to_contain_text(sentence)
        assert text(opened) == before
    assert opened.locator("#share-files img").count() == 0
    opened.locator("#strip").click()  # elsewhere: what was said is no longer in the way
    expect(opened.locator("#share-files .gb-share-out")).to_be_hidden()
    opened.locator("#clear").click()
    expect(opened.locator("#prompt textarea")).to_have_value("")
    pick.set_input_files(str(kept))
    expect(told(opened)).to_contain_text("8 tokens")
    expect(opened.locator(CHIPS)).to_have_count(8)
    assert text(opened) == before
    press(opened, "share-files", "python")
    expect(told(opened)).to_contain_text("copied")
    assert "Generation(" in opened.locator("#share-files textarea").input_value()


@pytest.mark.thorough
def test_a_chart_is_saved_as_it_looks_on_both_themes(opened):
    unfold_bars(opened)
    fill = opened.locator("#pipeline-bars .bars path").first.evaluate("bar => getComputedStyle(bar).fill")
    for light in (True, False):
        opened.locator("#pipeline-bars figure").hover()
        files = {}
        for kind in ("PNG", "SVG"):
            with opened.expect_download() as download:
                opened.locator("#pipeline-bars").get_by_role("button", name=f"Save this picture as {kind}").click()
            assert download.value.suggested_filename == f"glassbox-pipeline-bars.{kind.lower()}"
            files[kind] = download.value.path().read_bytes()
        assert files["PNG"].startswith(b"\x89PNG")
        width, height = struct.unpack(">II", files["PNG"][16:24])
        plot = opened.locator("#pipeline-bars .gb-plot").bounding_box()
        assert (width, height) == (pytest.approx(2 * plot["width"], abs=4), pytest.approx(2 * plot["height"], abs=4))
        ground = re.search(r'<rect x="0" y="0"[^>]*fill: rgb\((\d+), \d+, \d+\)', files["SVG"].decode())
        assert (int(ground[1]) > 200) == light
        switch_theme(opened)
        if light:
            expect(opened.locator("#pipeline-bars .bars path").first).not_to_have_css("fill", fill)


@pytest.mark.thorough
def test_a_chart_saved_as_html_is_the_same_chart_without_network(opened, browser, tmp_path):
    unfold_bars(opened)
    opened.locator("#pipeline-bars figure").hover()
    with opened.expect_download() as download:
        opened.locator("#pipeline-bars").get_by_role("button", name="Save this picture as HTML").click()
    assert download.value.suggested_filename == "glassbox-pipeline-bars.html"
    download.value.save_as(tmp_path / "bars.html")
    bars = "bars => bars.map(bar => [bar.getAttribute('d'), getComputedStyle(bar).fill])"
    with browser.new_context(offline=True) as context:
        saved = context.new_page()
        seen = []
        saved.on("pageerror", lambda error: seen.append(str(error)))
        saved.on("request", lambda request: seen.append(request.url))
        saved.goto((tmp_path / "bars.html").as_uri())
        drawn = [page.locator(".bars path").evaluate_all(bars) for page in (saved, opened.locator("#pipeline-bars"))]
        assert drawn[0] == drawn[1] != []
        expect(saved.locator("p").first).to_have_text(opened.locator("#pipeline-bars .gb-says").inner_text())
        assert seen == [(tmp_path / "bars.html").as_uri()]
