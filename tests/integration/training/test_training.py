"""The real engine and trainer, a few steps: the token stream, resumes, replicas, faults."""

import pytest
import torch

from tests.integration.training.conftest import BATCH, ROWS, STEPS_AN_EPOCH
from tests.integration.training.runs import Run, gaps
from verl_tool.llm_agent.metrics import METRICS
from verl_tool.trainer.ppo.checkpoints import LOADER, TRACKER, folder_of, newest_whole

pytestmark = pytest.mark.timeout(600)

GAP_LIMIT = 1e-4  # nats, fp32, the worst token


def test_engine_and_trainer_agree_on_every_sampled_token_with_tied_embeddings(first_run: Run) -> None:
    """Also behind each weight update: step 1 has the weights of the start, the others updated ones."""
    assert sorted(first_run.metrics) == list(range(1, STEPS_AN_EPOCH + 1))
    assert max(gaps(list(first_run.metrics.values()))) < GAP_LIMIT


def test_engine_and_trainer_agree_with_untied_embeddings_on_two_replicas(untied_run: Run) -> None:
    assert max(gaps([untied_run.metrics[1], untied_run.metrics[2]])) < GAP_LIMIT


def test_weights_are_really_updated(first_run: Run) -> None:
    assert all(step["actor/grad_norm"] > 0 for step in first_run.metrics.values())


def test_observations_are_never_trained_on_and_sampled_tokens_always_are(first_run: Run) -> None:
    segments = [
        segment
        for step in range(1, STEPS_AN_EPOCH + 1)
        for row in first_run.trajectories("train", step)
        for segment in row["segments"]
    ]
    kinds = {segment["kind"] for segment in segments}
    assert kinds == {"sampled", "observation"}
    assert all(segment["trained"] == (segment["kind"] == "sampled") for segment in segments)


def test_a_step_writes_one_line_for_each_sample_with_its_reward(first_run: Run) -> None:
    rows = first_run.trajectories("train", 1)

    assert len(rows) == BATCH * 2
    assert sorted({row["session"] for row in rows}) == [0, 1]
    assert all(isinstance(row["reward"], float) for row in rows)
    assert any(row["tool_calls"] for row in rows)


def test_every_metric_of_the_agent_is_in_verls_own_logger(first_run: Run) -> None:
    logged = {name for step in first_run.metrics.values() for name in step}

    only_with_tool_rewards = {"agent/tool/reward_mean"}
    assert METRICS.keys() - logged <= only_with_tool_rewards


def test_each_validation_prompt_runs_as_often_as_asked(first_run: Run) -> None:  # R4
    rows = first_run.trajectories("validation", STEPS_AN_EPOCH)

    assert len(rows) == 3 * 2
    assert first_run.metrics[STEPS_AN_EPOCH]["val-agent/turns/max"] >= 1


def test_a_resume_at_the_end_of_an_epoch_goes_on_with_the_next_one(resumed_run: Run) -> None:  # R18
    steps = sorted(resumed_run.steps())
    assert steps[:STEPS_AN_EPOCH] == list(range(STEPS_AN_EPOCH + 1, 2 * STEPS_AN_EPOCH + 1))

    epoch = [
        row["prompt"]
        for step in steps[:STEPS_AN_EPOCH]
        for row in resumed_run.trajectories("train", step)
        if row["session"] == 0
    ]
    assert len(epoch) == len(set(epoch)) == ROWS


def test_after_a_resume_the_engine_has_the_loaded_weights(resumed_run: Run) -> None:  # R19
    first = resumed_run.steps()[STEPS_AN_EPOCH + 1]

    assert first["agent/logprob_gap/max"] < GAP_LIMIT


def test_an_interrupt_leaves_neither_process_nor_shared_memory(resumed_run: Run) -> None:
    assert resumed_run.process.returncode == 130, resumed_run.tail()
    assert resumed_run.processes_after(seconds=15) == []
    assert resumed_run.shared_memory_left() == set()


def test_an_interrupt_saves_the_last_whole_step_with_the_data_that_come_next(resumed_run: Run) -> None:
    checkpoints = resumed_run.job.folder / "checkpoints"
    step = newest_whole(checkpoints)

    assert step == max(resumed_run.steps()) >= 2 * STEPS_AN_EPOCH
    assert (checkpoints / TRACKER).read_text() == str(step)
    batches = torch.load(folder_of(checkpoints, step) / LOADER, weights_only=False)["_num_yielded"]
    assert batches % STEPS_AN_EPOCH == step % STEPS_AN_EPOCH


def test_fewer_rows_than_replicas_are_neither_doubled_nor_counted_twice(untied_run: Run) -> None:  # R14
    assert len(untied_run.trajectories("validation", 2)) == 1
    assert untied_run.metrics[2]["val-agent/tokens/sampled"] <= 32


def test_plain_generation_calls_no_tool(untied_run: Run) -> None:
    assert untied_run.metrics[1]["agent/turns/max"] == 0
    assert all(len(row["segments"]) == 1 for row in untied_run.trajectories("train", 1))


def test_through_verls_agent_loop_the_token_stream_is_the_same(agent_loop_run: Run) -> None:
    steps = agent_loop_run.steps()

    assert 1 in steps, agent_loop_run.tail()
    assert steps[1]["agent/logprob_gap/max"] < GAP_LIMIT
    assert steps[1]["agent/turns/max"] >= 1
    assert len(agent_loop_run.trajectories("train", 1)) == BATCH * 2


def test_a_reward_function_that_raises_ends_the_run_with_one_clear_line(agent_loop_run: Run) -> None:
    assert agent_loop_run.process.returncode == 1
    assert agent_loop_run.told() == [
        "error: the reward function raised ZeroDivisionError: the reward of this row cannot be computed"
    ]
    assert agent_loop_run.processes_after(seconds=15) == []
