"""Objects of everything that kerf records, with a word of its own in each text, made from the types' own hints.

A word says nothing and stands in no program: where it is found, it came from the field that it was put into.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import count
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.store.pseudonyms.in_clear import POSITIONS, fields_in_clear
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.names import LABELS, Mark
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.observations import CatalogueSeen, NodeClassSeen, ObjectGone
from kerf.engine.state.state import Facts

_PLAIN: dict[Any, Any] = {int: 1, float: 1.5, bool: True}


def parts(hint: Any) -> Iterator[Any]:
    """Yields the plain types and structs that a type hint is made of."""
    arguments = [argument for argument in typing.get_args(hint) if argument is not ...]
    if not arguments:
        yield hint
    for argument in arguments:
        yield from parts(argument)


def recorded_structs() -> set[type[Struct]]:
    """Returns every struct that can stand in a record or in a blob of a known type."""
    todo: list[type[Struct]] = [known.payload for known in TYPES.values()] + [PodShape, Catalogue, Facts]
    found: set[type[Struct]] = set()
    while todo:
        kind = todo.pop()
        if kind not in found:
            found.add(kind)
            hints = typing.get_type_hints(kind).values()
            todo += [
                part for hint in hints for part in parts(hint) if isinstance(part, type) and issubclass(part, Struct)
            ]
    return found


class Planter:
    """Makes objects, and remembers which word it put where.

    `where`: the field of each word. `stays`: those that a pseudonymised copy holds, too. `blobs`: what digests name.
    With `names`, each field that does not stay gets one of these instead, so that many things have the same name.
    """

    def __init__(self, names: Callable[[], str] | None = None) -> None:
        self._names = names
        self.where: dict[str, str] = {}
        self.stays: set[str] = set()
        self.blobs: dict[str, bytes] = {}
        self._numbers = count(1)
        self._within: list[type[Struct]] = []
        self._field = ""

    def word(self) -> str:
        """Returns a new word, which stays if the field that is being filled does."""
        stays = self._field in fields_in_clear()
        text = self._names() if self._names and not stays else f"qz{next(self._numbers):05d}xy"
        self.where[text] = self._field
        if stays:
            self.stays.add(text)
        return text

    def structs(self, kind: type[Struct]) -> list[Struct]:
        """Returns as many objects of a type as it takes to have each alternative of each field once."""
        if kind is Difference:
            return list(self._differences())
        if kind is ObjectGone:
            return list(self._gone())
        if kind in self._within:
            return []
        self._within.append(kind)
        hints = typing.get_type_hints(kind, include_extras=True)
        found: dict[str, list[Any]] = {}
        for field in kind.__struct_fields__:
            outer, self._field = self._field, f"{kind.__name__}.{field}"
            found[field] = self._blob(kind) if _mark(hints[field]) == Mark("digest") else self.values(hints[field])
            self._field = outer
        self._within.pop()
        wanted = max((len(alternatives) for alternatives in found.values()), default=1)
        return [
            kind(**{field: texts[number % len(texts)] for field, texts in found.items() if texts})
            for number in range(wanted)
        ]

    def values(self, hint: Any, mark: Mark | None = None) -> list[Any]:
        """Returns a value for each alternative of a type."""
        mark = _mark(hint) or mark
        if mark is not None and mark.rule in _WHOLE:
            return _WHOLE[mark.rule](self)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self.values(arguments[0], mark)
        if origin in (typing.Union, types.UnionType):
            return [value for argument in arguments for value in self.values(argument, mark)]
        if origin is dict and mark == LABELS:
            texts = self.labels()
            return [texts if arguments[1] is str else {key: (text,) for key, text in texts.items()}]
        if origin is dict:
            values = [None] if arguments[1] in (None, types.NoneType) else self.values(arguments[1], mark)
            return [{key: value for value in values for key in self.values(arguments[0])[:1]}]
        if origin in (tuple, list):
            several = arguments[1:] == (...,) or origin is list
            made = self.values(arguments[0], mark) if several else [self.values(part)[0] for part in arguments]
            return [origin(made)]
        if hint is str:
            return [text(self) for text in _TEXTS[mark.rule if mark is not None else ""]]
        if isinstance(hint, type) and issubclass(hint, Struct):
            return self.structs(hint)
        return [] if hint is types.NoneType else [_PLAIN[hint]]

    def plain(self) -> str:
        """Returns what names nothing: a word, or a number where only numbers stand."""
        return "17.0" if fields_in_clear().get(self._field) == POSITIONS else self.word()

    def digest(self) -> str:
        """Returns the plain digest of a word."""
        return blake2b(self.word().encode(), digest_size=16).hexdigest()

    def labels(self) -> dict[str, str]:
        return {
            f"{self.word()}.example/{self.word()}": self.word(),
            self.word(): f"{self.word()} {self.word()}",
            f"karpenter.sh/{self.word()}": self.word(),
            f"{self.word()}.karpenter.sh/{self.word()}": self.word(),
            f"node.kubernetes.io/{self.word()}": self.word(),
            f"{self.word()}.k8s.io/{self.word()}": self.word(),
            "kubernetes.io/hostname": self.word(),
            "karpenter.sh/nodepool": self.word(),
            "karpenter.sh/nodepool-hash": self.digest(),
            "karpenter.sh/requested-dra-drivers": f"{self.word()},{self.word()}.example",
            "app.kubernetes.io/name": self.word(),
        }

    def settings(self) -> dict[str, str]:
        """Returns what drift compares of a NodeClass."""
        return {
            f"tags {self.word()}": self.word(),
            "role": self.word(),
            "userData": f"blake2b-128:{self.digest()}",
            "blockDeviceMappings": self.word(),
        }

    def template(self) -> dict[str, str]:
        """Returns what drift compares of a NodePool."""
        return {
            "nodeClassRef.group": self.word(),
            "nodeClassRef.kind": self.word(),
            "nodeClassRef.name": self.word(),
            f"labels {self.word()}.example/x": self.word(),
            f"annotations {self.word()}": self.word(),
            f"taints/NoSchedule {self.word()}": self.word(),
        }

    def params(self) -> dict[str, Any]:
        """Returns the parameters of a reason, of every kind that some reason has."""
        key = f"{self.word()}.example/{self.word()}"
        return {
            "nodeclass": self.word(), "node_pool": self.word(), "nodepool": self.word(), "node": self.word(),
            "nodes": [self.word()], "instance": self.word(), "volumes": [self.word()], "replacements": [self.word()],
            "claims": [self.word(), f"{self.word()}/{self.word()}"], "pod": f"{self.word()}/{self.word()}",
            "pods": [f"{self.word()}/{self.word()}"], "budgets": [f"{self.word()}/{self.word()}"],
            "request": f"{self.word()}/{self.word()}/{self.word()}", "resource": f"{self.word()}.example/gpu",
            "resources": [f"{self.word()}.example/{self.word()}", "cpu"], "driver": self.word(),
            "drivers": [self.word()], "key": key, "keys": [self.word(), f"karpenter.sh/{self.word()}"],
            "known": [self.word()], "label": self.word(), "taint": f"{self.word()}={self.word()}:NoSchedule",
            "taints": [f"{self.word()}:NoExecute"], "domains": [f"{self.word()}=3", "and 2 more"],
            "selectors": [f"{self.selector()} (1 of 2)", "taints (1 of 2)", "nothing"],
            "incoming": [f"{self.word()} In [{self.word()} {self.word()} and 2 others]", f"{self.word()} Exists"],
        }  # fmt: skip

    def selector(self) -> str:
        domain, name = f"{self.word()}.example", self.word()
        return (
            f'device.driver == "{self.word()}" && device.attributes["{domain}"].{name}.startsWith("{self.word()}") || '
            f'!("{self.word()}" in device.capacity["{domain}"]) && has(device.attributes["{domain}"].{self.word()})'
        )

    def _blob(self, kind: type[Struct]) -> list[str]:
        """Returns the digests of what this type's digests name."""
        if kind.__name__ == "Decision":
            return [self.digest()]
        if kind is NodeClassSeen:
            data = msgspec.msgpack.encode({self.word(): self.word()})
            self.blobs[blake2b(data, digest_size=16).hexdigest()] = data
            return list(self.blobs)[-1:]
        digests = []
        for value in self.structs(Catalogue if kind in (CatalogueSeen, Facts) else PodShape):
            digest, data = content(value)
            self.blobs[digest] = data
            digests.append(digest)
        return digests

    def _differences(self) -> Iterator[Difference]:
        outer, self._field = self._field, "Difference"
        for field in ("role", "subnets", "securityGroups", "image", "nodeClassRef.name", "nodeClassRef.kind"):
            yield Difference(field, "", self.word(), self.word())
        for field in ("tags", "labels", "annotations", "taints/NoSchedule"):
            yield Difference(field, f"{self.word()}.example/{self.word()}", self.word(), self.word())
        yield Difference("requirements", self.word(), self.word(), f"NotIn [{self.word()}]")
        yield Difference("userData", "", f"blake2b-128:{self.digest()}", f"blake2b-128:{self.digest()}")
        self._field = outer

    def _gone(self) -> Iterator[ObjectGone]:
        outer, self._field = self._field, "ObjectGone.key"
        yield ObjectGone("nodeclass", f"{self.word()}.example/{self.word()}/{self.word()}")
        yield ObjectGone("newkind", f"{self.word()}/{self.word()}")
        for kind in (kind for kind in WATCHED if kind.key != "uid"):
            key = self.word() if kind.key == "name" else f"{self.word()}/{self.word()}"
            yield ObjectGone(kind.name, f"apps/v1/Deployment/{key}" if kind.name == "workload" else key)
        self._field = outer


def _mark(hint: Any) -> Mark | None:
    return next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Mark)), None)


_WHOLE: dict[str, Callable[[Planter], list[Any]]] = {
    "reason-parameters": lambda planter: [planter.params()],
    "nodeclass-settings": lambda planter: [planter.settings()],
    "made-from": lambda planter: [planter.settings(), planter.template()],
    "bound-devices": lambda planter: [((planter.word(), planter.word(), planter.word()),)],
}
"""What a mark on a whole map or list asks for."""
_TEXTS: dict[str, tuple[Callable[[Planter], str], ...]] = {
    "": (Planter.word,),
    "keep": (Planter.plain,),
    "name": (Planter.word,),
    "value": (Planter.word, lambda planter: "1" * 12 + planter.word()),
    "blank": (lambda planter: f"{planter.word()}: {planter.word()}",),
    "words": (Planter.word,),
    "key": (Planter.word, lambda planter: f"{planter.word()}.example/{planter.word()}"),
    "namespaced": (lambda planter: f"{planter.word()}/{planter.word()}",),
    "workload-key": (lambda planter: f"apps/v1/Deployment/{planter.word()}/{planter.word()}",),
    "provider-id": (
        lambda planter: f"aws:///us-east-1a/i-{planter.word()}",
        lambda planter: f"{planter.word()}://{planter.word()}/{planter.word()}",
    ),
    "node-class-key": (lambda planter: f"{planter.word()}.example/{planter.word()}/{planter.word()}",),
    "known-or-name": (Planter.word, lambda planter: f"{planter.word()}.example/{planter.word()}"),
    "hash": (lambda planter: f"kerf3/{planter.digest()}",),
    "digest": (Planter.digest,),
    "device": (Planter.word, lambda planter: f"1.2.3-{planter.word()}.1"),
    "attribute": (lambda planter: f"{planter.word()}.example/{planter.word()}",),
    "selector": (Planter.selector, lambda planter: f"unreadable {planter.word()}"),
    "claim-references": (lambda planter: f"{planter.word()}={planter.word()}", lambda planter: f"{planter.word()}@x"),
    "request-names": (lambda planter: f"{planter.word()}/{planter.word()}",),
    "actor-or-unknown": (Planter.word,),
    "stream": (lambda planter: f"nodeclaim/{planter.word()}",),
}
"""By the rule of a mark: texts as they stand in such a field."""
