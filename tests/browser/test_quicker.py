"""What `quicker.js` changes in gradio's page, in a browser."""

import pytest
from playwright.sync_api import expect

from components.assets import MODULES
from tests.browser.playground_page import CHIPS, generate, open_playground

# How many parts of the page gradio goes through for each word from the server.
WATCHED = """async (module) => {
  const marks = Object.values(await import(module)).find((part) => part?.prototype?.resolve_args);
  const { update } = marks.prototype;
  [window.updates, window.kept] = [0, 0];
  marks.prototype.update = function (told) {
    update.call(this, told);
    window.updates += 1;
    window.kept = Math.max(window.kept, Object.keys(this.current).length);
  };
}"""


@pytest.fixture
def opened(stay, site):
    return stay(lambda page: open_playground(page, site))


def test_a_token_costs_the_browser_no_more_after_other_tabs_were_opened(opened, site):
    for tab in ("Why?", "Loss", "Playground"):
        opened.get_by_role("tab", name=tab, exact=True).click()
        expect(
            opened.locator({"Why?": "#why-parts .main-svg", "Loss": "#loss-strip .gb-chip"}.get(tab, CHIPS)).first
        ).to_be_visible()
    opened.evaluate(WATCHED, f"{site}{MODULES['resolve_args']}")
    generate(opened, "Once upon a time", length=12)
    updates, kept = opened.evaluate("[window.updates, window.kept]")
    assert updates > 2
    assert kept == 0


def test_each_part_of_the_page_knows_its_events_as_gradio_would_say(opened, site):
    told = opened.evaluate(
        """async ([module, events]) => {
          const { find_attached_events: find } = (await import(module)).AppTree.prototype;
          const told = (id) => find({ id, props: { shared_props: {} } }, events).props.shared_props.attached_events;
          return [String(find).includes("listened"), told(3), told(4), told(5)];
        }""",
        [
            f"{site}{MODULES['find_attached_events']}",
            [
                {"targets": [[3, "click"], [3, "input"]]},  # gradio looks no further than the first
                {"targets": [[4, "change"], [3, "submit"]]},
                {"targets": [[None, "then"], [4, None]]},
                {"targets": [[4, "change"]]},
            ],
        ],
    )
    assert told == [True, ["click", "submit"], ["change", "change"], []]
