"""Say what is wrong with a file that should be JSON, and where: one error, however many lines the file has."""

from __future__ import annotations

import json
import re
from pathlib import Path

YAML_FILES = (".yaml", ".yml")
_YAML = re.compile(r"(?:\s|#[^\n]*\n)*(?:---(?:\s|$)|[A-Za-z][\w./-]*:(?:\s|$))")
"""How YAML begins: a separator, or a key without quotes."""
_YAML_HINT = "Scenarios are JSON (docs/plan.md); kerf simulate takes manifests"
_RECORD_HINT = "Scenarios are JSON (docs/plan.md); kerf whatif RECORD --export FILE writes one of a record"
_JSON_HINT = "Mend it there, or write one scenario per line"


def explain_json_error(data: bytes, path: Path) -> tuple[str, str, str]:
    """Return (message, where, hint) for the bytes of a file that does not parse. `where` is "file" or
    "file:line:column"."""
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        return f"the file is no UTF-8 text (byte {error.start})", path.name, _RECORD_HINT
    if path.suffix in YAML_FILES or _YAML.match(text):
        return "the file is no JSON, but YAML", path.name, _YAML_HINT
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        before = text[: error.pos].rstrip()
        problem = (
            "a comma too many before this" if before.endswith(",") and _ends(text, error.pos) else _lowered(error.msg)
        )
        return f"the file is not JSON: {problem}", f"{path.name}:{error.lineno}:{error.colno}", _JSON_HINT
    return "the file is not JSON, which is UTF-8 without a byte order mark and has no NaN", path.name, _JSON_HINT


def _ends(text: str, at: int) -> bool:
    """Whether a list or an object ends at this offset, so that the comma before it is one too many."""
    return text[at : at + 1] in ("}", "]")


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
