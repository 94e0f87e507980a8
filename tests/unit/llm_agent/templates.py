"""Chat templates in the manner of model families, as small as shows what each does that a naive loop trips over."""

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# SmolLM2, Qwen2.5: a default system message where the conversation has none
DEFAULT_SYSTEM = (
    "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Qwen3: earlier turns lose their reasoning, the last one gets an empty one; tool answers come in a user's turn
STRIPS_REASONING = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m['role'] == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "{% set c = m['content'].split('</think>')[-1].lstrip('\n') %}{{ '<|im_start|>assistant\n' }}"
    "{% if loop.index0 > ns.last %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{{ c + '<|im_end|>\n' }}"
    "{% elif m['role'] == 'tool' %}"
    "{{ '<|im_start|>user\n<tool_response>\n' + m['content'] + '\n</tool_response><|im_end|>\n' }}"
    "{% else %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# Llama 3: trims every content, ends turns with <|eot_id|>, makes JSON of a tool's answer
TRIMS = (
    "{{ '<s>' }}{% for m in messages %}{{ '[INST]' + m['role'] + '[/INST]\n\n' }}"
    "{% if m['role'] == 'tool' %}{{ m['content'] | tojson }}{% else %}{{ m['content'] | trim }}{% endif %}"
    "{{ '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ '[INST]assistant[/INST]\n\n' }}{% endif %}"
)

# Mistral: refuses lone system and tool messages, and roles out of turn; a tool's answer only behind a tool call
REFUSES = (
    "{{ '<s>' }}{% for m in messages %}"
    "{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + '[/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ ' ' + m['content'] }}"
    "{% if m['tool_calls'] is defined %}{{ ' [CALL]' }}{% endif %}{{ '</s>' }}"
    "{% elif m['role'] == 'tool' and not loop.first and messages[loop.index0 - 1]['tool_calls'] is defined %}"
    "{{ '[RESULT] ' + m['content'] + '[/RESULT]' }}"
    "{% else %}{{ raise_exception('a ' + m['role'] + ' message may not stand there') }}{% endif %}{% endfor %}"
)

# Gemma: no system role, the model's turns are called `model`
RENAMES = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
    "{{ '<|im_start|>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>model\n' }}{% endif %}"
)

# leaves roles out that it does not know
FORGETS = (
    "{% for m in messages %}{% if m['role'] in ('user', 'assistant') %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
)
