"""Text that is safe to print: names and messages come from strangers, and a terminal obeys what it is sent.

Control characters (ESC, the C1 set), marks that turn the direction of text around, and other invisible characters are
shown as escapes, such as `\\x1b` and `\\u202e`. Line feeds and tabs stay.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_SUSPECT = re.compile(r"[^\x20-\x7e\n\t]")
_SUSPECT_IN_JSON = re.compile(r"[^\x20-\x7e\n]")


def printable(text: str) -> str:
    """Return the text with its invisible characters as escapes of Python."""
    return text if text.isascii() and text.isprintable() else _SUSPECT.sub(_escaped, text)


def printable_json(text: str) -> str:
    """Return a JSON document with the invisible characters of its strings as escapes of JSON."""
    return text if text.isascii() and text.isprintable() else _SUSPECT_IN_JSON.sub(_escaped_in_json, text)


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escaped_in_json(found: re.Match[str]) -> str:
    character = found.group()
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    pairs = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))
