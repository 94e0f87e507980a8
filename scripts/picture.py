"""Takes the README's picture: the report of a run folder, as headless Chromium shows it.

usage: python scripts/picture.py RUN_FOLDER [docs/images/run.png]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder, with report.html in it")
    parser.add_argument("picture", type=Path, nargs="?", default=Path("docs/images/run.png"))
    parser.add_argument("--size", default="1280,1100", help="width,height in pixels (default: %(default)s)")
    options = parser.parse_args(arguments)
    report = options.run / "report.html"
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not report.is_file():
        print(f"error: there is no {report}; name the folder of a finished run", file=sys.stderr)
        return 1
    if browser is None:
        print("error: chromium is missing; run: make setup", file=sys.stderr)
        return 1
    options.picture.parent.mkdir(parents=True, exist_ok=True)
    take(report, options.picture, browser=browser, size=options.size)
    print(options.picture)
    return 0


def take(page: Path, picture: Path, *, browser: str, size: str) -> None:
    """Writes a PNG of the top of the page. Raises CalledProcessError or TimeoutExpired when the browser fails."""
    with tempfile.TemporaryDirectory() as profile:
        flags = [
            "--headless",
            "--no-sandbox",  # the page is our own, and root has no other way
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            f"--window-size={size}",
            "--virtual-time-budget=3000",
            f"--screenshot={picture.resolve()}",
        ]
        command = [browser, *flags, page.resolve().as_uri()]
        subprocess.run(command, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
