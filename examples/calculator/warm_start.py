"""Supervised fine-tuning of the tiny model, so that reinforcement learning has something to choose from."""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from tasks import Task
from transcripts import Mix, Way, transcript
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

# First copying alone, which one way of doing teaches fastest; then all the ways, among which the model has to choose.
COPYING = Mix(answers_at_once=0.0, calls_the_tool=1.0)
CHOOSING = Mix(answers_at_once=0.5, calls_the_tool=0.3, forgets_to_print=0.1, tries_again=0.1)


@dataclass(frozen=True)
class Part:
    """A stretch of training with one mix, over which the learning rate rises, stays and falls to nothing."""

    mix: Mix
    steps: int  # at most
    learning_rate: float
    warm_up_steps: int
    cool_down_steps: int
    enough: float = 0.0  # mean loss of the last `RECENT` steps that ends the part early

    def rate(self, step: int) -> float:
        """Learning rate of a step of this part, the first of which is 0."""
        rise, fall = (step + 1) / self.warm_up_steps, (self.steps - step) / self.cool_down_steps
        return self.learning_rate * min(1.0, rise, fall)


BATCH_SIZE = 32
RECENT = 20
SCHEDULE = (
    # When a network comes to copy is a matter of luck: mostly between 120 and 300 steps.
    Part(COPYING, steps=300, learning_rate=5e-3, warm_up_steps=40, cool_down_steps=1, enough=0.025),
    Part(COPYING, steps=60, learning_rate=5e-3, warm_up_steps=1, cool_down_steps=60),
    Part(CHOOSING, steps=140, learning_rate=4e-3, warm_up_steps=10, cool_down_steps=110),
)


@dataclass(frozen=True)
class Check:
    """What the model does with tasks it was not shown."""

    calls: float  # probability that its turn begins with a tool call
    reads_right: float  # probability, once it prints, of the right code and the right answer behind the result
    knows: float  # probability of the right answer at once


def warm_start(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    tasks: Sequence[Task],
    *,
    seed: int,
    schedule: Sequence[Part] = SCHEDULE,
    on_step: Callable[[float, float], None] = lambda done, loss: None,
) -> None:
    """Trains `model` in place; `on_step` is told the share of the schedule that is done, and the last loss."""
    rng = random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    most, before = sum(part.steps for part in schedule), 0
    model.train()
    for part in schedule:
        recent: deque[float] = deque(maxlen=RECENT)
        for step in range(part.steps):
            rows = [(task, part.mix.draw(rng)) for task in rng.choices(tasks, k=BATCH_SIZE)]
            for group in optimizer.param_groups:
                group["lr"] = part.rate(step)
            loss = mean_loss(model, tokenizer, rows)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            recent.append(loss.item())
            on_step((before + step + 1) / most, recent[-1])
            if len(recent) == RECENT and fmean(recent) < part.enough:
                break
        before += part.steps
    model.eval()


def mean_loss(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, rows: Sequence[tuple[Task, Way]]
) -> torch.Tensor:
    """Cross entropy a token of what the model is to say, by the transcripts' weights."""
    ids, weights = _encode(tokenizer, rows)
    losses = -_log_probs(model, ids)
    return (losses * weights).sum() / weights.sum()


@torch.inference_mode()
def check(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, tasks: Sequence[Task]) -> Check:
    """Looks at the model's probabilities; nothing is sampled."""
    ids, weights = _encode(tokenizer, [(task, Way.CALLS_THE_TOOL) for task in tasks])
    log_probs, said = _log_probs(model, ids), weights > 0
    choice = said.float().argmax(dim=1, keepdim=True)
    calls = log_probs.gather(1, choice).exp().mean().item()
    said.scatter_(1, torch.cat([choice, choice + 1], dim=1), False)  # to call, and to print
    reads_right = (log_probs * said).sum(dim=1).exp().mean().item()
    ids, weights = _encode(tokenizer, [(task, Way.ANSWERS_AT_ONCE) for task in tasks])
    knows = (_log_probs(model, ids) * (weights > 0)).sum(dim=1).exp().mean().item()
    return Check(calls=calls, reads_right=reads_right, knows=knows)


def _log_probs(model: Qwen3ForCausalLM, ids: torch.Tensor) -> torch.Tensor:
    """Log-probability of each token but the first, given those before it."""
    logits = model(ids, use_cache=False).logits[:, :-1]
    return -torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")


def _encode(tokenizer: PreTrainedTokenizerFast, rows: Sequence[tuple[Task, Way]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids, padded on the right, and the weight of each of them but the first."""
    encoded = [encode(tokenizer, task, way) for task, way in rows]
    width = max(len(ids) for ids, _ in encoded)
    pad = tokenizer.pad_token_id
    ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in encoded])
    weights = torch.tensor([weights + [0.0] * (width - len(weights)) for _, weights in encoded])
    return ids, weights[:, 1:]


def encode(tokenizer: PreTrainedTokenizerFast, task: Task, way: Way) -> tuple[list[int], list[float]]:
    """Token ids of a prompt and its transcript, and their weights in the loss.

    Piece by piece, as a rollout appends them: no token reaches over from one piece to the next.
    """
    messages = [{"role": "user", "content": task.question}]
    ids = list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))
    weights = [0.0] * len(ids)
    for text, weight in transcript(task, way):
        piece = tokenizer.encode(text, add_special_tokens=False)
        ids += piece
        weights += [weight] * len(piece)
    return ids, weights
