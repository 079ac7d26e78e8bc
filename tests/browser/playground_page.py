"""What the browser tests of the Playground do again and again."""

import re

from playwright.sync_api import expect

CHIPS = "#strip .gb-strip [role=option]"
FINISHED = re.compile("length reached|ended the text|context is full|stopped")


def set_slider(page, name, value):
    box = page.locator(f"#{name} input[type=number]")
    box.fill(str(value))
    box.press("Tab")


def pick(page, elem_id, option):
    page.locator(f"#{elem_id} input").click()
    page.get_by_role("option", name=option, exact=isinstance(option, str)).click()
    expect(page.get_by_test_id("dropdown-option")).to_have_count(0)


def says(page, elem_id):
    return page.locator(f"#{elem_id} .gb-says")


def generate(page, prompt, length=12, seed="3"):
    page.locator("#prompt textarea").fill(prompt)
    set_slider(page, "length", length)
    page.locator("#seed input, #seed textarea").first.fill(seed)
    page.locator("#status p").evaluate("line => line.textContent = ''")
    page.locator("#generate").click()
    expect(page.locator("#status")).to_contain_text(FINISHED)
    expect(page.locator("#generate")).to_be_enabled()


def text(page):
    return "".join(page.locator(CHIPS).all_text_contents())
