"""How far the engine and the trainer disagree on the tokens that were sampled, and when that is too far; pure.

Both compute the log-probability of every sampled token. Where masks, token ids, weights or precision go wrong, the two
part ways, while rewards, entropies and differences of *probabilities* can look well. So the difference of
log-probabilities is watched, and a run whose mean is past a limit is stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from verl_tool.errors import LogProbGapError

LIMIT_SETTING = "actor_rollout_ref.agent.logprob_gap_limit"


class Precision(StrEnum):
    """Of the weights, on the less precise of the two sides."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"


# Mean gap in nats with the same weights on both sides, some ten times what sound runs show: 2e-5 in fp32, about 0.01 in
# bf16. A wrong token stream or wrong weights are off by whole nats.
LIMITS: Mapping[Precision, float] = {Precision.FP32: 1e-3, Precision.FP16: 0.03, Precision.BF16: 0.1}
# What one optimiser step may move the policy by, where the engine's weights are that much older.
ALLOWANCE_A_STEP = 0.1


@dataclass(frozen=True, slots=True)
class LogProbGap:
    """The gap over the sampled tokens of a batch, in nats."""

    mean: float
    max: float
    tokens: int

    def metrics(self) -> dict[str, float]:
        """As logged; nothing where nothing was sampled."""
        return {"agent/logprob_gap/mean": self.mean, "agent/logprob_gap/max": self.max} if self.tokens else {}


def measure(*, engine: torch.Tensor, trainer: torch.Tensor, sampled: torch.Tensor) -> LogProbGap:
    """The gap where `sampled` is true; all three of one shape. A value that is not finite counts as infinite."""
    mask = sampled.bool()
    gaps = (engine.double() - trainer.double()).abs()[mask]
    if gaps.numel() == 0:
        return LogProbGap(0.0, 0.0, 0)
    gaps = torch.nan_to_num(gaps, nan=float("inf"))
    return LogProbGap(float(gaps.mean()), float(gaps.max()), gaps.numel())


def limit(precision: Precision, *, age: int, setting: float | None) -> float:
    """The largest mean gap allowed when the engine's weights may be `age` optimiser steps old."""
    return setting if setting is not None else LIMITS[precision] + ALLOWANCE_A_STEP * age


def check(gap: LogProbGap, *, precision: Precision, age: int, setting: float | None, step: int) -> None:
    """Raises LogProbGapError when the mean is past the limit."""
    allowed = limit(precision, age=age, setting=setting)
    if gap.mean <= allowed:
        return
    raise LogProbGapError(
        f"step {step}: the engine's and the trainer's log-probabilities of {gap.tokens} sampled tokens differ "
        f"by {gap.mean:.3g} nats on average (at most {gap.max:.3g}), more than the limit of {allowed:.3g} "
        f"({'as set' if setting is not None else f'{precision}, weights {age} steps old at most'}). The run would "
        "train on tokens or weights other than the sampled ones. Likely causes: the engine did not get the trainer's "
        "weights; a chat template or tokenizer that differs between the two; top_p, top_k or a repetition penalty in "
        "training, which change what the engine's log-probabilities mean; a precision lower than assumed. "
        f"If the gap is expected, set {LIMIT_SETTING}"
    )


def precision_of(*, rollout: Mapping[str, Any], actor: Mapping[str, Any]) -> Precision:
    """The lower precision of engine and trainer, from verl's config."""
    fsdp = actor.get("fsdp_config") or {}
    mixed = (fsdp.get("mixed_precision") or {}).get("param_dtype", "bf16")  # verl's own default
    names = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "auto": "bf16"}
    found = {Precision(names.get(str(name), str(name))) for name in (rollout.get("dtype", "bf16"), mixed)}
    return next(precision for precision in (Precision.BF16, Precision.FP16, Precision.FP32) if precision in found)
