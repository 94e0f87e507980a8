"""A job as the list of overrides that its trainer is started with; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verl_tool.job.config_tree import AGENT
from verl_tool.job.model import TrainingJob, TrainingJobSpec
from verl_tool.job.overrides import override, tree_overrides
from verl_tool.job.places import Places
from verl_tool.job.run_folder import RunFolder
from verl_tool.llm_agent.config import AGENT_PATH, AgentActorConfig

# Our spelling of names that the original had under another one.
_OLD_NAMES = {
    str(old): name
    for name, field in AgentActorConfig.model_fields.items()
    for old in getattr(field.validation_alias, "choices", ())
    if old != name
}


@dataclass(frozen=True, slots=True)
class Launch:
    """What a start of the trainer depends on besides the manifest."""

    places: Places
    folder: RunFolder
    tool_server_url: str | None
    resume: bool = False
    nodes: int = 1
    gpus: int = 1
    platform: Sequence[str] = ()  # overrides that the machine needs; the job's own settings win over them
    extra: Sequence[str] = ()  # overrides from the command line; they win over everything


def trainer_overrides(job: TrainingJob, launch: Launch) -> list[str]:
    """Overrides for `python -m verl_tool.trainer.main_ppo`; of two for one setting, the later one holds."""
    config = with_current_names(job.spec.config)
    return [
        *(override(name, value) for name, value in _defaults(job)),
        *launch.platform,
        *tree_overrides(config),
        *(override(name, value) for name, value in _of_manifest(job.spec, config, launch)),
        *launch.extra,
    ]


def with_current_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """The tree with the agent's old names replaced."""
    outer, inner = AGENT
    rollout = config.get(outer)
    agent = rollout.get(inner) if isinstance(rollout, Mapping) else None
    if not isinstance(rollout, Mapping) or not isinstance(agent, Mapping):
        return dict(config)
    renamed = {_OLD_NAMES.get(name, name): value for name, value in agent.items()}
    return {**config, outer: {**rollout, inner: renamed}}


def _defaults(job: TrainingJob) -> Iterator[tuple[str, Any]]:
    """Ours where verl's would fail or fit nobody; the job's own settings win."""
    yield "trainer.project_name", "verl-tool"
    yield "trainer.experiment_name", job.metadata.name
    yield "actor_rollout_ref.rollout.name", "vllm"
    yield "actor_rollout_ref.rollout.tensor_model_parallel_size", 1
    if job.spec.tool_server is None:
        yield f"{AGENT_PATH}.enable_agent", False


def _of_manifest(spec: TrainingJobSpec, config: Mapping[str, Any], launch: Launch) -> Iterator[tuple[str, Any]]:
    places, folder = launch.places, launch.folder
    model = places.model(spec.model.path)
    yield "actor_rollout_ref.model.path", model
    if "path" not in ((config.get("critic") or {}).get("model") or {}):
        yield "critic.model.path", model
    yield "data.train_files", [places.resolve(path) for path in spec.data.train]
    yield "data.val_files", [places.resolve(path) for path in spec.data.validation]
    if (reward := spec.reward) is not None:
        module, _, function = (reward.function or "").partition(":")
        path = f"pkg://{module}" if reward.file is None else str(places.beside(reward.file))
        yield "reward.custom_reward_function.path", path
        yield "reward.custom_reward_function.name", function or reward.name
        for name, value in reward.arguments.items():
            yield f"reward.custom_reward_function.reward_kwargs.{name}", value
    if launch.tool_server_url is not None:
        yield f"{AGENT_PATH}.tool_server_url", launch.tool_server_url
    yield "trainer.nnodes", launch.nodes
    yield "trainer.n_gpus_per_node", launch.gpus
    yield "trainer.logger", _loggers((config.get("trainer") or {}).get("logger"))
    yield "trainer.save_freq", spec.checkpoints.every
    yield "trainer.max_actor_ckpt_to_keep", spec.checkpoints.keep
    yield "trainer.max_critic_ckpt_to_keep", spec.checkpoints.keep
    yield "trainer.resume_mode", "auto" if launch.resume else "disable"
    yield "trainer.default_local_dir", str(folder.checkpoints)
    yield "trainer.rollout_data_dir", str(folder.train_trajectories)
    yield "trainer.validation_data_dir", str(folder.validation_trajectories)
    yield "hydra.run.dir", str(folder.root)
    yield "hydra.output_subdir", None


def _loggers(chosen: Any) -> list[str]:
    """verl's loggers as the job wants them, and the file that the report is made from."""
    wanted = ["console"] if chosen is None else [chosen] if isinstance(chosen, str) else list(chosen)
    return [*dict.fromkeys([*wanted, "file"])]
