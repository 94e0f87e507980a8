"""Characters that nobody sees, or that turn or hide their neighbours, made visible: a model may write any."""


def visible(text: str) -> str:
    """The text with a picture or a code in place of each such character; line ends and tabs stay."""
    return text.translate(_SHOWN)


def _code(character: int) -> str:
    return f"⟨U+{character:04X}⟩"


_HIDDEN = (
    *range(0x80, 0xA0),  # C1 control characters
    0x00AD,
    0x061C,
    *range(0x200B, 0x2010),  # no width, left to right, right to left
    *range(0x2028, 0x202F),  # line ends of another kind, turns of direction
    *range(0x2060, 0x2070),
    0xFEFF,
)
_SHOWN = {
    **{character: chr(0x2400 + character) for character in range(32) if chr(character) not in "\t\n"},
    0x7F: "␡",
    **{character: _code(character) for character in _HIDDEN},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # half a character, which no file can hold
}
