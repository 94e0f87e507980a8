"""The one tree of exceptions this project raises; a message names the field, the value and the remedy."""


class VerlToolError(Exception):
    """Whatever goes wrong in a way that a person can act on. The CLI prints it without a traceback."""


class ConfigError(VerlToolError):
    """A setting is wrong: unknown, of the wrong type, out of bounds, or in contradiction with another."""


class DataError(VerlToolError):
    """A data set or a model on disk is missing, empty or malformed."""


class ToolServerError(VerlToolError):
    """The tool server cannot be reached, or answers something that is not its protocol."""


class TrajectoryError(VerlToolError):
    """One trajectory cannot go on; the others do."""


class RolloutError(VerlToolError):
    """A whole rollout is not worth training on, e.g. too many of its trajectories failed."""


class LogProbGapError(VerlToolError):
    """The engine and the trainer disagree on the log-probabilities of what was sampled."""


class RewardError(VerlToolError):
    """The reward function of the job raised, or gave something that is no number."""


class RunError(VerlToolError):
    """A local run could not start, or one of its processes ended before its time."""
