"""Select what an assertion is about, by names with "*" and by labels of pods."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from kerf.replay.errors import PolicyRefused
from kerf.replay.policies.forms import patterns
from kerf.replay.user_documents import mapping_of

LABELS = "labels"
OF_NODES = ("pool", "type", "zone", "capacity")
OF_PODS = ("namespace", "workload", "pod", LABELS)
_OF_THE_CLOUD = ("type", "zone", "capacity", "reason")
"""What has no name that users give."""


class Selector(Struct, frozen=True):
    """Dimension → patterns, one of which the name must fit; `labels` are those that a pod must have."""

    names: dict[str, tuple[str, ...]] = {}
    labels: dict[str, str] = {}

    def selects(self, about: Mapping[str, str], labels: Mapping[str, str] | None = None) -> bool:
        """Whether something with these names, and a pod with these labels, is meant."""
        names = all(fits(about.get(key, ""), wanted) for key, wanted in self.names.items())
        return names and (not self.labels or self.labels.items() <= (labels or {}).items())

    @property
    def of_pods(self) -> Selector:
        """The part that tells pods apart."""
        return Selector({key: names for key, names in self.names.items() if key in OF_PODS}, self.labels)

    @property
    def by_name(self) -> bool:
        """Whether it asks for names or labels that users have given."""
        return bool(self.labels) or not self.names.keys() <= frozenset(_OF_THE_CLOUD)

    @property
    def words(self) -> str:
        """The selector in words, "" for one that selects everything."""
        parts = [f"{key} {' or '.join(wanted)}" for key, wanted in self.names.items()]
        return ", ".join([*parts, *(f"{key}={value}" for key, value in self.labels.items())])


def fits(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether a name fits one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in wanted)


def read_selector(value: object, known: tuple[str, ...], where: str) -> Selector:
    """Read a mapping of dimensions to patterns. Raises PolicyRefused (KERF221) for what this assertion cannot tell
    apart."""
    found = mapping_of(value, known, where, PolicyRefused)
    labels = found.pop(LABELS, {})
    if not isinstance(labels, dict):
        raise PolicyRefused("labels are a mapping", where=f"{where}.{LABELS}", hint="Write labels: {app: web}")
    names = {key: patterns(pattern, f"{where}.{key}").patterns for key, pattern in found.items()}
    return Selector(names, {str(key): str(value) for key, value in labels.items()})
