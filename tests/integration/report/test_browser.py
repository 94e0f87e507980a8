"""The report in a real browser: Debian's Chromium, headless, from a file."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.unit.report.builders import a_call, a_record, a_run, observed, sampled
from verl_tool.report import write_report

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of thirty steps; its rows have a call, a reward of the tool's, and a hostile text."""
    call = "Let me see. <python>print(2+2)</python>"
    row = {
        "segments": [sampled(call), observed("\n4\n"), sampled(f"Answer: {HOSTILE} {'long' * 200}")],
        "tool_calls": [a_call(call, reward=0.25)],
    }
    metrics = {
        step: {"critic/score/mean": step / 30, "agent/turns/mean": 1.0, "agent/finish/answered": 1.0}
        | ({"val-core/sums/reward/mean@1": step / 40} if step % 10 == 0 else {})
        for step in range(1, 31)
    }
    folder = a_run(
        tmp_path_factory.mktemp("run"),
        metrics=metrics,
        training={1: [a_record(**row, reward=0.0)], 30: [a_record(**row, step=30, reward=1.0)]},
        state={"outcome": "finished"},
    )
    return write_report(folder)


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Page]:
    """The page; afterwards, that it asked for nothing and complained of nothing."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    requests: list[str] = []
    told: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(report.as_uri())
    yield page
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    assert told == []
    page.close()


def style(page: Page, selector: str, name: str) -> str:
    return str(page.locator(selector).first.evaluate(f"element => getComputedStyle(element).{name}"))


def test_the_reward_curve_is_drawn_and_rises(opened: Page) -> None:
    line = opened.locator(".chart.large .curve .line").first
    box = line.bounding_box()
    assert box is not None and box["width"] > 500 and box["height"] > 150
    first, last = (
        line.evaluate(f"path => path.getPointAtLength({place}).y") for place in ("0", "path.getTotalLength()")
    )
    assert last < first  # up is less in an SVG


def test_sampled_and_masked_tokens_calls_and_rewards_differ_in_colour_and_in_more(opened: Page) -> None:
    selectors = [".block.sampled", ".block.masked", ".text .call", ".event .reward"]
    assert len({style(opened, selector, "backgroundColor") for selector in selectors}) == 4
    assert style(opened, ".block.masked", "borderLeftStyle") == "dashed"
    assert style(opened, ".block.sampled", "borderLeftStyle") == "solid"
    assert style(opened, ".text .call", "textDecorationLine") == "underline"
    assert opened.locator(".text .call").first.inner_text() == "<python>print(2+2)</python>"
    assert "★" in opened.locator(".event .reward").first.inner_text()
    assert "masked" in opened.locator(".block.masked").first.inner_text()


def test_a_hostile_text_is_shown_and_does_nothing(opened: Page) -> None:
    assert opened.locator("img").count() == 0
    assert opened.title() != "taken"
    assert HOSTILE in opened.locator(".block.sampled").nth(1).inner_text()


def test_pointing_at_a_step_reads_every_chart_there(opened: Page) -> None:
    plot = opened.locator(".chart.large .plot")
    box = plot.bounding_box()
    assert box is not None
    key = opened.locator(".chart.large [data-key='0']")
    assert key.inner_text() == "1"
    opened.mouse.move(box["x"] + 1, box["y"] + 20)
    assert key.inner_text() == "0.0333"
    assert opened.locator(".chart.small .rule").first.inner_text() == "step 1"
    opened.mouse.move(2, 2)
    assert key.inner_text() == "1" and opened.locator(".rule:visible").count() == 0


def test_a_dark_scheme_is_followed(opened: Page) -> None:
    def brightness(selector: str, name: str) -> int:
        return sum(int(part) for part in style(opened, selector, name).strip("rgb()").split(",")[:3])

    assert brightness("body", "backgroundColor") > brightness("body", "color")
    opened.emulate_media(color_scheme="dark")
    assert brightness("body", "backgroundColor") < 100 < brightness("body", "color")
    selectors = [".block.sampled", ".block.masked", ".text .call", ".event .reward"]
    assert len({style(opened, selector, "backgroundColor") for selector in selectors}) == 4


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_is_wider_than_the_window_with_everything_unfolded(opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 900})
    opened.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_an_empty_run_opens_too(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(write_report(a_run(tmp_path)).as_uri())
    assert "no metrics yet" in page.inner_text("body") and errors == []
    page.close()
