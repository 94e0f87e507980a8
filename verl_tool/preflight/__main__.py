"""`python -m verl_tool.preflight`: a Request on stdin, Findings on stdout."""

import contextlib
import sys

from verl_tool.preflight.data import DataSets
from verl_tool.preflight.request import Findings, Request
from verl_tool.preflight.reward import check_reward
from verl_tool.preflight.tokens import check_tokens


def main() -> int:
    """Always 0: what is wrong is in the findings."""
    request = Request.model_validate_json(sys.stdin.read())
    with contextlib.redirect_stdout(sys.stderr):  # what libraries and a reward's module say is no finding
        findings = look(request)
    print(findings.model_dump_json())
    return 0


def look(request: Request) -> Findings:
    """Everything that is wrong, all at once."""
    data = DataSets(request)
    train_rows, validation_rows = data.read(request.train), data.read(request.validation)
    faults = [*data.faults]
    of_prompts, longest = check_tokens(request, data.longest)
    faults += of_prompts
    if request.reward_path is not None:
        faults += check_reward(request.reward_path, request.reward_name or "compute_score", request.reward_arguments)
    return Findings(faults=faults, train_rows=train_rows, validation_rows=validation_rows, longest_prompt=longest)


if __name__ == "__main__":
    sys.exit(main())
