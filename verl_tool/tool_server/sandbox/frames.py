"""Length-prefixed frames between the server and a run's supervisor: JSON head, then raw bytes."""

import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from verl_tool.tool_server.sandbox.limits import Limits
from verl_tool.tool_server.sandbox.result import Ending, RunResult

PREFIX = struct.Struct("!I")
MAX_FRAME = 256 * 1024 * 1024


def pack(payload: bytes) -> bytes:
    return PREFIX.pack(len(payload)) + payload


def read(channel: socket.socket) -> bytes:
    """The next frame; EOFError when the other side is gone."""
    size: int = PREFIX.unpack(_exactly(channel, PREFIX.size))[0]
    if size > MAX_FRAME:
        raise ValueError(f"a frame of {size} bytes is over the limit of {MAX_FRAME}")
    return _exactly(channel, size)


def pack_request(code: str, stdin: str | None, limits: Limits, slot: int) -> bytes:
    return pack(json.dumps({"code": code, "stdin": stdin, "limits": asdict(limits), "slot": slot}).encode())


def unpack_request(payload: bytes) -> tuple[str, str | None, Limits, int]:
    fields = json.loads(payload)
    return fields["code"], fields["stdin"], Limits(**fields["limits"]), fields["slot"]


def pack_result(result: RunResult) -> bytes:
    head: dict[str, Any] = asdict(result)
    out: bytes = head.pop("stdout")
    err: bytes = head.pop("stderr")
    return pack(json.dumps({**head, "stdout": len(out), "stderr": len(err)}).encode()) + out + err


def unpack_head(payload: bytes) -> tuple[dict[str, Any], Sequence[int]]:
    """The result's fields, and how many bytes of stdout and stderr follow."""
    head = json.loads(payload)
    head["ending"] = Ending(head["ending"])
    return head, (head.pop("stdout"), head.pop("stderr"))


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece: bytes = channel.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError("the other side of the channel is gone")
        data += piece
    return bytes(data)
