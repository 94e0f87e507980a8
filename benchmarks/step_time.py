"""Seconds a training step, ours beside stock verl's agent loop, the same model and the same tokens.

    python -m benchmarks.step_time [--steps 12] [--only NAME …]

Every run trains the same small model with GRPO on prompts of its own length and answers of exactly `--tokens` tokens
(`ignore_eos`), 16 prompts × 8 samples a step. Stock verl runs with 1, 2 and 4 agent-loop workers; the fastest counts.
Limits: in the worker (sync, async) 0.8× of that, through verl's agent-loop interface 1.0×. Runs take turns being first
only by chance: nothing else should run on the machine. Each takes about a minute to start.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from verl_cpu_platform import settings

from tests.integration.training.tiny import make_data, make_model, make_reward

AGENT, ROLLOUT, ACTOR = "actor_rollout_ref.agent", "actor_rollout_ref.rollout", "actor_rollout_ref.actor"
OURS, STOCK = "verl_tool.trainer.main_ppo", "benchmarks.stock_verl"
NO_TOOLS = (f"{AGENT}.max_turns=0", f"{AGENT}.enable_agent=true")  # one generation a row, as the stock run has it
WARM_UP = 2  # steps left out
RUN_LIMIT_S = 1200


@dataclass(frozen=True)
class Variant:
    """One way to run a step."""

    name: str
    module: str
    settings: tuple[str, ...]
    limit: float | None = None  # times the fastest stock run


VARIANTS = (
    *(
        Variant(
            f"verl's agent loop, {workers} workers",
            STOCK,
            (f"{ROLLOUT}.agent.num_workers={workers}", "reward.num_workers=1"),
        )
        for workers in (1, 2, 4)
    ),
    Variant("ours in the worker, async", OURS, (f"{AGENT}.rollout_mode=async", *NO_TOOLS), 0.8),
    Variant("ours in the worker, sync", OURS, (f"{AGENT}.rollout_mode=sync", *NO_TOOLS), 0.8),
    Variant("ours through verl's agent loop", OURS, (f"{AGENT}.rollout_via=agent_loop", *NO_TOOLS), 1.0),
)


def common(folder: Path, model: Path, *, steps: int, tokens: int) -> Iterator[str]:
    """Hydra overrides of every run."""
    yield from settings.overrides()
    yield from (
        "algorithm.adv_estimator=grpo",
        f"data.train_files={folder / 'train.parquet'}",
        f"data.val_files={folder / 'train.parquet'}",
        "data.train_batch_size=16",
        "data.max_prompt_length=64",
        f"data.max_response_length={tokens}",
        f"actor_rollout_ref.model.path={model}",
        f"{ACTOR}.ppo_mini_batch_size=16",
        f"{ROLLOUT}.n=8",
        f"{ROLLOUT}.ignore_eos=True",
        f"{ROLLOUT}.max_model_len=512",
        f"{ROLLOUT}.calculate_log_probs=True",
        f"{ROLLOUT}.max_num_seqs=128",
        f"reward.custom_reward_function.path={folder / 'reward.py'}",
        "trainer.logger=[file]",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
        f"trainer.total_training_steps={steps}",
        "trainer.total_epochs=1000",
        f"hydra.run.dir={folder / 'hydra'}",
    )


def measure(variant: Variant, folder: Path, overrides: list[str]) -> list[dict[str, float]]:
    """The metrics of the steps behind the warm-up."""
    metrics, log = folder / f"{variant.name}.jsonl", folder / f"{variant.name}.log"
    environment = {**os.environ, **settings.environment(), "VERL_FILE_LOGGER_PATH": str(metrics), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", variant.module, *overrides, *variant.settings]
    with log.open("wb") as output:
        done = subprocess.run(command, env=environment, stdout=output, stderr=output, timeout=RUN_LIMIT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{variant.name} ended with {done.returncode}:\n{log.read_text(errors='replace')[-3000:]}")
    return [json.loads(line)["data"] for line in metrics.read_text().splitlines()][WARM_UP:]


def main() -> None:
    """Runs every variant and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the variants' names")
    options = parser.parse_args()
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_data(folder / "train.parquet", rows=64)
        make_reward(folder / "reward.py")
        model = make_model(folder / "model", tied=True)
        overrides = list(common(folder, model, steps=options.steps, tokens=options.tokens))
        found: dict[Variant, list[dict[str, float]]] = {}
        for variant in VARIANTS:
            if not options.only or any(part in variant.name for part in options.only):
                found[variant] = measure(variant, folder, overrides)
                console.print(f"{variant.name}: {median(found[variant], 'timing_s/step'):.2f} s a step")
    console.print(table(found))


def table(found: dict[Variant, list[dict[str, float]]]) -> Table:
    """Medians, beside the fastest stock run."""
    stock = [median(steps, "timing_s/step") for variant, steps in found.items() if variant.module == STOCK]
    result = Table("", "s a step", "of them rollout", "tokens a step", "× the best stock run", "limit")
    for variant, steps in found.items():
        seconds = median(steps, "timing_s/step")
        result.add_row(
            variant.name,
            f"{seconds:.2f}",
            f"{median(steps, 'timing_s/gen'):.2f}",
            f"{median(steps, 'response_length/mean') * 128:.0f}",
            f"{seconds / min(stock):.2f}" if stock else "",
            f"{variant.limit}" if variant.limit else "",
        )
    return result


def median(steps: list[dict[str, float]], name: str) -> float:
    """Of one metric over the steps."""
    return statistics.median(step[name] for step in steps)


if __name__ == "__main__":
    main()
