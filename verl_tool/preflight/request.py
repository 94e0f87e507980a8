"""What is to be looked at, and what was found; both travel as JSON."""

from pydantic import BaseModel, ConfigDict


class DataFile(BaseModel):
    """One file of a data set, and the manifest's field that names it."""

    model_config = ConfigDict(frozen=True)

    field: str
    path: str


class Request(BaseModel):
    """Everything comes from the job's resolved settings."""

    model_config = ConfigDict(frozen=True)

    model: str
    tokenizer: str
    trust_remote_code: bool = False
    chat_template: str | None = None  # in place of the tokenizer's own
    template_arguments: dict[str, object] = {}
    train: list[DataFile]
    validation: list[DataFile]
    prompt_key: str = "prompt"
    source_key: str = "data_source"
    max_prompt_length: int
    too_long_is_refused: bool  # neither filtered out nor cut
    observation_role: str | None = None  # of the chat turns that observations come as, if they do
    assistant_role: str = "assistant"
    reward_path: str | None = None  # a file, or `pkg://package.module`
    reward_name: str | None = None
    reward_arguments: dict[str, object] = {}
    needs_ground_truth: bool = True


class Findings(BaseModel):
    """Faults are sentences that begin with the manifest's field."""

    model_config = ConfigDict(frozen=True)

    faults: list[str]
    train_rows: int = 0
    validation_rows: int = 0
    longest_prompt: int | None = None  # tokens, among the prompts with the most characters
