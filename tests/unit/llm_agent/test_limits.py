"""Budgets belong to a row."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.llm_agent.builders import some_limits


def test_a_long_row_and_a_short_one_have_budgets_of_their_own() -> None:
    """R1: contexts of 30 and 480 tokens, model limit 512, action limit 200."""
    limits = some_limits(model=512, action=200, response=512)
    assert limits.generation_budget(prompt=30, response=0) == 200
    assert limits.generation_budget(prompt=480, response=0) == 32


@given(prompt=st.integers(0, 600), response=st.integers(0, 600), model=st.integers(1, 700), action=st.integers(1, 700))
def test_a_generation_within_its_budget_is_within_every_limit(
    prompt: int, response: int, model: int, action: int
) -> None:
    limits = some_limits(model=model, action=action, response=512)
    budget = max(0, limits.generation_budget(prompt=prompt, response=response))
    assert budget <= action
    assert budget == 0 or response + budget <= limits.response
    assert budget == 0 or prompt + response + budget <= model
