"""The agent's settings: every fault is named with its path, old names go on working."""

import subprocess
import sys

import pytest

from tests.unit.llm_agent.builders import a_config
from verl_tool.errors import ConfigError
from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.limits import check_agent, resolve_limits

ROLLOUT = {"n": 4}
DATA = {"max_prompt_length": 100, "max_response_length": 200}


def test_all_faults_come_at_once_with_path_and_value() -> None:
    with pytest.raises(ConfigError) as fault:
        AgentActorConfig.parse({"max_turn": 2, "max_turns": -1, "truncate_obs_side": "up"})
    text = str(fault.value)
    assert "actor_rollout_ref.agent.max_turn: Extra inputs" in text
    assert "actor_rollout_ref.agent.max_turns" in text and "got -1" in text
    assert "actor_rollout_ref.agent.truncate_obs_side" in text and "'left', 'right' or 'middle'" in text


@pytest.mark.parametrize("name", ["rolling_with_prompt", "over_sampling", "retokenization"])
def test_what_the_original_meant_but_cannot_be_done_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        AgentActorConfig.parse({name: True})


def test_a_response_is_never_cut_to_its_tail() -> None:
    with pytest.raises(ConfigError, match="truncate_response_side"):
        AgentActorConfig.parse({"truncate_response_side": "right"})


def test_old_spellings_are_taken() -> None:
    config = AgentActorConfig.parse({"tool_call_timeout": 3, "additional_eos_token_ids": "1,2"})
    assert config.tool_call_time_out == 3
    assert config.additional_eos_token_ids == (1, 2)


def test_every_field_says_what_it_means() -> None:
    assert all(field.description for field in AgentActorConfig.model_fields.values())


def test_lengths_come_from_verls_tree_where_the_agent_leaves_them_open() -> None:
    limits = resolve_limits(a_config(), rollout={"max_model_len": 250}, data=DATA, validate=False)
    assert (limits.prompt, limits.response, limits.model, limits.response_width) == (100, 200, 250, 200)


def test_validation_has_its_own_turns_and_lengths_within_the_same_width() -> None:
    config = a_config(max_turns=1, val_max_turns=5, val_max_response_length=150)
    limits = resolve_limits(config, rollout=ROLLOUT, data=DATA, validate=True)
    assert (limits.max_turns, limits.response, limits.response_width) == (5, 150, 200)
    assert resolve_limits(config, rollout=ROLLOUT, data=DATA, validate=False).max_turns == 1


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"tool_server_url": None}, "tool_server_url: missing"),
        ({"min_turns": 9}, "min_turns: 9 is more than max_turns, 3"),
        ({"n": 3}, "agent.n: 3 is not rollout.n, 4"),
        ({"mtrl_sep": "no place"}, "mtrl_sep: 'no place' has no {obs}"),
        ({"rollout_via": "agent_loop", "rollout_mode": "sync"}, "rollout_via: agent_loop goes with rollout_mode async"),
        ({"action_stop_tokens": None}, "action_stop_tokens: missing"),
        ({"val_max_response_length": 201}, "val_max_response_length: 201 is more than max_response_length, 200"),
        ({"max_model_len": 90}, "max_model_len: 90 leaves no room"),
        ({"action_stop_tokens": ["a", ""]}, "entry 2 of the list is empty"),
    ],
)
def test_a_contradiction_is_named_with_its_remedy(settings: dict[str, object], named: str) -> None:
    faults = check_agent(a_config(**settings), rollout=ROLLOUT, data=DATA)
    assert any(named in fault for fault in faults), faults


def test_settings_without_fault_have_none() -> None:
    assert check_agent(a_config(), rollout=ROLLOUT, data=DATA) == []


def test_a_length_that_is_nowhere_given_is_asked_for() -> None:
    faults = check_agent(a_config(), rollout=ROLLOUT, data={"max_prompt_length": 1})
    assert any("max_response_length: given neither" in fault for fault in faults)


def test_the_settings_import_no_torch() -> None:
    code = "import sys, verl_tool.llm_agent.limits; sys.exit('torch' in sys.modules or 'verl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
