"""What a snippet can do to itself, and cannot do to the server or its neighbours."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.integration.tool_server.conftest import RunningServer, children, wait_until

LIMIT = 2.0


def living(marker: str) -> list[str]:
    """Processes whose command line holds this text."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in file.read_bytes():
                found.append(file.parent.name)
        except OSError:
            continue
    return found


def own_seconds(server: RunningServer, code: str) -> tuple[str, float]:
    started = time.monotonic()
    return server.run(code), time.monotonic() - started


def test_one_bad_item_leaves_its_seven_neighbours_as_if_alone(server: RunningServer) -> None:
    """T1"""
    actions = [f"<python>print({index} * 11)</python>" for index in range(8)]
    actions[3] = "<python>print('\ud83d')</python>"
    actions[5] = "<python>import sys; sys.stdout.buffer.write(b'ok \\xff\\xfe')</python>"
    answer = server.post(*actions)
    observations = answer["observations"]
    assert [observations[index] for index in (0, 1, 2, 4, 6, 7)] == [
        f"\n<result>\n{index * 11}\n</result>\n" for index in (0, 1, 2, 4, 6, 7)
    ]
    assert "surrogate" in observations[3]["invalid_reason"] and "actions[3]" in observations[3]["invalid_reason"]
    assert observations[5] == "\n<result>\nok \ufffd\ufffd\n</result>\n"
    assert answer["valids"] == [index != 3 for index in range(8)]
    assert answer["dones"] == [False] * 8


ENDLESS = {
    "a loop": "while True: pass",
    "a loop that catches everything": """
while True:
    try:
        while True: pass
    except BaseException: pass
""",
    "signals ignored": """
import signal, time
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
while True: time.sleep(1)
""",
    "four threads": """
import threading
for _ in range(4): threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()
""",
    "forks without end": """
import os
while True:
    try: os.fork()
    except OSError: pass
""",
    "a C call": "sum(range(10**13))",
    "a sleep": "import time; time.sleep(60)",
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS.keys())
def test_what_does_not_end_is_ended_at_the_time_limit_with_its_output_so_far(server: RunningServer, code: str) -> None:
    """T2. The time is the snippet's own: what it waited for a core is allowed for by the run's wall limit."""
    observation, seconds = own_seconds(server, f"print('before', end='')\n{code}")
    assert observation.startswith("before")
    assert "time limit of 2 s" in observation or "limit of 128 processes" in observation
    assert seconds < 3 * LIMIT + 10
    assert wait_until(lambda: server.health()["active_tasks"] == 0 and not server.running_snippets(), 1)


def test_many_short_runs_at_once_are_all_told_their_result(server: RunningServer) -> None:
    """T21: waiting for a turn or a core is not a run's own time. 512 of them take longer than the limit of one."""
    answer = server.post(*[f"<python>print({number})</python>" for number in range(512)])
    assert answer["observations"] == [f"\n<result>\n{number}\n</result>\n" for number in range(512)]


def test_a_sleeping_snippet_is_ended_within_half_a_second_of_the_limit(server: RunningServer) -> None:
    """T2, where no core is waited for."""
    _, seconds = own_seconds(server, "import time; time.sleep(60)")
    assert LIMIT <= seconds < LIMIT + 0.5


def test_children_that_left_their_session_end_with_the_snippet(server: RunningServer) -> None:
    """T3"""
    code = """
import os, sys
for number in range(50):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, ["t3-orphan", "-c", "import time; time.sleep(60)"])
        os._exit(0)
print("done")
"""
    observation, seconds = own_seconds(server, code)
    assert observation == "done"
    assert seconds < LIMIT
    assert wait_until(lambda: not living("t3-orphan"), 1), living("t3-orphan")


def test_a_gibibyte_of_output_is_cut_and_never_held(server: RunningServer) -> None:
    """T4"""
    server.run("print('warm')")
    before = server.resident_bytes()
    observation = server.run("import sys\npiece = 'x' * 2**20\nfor _ in range(1024): sys.stdout.write(piece)")
    assert observation.startswith("x" * 100_000)
    assert "output cut after 100000 characters" in observation
    assert len(observation) < 101_000
    assert server.resident_bytes() - before < 16 * 2**20


THREADS = """
import threading, time
for _ in range(10_000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("bytearray(8 << 30)", "MemoryError"),
        ("files = [open('/dev/null') for _ in range(100_000)]", "Too many open files"),
        ("with open('big', 'wb') as file:\n    while True: file.write(bytes(2**20))", "File too large"),
        (THREADS, "can't start new thread"),
        (
            "import os\nwhile True:\n    if os.fork() == 0: break\nimport time; time.sleep(60)",
            ("temporarily unavailable", "limit of 128"),
        ),
    ],
    ids=["memory", "files", "disk", "threads", "forks"],
)
def test_what_is_past_a_limit_is_refused(server: RunningServer, code: str, said: str | tuple[str, ...]) -> None:
    """T5, in the limited form: a neighbour in the same request does not notice."""
    answer = server.post(f"<python>{code}</python>", "<python>print(7 * 6)</python>")
    assert any(text in answer["observations"][0] for text in ([said] if isinstance(said, str) else said))
    assert answer["observations"][1] == "\n<result>\n42\n</result>\n"


def test_memory_of_many_processes_together_is_limited(server: RunningServer) -> None:
    """T5: each of them is under the limit of one process."""
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(os.urandom(1 << 20)) * 150
        time.sleep(60)
time.sleep(60)
"""
    assert "memory limit of 512 MiB" in server.run(code)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os._exit(3)", ""),
        ("import os; os.abort()", "SIGABRT"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ],
)
def test_a_crash_ends_its_own_run_only(server: RunningServer, code: str, said: str) -> None:
    """T8, in part"""
    assert said in server.run(code)
    assert server.run("print('next')") == "next"


@pytest.mark.parametrize(
    "code", ["input()", "import sys; sys.stdin.read()", "import sys; [line for line in sys.stdin]"]
)
def test_reading_without_input_gives_the_end_at_once(server: RunningServer, code: str) -> None:
    """T17"""
    observation, seconds = own_seconds(server, code)
    assert seconds < LIMIT
    assert observation == "" or observation.endswith("EOFError: EOF when reading a line")


def test_reading_gives_the_text_of_the_request(server: RunningServer) -> None:
    """T17"""
    assert (
        server.run("print(input()[::-1]); import sys; print(sys.stdin.read())", stdin="abc\nrest é\n") == "cba\nrest é"
    )


def test_a_traceback_shows_the_snippets_frames_only(server: RunningServer) -> None:
    """T18, in part"""
    observation = server.run("def half(x):\n    return x / 0\n\nhalf(1)")
    assert observation.splitlines() == [
        "Traceback (most recent call last):",
        '  File "main.py", line 4, in <module>',
        "    half(1)",
        '  File "main.py", line 2, in half',
        "    return x / 0",
        "           ~~^~~",
        "ZeroDivisionError: division by zero",
    ]


def test_a_syntax_error_points_at_its_place(server: RunningServer) -> None:
    assert server.run("x = (1,\nprint(x)").splitlines()[0] == 'File "main.py", line 1'


def test_a_run_inherits_neither_environment_nor_descriptors(server: RunningServer) -> None:
    code = """
import os
print(dict(os.environ), open("/proc/self/environ").read())
print(sorted(os.listdir("/proc/self/fd")))
"""
    observation = server.run(code)
    assert "SERVER_SECRET" not in observation and "do-not-tell" not in observation
    assert "['0', '1', '2', '3']" in observation  # 3 is the folder being listed


def test_a_run_leaves_no_files_and_sees_none(server: RunningServer) -> None:
    folder = server.run("import os; open('left', 'w').write('x'); os.makedirs('a/' * 300); print(os.getcwd())")
    assert not Path(folder).exists()
    assert server.run("import os; print(os.listdir('.'))") == "[]"


def test_two_runs_draw_different_random_numbers(server: RunningServer) -> None:
    assert server.run("import random; print(random.random())") != server.run("import random; print(random.random())")


def test_exit_handlers_threads_and_exit_codes_behave_as_in_an_interpreter(server: RunningServer) -> None:
    code = """
import atexit, sys, threading, time
atexit.register(print, "handler")
threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
print("main")
sys.exit("message")
"""
    assert server.run(code) == "main\nthread\nhandler\nmessage"


def test_a_client_that_leaves_ends_its_run_and_frees_the_slot(server: RunningServer) -> None:
    """T12"""
    body = {"trajectory_ids": ["t"], "actions": ["<python>import time; time.sleep(60)</python>"]}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/get_observation", json=body, timeout=0.5)
    assert wait_until(lambda: server.health()["active_tasks"] == 0 and not server.running_snippets(), 1), server.tree()


def test_a_killed_zygote_is_replaced(server: RunningServer) -> None:
    (zygote,) = children(server.process.pid)
    supervisors = children(zygote)
    for pid in (zygote, *supervisors):
        os.kill(pid, signal.SIGKILL)
    assert server.run("print('again')") == "again"
    assert children(server.process.pid) != [zygote]


def test_a_killed_supervisor_leaves_nothing_and_is_replaced(server: RunningServer) -> None:
    code = "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(60)"
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(server.post, f"<python>{code}</python>")
        assert wait_until(lambda: any(children(pid) for pid in server.running_snippets()), 10)
        (zygote,) = children(server.process.pid)
        (supervisor,) = (pid for pid in children(zygote) if children(pid))
        tree = server.running_snippets() | {pid for parent in server.running_snippets() for pid in children(parent)}
        os.kill(supervisor, signal.SIGKILL)
        assert answer.result(20)["observations"][0]["error"]
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree), 2)
    assert server.run("print('again')") == "again"
