"""The second example's prompt, tasks and reward."""

import re

import pytest

from tests.unit.examples.conftest import Load
from verl_tool.tool_server.tools.python_forms import Form, PythonCall, parse_python, wrap


def test_what_the_prompt_shows_is_what_the_tool_server_does(smollm2: Load) -> None:
    tasks = smollm2("tasks")
    shown = [message["content"] for message in tasks.few_shot("…") if message["role"] == "assistant"]

    assert len(shown) == len(tasks.SHOWN) == len(tasks.SHOWN_RESULTS)
    for text, (_, expression), result in zip(shown, tasks.SHOWN, tasks.SHOWN_RESULTS, strict=True):
        call = text[: text.index("</python>") + len("</python>")]
        assert parse_python(call) == PythonCall(f"print({expression})", Form.TAGS)
        assert str(eval(expression, {"__builtins__": {}})) == result  # noqa: S307
        assert text == f"{call}{wrap(result, Form.TAGS)}Answer: {result}"


def test_what_the_prompt_shows_earns_the_whole_reward(smollm2: Load) -> None:
    tasks, reward = smollm2("tasks"), smollm2("reward")
    shown = [message["content"] for message in tasks.few_shot("…") if message["role"] == "assistant"]

    for text, result in zip(shown, tasks.SHOWN_RESULTS, strict=True):
        assert reward.compute_score("products", text, result) == 1.0


def test_training_and_validation_share_no_question_and_none_is_shown_in_the_prompt(smollm2: Load) -> None:
    tasks = smollm2("tasks")
    questions = [
        row["extra_info"]["question"]
        for split in ("train", "validation")
        for row in tasks.make_rows(32, seed=0, split=split)
    ]

    assert len(questions) == len(set(questions)) == 64
    assert not set(questions) & {question for question, _ in tasks.SHOWN}


def test_a_row_asks_its_question_last_and_knows_the_answer(smollm2: Load) -> None:
    for row in smollm2("tasks").make_rows(8, seed=0, split="train"):
        question = row["prompt"][-1]["content"]
        expression = re.search(r"\d[\d +*-]*\d", question)
        assert row["prompt"][-1]["role"] == "user" and expression is not None
        assert str(eval(expression.group(), {"__builtins__": {}})) == row["reward_model"]["ground_truth"]  # noqa: S307


RAN = "<python>print(6 * 7)</python>\n<result>\n42\n</result>\n"


@pytest.mark.parametrize(
    ("said", "reward"),
    [
        (f"{RAN}Answer: 42", 1.0),
        ("Answer: 42.", 1.0),
        (f"{RAN}Answer: 41", 0.1),
        (RAN, 0.1),
        ("<python>print(6 *)</python>\n<result>\nSyntaxError: invalid syntax\n</result>\nAnswer: 41", 0.0),
        ("Answer: 41", 0.0),
        ("<python>print('Answer: 42')</python>\n<result>\nAnswer: 42\n</result>\n", 0.0),
        ("", 0.0),
    ],
)
def test_a_call_that_ran_earns_a_little_and_the_right_answer_all(smollm2: Load, said: str, reward: float) -> None:
    assert smollm2("reward").compute_score("products", said, "42") == reward
