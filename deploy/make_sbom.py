"""Writes the bill of materials of the image (CycloneDX 1.6, JSON) from requirements/production.txt and the Dockerfile:
`make sbom`. The same files give the same bytes. Licences are those that installed packages of the locked version name.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from packaging.markers import Marker

import kerf

ROOT = Path(__file__).parents[1]
OWN = "kerf-autoscaler"
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
CPYTHON = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
"""The image's environment, by which markers of the lock are read."""
_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of URLs (RFC 4122)
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)(?: ; (.+?))? \\$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"^    #(?: via)?  *([A-Za-z0-9._-]+)(?: \(pyproject\.toml\))?$")
_BASE = re.compile(r"^ARG PYTHON=(\S+?):(\S+?)@(sha256:[0-9a-f]{64})$", re.MULTILINE)


class Package(Struct):
    """A package of the lock. `hashes` are those of all its files, `via` the packages that ask for it."""

    name: str
    version: str
    hashes: list[str]
    via: list[str]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def packages(lock: str) -> list[Package]:
    """The packages that a lock installs in the image."""
    return [package for package, marker in _entries(lock) if not marker or Marker(marker).evaluate(LINUX | CPYTHON)]


def _entries(lock: str) -> Iterator[tuple[Package, str]]:
    found: tuple[Package, str] | None = None
    for line in lock.splitlines():
        if pinned := _PINNED.match(line):
            if found is not None:
                yield found
            found = Package(pinned[1], pinned[2], [], []), pinned[3] or ""
        elif found is not None:
            found[0].hashes.extend(_HASH.findall(line))
            found[0].via.extend(_VIA.findall(line))
    if found is not None:
        yield found


def bill(lock: str, dockerfile: str) -> dict[str, Any]:
    """The bill of materials as a document."""
    installed = packages(lock)
    own = {"type": "application", "name": OWN, "version": kerf.__version__, "licenses": [{"expression": "Apache-2.0"}]}
    refs = {package.name: package.purl for package in installed} | {OWN: f"pkg:pypi/{OWN}@{kerf.__version__}"}
    asked: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for package in installed:
        for asking in package.via:
            if asking in refs:
                asked[refs[asking]].append(package.purl)
    identity = uuid.uuid5(_NAMESPACE, lock + dockerfile + kerf.__version__)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity}",
        "version": 1,
        "metadata": {"component": own | {"bom-ref": refs[OWN], "purl": refs[OWN]}},
        "components": [_base(dockerfile), *(_component(package) for package in installed)],
        "dependencies": [{"ref": ref, "dependsOn": sorted(needed)} for ref, needed in sorted(asked.items())],
    }


def _component(package: Package) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        **_licences(package),
        "properties": [{"name": "kerf:lock:sha256", "value": digest} for digest in package.hashes],
    }


def _base(dockerfile: str) -> dict[str, Any]:
    """The image that kerf's is built on. What is in it is in a bill of its own."""
    found = _BASE.search(dockerfile)
    if found is None:
        raise SystemExit("the Dockerfile's ARG PYTHON names no image with its digest")
    name, tag, digest = found.groups()
    purl = f"pkg:docker/{name}@{digest.replace(':', '%3A')}?tag={tag}"
    return {"type": "container", "bom-ref": purl, "name": name, "version": f"{tag}@{digest}", "purl": purl}


def _licences(package: Package) -> dict[str, Any]:
    try:
        about = importlib.metadata.metadata(package.name)
    except importlib.metadata.PackageNotFoundError:
        return {}
    if about["Version"] != package.version:
        return {}
    if "License-Expression" in about:
        return {"licenses": [{"expression": about["License-Expression"]}]}
    named = [about["License"].strip() if "License" in about else ""]
    if not named[0] or "\n" in named[0]:  # the text of the licence itself
        named = [kind.split(" :: ")[-1] for kind in about.get_all("Classifier") or () if kind.startswith("License :: ")]
    return {"licenses": [{"license": {"name": name}} for name in named]} if named else {}


def text() -> str:
    """The bill of this tree's image, as it is written."""
    lock = (ROOT / "requirements" / "production.txt").read_text(encoding="utf-8")
    return json.dumps(bill(lock, (ROOT / "Dockerfile").read_text(encoding="utf-8")), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
