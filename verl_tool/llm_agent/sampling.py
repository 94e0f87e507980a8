"""Sampling parameters of a rollout, in vLLM's names, from verl's `rollout` settings."""

from collections.abc import Mapping
from typing import Any

from verl_tool.llm_agent.config import AgentActorConfig


def sampling_params(
    rollout: Mapping[str, Any], config: AgentActorConfig, *, validate: bool, do_sample: bool
) -> dict[str, Any]:
    """What every generation of a rollout has in common; `max_tokens` and stop strings are a row's own."""
    source: Mapping[str, Any] = rollout.get("val_kwargs") or {} if validate else rollout
    params: dict[str, Any] = {
        "temperature": source.get("temperature", 1.0),
        "top_p": source.get("top_p", 1.0),
        "top_k": source.get("top_k", -1),
        "repetition_penalty": rollout.get("repetition_penalty", 1.0),
        "logprobs": True,
    }
    if not do_sample or (validate and not source.get("do_sample", True)):
        params |= {"temperature": 0.0, "top_p": 1.0, "top_k": -1}
    if config.additional_eos_token_ids:
        params["stop_token_ids"] = list(config.additional_eos_token_ids)
    return params
