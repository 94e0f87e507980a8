"""Loads the tokenizer and renders the longest prompts: what a chat template refuses is said now, not in step 1."""

from collections.abc import Sequence

from verl_tool.errors import VerlToolError
from verl_tool.llm_agent.chat import ChatTemplate
from verl_tool.preflight.data import Prompt
from verl_tool.preflight.request import Request

MODEL, TEMPLATE = "spec.model.path", "spec.config.actor_rollout_ref.model.custom_chat_template"


def check_tokens(request: Request, prompts: Sequence[Prompt]) -> tuple[list[str], int | None]:
    """What is wrong with tokenizer, template and prompts, and the tokens of the longest prompt."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        AutoConfig.from_pretrained(request.model, trust_remote_code=request.trust_remote_code)
        tokenizer = AutoTokenizer.from_pretrained(request.tokenizer, trust_remote_code=request.trust_remote_code)
    except Exception as fault:  # noqa: BLE001  whatever a model's files and a hub can go wrong with
        return [f"{MODEL}: {request.model!r} cannot be loaded: {_first_line(fault)}"], None
    if request.chat_template is not None:
        tokenizer.chat_template = request.chat_template
    if not tokenizer.chat_template:
        return [f"{MODEL}: the tokenizer of {request.model!r} has no chat template; set {TEMPLATE}"], None
    template = ChatTemplate(tokenizer, request.template_arguments)
    faults, longest = _prompts(request, template, prompts)
    if request.observation_role is not None and not faults:
        try:
            template.frame(role=request.observation_role, assistant_role=request.assistant_role)
        except VerlToolError as fault:
            faults.append(f"spec.config.actor_rollout_ref.agent.mtrl_role: {fault}")
    return faults, longest


def _prompts(request: Request, template: ChatTemplate, prompts: Sequence[Prompt]) -> tuple[list[str], int | None]:
    longest: int | None = None
    too_long: list[tuple[Prompt, int]] = []
    for prompt in prompts:
        try:
            length = len(template.prompt_ids(prompt.messages))
        except VerlToolError as fault:
            return [f"{prompt.place}: {fault}; change the messages, or set {TEMPLATE}"], longest
        longest = max(longest or 0, length)
        if length > request.max_prompt_length:
            too_long.append((prompt, length))
    if not too_long or not request.too_long_is_refused:
        return [], longest
    worst, length = max(too_long, key=lambda entry: entry[1])
    others = f" ({len(too_long) - 1} others are too long as well)" if len(too_long) > 1 else ""
    sentence = (
        f"{worst.place}: the prompt has {length} tokens, spec.config.data.max_prompt_length allows "
        f"{request.max_prompt_length}{others}; raise that, or set spec.config.data.filter_overlong_prompts: true"
    )
    return [sentence], longest


def _first_line(fault: Exception) -> str:
    lines = str(fault).strip().splitlines()
    return lines[0] if lines else type(fault).__name__
