"""Settings through Hydra: what is written is what arrives."""

import keyword
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from tests.unit.job.builders import a_job, a_launch
from verl_tool.job.launch import trainer_overrides
from verl_tool.job.overrides import tree_overrides
from verl_tool.job.verl_config import compose

OPEN_GROUP = ("actor_rollout_ref", "rollout", "engine_kwargs", "vllm")
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(
    lambda text: "${" not in text and text != "???"
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True).filter(
    lambda name: name.casefold() not in {"null", "true", "false", "nan", "inf"} and not keyword.iskeyword(name)
)
leaves = st.one_of(texts, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)


def through_hydra(tree: dict[str, Any]) -> dict[str, Any]:
    composed = compose(tree_overrides(tree, OPEN_GROUP))
    plain = OmegaConf.to_container(OmegaConf.select(composed, ".".join(OPEN_GROUP)), resolve=True)
    assert isinstance(plain, dict)
    return {str(name): value for name, value in plain.items()}


# P10
@given(st.dictionaries(names, values, min_size=1, max_size=8))
@settings(max_examples=15, deadline=None)
def test_any_value_arrives_as_written(tree: dict[str, Any]) -> None:
    assert through_hydra(tree) == tree


# P10
@pytest.mark.parametrize(
    "text",
    [
        "two words", "it's", 'a "quote"', "back\\slash\\", "\\'", "$HOME $(id) `id`", "a;b|c&d", "line\nbreak\ttab\r",
        "a=b,c:d", "[1, 2]", "{a: 1}", "null", "1", "true", "", " ", "漢字😀", "{obs}", "<|im_end|>", "% comment #",
    ],
)  # fmt: skip
def test_awkward_texts_arrive_as_written(text: str) -> None:
    assert through_hydra({"text": text, "many": [text, {"inner": text}]}) == {
        "text": text,
        "many": [text, {"inner": text}],
    }


def test_an_interpolation_is_read_as_in_verls_own_files() -> None:
    job = a_job({"spec.config.ray_kwargs": {"ray_init": {"num_gpus": "${trainer.n_gpus_per_node}"}}})
    tree = compose(trainer_overrides(job, a_launch(gpus=2)))
    assert tree.ray_kwargs.ray_init.num_gpus == 2


def test_the_jobs_settings_win_over_the_machines_and_the_command_lines_over_both() -> None:
    job = a_job({"spec.config.actor_rollout_ref.rollout.max_num_seqs": 7})
    machine = ["actor_rollout_ref.rollout.max_num_seqs=1", "actor_rollout_ref.rollout.dtype=float32"]
    launch = a_launch(platform=machine, extra=["data.train_batch_size=16"])
    tree = compose(trainer_overrides(job, launch))
    assert tree.actor_rollout_ref.rollout.max_num_seqs == 7
    assert tree.actor_rollout_ref.rollout.dtype == "float32"
    assert tree.data.train_batch_size == 16


def test_the_manifests_own_fields_become_verls_settings() -> None:
    job = a_job(
        {
            "spec.reward": {"function": "pkg.rewards:score", "arguments": {"scale": 2, "marks": ["it's"]}},
            "spec.checkpoints": {"every": 3, "keep": 5},
            "spec.config.trainer.logger": "wandb",
            "spec.config.actor_rollout_ref.agent.tool_call_timeout": 7,
        }
    )
    tree = compose(trainer_overrides(job, a_launch(resume=True, nodes=2, gpus=4)))
    reward = tree.reward.custom_reward_function
    assert (reward.path, reward.name) == ("pkg://pkg.rewards", "score")
    assert OmegaConf.to_container(reward.reward_kwargs) == {"scale": 2, "marks": ["it's"]}
    assert (tree.trainer.save_freq, tree.trainer.max_actor_ckpt_to_keep) == (3, 5)
    assert tree.trainer.logger == ["wandb", "file"]
    assert tree.trainer.resume_mode == "auto"
    assert (tree.trainer.nnodes, tree.trainer.n_gpus_per_node) == (2, 4)
    assert tree.actor_rollout_ref.agent.tool_call_time_out == 7
    assert tree.critic.model.path == tree.actor_rollout_ref.model.path


def test_a_job_without_a_tool_server_calls_no_tools() -> None:
    job = a_job({"spec.toolServer": ...})
    assert compose(trainer_overrides(job, a_launch(tool_server_url=None))).actor_rollout_ref.agent.enable_agent is False
