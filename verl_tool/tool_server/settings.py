"""How the server as a whole is set up; each field is an option of the same name on the command line."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Seconds = Annotated[float, Field(gt=0)]


class ServerSettings(BaseModel):
    """Where the server listens and how much it takes on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: tuple[str, ...] = Field(
        default=("python_code",), description="tools in the order in which they are asked for an action"
    )
    tool: tuple[str, ...] = Field(
        default=(), description="a tool of your own: PATH.py:CLASS; asked after the named ones"
    )
    tool_settings: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="settings of tools, by tool and name"
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=5000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    port_file: Path | None = Field(default=None, description="file to write the port to once the server answers")
    max_concurrent: int = Field(default=256, ge=1, description="tool calls that run at once")
    queue_limit: int = Field(
        default=4096, ge=0, description="tool calls that may wait; a request past it is answered 503"
    )
    max_items: int = Field(default=2048, ge=1, description="items of one request")
    max_body_mib: int = Field(default=32, ge=1, le=1024, description="size of one request's body")
    body_seconds: Seconds = Field(default=60.0, description="time in which a request's body must have arrived")
    request_seconds: Seconds = Field(
        default=600.0, description="time after which what a request still waits for is given up, item by item"
    )
    drain_seconds: Seconds = Field(default=30.0, description="time that running calls have to end after SIGTERM")
    done_if_invalid: bool = Field(default=False, description="an action that no tool accepts ends its trajectory")
    exit_with_parent: bool = Field(default=False, description="end when the process that started the server has ended")
    log_level: str = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="least level of what is logged"
    )

    @model_validator(mode="after")
    def _a_whole_request_fits(self) -> Self:
        if self.max_items > self.max_concurrent + self.queue_limit:
            raise ValueError(
                f"max_items ({self.max_items}) is more than max_concurrent ({self.max_concurrent}) and queue_limit "
                f"({self.queue_limit}) together: a full request would never fit; raise queue_limit or lower max_items"
            )
        return self
