"""Has `verl_tool.preflight` look at what a run is about to use: its own process, since it imports transformers."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verl_tool.errors import DataError, RunError
from verl_tool.job.launch import Launch
from verl_tool.preflight.request import DataFile, Findings, Request

LIMIT_SECONDS = 600.0
Tree = Mapping[str, Any]


async def look(tree: Tree, launch: Launch, environment: Mapping[str, str], log: Path) -> Findings:
    """What was found. Raises DataError with every fault, one a line."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "verl_tool.preflight",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=output,
            env={**os.environ, **environment}, cwd=launch.places.manifest, start_new_session=True,
        )  # fmt: skip
        try:
            answer, _ = await asyncio.wait_for(
                process.communicate(request(tree).model_dump_json().encode()), LIMIT_SECONDS
            )
        except TimeoutError:
            raise RunError(
                f"data and tokenizer could not be looked at within {LIMIT_SECONDS:.0f} s; see {log}"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode:
        raise RunError(f"looking at data and tokenizer ended with code {process.returncode}; see {log}")
    findings = Findings.model_validate_json(answer)
    if findings.faults:
        raise DataError("\n".join(findings.faults))
    return findings


def request(tree: Tree) -> Request:
    """What there is to look at, from the job's resolved settings."""
    model, data = tree["actor_rollout_ref"]["model"], tree["data"]
    agent, reward = tree["actor_rollout_ref"]["agent"], tree["reward"]["custom_reward_function"]
    path = str(model["path"])
    return Request(
        model=path,
        tokenizer=str(model.get("tokenizer_path") or path),
        trust_remote_code=bool(model.get("trust_remote_code")),
        chat_template=model.get("custom_chat_template"),
        template_arguments=data.get("apply_chat_template_kwargs") or {},
        train=_files("spec.data.train", data["train_files"]),
        validation=_files("spec.data.validation", data["val_files"]),
        prompt_key=data["prompt_key"],
        source_key=data["reward_fn_key"],
        max_prompt_length=data["max_prompt_length"],
        too_long_is_refused=not data["filter_overlong_prompts"] and data["truncation"] == "error",
        observation_role=agent["mtrl_role"] if agent["enable_agent"] and agent["enable_mtrl"] else None,
        assistant_role=agent["assistant_role"],
        reward_path=reward.get("path"),
        reward_name=reward.get("name"),
        reward_arguments=reward.get("reward_kwargs") or {},
    )


def _files(field: str, paths: str | Sequence[str]) -> list[DataFile]:
    listed = [paths] if isinstance(paths, str) else paths
    return [DataFile(field=f"{field}[{index}]", path=path) for index, path in enumerate(listed)]
