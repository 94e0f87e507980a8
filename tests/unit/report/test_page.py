"""The page, whatever the folder holds."""

import subprocess
import sys

from tests.unit.report.builders import a_record, a_run, observed, sampled
from verl_tool.job.run_folder import RunFolder
from verl_tool.llm_agent.metrics import METRICS
from verl_tool.llm_agent.record import TrajectoryRecord
from verl_tool.llm_agent.trajectory import FinishReason
from verl_tool.report import write_report
from verl_tool.report.endings import MEANING
from verl_tool.report.page import MOST_BYTES
from verl_tool.report.wanted import KEY_CHARTS


def page(folder: RunFolder) -> str:
    return write_report(folder).read_text()


def test_an_empty_folder_gives_a_page_that_says_so(tmp_path):
    text = page(a_run(tmp_path))
    assert "There are no metrics yet" in text and "There are no trajectories" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_lines_left_out_are_counted_and_named(tmp_path):
    text = page(
        a_run(
            tmp_path,
            metrics='{"step":1,"data":{"critic/score/mean":0.5}}\n{"step":2,"da',
            training={1: [a_record(), "{"]},
        )
    )
    assert "2 lines could not be read and left out: metrics.jsonl line 2, training 1.jsonl line 2" in text


def test_the_head_says_how_far_a_run_got_and_how_it_ended(tmp_path):
    state = {"outcome": "failed", "error": "the tool <server> died", "started": 1_700_000_000, "ended": 1_700_000_250}
    config = "trainer: {total_training_steps: 40}"
    text = page(a_run(tmp_path, metrics={3: {"critic/score/mean": 0.5}}, state=state, config=config))
    assert "step 3 of 40" in text and "took 4 min 10 s" in text and "14 November 2023, 22:13 UTC" in text
    assert ">failed<" in text and "the tool &lt;server&gt; died" in text


def test_a_state_or_config_that_is_nonsense_is_no_reason_to_fail(tmp_path):
    folder = a_run(tmp_path, metrics={1: {"a": 1.0}}, state={"outcome": 7, "started": "x", "steps": "y"}, config=": [")
    folder.job.write_text("- 1")
    assert "end not recorded" in page(folder)


def test_what_a_model_wrote_is_text(tmp_path):
    hostile = "</div></script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}"
    row = a_record(
        segments=[sampled(hostile), observed(hostile)], prompt=hostile, finish_reason=hostile, ground_truth=hostile
    )
    folder = a_run(tmp_path, training={1: [row]}, metrics={1: {hostile: 1.0, f"agent/finish/{hostile}": 1.0}})
    text = page(folder)
    assert text.count("<script>") == 1 and "<img" not in text and "{{ 7*7 }}" in text


def test_the_page_stays_small_whatever_the_run_holds(tmp_path):
    def row(step: int, number: int) -> TrajectoryRecord:
        return a_record(
            step=step,
            uid=f"{step}-{number}",
            prompt='"' * 99_999,
            reward=number / 9,
            segments=[sampled("<|a|>" * 9999)] * 50,
        )

    names = {f"metric/{number}/{'x' * 80}": float(number) for number in range(600)} | {"critic/score/mean": 0.5}
    batches = {step: [row(step, number) for number in range(5)] for step in (1, 2)}
    metrics = {step: {name: value + step % 7 for name, value in names.items()} for step in range(300)}
    folder = a_run(tmp_path, metrics=metrics, training=batches, validation=batches, config='"' * 300_000)
    assert write_report(folder).stat().st_size < MOST_BYTES


def test_every_agent_metric_that_a_chart_names_is_one_the_loop_logs():
    named = {line.metric.removeprefix("val-") for chart in KEY_CHARTS for line in chart.lines}
    assert {name for name in named if name.startswith("agent/")} <= METRICS.keys()


def test_every_finish_reason_has_a_meaning():
    assert MEANING.keys() == {reason.value for reason in FinishReason}


def test_the_report_imports_nothing_heavy():
    heavy = "{'torch', 'verl', 'ray', 'transformers', 'pandas'}"
    code = f"import sys, verl_tool.report; print(sorted({heavy} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
