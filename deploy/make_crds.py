"""Writes deploy/crds/*.yaml, the CustomResourceDefinitions, from kerf.engine.model.crds: `make crds`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kerf.engine.model.crds.definitions import KINDS, definition

FOLDER = Path(__file__).parent / "crds"
_HEAD = "# Made by `make crds` from engine/model/crds: change it there.\n"


class _Dumper(yaml.SafeDumper):
    """Nothing is written as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def files() -> dict[str, str]:
    """Name and content of each file."""
    return {
        f"{kind.group}_{kind.plural}.yaml": _HEAD
        + yaml.dump(definition(kind), Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
        for kind in KINDS
    }


def main() -> None:
    wanted = files()
    for left in FOLDER.glob("*.yaml"):
        if left.name not in wanted:
            left.unlink()
    for name, content in wanted.items():
        (FOLDER / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
