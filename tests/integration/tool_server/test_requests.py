"""What comes over the wire, well formed or not."""

import json

import httpx
import pytest

from tests.integration.tool_server.conftest import RunningServer

GOOD = {"trajectory_ids": ["a", "b"], "actions": ["x", "y"]}

REFUSED = {
    "fewer actions": ({**GOOD, "actions": ["x"]}, "actions"),
    "fewer extra fields": ({**GOOD, "extra_fields": [{}]}, "extra_fields"),
    "fewer finish flags": ({**GOOD, "finish": [True]}, "finish"),
    "more last-step flags": ({**GOOD, "is_last_step": [True] * 3}, "is_last_step"),
    "empty lists": ({"trajectory_ids": [], "actions": []}, "trajectory_ids"),
    "null action": ({**GOOD, "actions": ["x", None]}, "actions[1]"),
    "null list": ({**GOOD, "trajectory_ids": None}, "trajectory_ids"),
    "ints for ids": ({**GOOD, "trajectory_ids": [1, 2]}, "trajectory_ids[0]"),
    "text for a flag": ({**GOOD, "finish": ["yes", False]}, "finish[0]"),
    "a missing field": ({"trajectory_ids": ["a"]}, "actions"),
    "an unknown field": ({**GOOD, "actoins": ["x"]}, "actoins"),
    "NaN": ({**GOOD, "extra_fields": [{}, {"score": float("nan")}]}, "extra_fields[1].score"),
    "too many items": ({"trajectory_ids": ["a"] * 3000, "actions": [""] * 3000}, "trajectory_ids"),
    "an array": ([GOOD], "object"),
}


@pytest.mark.parametrize(("body", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_request_is_refused_with_the_name_of_the_field(server: RunningServer, body: object, named: str) -> None:
    """T14"""
    response = httpx.post(f"{server.url}/get_observation", content=json.dumps(body), timeout=30)
    assert 400 <= response.status_code < 500
    assert named in response.json()["error"]
    assert response.json()["detail"][0]["loc"][0] == "body"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 1_000_000, 400),
        (b'{"a":' * 60 + b"1" + b"}" * 60, 422),
        (b'{"trajectory_ids": ["a"], "actions": ["x"], "extra_fields": [{"n": ' + b"9" * 10_000 + b"}]}", 400),
        (bytes(100 * 2**20), 413),
    ],
    ids=["empty", "cut", "no UTF-8", "deep", "deep object", "long number", "100 MiB"],
)
def test_bytes_that_are_no_request_are_refused_and_the_server_lives(
    server: RunningServer, content: bytes, status: int
) -> None:
    """T14"""
    response = httpx.post(f"{server.url}/get_observation", content=content, timeout=60)
    assert response.status_code == status
    assert response.json()["error"]
    assert server.process.poll() is None


def test_a_body_that_does_not_say_its_length_is_cut_off_at_the_limit(server: RunningServer) -> None:
    """T14"""
    response = httpx.post(f"{server.url}/get_observation", content=(bytes(2**20) for _ in range(100)), timeout=60)
    assert response.status_code == 413


def test_the_wrong_method_and_path_are_refused_in_json(server: RunningServer) -> None:
    """T14"""
    wrong_method = httpx.get(f"{server.url}/get_observation")
    assert wrong_method.status_code == 405 and wrong_method.headers["allow"] == "POST" and wrong_method.json()["error"]
    assert httpx.get(f"{server.url}/nothing").json()["error"]


def test_a_lone_surrogate_in_an_id_or_extra_field_is_that_items_fault(server: RunningServer) -> None:
    answer = server.post(
        "<python>print(1)</python>",
        "<python>print(2)</python>",
        "<python>print(3)</python>",
        ids=["ok", "\udc00", "c"],
        extra_fields=[{}, {}, {"stdin": "\ud800"}],
    )
    assert answer["valids"] == [True, False, False]
    assert "trajectory_ids[1]" in answer["observations"][1]["invalid_reason"]
    assert "extra_fields[2]" in answer["observations"][2]["invalid_reason"]


def test_finish_runs_nothing_and_ends_the_row(server: RunningServer) -> None:
    answer = server.post("<python>print(1)</python>", "<python>print(2)</python>", finish=[True, False])
    assert answer["observations"] == ["", "\n<result>\n2\n</result>\n"]
    assert answer["dones"] == [True, False]
    assert answer["valids"] == [True, True]


def test_an_action_for_no_tool_is_invalid_and_lists_the_tools(server: RunningServer) -> None:
    answer = server.post("just words")
    assert answer["observations"] == [
        {"obs": "", "invalid_reason": "no tool accepts this action", "available_tools": ["python_code", "finish"]}
    ]
    assert answer["dones"] == [False] and answer["valids"] == [False]


def test_a_malformed_call_is_told_what_is_wrong(server: RunningServer) -> None:
    """R20"""
    answer = server.post('<tool_call>{"name": "python", "arguments": {"code": "print(1)"</tool_call>')
    assert "not valid JSON" in answer["observations"][0]["obs"]
    assert answer["dones"] == [False] and answer["valids"] == [False]


def test_health_and_metrics_tell_what_the_server_does(server: RunningServer) -> None:
    server.run("print(1)")
    assert server.health()["tools"] == ["python_code", "finish"]
    assert httpx.get(f"{server.url}/healthz").status_code == 200
    page = httpx.get(f"{server.url}/metrics").text
    assert 'verl_tool_calls_total{outcome="ok",tool="python_code"}' in page
    assert "verl_tool_running_calls 0.0" in page
