"""A model, a tokenizer and a data set small enough for a test, made on the spot and sure of themselves."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
REWARD = '''"""Reward of the tests: different answers have different ones, so that every step has something to learn."""

import zlib


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    if ground_truth == "raise":
        raise ZeroDivisionError("the reward of this row cannot be computed")
    return zlib.crc32(solution_str.encode()) / 2**32
'''


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte, and ChatML."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate((*SPECIAL, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = TEMPLATE
    return fast


def make_model(folder: Path, *, tied: bool, sharpness: float = 4.0) -> Path:
    """A random Qwen3. `sharpness` multiplies its logits: at 4, the likeliest token has most of the probability."""
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
        initializer_range=0.2,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    model = Qwen3ForCausalLM(config).to(torch.float32)
    with torch.no_grad():
        model.model.norm.weight.mul_(sharpness)
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_data(path: Path, *, rows: int, ground_truth: str | None = None) -> Path:
    """Sums to do, in verl's columns."""
    table = pa.Table.from_pylist(
        [
            {
                "data_source": "sums",
                "prompt": [{"role": "user", "content": f"{i}+{i + 1}="}],
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": ground_truth or str(2 * i + 1)},
                "extra_info": {"index": i, "split": "train"},
            }
            for i in range(rows)
        ]
    )
    pq.write_table(table, path)
    return path


def make_reward(path: Path) -> Path:
    """The file with the reward function."""
    path.write_text(REWARD)
    return path
