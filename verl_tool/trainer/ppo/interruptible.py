"""verl's synchronous trainer, ended by a signal at any moment without losing a step that was through."""

from typing import Any

import structlog
import torch
from omegaconf import DictConfig
from verl.trainer.ppo.v1 import PPOTrainerSync

from verl_tool.trainer.interrupts import Interrupted, Interrupts
from verl_tool.trainer.ppo import checkpoints

log = structlog.get_logger(__name__)


class InterruptibleTrainer(PPOTrainerSync):
    """Signals wait while the weights of a step are updated; a checkpoint made at the end is of the last whole step."""

    def __init__(self, config: DictConfig, interrupts: Interrupts | None = None) -> None:
        self._interrupts = interrupts or Interrupts()
        self._whole_step = 0  # the newest step whose update is through, 0 before the first
        self._loader_state: Any = None  # of the data before the batch under way, until the weights have learnt from it
        super().__init__(config)

    def save_interrupted(self) -> None:
        """Saves the newest whole step of a run that was interrupted, unless it has been or nothing is to be saved."""
        trainer = self.config.trainer
        if trainer.save_freq <= 0 or self._whole_step <= (checkpoints.newest_whole(trainer.default_local_dir) or 0):
            return
        self.global_steps = self._whole_step
        log.info("saving a checkpoint before the end", step=self.global_steps)
        self._save_checkpoint()

    # A step

    def on_step_begin(self) -> None:
        self._interrupts.release()
        super().on_step_begin()

    def prepare_step(self) -> dict[str, float]:
        self._loader_state = self.train_dataloader.state_dict()
        metrics: dict[str, float] = super().prepare_step()
        return metrics

    def _update_critic(self, batch: Any, metrics: dict[str, Any]) -> Any:
        self._interrupts.hold()
        return super()._update_critic(batch, metrics)

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        self._interrupts.hold()  # from here to the next step: half a step can neither be saved nor repeated
        return super()._update_actor(batch, metrics)

    def step(self, metrics: dict[str, Any], timing_raw: Any) -> Any:
        batch = super().step(metrics, timing_raw)
        self._whole_step, self._loader_state = self.global_steps, None
        return batch

    def _validate(self) -> dict[str, float]:
        """Left out, or given up, by a run that is to end; the metrics of the step before it are still written."""
        if self._interrupts.waiting:
            return {}
        try:
            self._interrupts.release()
            metrics: dict[str, float] = super()._validate()
        except Interrupted as interrupted:
            if self._whole_step == 0:
                raise  # no step before it
            self._interrupts.postpone(interrupted)
            return {}
        return metrics

    # Checkpoints

    def _save_checkpoint(self) -> None:
        super()._save_checkpoint()
        folder, step = self.config.trainer.default_local_dir, self.global_steps
        if self._loader_state is not None:  # the batch under way belongs to the next step
            torch.save(self._loader_state, checkpoints.folder_of(folder, step) / checkpoints.LOADER)
        if not self.config.actor_rollout_ref.actor.get("checkpoint", {}).get("async_save", False):
            checkpoints.mark_whole(folder, step)
            checkpoints.remove_shells(folder)

    def _load_checkpoint(self) -> None:
        if self.config.trainer.resume_mode == "auto":
            checkpoints.repair_tracker(self.config.trainer.default_local_dir)
        super()._load_checkpoint()
