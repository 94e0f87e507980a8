"""Seconds from the command to the end of step 1 of the demo, and the most memory on the way.

    python -m benchmarks.launch

`verl-tool run examples/calculator/job.yaml`, twice: the first run prepares (left out), the second is measured, with one
step and without validation. Memory is the proportional set size of all processes of the run, looked at each second.
Limits: 90 s, 8 GB.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from verl_tool.cli.metrics_file import MetricsFile

MANIFEST = Path(__file__).parent.parent / "examples" / "calculator" / "job.yaml"
LIMIT_S, LIMIT_GB = 90.0, 8.0
RUN_LIMIT_S = 600.0
ONE_STEP = ("trainer.total_training_steps=1", "trainer.val_before_train=false", "trainer.test_freq=-1")


def start(runs: Path, *settings: str) -> subprocess.Popen[bytes]:
    """Starts a run of the demo."""
    options = [word for setting in settings for word in ("--set", setting)]
    command = [str(Path(sys.executable).parent / "verl-tool"), "run", str(MANIFEST), "--runs", str(runs), *options]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def memory_gb(root: int) -> float:
    """The proportional set size of a process and all that came of it."""
    return sum(map(pss_bytes, [root, *descendants(root)])) / 1e9


def pss_bytes(pid: int) -> int:
    """0 for a process that has ended meanwhile."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def descendants(root: int) -> Iterator[int]:
    """Children, their children, …"""
    try:
        children = [
            int(pid) for task in Path(f"/proc/{root}/task").iterdir() for pid in (task / "children").read_text().split()
        ]
    except OSError:
        return
    for child in children:
        yield child
        yield from descendants(child)


def main() -> None:
    """Prints both figures."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(temporary)
        print("preparing, and a first run …", flush=True)
        if start(runs, *ONE_STEP).wait(timeout=RUN_LIMIT_S):
            raise SystemExit(f"the first run failed; see {runs}")
        begun, peak, seconds = time.monotonic(), 0.0, None
        process = start(runs, *ONE_STEP)
        metrics = MetricsFile(runs / "calculator" / "2" / "metrics.jsonl")
        while process.poll() is None and time.monotonic() - begun < RUN_LIMIT_S:
            if seconds is None and any(step.number == 1 for step in metrics.new_steps()):
                seconds = time.monotonic() - begun
            peak = max(peak, memory_gb(process.pid))
            time.sleep(1.0)
        if process.wait(timeout=60) or seconds is None:
            raise SystemExit("the measured run failed")
    print(f"command to end of step 1: {seconds:5.1f} s  (limit {LIMIT_S:.0f} s)")
    print(f"most memory:              {peak:5.1f} GB (limit {LIMIT_GB:.0f} GB)")


if __name__ == "__main__":
    main()
