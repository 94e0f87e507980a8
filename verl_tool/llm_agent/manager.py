"""The agent's rollout of a batch: prompts in, trajectories out. It knows neither its caller nor the engine."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from verl_tool.errors import ConfigError
from verl_tool.llm_agent.action import ActionFinder, end_ids_of
from verl_tool.llm_agent.batch import compose_columns, compose_tensors, object_array, trajectory_record
from verl_tool.llm_agent.chat import ChatTemplate, Message
from verl_tool.llm_agent.config import AgentActorConfig, RolloutMode
from verl_tool.llm_agent.engine import Engine
from verl_tool.llm_agent.limits import Limits, check_agent, resolve_limits
from verl_tool.llm_agent.observation import ObservationEncoder
from verl_tool.llm_agent.prompts import make_task
from verl_tool.llm_agent.sampling import sampling_params
from verl_tool.llm_agent.schedule import FailureWatch, run_async, run_sync
from verl_tool.llm_agent.stop_strings import parse_stop_strings
from verl_tool.llm_agent.tool_call import Tools
from verl_tool.llm_agent.tool_client import ToolClient
from verl_tool.llm_agent.trajectory import Task, Trajectory, TrajectoryRunner

if TYPE_CHECKING:
    from verl import DataProto


class AgentActorManager:
    """Runs the agent for one rollout replica, by one job's settings."""

    def __init__(
        self,
        config: AgentActorConfig,
        tokenizer: Any,
        engine: Engine,
        *,
        rollout: Mapping[str, Any],
        data: Mapping[str, Any],
        eos_token_id: int | Sequence[int] | None = None,
    ) -> None:
        """`rollout` and `data` are verl's own settings, `eos_token_id` is the generation config's.

        Raises ConfigError for every contradiction, also of the chat template with the settings.
        """
        if faults := check_agent(config, rollout=rollout, data=data):
            raise ConfigError("\n".join(faults))
        self.config = config
        self.tokenizer = tokenizer
        self._engine = engine
        self._rollout = rollout
        self._data = data
        self._chat = ChatTemplate(tokenizer, data.get("apply_chat_template_kwargs"))
        self._encoder = ObservationEncoder(tokenizer, self._chat, config)
        stops = parse_stop_strings(config.action_stop_tokens)
        self._finder = ActionFinder(
            tokenizer,
            stops,
            end_ids_of(tokenizer, eos_token_id, config.additional_eos_token_ids),
            every_turn_is_an_action=config.enable_mtrl and not stops,
        )
        self._encoder.check()
        self._standing: ToolClient | None = None
        self._slots = asyncio.Semaphore(config.max_concurrent_trajectories)

    async def run_llm_loop(self, prompts: "DataProto") -> "DataProto":
        """One trajectory a row. Rows are taken as repeated by n already, by whoever made the batch.

        In: non-tensor `raw_prompt` (chat messages), `traj_ids`, optionally `extra_info`; meta `validate`,
        `global_steps`, `do_sample`, `record_trajectories`. Out: what `compose_tensors` and `compose_columns` say, and
        `trajectory_record` if asked for. Raises RolloutError when too many rows failed, DataError for a bad prompt.
        """
        from verl import DataProto

        meta = prompts.meta_info
        validate = bool(meta.get("validate", False))
        limits = self.limits(validate=validate)
        tasks = self._tasks(prompts.non_tensor_batch, limits)
        rows = await self._run(tasks, limits, self._params(validate, do_sample=meta.get("do_sample", True)))
        for row in rows:
            if not row.stream.response:  # verl has no place for a row without a response
                row.stream.add_forced([self._pad_id])
        columns = compose_columns(rows, weights_version=int(meta.get("global_steps", 0)))
        if meta.get("record_trajectories", False):
            columns["trajectory_record"] = object_array([self.record(row) for row in rows])
        batch: DataProto = DataProto.from_dict(
            tensors=compose_tensors(rows, config=self.config, limits=limits, pad_id=self._pad_id),
            non_tensors=columns,
            meta_info=dict(meta),
        )
        return batch

    async def run_trajectory(
        self,
        messages: Sequence[Message],
        *,
        trajectory_id: str,
        extra_info: Mapping[str, Any] | None = None,
        validate: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Trajectory:
        """One trajectory alone, for a caller with a schedule of its own; `max_concurrent_trajectories` holds here too.

        The row has at least one response token. `params` are the caller's sampling parameters, the job's if left out.
        """
        limits = self.limits(validate=validate)
        task = self._task(messages, trajectory_id, extra_info, limits)
        async with self._slots:
            if self._standing is None:
                self._standing = await ToolClient(self.config).__aenter__()
            runner = self._runner(self._standing, limits, params or self._params(validate, do_sample=True))
            row = await runner.run(task)
        if not row.stream.response:
            row.stream.add_forced([self._pad_id])
        return row

    async def aclose(self) -> None:
        """Closes what `run_trajectory` holds open."""
        if self._standing is not None:
            standing, self._standing = self._standing, None
            await standing.__aexit__(None, None, None)

    def limits(self, *, validate: bool) -> Limits:
        """The budgets of a training or a validation rollout."""
        return resolve_limits(self.config, rollout=self._rollout, data=self._data, validate=validate)

    def record(self, row: Trajectory) -> dict[str, Any]:
        """The row for people to read."""
        return trajectory_record(row, config=self.config, decode=self._decode)

    @property
    def _pad_id(self) -> int:
        pad = self.tokenizer.pad_token_id
        return int(pad if pad is not None else self.tokenizer.eos_token_id)

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False))

    def _params(self, validate: bool, *, do_sample: bool) -> dict[str, Any]:
        return sampling_params(self._rollout, self.config, validate=validate, do_sample=do_sample)

    def _tasks(self, columns: Mapping[str, Any], limits: Limits) -> list[Task]:
        extras = columns.get("extra_info", [None] * len(columns["raw_prompt"]))
        return [
            self._task(messages, str(trajectory_id), extra if isinstance(extra, Mapping) else None, limits)
            for messages, trajectory_id, extra in zip(columns["raw_prompt"], columns["traj_ids"], extras, strict=True)
        ]

    def _task(
        self, messages: Sequence[Message], trajectory_id: str, extra: Mapping[str, Any] | None, limits: Limits
    ) -> Task:
        return make_task(
            self._chat,
            messages,
            trajectory_id=trajectory_id,
            extra_info=extra,
            limit=limits.prompt,
            # max_start_length is the agent's own cut, to the left; data.truncation says what happens past verl's limit
            truncation="left" if self.config.max_start_length else self._data.get("truncation", "error"),
        )

    def _runner(self, tools: Tools, limits: Limits, params: Mapping[str, Any]) -> TrajectoryRunner:
        return TrajectoryRunner(self._engine, tools, self._finder, self._encoder, self.config, limits, params)

    async def _run(self, tasks: Sequence[Task], limits: Limits, params: Mapping[str, Any]) -> list[Trajectory]:
        watch = FailureWatch(rows=len(tasks), share=self.config.max_failed_share)
        with tqdm(total=len(tasks), desc="trajectories", disable=not self.config.enable_tqdm) as bar:

            def on_end(row: Trajectory) -> None:
                bar.update()
                watch(row)

            async with ToolClient(self.config) as client:
                if self.config.rollout_mode is RolloutMode.SYNC:
                    return await run_sync(
                        tasks, lambda tools: self._runner(tools, limits, params), client, on_end=on_end
                    )
                return await run_async(
                    tasks,
                    lambda tools: self._runner(tools, limits, params),
                    client,
                    in_flight=self.config.max_concurrent_trajectories,
                    on_end=on_end,
                )
