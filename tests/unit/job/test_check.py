"""Wrong manifests: each fault with its path, its value, and what would be right."""

import subprocess
import sys
from typing import Any

import pytest

from tests.unit.job.builders import a_job, a_launch, a_manifest, text_of
from verl_tool.errors import ConfigError
from verl_tool.job.check import check_launch, read_job
from verl_tool.job.faults import Refused

CONFIG = "spec.config"
AGENT = f"{CONFIG}.actor_rollout_ref.agent"


def faults_of(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(Refused) as refused:
        read_job(text_of(a_manifest(changes)))
    return str(refused.value).splitlines()


def test_a_right_manifest_becomes_a_job_and_a_tree_of_verls() -> None:
    tree = check_launch(a_job(), a_launch())
    assert tree["actor_rollout_ref"]["agent"]["max_turns"] == 2
    assert tree["actor_rollout_ref"]["agent"]["tool_server_url"] == "http://127.0.0.1:5000"


def test_all_faults_are_told_at_once_with_their_lines_in_the_order_of_the_file() -> None:
    faults = faults_of(
        {
            "metadata.name": "Calculator",
            "spec.backoffLimit": -1,
            f"{AGENT}.max_turn": 3,
            f"{CONFIG}.trainer": {"total_epoch": 2},
            "spec.toolserver": {},
        }
    )
    assert len(faults) == 5
    lines = [int(fault.split("(line ")[1].split(")")[0]) for fault in faults]
    assert lines == sorted(lines)


# P16
@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"spec.toolserver": {}}, "spec.toolserver", "did you mean 'toolServer'?"),
        ({"spec.tool_server": {}}, "spec.tool_server", "did you mean 'toolServer'?"),
        ({"spec.data.vaildation": []}, "spec.data.vaildation", "did you mean 'validation'?"),
        ({f"{AGENT}.max_turn": 3}, f"{AGENT}.max_turn", "did you mean 'max_turns'?"),
        ({f"{CONFIG}.algoritm": {}}, f"{CONFIG}.algoritm", "did you mean 'algorithm'?"),
        (
            {f"{CONFIG}.data.max_turns": 3},
            f"{CONFIG}.data.max_turns",
            "did you mean spec.config.actor_rollout_ref.agent",
        ),
        ({f"{CONFIG}.trainer": 3}, f"{CONFIG}.trainer", "not a group of settings"),
        ({f"{CONFIG}.trainer.total_epochs": "4"}, f"{CONFIG}.trainer.total_epochs", "without quotes"),
        ({f"{CONFIG}.trainer.val_before_train": "yes"}, f"{CONFIG}.trainer.val_before_train", "true or false"),
        ({f"{CONFIG}.algorithm.adv_estimator": 4}, f"{CONFIG}.algorithm.adv_estimator", "not text"),
        ({f"{AGENT}.rollout_mode": "asinc"}, f"{AGENT}.rollout_mode", "'sync' or 'async'"),
        ({f"{AGENT}.rolling_with_prompt": True}, f"{AGENT}.rolling_with_prompt", "True"),
        ({f"{AGENT}.mtrl_sep": "a\0b"}, f"{AGENT}.mtrl_sep", "NUL"),
        ({f"{CONFIG}.trainer.resume_mode": "auto"}, f"{CONFIG}.trainer.resume_mode", "place of its own"),
        ({f"{CONFIG}.data.train_files": "x"}, f"{CONFIG}.data.train_files", "set spec.data.train"),
        ({f"{AGENT}.tool_server_url": "http://x"}, f"{AGENT}.tool_server_url", "set spec.toolServer.url"),
        ({"spec.data.train": []}, "spec.data.train", "at least 1 item"),
        ({"spec.data.train": 4}, "spec.data.train", "4 should be a valid list"),
        ({"spec.model": ...}, "spec.model", "missing"),
        ({"spec.reward": {}}, "spec.reward", "either function or file"),
        ({"spec.reward": {"function": "no_colon"}}, "spec.reward.function", "package.module:function"),
        ({"spec.reward.arguments": {"a b": 1}}, "spec.reward.arguments.a b", "letters, digits"),
        ({"spec.toolServer": {"url": "ftp://x"}}, "spec.toolServer.url", "'ftp://x'"),
        ({"spec.toolServer": {"url": "http://x", "service": "y"}}, "spec.toolServer", "one of the two"),
        ({"spec.env": [{"name": "A", "value": "1"}] * 2}, "spec", "more than once"),
        ({"spec.env": [{"name": "1A", "value": "1"}]}, "spec.env[0].name", "'1A'"),
        ({"kind": "TrainingJobs"}, "kind", "'TrainingJob'"),
        ({"spec.suspend": "no way"}, "spec.suspend", "valid boolean"),
    ],
)
def test_a_wrong_field_is_named_with_what_would_be_right(changes: dict[str, Any], path: str, words: str) -> None:
    faults = faults_of(changes)
    assert any(fault.startswith(f"{path} (line") and words in fault for fault in faults), faults


# P5
@pytest.mark.parametrize("name", ["a" * 41, "a.b", "Abc", "1a", "a-", "-a", "", "ä", "a_b"])
def test_names_that_the_cluster_could_not_use_are_refused(name: str) -> None:
    (fault,) = faults_of({"metadata.name": name})
    assert fault.startswith("metadata.name")


@pytest.mark.parametrize("name", ["a", "a-b", "a1", "a" * 40])
def test_names_that_the_cluster_can_use_are_taken(name: str) -> None:
    assert a_job({"metadata.name": name}).metadata.name == name


def test_settings_that_verls_dataclasses_or_engines_take_beyond_its_yaml_are_let_through() -> None:
    job = a_job(
        {
            f"{CONFIG}.actor_rollout_ref.rollout.enable_sleep_mode": False,
            f"{CONFIG}.actor_rollout_ref.rollout.engine_kwargs": {"vllm": {"anything": [1, {"a": 2}]}},
            f"{CONFIG}.actor_rollout_ref.model.override_config": {"attn_implementation": "sdpa"},
            f"{CONFIG}.ray_kwargs": {"ray_init": {"num_gpus": 1, "runtime_env": {"env_vars": {"A": "1"}}}},
        }
    )
    tree = check_launch(job, a_launch())
    assert tree["actor_rollout_ref"]["rollout"]["engine_kwargs"]["vllm"] == {"anything": [1, {"a": 2}]}
    assert tree["ray_kwargs"]["ray_init"]["num_gpus"] == 1


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({f"{CONFIG}.actor_rollout_ref.rollout.n": 1}, "rollout.n", "2 or more"),
        ({f"{CONFIG}.actor_rollout_ref.actor.ppo_mini_batch_size": 16}, "ppo_mini_batch_size", "16 is more than"),
        ({f"{CONFIG}.actor_rollout_ref.actor.ppo_mini_batch_size": 3}, "ppo_mini_batch_size", "divisor"),
        ({f"{CONFIG}.actor_rollout_ref.actor.use_dynamic_bsz": False}, "ppo_micro_batch_size_per_gpu", "not set"),
        ({f"{CONFIG}.actor_rollout_ref.rollout.name": "sglang"}, "rollout.name", "only vllm"),
        ({f"{AGENT}.min_turns": 5}, "agent.min_turns", "more than max_turns"),
        ({f"{AGENT}.action_stop_tokens": None}, "agent.action_stop_tokens", "missing"),
        ({f"{AGENT}.mtrl_sep": "no place"}, "agent.mtrl_sep", "{obs}"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(Refused) as refused:
        check_launch(a_job(changes), a_launch())
    assert any(path in fault and words in fault for fault in str(refused.value).splitlines()), str(refused.value)


def test_an_interpolation_of_nothing_is_refused_by_name() -> None:
    job = a_job({f"{CONFIG}.trainer.experiment_name": "${no.such}"})
    with pytest.raises(ConfigError, match=r"experiment_name.*no\.such"):
        check_launch(job, a_launch())


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("foo=3", "unknown"),
        ("actor_rollout_ref.agent.max_turn=3", "did you mean 'max_turns'"),
        ("trainer.total_epoch=3", "did you mean 'total_epochs'"),
        ("trainer.default_local_dir=/x", "run's folder"),
        ("trainer.total_epochs=[1", "trainer.total_epochs=[1"),
        ("total", "total"),
    ],
)
def test_a_wrong_override_on_the_command_line_is_named(extra: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_launch(a_job(), a_launch(extra=(extra,)))
    assert f"--set {extra}" in str(refused.value)
    assert words in str(refused.value)


def test_reading_a_manifest_imports_neither_torch_nor_verl_nor_ray() -> None:
    script = "import sys, verl_tool.job.check; print({n.split('.')[0] for n in sys.modules} & {'torch','verl','ray'})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "set()"
