"""One YAML or JSON document that a user wrote for kerf: a policy, declared changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kerf.adapters.cli.input.bounded_yaml import read_document
from kerf.replay.errors import ReplayError


def read_user_document(file: Path, refused: type[ReplayError], otherwise: str = "") -> Any:
    """Read a file of one document. Raises `refused` for one that cannot be read, with the line that is wrong; of one
    that is no text at all, with the hint `otherwise`."""
    try:
        return read_document(file)
    except OSError as error:
        raise refused(f"the file cannot be read: {error.strerror}", where=str(file), hint="Check the path") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        where = f"{file}: {_place(error)}" if _place(error) else str(file)
        raise refused("the file is neither YAML nor JSON", where=where, hint=_problem(error) or otherwise) from error


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


def _problem(error: Exception) -> str:
    return str(getattr(error, "problem", "") or "")
