"""Imports the reward function as verl will, and sees that it takes what verl hands it."""

import importlib
import importlib.util
import inspect
from types import ModuleType

ARGUMENTS = ("data_source", "solution_str", "ground_truth", "extra_info")
FIELD = "spec.reward"


def check_reward(path: str, name: str, arguments: dict[str, object]) -> list[str]:
    """What is wrong with the function `name` in `path`, a file or `pkg://package.module`."""
    try:
        module = _load(path)
    except Exception as fault:  # noqa: BLE001  whatever code does when it is imported
        return [f"{FIELD}: {path} cannot be imported: {type(fault).__name__}: {fault}"]
    function = getattr(module, name, None)
    if not callable(function):
        there = [one for one, value in vars(module).items() if inspect.isfunction(value) and not one.startswith("_")]
        return [f"{FIELD}: {path} has no function {name!r}; it has {', '.join(sorted(there)) or 'none'}"]
    try:
        inspect.signature(function).bind(**dict.fromkeys(ARGUMENTS), **arguments)
    except TypeError as fault:
        return [f"{FIELD}: {name}{inspect.signature(function)} does not take {', '.join(ARGUMENTS)}: {fault}"]
    return []


def _load(path: str) -> ModuleType:
    if path.startswith("pkg://"):
        return importlib.import_module(path.removeprefix("pkg://"))
    spec = importlib.util.spec_from_file_location("verl_tool_reward_under_test", path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
