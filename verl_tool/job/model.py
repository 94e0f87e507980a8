"""`TrainingJob`: the one model of the manifest, for the command line and for the cluster alike.

What Kubernetes has a name for has that name, in camelCase; what verl has a name for stands under `spec.config` in
verl's. The operator's CRD is made from this model.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

API_VERSION = "training.verl-tool.dev/v1alpha1"
KIND = "TrainingJob"
LONGEST_NAME = 40  # a RayJob's name has at most 47 characters, and each attempt's adds to the job's


class Part(BaseModel):
    """A part of a manifest: read by its camelCase names, closed to unknown ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


def _as_list(value: Any) -> Any:
    """One item may be written without the brackets."""
    return [value] if isinstance(value, str) else value


Text = Annotated[str, StringConstraints(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
OneOrMore = Annotated[Texts, BeforeValidator(_as_list, json_schema_input_type=Texts | Text)]
DnsName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
JobName = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=LONGEST_NAME)]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256)]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
PythonName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Metadata(Part):
    """Who the job is."""

    name: JobName = Field(
        description="name of the job: lower case letters, digits and dashes, a letter first, at most 40 characters"
    )
    namespace: DnsName | None = Field(None, description="namespace in the cluster; a local run does not look at it")
    labels: dict[str, str] = Field({}, description="labels, in the cluster handed on to what is made from the job")
    annotations: dict[str, str] = Field({}, description="annotations")


class Model(Part):
    """The model that is trained."""

    path: Text = Field(
        description="folder of the model and its tokenizer (looked for on the job's volume, then beside the manifest), "
        "or the name of a model on the hub (`organisation/name`)"
    )


class Data(Part):
    """What it is trained and validated on: parquet or JSON lines with a `prompt` column of chat messages."""

    train: OneOrMore = Field(
        description="files to train on; a relative path is looked for on the job's volume, then beside the manifest"
    )
    validation: OneOrMore = Field(description="files to validate on")


class EnvVar(Part):
    """One environment variable."""

    name: EnvName = Field(description="name of the variable")
    value: str = Field(description="its value")


class Prepare(Part):
    """Makes data or a model before the first training step, once: a resumed run, or one with the same command, the
    same `env` and the same Python files beside the manifest, does not run it again; a change of one of these does.
    """

    command: Texts = Field(
        description="program and arguments, run without a shell in the manifest's folder; it writes to the folder "
        "named by the variable VERL_TOOL_VOLUME, and may be run again there if it was interrupted. `python` is the "
        "interpreter that verl-tool runs in"
    )
    timeout_seconds: int = Field(86400, ge=1, description="seconds that the command may take")


class Reward(Part):
    """How an answer is scored: a function of an installed package, or one in a file beside the manifest."""

    function: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = Field(
        None, description="`package.module:function` of an installed package"
    )
    file: Text | None = Field(None, description="Python file with the function, relative to the manifest")
    name: PythonName = Field("compute_score", description="name of the function in `file`")
    arguments: dict[str, Any] = Field({}, description="further keyword arguments for the function")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.function is None) == (self.file is None):
            raise ValueError("needs either function or file, one of the two")
        if self.function is not None and "name" in self.model_fields_set:
            raise ValueError("name belongs to file; function names its function behind the colon")
        return self


class ToolServer(Part):
    """Where the tools run."""

    tools: Annotated[list[Text], Field(min_length=1)] = Field(
        ["python_code"],
        description="tools that the job needs; a local run starts a server with them, a given server has to offer them",
    )
    files: list[Annotated[str, StringConstraints(pattern=r"^.+\.py:[A-Za-z_]\w*$")]] = Field(
        [], description="tools of your own for a local run: `file.py:Class`, relative to the manifest"
    )
    settings: dict[str, dict[str, Any]] = Field(
        {}, description="settings of the tools of a local run, by the tool's name"
    )
    service: DnsName | None = Field(
        None, description="Service of the tool server in the job's namespace; a local run starts its own instead"
    )
    url: HttpUrl | None = Field(None, description="address of a tool server that runs already, local run or not")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.service is not None and self.url is not None:
            raise ValueError("service and url both name a server; give one of the two")
        if self.url is not None and (self.files or self.settings):
            raise ValueError("files and settings are for a server that is started here; remove them, or url")
        return self


class Workers(Part):
    """How much trains at once."""

    replicas: int = Field(1, ge=1, le=1024, description="machines (pods) that train; verl's trainer.nnodes")
    gpus: int | None = Field(
        None,
        ge=1,
        le=64,
        description="GPUs a replica, verl's trainer.n_gpus_per_node; null: all that the machine has, one process "
        "without any",
    )


class Checkpoints(Part):
    """What a job that was ended goes on from."""

    every: int = Field(10, ge=1, description="training steps between two checkpoints; the last step has one too")
    keep: int = Field(2, ge=1, description="checkpoints that are kept, the newest ones")


class RuntimeRef(Part):
    """Which TrainingRuntime of the cluster the job runs on."""

    name: DnsName = Field("default", description="name of the TrainingRuntime")


class TrainingJobSpec(Part):
    """What to train, on what, with which reward and tools."""

    model: Model = Field(description="the model to train")
    data: Data = Field(description="data sets to train and validate on")
    prepare: Prepare | None = Field(None, description="command that makes data or a model before training, once")
    config: dict[str, Any] = Field(
        {}, description="verl's own settings, in verl's names, over verl's defaults; the agent's too"
    )
    reward: Reward | None = Field(
        None, description="reward function; null: verl's own, chosen by the data's `data_source`"
    )
    tool_server: ToolServer | None = Field(None, description="tools and where they run; null: a job without tools")
    env: list[EnvVar] = Field([], description="environment variables for preparing and training")
    runtime_ref: RuntimeRef = Field(RuntimeRef(), description="runtime in the cluster; a local run ignores it")
    workers: Workers = Field(Workers(), description="how many machines and GPUs train")
    checkpoints: Checkpoints = Field(Checkpoints(), description="how often to save, and how much of it to keep")
    suspend: bool = Field(False, description="true: hold the job, free its machines; a local run ignores it")
    backoff_limit: int = Field(
        3, ge=0, le=1000, description="further attempts after one that failed; a local run has none"
    )
    active_deadline_seconds: int | None = Field(
        None, ge=1, description="seconds after which the job is ended, local runs too; null: no limit"
    )
    ttl_seconds_after_finished: int | None = Field(
        None, ge=0, description="seconds after its end that the job is deleted; null: never; a local run ignores it"
    )
    queue_name: DnsName | None = Field(None, description="Kueue queue that admits the job; a local run ignores it")

    @model_validator(mode="after")
    def _variables_once(self) -> Self:
        names = [variable.name for variable in self.env]
        if doubles := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"env: {', '.join(doubles)} given more than once")
        return self


class TrainingJob(Part):
    """A training job's manifest."""

    api_version: Literal["training.verl-tool.dev/v1alpha1"] = Field(description="version of the manifest's form")
    kind: Literal["TrainingJob"] = Field(description="what the manifest describes")
    metadata: Metadata = Field(description="name, labels")
    spec: TrainingJobSpec = Field(description="what to train")

    def environment(self) -> dict[str, str]:
        """The job's own variables."""
        return {variable.name: variable.value for variable in self.spec.env}
