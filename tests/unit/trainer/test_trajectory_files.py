"""The files of trajectories."""

import json
from pathlib import Path

from verl_tool.llm_agent.record import TrajectoryRecord
from verl_tool.trainer.ppo.trajectory_files import trajectory_line, write_trajectories

RECORD = json.dumps({"prompt": "1+1=", "segments": [], "tool_calls": [], "finish_reason": "answered", "turns": 0})


def test_a_line_is_the_workers_record_with_what_the_trainer_knows(tmp_path: Path) -> None:
    line = trajectory_line(RECORD, key="a-b_c_1_0", step=3, reward=0.5, ground_truth=2)

    path = write_trajectories(tmp_path / "train", 3, [line])

    assert path == tmp_path / "train" / "3.jsonl"
    read = [TrajectoryRecord.model_validate_json(text) for text in path.read_text().splitlines()]
    assert read == [line]
    assert (read[0].uid, read[0].session, read[0].reward, read[0].ground_truth) == ("a-b_c", 1, 0.5, "2")


def test_a_step_written_again_replaces_the_file_and_leaves_no_part(tmp_path: Path) -> None:
    for reward in (0.0, 1.0):
        write_trajectories(
            tmp_path, 1, [trajectory_line(RECORD, key="u_0_0", step=1, reward=reward, ground_truth=None)]
        )

    assert [path.name for path in tmp_path.iterdir()] == ["1.jsonl"]
    assert json.loads((tmp_path / "1.jsonl").read_text())["reward"] == 1.0
