"""What EC2 and IAM refuse of an EC2NodeClass's tags, and the API server lets through: without this each launch would be
refused (A-322)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

from kerf.engine.model.manifests.violations import Violation

CODE = "KERF524"
MOST = 50
"""How many tags an EC2 resource has at most."""
OF_KERF = 6
"""So many of them kerf sets: cluster (two), NodePool, NodeClaim, EC2NodeClass, Name."""
_LONGEST_KEY, _LONGEST_VALUE = 128, 256  # characters
_MARKS = frozenset("_.:/=+-@")


def tag_problems(tags: Mapping[str, str], *, with_profile: bool) -> Iterator[Violation]:
    """Say what is wrong with each tag, by key. `with_profile`: IAM tags an instance profile with them, too."""
    for key, value in sorted(tags.items()):
        if found := _problem(key, value, with_profile):
            message, hint = found
            yield Violation(code=CODE, path=f"spec.tags[{key}]", message=message, hint=hint)
    if len(tags) > MOST - OF_KERF:
        message = f"{len(tags)} tags: EC2 takes {MOST} of an instance, and {OF_KERF} of these are kerf's"
        yield Violation(code=CODE, path="spec.tags", message=message, hint=f"Keep {MOST - OF_KERF} of them")


def _problem(key: str, value: str, with_profile: bool) -> tuple[str, str] | None:
    if key.lower().startswith("aws:"):
        return f"{key}: AWS keeps tags that begin with aws: for itself", "Begin it otherwise"
    if len(key) > _LONGEST_KEY or len(value) > _LONGEST_VALUE:
        limits = f"a tag has at most {_LONGEST_KEY} characters, and its value {_LONGEST_VALUE}"
        return f"{key[:40]}: {limits}", "Shorten it"
    odd = "".join(sorted({letter for letter in key + value if not _plain(letter)})) if with_profile else ""
    if odd:
        hint = "Leave these characters out, or name an instanceProfile instead of a role"
        return f"{key}: IAM tags the instance profile, and takes no {odd}", hint
    return None


def _plain(letter: str) -> bool:
    """Whether IAM takes the character in a tag: a letter, digit or space of any script, or one of a few marks."""
    return letter in _MARKS or unicodedata.category(letter)[0] in "LNZ"
