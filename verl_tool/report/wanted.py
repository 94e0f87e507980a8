"""Which charts the page shows, by the names that the trainer's logger gives their metrics."""

import re
from dataclasses import dataclass
from typing import NamedTuple

TRAIN_REWARD = "critic/score/mean"
VALIDATION_REWARD = re.compile(r"^val-(?:core|aux)/(?P<source>.+)/(?P<what>reward|score|acc)/mean@(?P<samples>\d+)$")
VALIDATION = "c2 points"  # the look of validation in every chart


class WantedLine(NamedTuple):
    """A metric, its label, and its look (CSS classes): c1 is the main line, soft an extreme beside it."""

    metric: str
    label: str
    look: str = "c1"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A chart, drawn with those of its lines that were logged."""

    title: str
    hint: str
    lines: tuple[WantedLine, ...]
    unit: str = "number"
    log: bool = False
    bounds: tuple[float, float] | None = None
    if_ever_above: float | None = None  # shown only then


KEY_CHARTS = (
    Wanted(
        "Log-probability gap",
        "engine against trainer on the same tokens, nats",
        (WantedLine("agent/logprob_gap/max", "max", "soft"), WantedLine("agent/logprob_gap/mean", "mean")),
        log=True,
    ),
    Wanted(
        "Tool turns",
        "a trajectory, mean",
        (WantedLine("agent/turns/mean", "training"), WantedLine("val-agent/turns/mean", "validation", VALIDATION)),
    ),
    Wanted(
        "Valid actions",
        "share of the calls that a tool accepted",
        (
            WantedLine("agent/actions/valid_share", "training"),
            WantedLine("val-agent/actions/valid_share", "validation", VALIDATION),
        ),
        unit="percent",
        bounds=(0, 1),
    ),
    Wanted(
        "Response length",
        "tokens, observations among them",
        (WantedLine("response_length/max", "max", "soft"), WantedLine("response_length/mean", "mean")),
    ),
    Wanted(
        "Tool latency",
        "how long a row waited for a tool's answer",
        (WantedLine("agent/tool/seconds_p95", "p95", "soft"), WantedLine("agent/tool/seconds_p50", "p50")),
        unit="seconds",
    ),
    Wanted("Entropy", "of the policy, nats a token", (WantedLine("actor/entropy", "entropy"),)),
    Wanted("Gradient norm", "before clipping", (WantedLine("actor/grad_norm", "norm"),)),
    Wanted(
        "Policy change",
        "KL, nats",
        (WantedLine("actor/ppo_kl", "since sampling"), WantedLine("actor/kl_loss", "from reference", "c3")),
    ),
    Wanted(
        "Time a step",
        "all of it, and its largest parts",
        (
            WantedLine("timing_s/step", "step"),
            WantedLine("timing_s/gen", "rollout", "c2"),
            WantedLine("timing_s/update_actor", "update", "c3"),
        ),
        unit="seconds",
    ),
    Wanted(
        "Turn length",
        "tokens, mean",
        (
            WantedLine("agent/generation_tokens/mean", "generation"),
            WantedLine("agent/observation_tokens/mean", "observation", "c2"),
        ),
    ),
    Wanted("Throughput", "tokens a second, prompts among them", (WantedLine("perf/throughput", "tokens/s"),)),
    Wanted("Memory", "of the machine, GB", (WantedLine("actor/perf/cpu_memory_used_gb", "used"),)),
    Wanted(
        "Tool rewards", "given with observations, a trajectory", (WantedLine("agent/tool/reward_mean", "mean sum"),)
    ),
    Wanted(
        "Failed rows",
        "share that the engine or the tool server failed",
        (WantedLine("agent/failed_share", "training"), WantedLine("val-agent/failed_share", "validation", VALIDATION)),
        unit="percent",
        if_ever_above=0.0,
    ),
    Wanted(
        "Tool errors",
        "calls in which the tool itself failed",
        (WantedLine("agent/tool/errors", "calls"),),
        if_ever_above=0.0,
    ),
)
