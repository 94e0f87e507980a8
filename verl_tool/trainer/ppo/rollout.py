"""The rollout of a batch through the worker group: prompts to the workers, rewards, records to the TransferQueue."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import transfer_queue as tq
from tensordict import TensorDict
from verl import DataProto
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from verl_tool.llm_agent.metrics import RowStats
from verl_tool.trainer.ppo.records import TRAJECTORY_RECORD, Record, Score, columns, is_failed, record_of
from verl_tool.trainer.ppo.rows import Row, as_prompts, padded, rows_of
from verl_tool.trainer.ppo.scoring import Scorer, score
from verl_tool.worker.mesh import ROLLOUT_MESH

OnRows = Callable[[Sequence[RowStats]], None]


class WorkerGroupRollout:
    """Stands where verl's trainer has an agent-loop manager. A batch is done when `generate_sequences` returns."""

    def __init__(
        self,
        worker_group: Any,
        scorer: Scorer | None,
        *,
        rollout: Any,
        records_wanted: Callable[[bool], bool],
        on_rows: OnRows,
    ) -> None:
        """`rollout` is verl's own section of settings; `records_wanted(validate)` says whether records are written.

        Without a scorer verl computes the rewards itself, with a reward model on the trainer's devices.
        """
        self._workers = worker_group
        self._scorer = scorer
        self._rollout = rollout
        self._records_wanted = records_wanted
        self._on_rows = on_rows

    def generate_sequences(self, batch: TensorDict) -> None:
        """Runs every trajectory of the batch and puts the records where verl's replay buffer looks for them."""
        validate = bool(batch["validate"]) if "validate" in batch else False
        steps = int(batch["global_steps"])
        samples = self._rollout.val_kwargs.n if validate else self._rollout.n
        rows = rows_of(batch, samples=samples)
        output = self._generate(rows, validate=validate, steps=steps)
        self._on_rows(list(output.non_tensor_batch["rollout_stats"]))
        scores = self._scores(rows, output)
        records = [
            record_of(row, output, index, scores[index], global_steps=steps)
            for index, row in enumerate(rows)
            if validate or not is_failed(output, index)  # a failed row would shift its group's mean reward
        ]
        publish(records, uids=dict.fromkeys(row.uid for row in rows), partition="val" if validate else "train")

    def _generate(self, rows: Sequence[Row], *, validate: bool, steps: int) -> DataProto:
        if ROLLOUT_MESH not in self._workers._dispatch_info:
            self._workers._dispatch_info[ROLLOUT_MESH] = self._workers._query_dispatch_info(ROLLOUT_MESH)
        replicas = max(self._workers._dispatch_info[ROLLOUT_MESH]) + 1
        prompts = as_prompts(
            padded(rows, divisor=replicas), validate=validate, global_steps=steps, record=self._records_wanted(validate)
        )
        return self._workers.generate_sequences(prompts)[: len(rows)]

    def _scores(self, rows: Sequence[Row], output: DataProto) -> list[Score | None]:
        if self._scorer is None:
            return [None] * len(rows)
        scores: list[Score | None] = list(score(rows, output, self._scorer))
        texts = output.non_tensor_batch.get(TRAJECTORY_RECORD)
        if texts is not None:
            for found, text in zip(scores, texts, strict=True):
                assert found is not None
                found.extra[TRAJECTORY_RECORD] = json.dumps(text)
        return scores


def publish(records: Sequence[Record], *, uids: Any, partition: str) -> None:
    """Writes the records, then marks their prompts as finished."""
    if records:
        keys, fields, tags = columns(records)
        tq.kv_batch_put(keys=keys, fields=list_of_dict_to_tensordict(fields), tags=tags, partition_id=partition)
    for uid in uids:
        tq.kv_put(key=uid, partition_id=partition, tag={"status": "finished"})
