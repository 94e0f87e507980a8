"""verl-tool: reinforcement learning of LLMs that call tools, on a laptop and on Kubernetes."""

__version__ = "0.1.0"
