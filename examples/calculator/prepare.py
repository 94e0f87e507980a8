"""Makes the job's model and data: `VERL_TOOL_VOLUME=folder python prepare.py [--seed N]`.

The model is small enough to be made on the spot, in about a minute: a tokenizer for the tasks' words, a network with
random weights, and just enough supervised fine-tuning that it calls the tool sometimes.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from tasks import Task, make_tasks, write_parquet
from tiny_model import build_model, build_tokenizer
from transcripts import TURN_END, Way, transcript
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
from transformers.utils import logging as transformers_logging
from warm_start import check, warm_start

VALIDATION_SEED = 0  # the same questions whatever the job's seed
VALIDATION_SIZE, TRAIN_SIZE, WARM_START_SIZE = 128, 1024, 4096
WORDS_FROM = 200  # tasks whose transcripts hold every word there is


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes `model/`, `train.parquet` and `validation.parquet` to the job's volume."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="seed of tasks, weights and warm start (default: 0)")
    seed = parser.parse_args(arguments).seed
    if seed < 0:
        parser.error(f"--seed {seed}: give 0 or more")
    volume = os.environ.get("VERL_TOOL_VOLUME")
    if not volume:
        parser.error("VERL_TOOL_VOLUME is not set; it names the folder to write to")
    prepare(Path(volume), seed=seed)
    return 0


def prepare(volume: Path, *, seed: int) -> None:
    """All of it; may be run again in a folder where it was interrupted."""
    validation = make_tasks(VALIDATION_SIZE, seed=VALIDATION_SEED)
    tasks = make_tasks(WARM_START_SIZE + TRAIN_SIZE, seed=seed + 1, without=validation)
    shown, train = tasks[:WARM_START_SIZE], tasks[WARM_START_SIZE:]
    tokenizer = build_tokenizer(corpus(shown[:WORDS_FROM]))
    model = build_model(tokenizer, seed=seed)
    with progress() as bar:
        learning = bar.add_task("warm start", total=1.0, loss="")

        def on_step(done: float, loss: float) -> None:
            bar.update(learning, completed=done, loss=f"loss {loss:.2f}")

        warm_start(model, tokenizer, shown, seed=seed, on_step=on_step)
    found = check(model, tokenizer, validation)
    Console(stderr=True, highlight=False).print(
        f"The model begins with a tool call in {found.calls:.0%} of the held-out tasks, does {found.reads_right:.0%} "
        f"of them right once it prints, and knows {found.knows:.1%} of the answers by itself."
    )
    write_model(model, tokenizer, volume / "model")
    write_parquet(validation, volume / "validation.parquet", split="validation")
    write_parquet(train, volume / "train.parquet", split="train")


def corpus(tasks: Sequence[Task]) -> list[str]:
    """Text with every word that prompts and transcripts have, for the tokenizer to learn its words from."""
    turns = ["".join(piece.text for piece in transcript(task, way)) for task in tasks for way in Way]
    roles = ["system\nuser\nassistant\n"] * len(tasks)
    return [*(task.question for task in tasks), *(turn.removesuffix(TURN_END) for turn in turns), *roles]


def write_model(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Complete or not at all: a reader never sees half a model."""
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    model.save_pretrained(unfinished)
    tokenizer.save_pretrained(unfinished)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


def progress() -> Progress:
    """A bar on stderr."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
        console=Console(stderr=True),
    )


if __name__ == "__main__":
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(1)  # more hardly help so small a network, and sums then depend on the machine's cores
    sys.exit(main())
