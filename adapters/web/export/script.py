"""One classic script of the page's ES modules: browsers load no modules from disk.

Each module becomes a function that runs once, after those that it imports. The page's modules keep to the forms that
are read here: imports of names, of a whole module or of its effects, each in one statement; exports of declarations.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

_IMPORT = re.compile(
    r'^import\s+(?:(?P<what>\*\s+as\s+\w+|\{[^}]*\})\s+from\s+)?"(?P<file>\.{1,2}/[\w./-]+)";$', re.MULTILINE
)
_AS = re.compile(r"\s+as\s+")
_EXPORT = re.compile(r"^export\s+(?P<what>(?:async\s+)?function|class|const|let)\s+(?P<name>\w+)", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b", re.MULTILINE)


class NoClassicScript(Exception):
    """A module of the page is written in a way that this does not read: a defect of the page."""


def classic_script(modules: Mapping[str, str], main: str) -> str:
    """Return a script that does what `main` does as a module. `modules` has the texts by their paths.

    Raises NoClassicScript for imports in a circle, and for forms that are not read.
    """
    parts = [_function(name, modules[name]) for name in _in_order(modules, main)]
    return "(() => {\n'use strict';\nconst modules = {};\n" + "\n".join(parts) + "\n})();\n"


def _in_order(modules: Mapping[str, str], main: str) -> list[str]:
    """Return the modules that `main` needs, each after those that it imports."""
    order: list[str] = []
    under_way: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        if name in under_way:
            raise NoClassicScript(f"modules import each other in a circle: {' → '.join([*under_way, name])}")
        under_way.append(name)
        for found in _IMPORT.finditer(modules[name]):
            visit(_path(name, found["file"]))
        under_way.pop()
        order.append(name)

    visit(main)
    return order


def _function(name: str, text: str) -> str:
    exported = [found["name"] for found in _EXPORT.finditer(text)]
    body = _IMPORT.sub(lambda found: _required(found, name), text)
    body = _EXPORT.sub(lambda found: f"{found['what']} {found['name']}", body)
    left = _LEFT.search(body)
    if left is not None:
        line = body[left.start() :].partition("\n")[0]
        raise NoClassicScript(f"{name}: {line[:80]!r} is written in a way that is not read")
    getters = ", ".join(f"get {one}() {{ return {one}; }}" for one in exported)
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {getters} }};\n}})();'


def _path(importer: str, file: str) -> str:
    """Return the path of a file that is named as seen from its importer."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), file))


def _required(found: re.Match[str], importer: str) -> str:
    module, what = f'modules["{_path(importer, found["file"])}"]', found["what"]
    if what is None:
        return ""
    if what.startswith("*"):
        return f"const {what.split()[-1]} = {module};"
    return f"const {_AS.sub(': ', what)} = {module};"
