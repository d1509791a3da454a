"""The files of the page by their paths below this folder, as a browser asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Ending → media type. A file with another ending, such as this module, is none of the page's."""


def page_files() -> dict[str, Traversable]:
    """Return the page's files. A path that is not among them leads to no file, however it is written."""
    return dict(_below(files(__package__), ""))


def media_type(path: str) -> str | None:
    """Return what a file of the page is served as, None for what is not the page's."""
    return TYPES.get(f".{path.rpartition('.')[2]}")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for file in folder.iterdir():
        path = f"{prefix}{file.name}"
        if file.is_dir():
            yield from _below(file, f"{path}/")
        elif media_type(path) is not None:
            yield path, file
