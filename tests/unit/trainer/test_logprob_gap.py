"""The log-probability gap: its maths, its limits, its words."""

import math

import pytest
import torch

from verl_tool.errors import LogProbGapError
from verl_tool.trainer.ppo.logprob_gap import LIMITS, LogProbGap, Precision, check, limit, measure, precision_of


def a_gap(**given: float) -> LogProbGap:
    return LogProbGap(**{"mean": 0.0, "max": 0.0, "tokens": 10, **given})  # type: ignore[arg-type]


def test_only_sampled_tokens_count_in_mean_and_maximum() -> None:
    engine = torch.tensor([[-1.0, 0.0, -2.0], [-0.5, 0.0, 0.0]])
    trainer = torch.tensor([[-1.1, -9.0, -2.3], [-0.5, -9.0, -9.0]])
    sampled = torch.tensor([[1, 0, 1], [1, 0, 0]])

    gap = measure(engine=engine, trainer=trainer, sampled=sampled)

    assert gap.tokens == 3
    assert gap.mean == pytest.approx(0.4 / 3, rel=1e-5)
    assert gap.max == pytest.approx(0.3, rel=1e-5)


def test_a_token_the_engine_was_certain_of_counts() -> None:
    """A log-probability of exactly 0 is one like any other: an engine with wrong weights may be sure of itself."""
    gap = measure(engine=torch.zeros(1, 2), trainer=torch.tensor([[-20.0, -20.0]]), sampled=torch.ones(1, 2))

    assert gap.mean == pytest.approx(20)


def test_a_value_that_is_no_number_counts_as_infinite() -> None:
    gap = measure(
        engine=torch.tensor([[math.nan, -1.0]]), trainer=torch.tensor([[-1.0, -1.0]]), sampled=torch.ones(1, 2)
    )

    assert gap.mean == math.inf
    with pytest.raises(LogProbGapError):
        check(gap, precision=Precision.BF16, age=0, setting=1e9, step=1)


def test_a_batch_without_sampled_tokens_has_no_gap_to_report() -> None:
    gap = measure(engine=torch.zeros(1, 2), trainer=torch.zeros(1, 2), sampled=torch.zeros(1, 2))

    assert gap.metrics() == {}
    check(gap, precision=Precision.FP32, age=0, setting=None, step=1)


def test_the_limit_grows_with_lower_precision_and_with_older_weights() -> None:
    by_precision = [
        limit(precision, age=0, setting=None) for precision in (Precision.FP32, Precision.FP16, Precision.BF16)
    ]
    assert by_precision == sorted(by_precision)
    assert limit(Precision.FP32, age=2, setting=None) > LIMITS[Precision.FP32]
    assert limit(Precision.FP32, age=2, setting=0.5) == 0.5


def test_a_mean_past_the_limit_stops_the_run_and_says_what_to_do() -> None:
    with pytest.raises(LogProbGapError) as fault:
        check(a_gap(mean=2.5, max=9.0), precision=Precision.FP32, age=0, setting=None, step=4)

    for part in ("step 4", "2.5 nats", "fp32", "weights", "actor_rollout_ref.agent.logprob_gap_limit"):
        assert part in str(fault.value)


def test_a_mean_at_the_limit_and_a_single_outlier_go_on() -> None:
    check(a_gap(mean=LIMITS[Precision.FP32], max=5.0), precision=Precision.FP32, age=0, setting=None, step=1)


@pytest.mark.parametrize(
    ("dtype", "param_dtype", "expected"),
    [
        ("float32", "fp32", "fp32"),
        ("float32", "bf16", "bf16"),
        ("bfloat16", "fp32", "bf16"),
        ("float16", "fp32", "fp16"),
    ],
)
def test_the_less_precise_side_decides(dtype: str, param_dtype: str, expected: str) -> None:
    actor = {"fsdp_config": {"mixed_precision": {"param_dtype": param_dtype}}}

    assert precision_of(rollout={"dtype": dtype}, actor=actor) == expected


def test_verls_own_default_of_the_trainer_is_bf16() -> None:
    assert precision_of(rollout={"dtype": "float32"}, actor={"fsdp_config": {}}) == "bf16"
