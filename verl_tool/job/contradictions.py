"""Settings that verl or this trainer cannot take together, found before anything heavy is imported."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Estimators that compare the samples of one prompt with each other.
GROUPED = frozenset(
    {
        "grpo", "grpo_passk", "grpo_vectorized", "gpg", "gdpo", "opo", "rloo", "rloo_vectorized",
        "reinforce_plus_plus_baseline", "optimal_token_baseline", "tir_optimal_token_baseline",
    }
)  # fmt: skip
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Settings, by their dotted names, that do not go together; the first is where to mend it."""

    settings: tuple[str, ...]
    message: str


def contradictions(tree: Mapping[str, Any]) -> Iterator[Contradiction]:
    """Everything wrong with the whole of a resolved tree of verl's."""
    yield from _unsupported(tree)
    yield from _batches(tree)


def _unsupported(tree: Mapping[str, Any]) -> Iterator[Contradiction]:
    wanted: dict[str, tuple[Any, str]] = {
        f"{ROLLOUT}.name": ("vllm", "only vllm tells how a generation ended"),
        f"{ROLLOUT}.calculate_log_probs": (True, "the log-probability guard needs it"),
        "actor_rollout_ref.hybrid_engine": (True, "trainer and engine share their workers"),
        "trainer.use_v1": (True, "this trainer is built on verl's v1 trainer"),
        "trainer.v1.trainer_mode": ("sync", "no other mode is supported"),
    }
    for name, (right, reason) in wanted.items():
        value = get(tree, name)
        if value != right:
            yield Contradiction((name,), f"{value!r}; {reason}: set it to {str(right).lower()}")


def _batches(tree: Mapping[str, Any]) -> Iterator[Contradiction]:
    estimator, samples = get(tree, "algorithm.adv_estimator"), get(tree, f"{ROLLOUT}.n")
    if estimator in GROUPED and samples < 2:
        yield Contradiction(
            (f"{ROLLOUT}.n", "algorithm.adv_estimator"),
            f"{samples}; {estimator} compares the samples of a prompt with each other: set it to 2 or more",
        )
    batch, mini = get(tree, "data.train_batch_size"), get(tree, f"{ACTOR}.ppo_mini_batch_size")
    if mini > batch:
        yield Contradiction(
            (f"{ACTOR}.ppo_mini_batch_size", "data.train_batch_size"),
            f"{mini} is more than data.train_batch_size, {batch}; set it to {batch} or less",
        )
    elif batch % mini:
        yield Contradiction(
            (f"{ACTOR}.ppo_mini_batch_size", "data.train_batch_size"),
            f"{mini} does not divide data.train_batch_size, {batch}; set it to a divisor",
        )
    workers = get(tree, "trainer.nnodes") * get(tree, "trainer.n_gpus_per_node")
    if batch * samples % workers:
        yield Contradiction(
            ("data.train_batch_size", f"{ROLLOUT}.n", "trainer.nnodes", "trainer.n_gpus_per_node"),
            f"{batch} prompts of {samples} samples cannot be shared out evenly to {workers} workers",
        )
    if not get(tree, f"{ACTOR}.use_dynamic_bsz"):
        for group, name in ((ACTOR, "ppo_micro_batch_size"), (ROLLOUT, "log_prob_micro_batch_size")):
            per_gpu = f"{group}.{name}_per_gpu"
            if get(tree, per_gpu) is None and get(tree, f"{group}.{name}") is None:
                yield Contradiction(
                    (per_gpu, f"{ACTOR}.use_dynamic_bsz"), f"not set; set it, or {ACTOR}.use_dynamic_bsz=true"
                )


def get(tree: Mapping[str, Any], name: str) -> Any:
    """A setting by its dotted name."""
    value: Any = tree
    for part in name.split("."):
        value = value[part]
    return value
