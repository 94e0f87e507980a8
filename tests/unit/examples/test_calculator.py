"""The demo's tasks, transcripts, tokenizer, schedule and reward."""

from itertools import groupby

import pytest

from tests.unit.examples.conftest import Load
from verl_tool.tool_server.tools.python_forms import Form, PythonCall, parse_python, wrap


def test_training_and_validation_share_no_question(calculator: Load) -> None:
    tasks = calculator("tasks")
    validation = tasks.make_tasks(40, seed=0)
    same_seed_again = tasks.make_tasks(80, seed=0, without=validation)

    questions = [task.question for task in [*validation, *same_seed_again]]
    assert len(questions) == len(set(questions)) == 120


def test_another_seed_gives_other_tasks_and_the_same_seed_the_same(calculator: Load) -> None:
    tasks = calculator("tasks")

    assert tasks.make_tasks(20, seed=1) == tasks.make_tasks(20, seed=1)
    assert not set(tasks.make_tasks(20, seed=1)) & set(tasks.make_tasks(20, seed=2))


def test_python_gives_the_answer_of_every_task(calculator: Load) -> None:
    for task in calculator("tasks").make_tasks(40, seed=3):
        assert str(eval(task.expression, {"__builtins__": {}})) == task.answer  # noqa: S307


def test_a_row_has_verl_s_columns(calculator: Load) -> None:
    tasks = calculator("tasks")
    task = tasks.make_tasks(1, seed=0)[0]

    row = tasks.verl_row(task, index=7, split="train")

    assert row["prompt"] == [{"role": "user", "content": task.question}]
    assert row["reward_model"]["ground_truth"] == task.answer
    assert row["data_source"] == task.source


def test_a_call_is_one_the_tool_server_reads_and_what_it_answers_is_what_was_shown(calculator: Load) -> None:
    transcripts = calculator("transcripts")
    call = transcripts.tool_call("print(2 * 3)")

    assert parse_python(call) == PythonCall("print(2 * 3)", Form.TAGS)
    assert transcripts.observation("6") == wrap("6", Form.TAGS)


@pytest.mark.parametrize("way", ["ANSWERS_AT_ONCE", "CALLS_THE_TOOL", "FORGETS_TO_PRINT", "TRIES_AGAIN"])
def test_only_what_the_model_says_is_learnt_and_the_tool_s_text_never(calculator: Load, way: str) -> None:
    transcripts, tasks = calculator("transcripts"), calculator("tasks")
    task = tasks.make_tasks(1, seed=0)[0]

    pieces = transcripts.transcript(task, transcripts.Way[way])

    for piece in pieces:
        assert (piece.weight == 0.0) == piece.text.startswith("\n<result>")
    assert pieces[-1].text == transcripts.TURN_END


def test_token_weights_stand_on_the_pieces_tokens(calculator: Load) -> None:
    """The prompt and what the tool said are not learnt, a guess hardly, all else wholly."""
    tasks, transcripts, prepare = calculator("tasks"), calculator("transcripts"), calculator("prepare")
    task = tasks.make_tasks(1, seed=0)[0]
    tokenizer = calculator("tiny_model").build_tokenizer(prepare.corpus([task]))

    ids, weights = calculator("warm_start").encode(tokenizer, task, transcripts.Way.FORGETS_TO_PRINT)

    assert len(ids) == len(weights)
    stretches = [
        (weight, tokenizer.decode([ids[index] for index in indices]))
        for weight, indices in groupby(range(len(ids)), key=lambda index: weights[index])
    ]
    assert stretches[1:] == [
        (1.0, f"<python>{task.expression}</python>"),
        (0.0, "\n<result>\n\n</result>\n"),
        (1.0, "Answer: "),
        (transcripts.GUESS_WEIGHT, task.answer),
        (1.0, "<|im_end|>"),
    ]
    assert stretches[0] == (0.0, f"<|im_start|>user\n{task.question}<|im_end|>\n<|im_start|>assistant\n")


def test_tags_and_digits_are_tokens_of_their_own_and_any_text_comes_back(calculator: Load) -> None:
    prepare, tasks = calculator("prepare"), calculator("tasks")
    tokenizer = calculator("tiny_model").build_tokenizer(prepare.corpus(tasks.make_tasks(20, seed=0)))

    assert [tokenizer.decode([one]) for one in tokenizer.encode("<python>print(120)</python>")] == [
        "<python>", "print", "(", "1", "2", "0", ")", "</python>",
    ]  # fmt: skip
    assert tokenizer.decode(tokenizer.encode("Zoë's naïve 𝔘nicode\t\r\n")) == "Zoë's naïve 𝔘nicode\t\r\n"


def test_the_model_s_embeddings_are_tied(calculator: Load) -> None:
    prepare, tasks, tiny_model = calculator("prepare"), calculator("tasks"), calculator("tiny_model")
    tokenizer = tiny_model.build_tokenizer(prepare.corpus(tasks.make_tasks(20, seed=0)))

    model = tiny_model.build_model(tokenizer, seed=0)

    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


def test_a_mix_draws_no_way_that_has_no_share(calculator: Load) -> None:
    import random

    transcripts = calculator("transcripts")
    mix = transcripts.Mix(answers_at_once=0.0, calls_the_tool=1.0, tries_again=1.0)

    drawn = {mix.draw(random.Random(seed)) for seed in range(50)}
    assert drawn == {transcripts.Way.CALLS_THE_TOOL, transcripts.Way.TRIES_AGAIN}


def test_the_learning_rate_rises_where_a_part_begins_and_is_nearly_nothing_at_the_end(calculator: Load) -> None:
    schedule = calculator("warm_start").SCHEDULE

    for part in schedule:
        rates = [part.rate(step) for step in range(part.steps)]
        assert min(rates) > 0 and max(rates) == pytest.approx(part.learning_rate)
    assert schedule[0].rate(0) < 0.1 * schedule[0].learning_rate
    assert schedule[-1].rate(schedule[-1].steps - 1) < 0.1 * schedule[-1].learning_rate


@pytest.mark.parametrize(
    ("said", "truth", "reward"),
    [
        ("Answer: 42", "42", 1.0),
        ("<python>print(6 * 7)</python>\n<result>\n42\n</result>\nAnswer: 42", "42", 1.0),
        ("Answer: -7\n", "-7", 1.0),
        ("Answer: 007", "7", 1.0),
        ("Answer: 41", "42", 0.0),
        ("Answer: 42 or 43", "42", 0.0),
        ("Answer: 142", "42", 0.0),
        ("Answer: ", "42", 0.0),
        ("42", "42", 0.0),
        ("", "42", 0.0),
        ("Answer: 42<python>print(1)</python>\n<result>\n1\n</result>\n", "42", 0.0),
        ("<python>print('Answer: 42')</python>\n<result>\nAnswer: 42\n</result>\n", "42", 0.0),
    ],
)
def test_the_right_number_has_to_be_the_last_thing_said(calculator: Load, said: str, truth: str, reward: float) -> None:
    assert calculator("reward").compute_score("products", said, truth, {"index": 0}) == reward


def test_prepare_names_the_variable_that_is_missing(
    calculator: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VERL_TOOL_VOLUME", raising=False)

    with pytest.raises(SystemExit) as ended:
        calculator("prepare").main([])

    assert ended.value.code == 2
    assert "VERL_TOOL_VOLUME is not set" in capsys.readouterr().err


def test_warm_start_ends_a_part_that_has_learnt_enough(calculator: Load) -> None:
    prepare, tasks, tiny_model = calculator("prepare"), calculator("tasks"), calculator("tiny_model")
    warm_start = calculator("warm_start")
    some = tasks.make_tasks(20, seed=0)
    tokenizer = tiny_model.build_tokenizer(prepare.corpus(some))
    model = tiny_model.build_model(tokenizer, seed=0)
    part = warm_start.Part(warm_start.COPYING, 50, 1e-3, warm_up_steps=1, cool_down_steps=1, enough=100.0)
    told: list[float] = []

    warm_start.warm_start(model, tokenizer, some, seed=0, schedule=[part], on_step=lambda done, loss: told.append(done))

    assert len(told) == warm_start.RECENT
    assert told[-1] == warm_start.RECENT / part.steps
