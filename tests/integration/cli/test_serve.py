"""`verl-tool serve`, and calls to it."""

import time

from tests.integration.cli.jobs import Folder


def test_serve_answers_calls_until_it_is_told_to_end(folder: Folder) -> None:
    server = folder.start("serve", "--port", "0", "--port-file", "port")
    port = folder.path / "port"
    server.wait_until(lambda: port.exists() and port.read_text().strip() != "")
    url = f"http://127.0.0.1:{port.read_text().strip()}"

    answered = folder.verl_tool("call", "<python>print(6 * 7)</python>", "--url", url)
    server.process.terminate()
    ended = server.wait(30)

    assert answered.code == 0 and "42" in answered.out, answered.err
    assert ended.code == 0 and ended.left == []


def test_a_call_to_a_server_that_is_down_names_its_address(folder: Folder) -> None:
    begun = time.monotonic()

    folder.verl_tool("call", "<python>print(1)</python>", "--url", "http://127.0.0.1:9").refused("127.0.0.1:9", "--url")

    assert time.monotonic() - begun < 30
