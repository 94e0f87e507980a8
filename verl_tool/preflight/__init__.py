"""Looks at what a run is about to use, before it starts: data, tokenizer, chat template, reward function.

A program of its own (`python -m verl_tool.preflight`): a tokenizer takes seconds to import, and a reward function may
do anything when it is.
"""
