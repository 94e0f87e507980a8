"""verl's synchronous PPO trainer over workers that call tools; rollout, guard, trajectories, checkpoints are ours."""

from collections.abc import Sequence
from typing import Any

import ray
import transfer_queue as tq
from omegaconf import DictConfig, open_dict
from verl.trainer.ppo.utils import Role
from verl.utils.debug import marked_timer

from verl_tool.errors import DataError, RolloutError
from verl_tool.llm_agent.config import RolloutVia
from verl_tool.llm_agent.metrics import RowStats, summarise
from verl_tool.trainer import preflight
from verl_tool.trainer.interrupts import Interrupts
from verl_tool.trainer.ppo import logprob_gap
from verl_tool.trainer.ppo.agent_output import AGENT_NAME
from verl_tool.trainer.ppo.interruptible import InterruptibleTrainer
from verl_tool.trainer.ppo.records import TRAJECTORY_RECORD
from verl_tool.trainer.ppo.rollout import WorkerGroupRollout
from verl_tool.trainer.ppo.scoring import LocalScorer, Scorer, WorkerScorer
from verl_tool.trainer.ppo.trajectory_files import records_wanted, trajectory_line, write_trajectories
from verl_tool.worker.fsdp_workers import AgentActorRolloutRefWorker, training_worker_class
from verl_tool.worker.server import register_replica

POLL_INTERVAL_S = 0.1  # between looks for trajectories that verl's agent loop has finished; verl's own is 2 s
DATA_FOR_WORKERS = ("max_prompt_length", "max_response_length", "truncation", "apply_chat_template_kwargs")


class AgentRayPPOTrainer(InterruptibleTrainer):
    """Trains on what `AgentActorRolloutRefWorker.generate_sequences` gives."""

    def __init__(self, config: DictConfig, interrupts: Interrupts | None = None) -> None:
        self.agent_config = preflight.check(config)
        with open_dict(config):
            # verl gives a worker `actor_rollout_ref` and nothing else
            config.actor_rollout_ref.data = {name: config.data.get(name) for name in DATA_FOR_WORKERS}
            if config.actor_rollout_ref.agent.rollout_via == RolloutVia.AGENT_LOOP:
                config.actor_rollout_ref.rollout.agent.default_agent_loop = AGENT_NAME
                config.reward.num_workers = max(config.reward.num_workers, 1)  # verl's workers ask others for rewards
        super().__init__(config, interrupts)
        self.replay_buffer.poll_interval = POLL_INTERVAL_S
        self._precision = logprob_gap.precision_of(
            rollout=config.actor_rollout_ref.rollout, actor=config.actor_rollout_ref.actor
        )
        self._rows: list[RowStats] = []  # of the batch under way

    def rollout_manager(self) -> Any:
        """What `fit` hands every batch to, by `actor_rollout_ref.agent.rollout_via`."""
        if self.agent_config.rollout_via is RolloutVia.AGENT_LOOP:
            from verl_tool.trainer.agent_loop import ToolAgentLoopManager

            return ToolAgentLoopManager.create(
                config=self.config,
                llm_client=self.get_llm_client(),
                teacher_client=self.get_teacher_client(),
                reward_loop_worker_handles=self.get_reward_handles(),
            )
        return WorkerGroupRollout(
            self.actor_rollout_wg,
            self._scorer(),
            rollout=self.config.actor_rollout_ref.rollout,
            records_wanted=lambda validate: records_wanted(self.config.trainer, validate=validate),
            on_rows=self._take_rows,
        )

    def _scorer(self) -> Scorer | None:
        workers = self.get_reward_handles()
        if workers is None:
            return None
        return WorkerScorer(workers) if workers else LocalScorer(self.config)

    # Model and data

    def _init_tokenizer(self) -> None:
        try:
            super()._init_tokenizer()
        except Exception as fault:
            path = self.config.actor_rollout_ref.model.path
            raise DataError(f"actor_rollout_ref.model.path: {path} has no model that can be read: {fault}") from fault

    def _init_dataloader(self) -> None:
        data = self.config.data
        try:
            super()._init_dataloader()
        except Exception as fault:
            raise DataError(f"data: {data.train_files} or {data.val_files} cannot be read: {fault}") from fault
        if self.steps_per_epoch == 0:
            raise DataError(
                f"data.train_files: {len(self.train_dataset)} usable rows are fewer than data.train_batch_size, "
                f"{data.train_batch_size}; lower that, or see data.filter_overlong_prompts and data.max_prompt_length"
            )

    # Workers and servers

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            own = training_worker_class() if role == Role.Critic else AgentActorRolloutRefWorker
            self.role_worker_mapping[role] = ray.remote(own)
        register_replica()

    # A step

    def prepare_step(self) -> dict[str, float]:
        self._rows.clear()
        with marked_timer("gen", self.timing_raw):
            metrics: dict[str, float] = super().prepare_step()
        return metrics

    def _step_once(self, metrics: dict[str, Any], timing_raw: Any, sample_batch_size: int) -> Any:
        try:
            return super()._step_once(metrics, timing_raw, sample_batch_size)
        finally:
            self._collect_rows()  # also where verl stumbles over what is not there: what the rows raised tells more

    def on_sample_end(self) -> None:
        super().on_sample_end()
        self._collect_rows()

    def _take_rows(self, rows: Sequence[RowStats]) -> None:
        self._rows += rows

    def _collect_rows(self) -> None:
        """Asks verl's agent-loop workers what became of the batch. Raises for them what the worker route raises."""
        if self.agent_config.rollout_via is not RolloutVia.AGENT_LOOP:
            return
        rows, faults = self.agent_loop_manager.take_report()
        if faults:
            raise faults[0]
        self._rows += rows
        refuse_failed(self._rows, share=self.agent_config.max_failed_share)

    def _compute_old_log_prob(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._compute_old_log_prob(batch, metrics)
        metrics.update(summarise(self._rows))
        correction = self.config.algorithm.get("rollout_correction") or {}
        if correction.get("bypass_mode", False):
            return batch  # verl then takes the engine's log-probabilities for the trainer's
        gap = self._measure_gap(batch)
        metrics.update(gap.metrics())
        logprob_gap.check(
            gap,
            precision=self._precision,
            age=0,  # the engine gets the new weights before every rollout
            setting=self.agent_config.logprob_gap_limit,
            step=self.global_steps,
        )
        return batch

    def _measure_gap(self, batch: Any) -> logprob_gap.LogProbGap:
        fields = ["rollout_log_probs", "old_log_probs", "response_mask"]
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
        engine, trainer, trained = (
            data[name].to_padded_tensor(0) if data[name].is_nested else data[name] for name in fields
        )
        # Where observations are trained on, what was not sampled is known by the log-probability it does not have.
        sampled = trained.bool() if self.agent_config.mask_observations else trained.bool() & (engine != 0)
        return logprob_gap.measure(engine=engine, trainer=trainer, sampled=sampled)

    # Validation

    def _validate(self) -> dict[str, float]:
        self._rows.clear()
        try:
            metrics = super()._validate()
        finally:
            self._collect_rows()  # also where verl stumbles over what is not there: what the rows raised tells more
        if not metrics:
            return {}  # interrupted
        return {**metrics, **{f"val-{name}": value for name, value in summarise(self._rows).items()}}

    def _val_metrics_update(
        self, data_sources: Any, sample_uids: Any, reward_extra_infos_dict: Any, *args: Any, **kwargs: Any
    ) -> dict[str, float]:
        measured = {name: values for name, values in reward_extra_infos_dict.items() if name != TRAJECTORY_RECORD}
        result: dict[str, float] = super()._val_metrics_update(data_sources, sample_uids, measured, *args, **kwargs)
        return result

    # Trajectories

    def _log_rollout_data(self, batch: Any, timing_raw: Any, rollout_data_dir: str) -> None:
        fields = ["rm_scores", "reward_model", "extra_fields"]
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
        scores = data["rm_scores"].sum(dim=1).tolist()
        extras = [extra.get("reward_extra_info", {}) for extra in list(data["extra_fields"])]
        truths = [entry.get("ground_truth") for entry in list(data["reward_model"])]
        real = [index for index, tag in enumerate(batch.tags) if not tag.get("is_padding", False)]
        self._write(
            rollout_data_dir,
            [(batch.keys[i], extras[i].get(TRAJECTORY_RECORD), scores[i], truths[i]) for i in real],
        )

    def _dump_generations(
        self, inputs: Any, outputs: Any, gts: Any, scores: Any, reward_extra_infos_dict: Any, dump_path: str
    ) -> None:
        """verl's hook for what was validated."""
        keys = reward_extra_infos_dict["uid"]
        records = reward_extra_infos_dict.get(TRAJECTORY_RECORD, [None] * len(keys))
        self._write(dump_path, list(zip(keys, records, scores, gts, strict=True)))

    def _write(self, folder: str, entries: list[tuple[str, str | None, float, Any]]) -> None:
        lines = [
            trajectory_line(record, key=key, step=self.global_steps, reward=reward, ground_truth=truth)
            for key, record, reward, truth in sorted(entries, key=lambda entry: entry[0])
            if record is not None
        ]
        write_trajectories(folder, self.global_steps, lines)


def refuse_failed(rows: Sequence[RowStats], *, share: float) -> None:
    """Raises RolloutError when more than a share of the rows failed: what is left is not the data set's sample."""
    failed = sum(row["failed"] for row in rows)
    if failed > share * len(rows):
        raise RolloutError(
            f"{failed} of {len(rows)} trajectories failed, more than actor_rollout_ref.agent.max_failed_share allows; "
            "see agent/finish/* for how, and the agent-loop workers' log for why"
        )
