"""Takes the README's picture: the top of a run's report and a trajectory, as headless Chromium shows them.

usage: python scripts/picture.py RUN_FOLDER [docs/images/run.png]
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 1280
MOST_BYTES = 300_000
# what fits in one look: two rows of curves, and the first group of trajectories
CROP = """
.chart.small:nth-child(n + 9), section:has(#endings), .cards ~ h3, .cards ~ .cards, .folds, footer { display: none }
body { padding-bottom: 24px } section { margin-top: 22px }
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder, with report.html in it")
    parser.add_argument("picture", type=Path, nargs="?", default=Path("docs/images/run.png"))
    options = parser.parse_args(arguments)
    report = options.run / "report.html"
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not report.is_file():
        return _failed(f"there is no {report}; name the folder of a finished run")
    if browser is None:
        return _failed("chromium is missing; run: make setup")
    try:
        picture = take(report, browser)
    except Error as fault:
        return _failed(f"{browser} could not show {report}: {fault.message}")
    if len(picture) > MOST_BYTES:
        return _failed(f"the picture has {len(picture)} bytes, more than {MOST_BYTES}; choose a shorter run")
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    options.picture.write_bytes(picture)
    print(options.picture)
    return 0


def take(page: Path, browser: str) -> bytes:
    """A PNG of the page, without what CROP hides."""
    with sync_playwright() as playwright:
        # the page is our own, and root has no other way than without the sandbox
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        try:
            tab = chromium.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
            tab.goto(page.resolve().as_uri())
            tab.add_style_tag(content=CROP)
            return tab.screenshot(full_page=True)
        finally:
            chromium.close()


def _failed(why: str) -> int:
    print(f"error: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
