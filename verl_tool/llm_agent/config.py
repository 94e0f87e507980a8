"""`actor_rollout_ref.agent`: every setting of the tool-calling rollout. No torch, no file, no process here."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from verl_tool.errors import ConfigError

AGENT_PATH = "actor_rollout_ref.agent"


class RolloutMode(StrEnum):
    """How the trajectories of a batch share time."""

    SYNC = "sync"  # turn by turn, one request to the tool server with all active rows
    ASYNC = "async"  # each trajectory goes on alone


class RolloutVia(StrEnum):
    """Where the loop runs."""

    WORKER = "worker"  # in the rollout worker, on its shard of the batch
    AGENT_LOOP = "agent_loop"  # in verl's agent-loop workers, behind verl's load balancer


class TruncateSide(StrEnum):
    """Which part of a too long text goes."""

    LEFT = "left"  # the beginning goes, the end stays
    RIGHT = "right"  # the end goes, the beginning stays
    MIDDLE = "middle"  # the middle goes


def _token_ids(value: Any) -> Any:
    if isinstance(value, str):
        return [int(part) for part in value.split(",") if part.strip()]
    return value


Tokens = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class AgentActorConfig(BaseModel):
    """Settings of the agent, each set on a command line as `actor_rollout_ref.agent.NAME=value`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    enable_agent: bool = Field(True, description="Call tools. Off: one plain generation a prompt, by verl's engine.")
    rollout_mode: RolloutMode = Field(
        RolloutMode.ASYNC,
        description="`sync`: the batch goes turn by turn, one request with all active rows. `async`: each trajectory "
        "goes on alone, so no row waits for another's tool.",
    )
    rollout_via: RolloutVia = Field(
        RolloutVia.WORKER,
        description="Where the loop runs: in the rollout worker, or (async only) in verl's agent-loop workers, whose "
        "load balancer spreads the trajectories over all replicas.",
    )

    # Turns
    max_turns: int = Field(1, ge=0, description="Tool turns of a trajectory at most; the model speaks once more.")
    val_max_turns: int | None = Field(None, ge=0, description="`max_turns` in validation; null: the same.")
    min_turns: int = Field(
        0, ge=0, description="Tool turns that must be done: a model that answers before is asked to go on."
    )
    call_tool_first: bool = Field(
        False, description="Call the tool once, with an empty action, before the model speaks."
    )
    force_finish_for_last_turn: bool = Field(
        False, description="The last generation has no stop strings and calls no tool: the model has to answer."
    )
    n: int | None = Field(None, ge=1, description="Samples a prompt. Belongs to `rollout.n`; null or the same value.")

    # Lengths, in tokens
    max_start_length: Tokens | None = Field(
        None,
        description="Prompt tokens kept (the last ones), for generation and training alike; null: max_prompt_length.",
    )
    max_prompt_length: Tokens | None = Field(None, description="Prompt tokens at most; null: `data.max_prompt_length`.")
    max_response_length: Tokens | None = Field(
        None, description="Tokens behind the prompt at most, observations included; null: `data.max_response_length`."
    )
    train_max_response_length: Tokens | None = Field(
        None, description="`max_response_length` in training; null: the same. May not be larger than it."
    )
    val_max_response_length: Tokens | None = Field(
        None, description="`max_response_length` in validation; null: the same. May not be larger than it."
    )
    max_model_len: Tokens | None = Field(
        None, description="Prompt and response together; null: `rollout.max_model_len`, else the sum of both."
    )
    max_action_length: Tokens | None = Field(
        None, description="Tokens of one generation at most; null: no limit of its own."
    )
    max_obs_length: Tokens | None = Field(
        None, description="Tokens of one observation at most, the mark of a cut included; null: no limit of its own."
    )
    truncate_obs_side: TruncateSide = Field(
        TruncateSide.LEFT,
        description="Which part of a too long observation goes: `left` keeps the end, `right` the beginning.",
    )
    truncate_response_side: Literal["left"] = Field(
        "left",
        description="Only `left` (the beginning stays): budgets are spent before generating, nothing is cut after.",
    )

    # Where an action ends
    action_stop_tokens: tuple[str, ...] | str | None = Field(
        None,
        description="Strings that end an action: a list, a comma-separated string, or the path of a file of that form. "
        "Matched as written, spaces included.",
    )
    additional_eos_token_ids: Annotated[tuple[int, ...], BeforeValidator(_token_ids)] = Field(
        (), description="Token ids that end a generation besides the model's own; a list or `1,2`."
    )

    # Observations as chat turns
    enable_mtrl: bool = Field(
        False, description="Observations come as a chat turn of their own, in the form of the model's chat template."
    )
    mtrl_role: str = Field("user", min_length=1, description="Role of an observation's turn (`user`, `tool`, …).")
    assistant_role: str = Field("assistant", min_length=1, description="Role of the model's turns.")
    turn_end_token: str = Field(
        "<|im_end|>", description="Ends the model's turn; put there (without loss) where a stop string ended it."
    )
    mtrl_sep: str | None = Field(
        None, description="Text around an observation, with `{obs}` in it, in place of the chat template's own."
    )

    # Loss
    mask_observations: bool = Field(True, description="Observation tokens get no loss.")
    mask_overlong_loss: bool = Field(False, description="No loss on rows that were cut off by a length.")
    mask_void_traj: bool = Field(
        False, description="No loss on rows that neither ended by themselves nor had one valid action."
    )
    logprob_gap_limit: float | None = Field(
        None,
        gt=0,
        description="Mean gap in nats between the engine's and the trainer's log-probabilities that stops the run; "
        "null: by dtype and by how old the weights may be.",
    )

    # Tool server
    tool_server_url: str | None = Field(
        None,
        description="Address of the tool server, with or without `/get_observation`; needed if there are tool turns.",
    )
    tool_call_time_out: Seconds = Field(
        120.0,
        validation_alias=AliasChoices("tool_call_time_out", "tool_call_timeout"),
        description="Seconds that one request to the tool server may take.",
    )
    tool_call_max_retries: int = Field(
        5, ge=0, le=100, description="Further attempts after a failed connection, a time-out, or a 5xx answer."
    )
    max_concurrent_trajectories: int = Field(256, ge=1, description="Trajectories in flight at once (async) a worker.")
    generation_time_out: Seconds = Field(
        3600.0, description="Seconds that one generation may take before its row fails."
    )
    max_failed_share: float = Field(
        0.25, ge=0, le=1, description="Share of failed rows (engine or tool server) past which the run stops."
    )
    enable_tqdm: bool = Field(False, description="A progress bar for each rollout in the worker's log.")

    # The original's, refused unless they mean what is done anyway
    rolling_with_prompt: Literal[False] = Field(
        False, description="Only false: the context is never cut, so the prompt is always in it."
    )
    over_sampling: Literal[False] = Field(
        False, description="Only false: every row asked for is sampled and trained on."
    )
    retokenization: Literal[False] = Field(False, description="Only false: sampled tokens are trained on as sampled.")
    logprobs: Literal[True] = Field(
        True, description="Only true: the engine's log-probabilities guard the token stream."
    )

    @field_validator("action_stop_tokens", mode="before")
    @classmethod
    def _plain_list(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value

    @classmethod
    def parse(cls, agent: Mapping[str, Any]) -> "AgentActorConfig":
        """The settings in `agent`, a plain mapping; raises ConfigError with every fault at once."""
        try:
            return cls.model_validate(dict(agent))
        except ValidationError as fault:
            lines = [
                f"{'.'.join((AGENT_PATH, *map(str, error['loc'])))}: {error['msg']}, got {error['input']!r}"
                for error in fault.errors(include_url=False)
            ]
            raise ConfigError("\n".join(lines)) from fault
