"""A record with its names replaced, so that it can be given to strangers and still be replayed.

Replaced: names of pods, namespaces, workloads, nodes, NodeClaims, NodePools, NodeClasses, volumes, clusters, instances
and images; resources, drivers, devices, their attributes and selectors; label and taint keys that are not the same in
every cluster; label values, except for well-known labels, numbers and booleans. Left out: messages of the cloud and of
the API server, the NodeClasses' own objects, and payloads of unknown types. Kept: uids (random by nature), amounts,
topology, prices, times, reasons' codes, the record's id; `in_clear` lists all.

A pseudonym consists of kind, rank and keyed hash ("pod-0042-9f3a1c"). The rank keeps the order of names of a kind,
because deciders break ties by name: so replaying the bundle takes the same decisions. For the same reason label keys
and node names keep their place among the names that stay, pods keep the numbers at their ends, and a claim keeps its
last letters, which come from the record's id. The hash is the same in every bundle made with the same salt. Limit:
strings inside of reasons are replaced word by word, if a word is a name found in the record. A node's pseudonym ends in
that of the claim that it belongs to.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw, Struct

from kerf.adapters.store.pseudonyms.names import Rule
from kerf.adapters.store.pseudonyms.places import Places
from kerf.adapters.store.pseudonyms.pod_names import PodNames, bases
from kerf.adapters.store.pseudonyms.replacements import BLOB, Keyed, stream_name
from kerf.adapters.store.pseudonyms.rules import rules_of
from kerf.adapters.store.pseudonyms.state import made_anew
from kerf.adapters.store.pseudonyms.vocabulary import ANCHORS, KEPT_DOMAINS
from kerf.adapters.store.read_only import Source
from kerf.engine.model.content_digest import content, deviation
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.base import Base
from kerf.engine.record.claim_events import Adopted, Registered
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.errors import BlobMissing, StoreError
from kerf.engine.record.hash_chain import START, Checkpoint
from kerf.engine.record.observations import CatalogueSeen, NodeClassSeen, SettingsSeen
from kerf.engine.scheduling.pods.validation import is_label_value, is_qualified_name
from kerf.engine.state import snapshot
from kerf.engine.state.base import base_of, restore
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State

_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_EMPTY_MAP = Raw(b"\x80")
LEFT_OUT = "left-out"
"""The type of entries whose types this version does not know."""
_AMONG_PUBLIC = ("key", "resource", "driver")
_AMONG_WORDS = ("value", "device")  # of these "false" and "true" stay
_VALID = {"key": is_qualified_name, "value": is_label_value}
"""What pods are refused for is refused under a pseudonym, too (S-26)."""
_IDENTIFIERS = ("device",)  # selectors name them
_BLOB_TYPES: dict[type[Struct], type[Struct] | None] = {
    CatalogueSeen: Catalogue, NodeClassSeen: None, Decision: None,
}  # fmt: skip
"""What the digest in a struct names, if it is no PodShape. None: what is left out of the copy."""


class Pseudonyms:
    """Collects names first; after `settle`, returns the pseudonym of each."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._seen: set[tuple[str, str]] = set()
        self._given: dict[tuple[str, str], str] = {}
        self._words: dict[str, str] = {}
        self._public: dict[str, set[str]] = {kind: set(texts) for kind, texts in ANCHORS.items()}
        self._claim_of: dict[str, str] = {}  # node → its claim
        self._of_kind: dict[str, list[tuple[str, str]]] = {}
        self._made: dict[str, str] = {}
        self._settled = False

    def name(self, kind: str, text: str) -> str:
        if not text:
            return text
        if self._settled:
            return self._given[kind, text]
        self._seen.add((kind, text))
        return text

    def digest(self, digest: str) -> str:
        return blake2b(digest.encode(), key=self._key, digest_size=16, person=b"digest").hexdigest()

    def words(self, text: str) -> str:
        """Replaces each word that is a name of any kind. A text that is a label key as a whole is replaced with its
        slash.
        """
        return self._words.get(text) or _WORD.sub(lambda word: self._words.get(word[0], word[0]), text)

    def public(self, kind: str, text: str) -> None:
        """Notes a text of this kind that stays: replaced ones keep their order relative to it."""
        if not self._settled:
            self._public.setdefault(kind, set()).add(text)

    def is_public(self, kind: str, text: str) -> bool:
        return text in self._public.get(kind, ())

    def given_to(self, kind: str) -> list[tuple[str, str]]:
        """Returns all texts of a kind with their pseudonyms, those that stay among them; none before `settle`."""
        if self._settled and kind not in self._of_kind:
            stay = [(text, text) for text in sorted(self._public.get(kind, ()))]
            given = [(text, pseudonym) for (of, text), pseudonym in self._given.items() if of == kind]
            self._of_kind[kind] = stay + given
        return self._of_kind.get(kind, [])

    def once(self, text: str, make: Callable[[], str]) -> str:
        """Returns what was made for a text, which is made once before `settle` and once after it."""
        if text not in self._made:
            self._made[text] = make()
        return self._made[text]

    def node_of(self, claim: str, node: str) -> None:
        """Notes which claim a node belongs to: its pseudonym says so."""
        self._claim_of[node] = claim

    def given(self) -> dict[str, str]:
        """Returns the names by their pseudonyms."""
        return {pseudonym: text for (_, text), pseudonym in self._given.items()}

    def settle(self) -> None:
        numbered = bases(self._of("pod"))
        plain = self._plain(self._seen.union(("pod", base) for base in numbered))
        self._given = {seen: plain[seen] for seen in sorted(self._seen)}
        buffers = {text: plain["buffer", text] for text in self._of("buffer")}
        pods = PodNames(numbered, lambda base: plain["pod", base], buffers)
        self._given |= {("pod", text): pods.pseudonym(text) for text in self._of("pod")}
        self._settle_claims()
        self._settle_order()
        self._settle_volume_claims()
        # What reasons say in words is mostly keys and values of labels, and nodes where instances are called like them.
        order = {"key": 0, "value": 0, "instance": 2}
        for (_, text), pseudonym in sorted(self._given.items(), key=lambda item: (order.get(item[0][0], 1), item[0])):
            self._words.setdefault(text, pseudonym)
        self._made.clear()
        self._settled = True

    def _plain(self, texts: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Returns kind, rank and keyed hash of each text."""
        found, width = {}, len(str(len(texts)))
        for rank, (kind, text) in enumerate(sorted(texts)):
            keyed = blake2b(f"{kind}\x00{text}".encode(), key=self._key, digest_size=8).hexdigest()
            invalid = "_" if kind in _VALID and not _VALID[kind](text) else ""
            place = self._place(kind, text) if kind in _AMONG_WORDS else ""
            pseudonym = f"{place}{kind}-{rank:0{width}d}-{keyed}{invalid}"
            found[kind, text] = pseudonym.replace("-", "_") if kind in _IDENTIFIERS else pseudonym
        return found

    def _place(self, kind: str, text: str) -> str:
        """Returns what puts a text before, between or behind the two words that stay. Numbers are before all texts."""
        if self._public.get(kind, set()).isdisjoint(("false", "true")):
            return ""
        if text > "true":
            return "" if kind > "true" else "x-"
        return "a-" if text < "false" else "g-"

    def _settle_claims(self) -> None:
        """Names each claim after its NodePool's pseudonym and the record's id, because replay makes its name the same
        way.
        """
        pooled: dict[str, str] = {}
        for text in self._of("claim"):
            pool, _, letters = text.rpartition("-")
            if ("nodepool", pool) in self._given:
                self._given["claim", text] = pooled[text] = f"{self._given['nodepool', pool]}-{letters}"
        places = Places(pooled)  # claims that somebody made by hand are among those of NodePools
        for text in self._of("claim"):
            if text not in pooled:
                self._given["claim", text] = places.before(text) + self._given["claim", text]

    def _settle_volume_claims(self) -> None:
        """Names the claim of an ephemeral volume after its pod's and volume's pseudonyms, by which it is found
        (S-152).
        """
        for text in self._of("volume-claim"):
            for end in (found.start() for found in re.finditer("-", text)):
                pod, volume = ("pod", text[:end]), ("pod-volume", text[end + 1 :])
                if pod in self._given and volume in self._given:
                    self._given["volume-claim", text] = f"{self._given[pod]}-{self._given[volume]}"

    def _settle_order(self) -> None:
        """Keeps replaced keys, resources and drivers in order among those that stay, and nodes among the claims that
        still become nodes.

        Each gets a pseudonym that sorts right behind the name that it stood behind. A node's ends in the claim that it
        belongs to.
        """
        for kind in _AMONG_PUBLIC:
            public = sorted(self._public.get(kind, ()))
            for text in self._of(kind):
                self._given[kind, text] = _behind(public, text, self._given[kind, text])
        places = Places({text: self._given["claim", text] for text in self._of("claim")})
        for text in self._of("node"):
            own, shown = self._claim_of.get(text, ""), self._given["node", text]
            if ("claim", text) in self._given:  # some clouds name nodes so, and a plan the nodes on their way
                self._given["node", text] = self._given["claim", text]
                continue
            if ("claim", own) in self._given:
                shown = f"{shown.rpartition('-')[0]}-of-{self._given['claim', own]}"
            self._given["node", text] = places.before(text) + shown

    def _of(self, kind: str) -> list[str]:
        return sorted(text for seen_kind, text in self._seen if seen_kind == kind)


def _behind(public: list[str], text: str, pseudonym: str) -> str:
    """Returns a pseudonym that sorts right behind the public name before the text, in a domain of its own: in the
    text's domain only where that decides what a key may do, or where the name is in it.
    """
    at = bisect_left(public, text)
    before, after = public[at - 1] if at else "", public[at] if at < len(public) else ""
    domain, before_domain = _domain(text), _domain(before)
    if before_domain and before_domain == domain:
        return f"{_between(before, after)}-{pseudonym}"
    kept = next((known for known in KEPT_DOMAINS if (domain or text).endswith(f".{known}")), "")
    return f"{before_domain or before}0-{pseudonym}{f'.{kept}/key' if kept else ''}"


def _between(before: str, after: str) -> str:
    """Returns a beginning, as short as may be, of names between two names of a domain: labels' names are not long."""
    start = before.index("/") + 1
    if start == len(before):
        return f"{before}0"
    shorter = (f"{before[:end]}zz" for end in range(start + 1, len(before)))
    return next((text for text in shorter if before < text and (text < after or not after)), f"{before}-")


def _domain(text: str) -> str:
    return text.partition("/")[0] if "/" in text else ""


class Pseudonymised:
    """A `Source` with the entries and blobs of another under pseudonyms. Reads the range twice."""

    def __init__(
        self,
        source: Source,
        *,
        key: bytes,
        after: int = 0,
        until: int | None = None,
        base: Base | None = None,
        kept: bool = True,
    ) -> None:
        self._source, self._own_base, self._kept = source, base, kept
        self._names = Pseudonyms(key)
        self._digests: dict[str, str] = {}
        self._blobs: dict[str, bytes] = {}
        for _ in chain(self.history(), self._entries(after, until)):
            pass
        self.base()
        self._names.settle()
        self._digests.clear()
        self._blobs.clear()

    def names(self) -> dict[str, str]:
        """Returns the names by their pseudonyms."""
        return self._names.given()

    @property
    def record_id(self) -> str:
        return self._source.record_id

    def checkpoint(self, position: int) -> Checkpoint:
        """Returns a checkpoint of the copy's own chain, which begins with the range."""
        return Checkpoint(self._source.checkpoint(position).position, START.value)

    def first_position(self) -> int:
        return self._source.first_position()

    def base(self) -> Base | None:
        """Returns the state that the range begins with. Raises StoreError."""
        base = self._own_base
        if base is None:
            return None
        facts = restore(base, Blobs(self._source.blob)).facts
        for claim in facts.claims.values():
            self._names.node_of(claim.name, claim.node)
        plan = facts.plan
        changed: Facts = self._struct(facts)
        self._digests[facts.settings_digest] = deviation(changed.settings)
        made_anew(changed, self._plan_digest(plan))
        state, digest = snapshot.encode(State(changed, Blobs(self._source.blob)))
        return base_of(
            state, digest, at=base.at, position=base.position, chain=START.value, engine=base.engine
        )  # fmt: skip

    def _plan_digest(self, position: int) -> str:
        """Returns the digest of the result of the decision at a position; empty if that entry was removed."""
        for encoded in (*self._source.history(position - 1, position), *self._source.encoded(position - 1, position)):
            entry = self._entry(CODEC.decode(encoded))
            if isinstance(entry.payload, Decision) and entry.position == position:
                return content(entry.payload.result)[0]
        return ""

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        """Yields the entries kept from before the base."""
        if self._own_base is not None and self._kept:
            for encoded in self._source.history(after, until):
                yield CODEC.encode(self._entry(CODEC.decode(encoded)))

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return map(CODEC.encode, self._entries(after, until))

    def blob(self, digest: str) -> bytes:
        """Returns a blob that an entry yielded so far names."""
        if digest not in self._blobs:
            raise BlobMissing(f"the blob {digest!r} is left out of a pseudonymised record")
        return self._blobs[digest]

    def _entries(self, after: int, until: int | None) -> Iterator[Entry]:
        for encoded in self._source.encoded(after, until):
            yield self._entry(CODEC.decode(encoded))

    def _entry(self, entry: Entry) -> Entry:
        stream = stream_name(entry.stream, self._names)
        if isinstance(entry.payload, UnknownEntry):  # of a newer kerf, which could not read it without its payload
            payload = UnknownEntry(LEFT_OUT, 1, _EMPTY_MAP)
            return msgspec.structs.replace(entry, stream=stream, type=LEFT_OUT, schema=1, payload=payload)
        return msgspec.structs.replace(entry, stream=stream, payload=self._payload(entry.payload))

    def _payload(self, payload: Struct) -> Struct:
        if isinstance(payload, Registered | Adopted) and payload.node:
            self._names.node_of(payload.claim, payload.node)
        changed: Struct = self._struct(payload)
        if isinstance(payload, SettingsSeen) and isinstance(changed, SettingsSeen):
            self._digests[deviation(payload.settings)] = deviation(changed.settings)
        return changed

    def _struct(self, value: Struct) -> Any:
        rules = rules_of(type(value))
        if not isinstance(rules, dict):
            return rules(value, self._names)
        fields = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            rule = rules.get(name)
            if rule is BLOB:
                fields[name] = self._digest(old, _BLOB_TYPES.get(type(value), PodShape))
            else:
                fields[name] = self._value(old, rule, f"{type(value).__name__}.{name}")
        return type(value)(**fields)

    def _value(self, value: Any, rule: Rule | None, where: str) -> Any:
        if isinstance(rule, Keyed) and value is not None:
            return {
                rule.key(key, self._names): self._digest(part, Catalogue)  # of the state only catalogues are so
                if rule.value is BLOB
                else self._value(part, rule.value, where)
                for key, part in value.items()
            }
        if rule is not None:
            return None if value is None else rule(value, self._names)
        if isinstance(value, Struct):
            return self._struct(value)
        if isinstance(value, tuple):
            return tuple(self._value(part, None, where) for part in value)
        if isinstance(value, str | dict):
            raise StoreError(
                f"no rule says whether {where} holds names", hint="Mark it at the field: kerf.engine.model.names"
            )
        return value

    def _digest(self, digest: str, blob_type: type[Struct] | None) -> str:
        """Returns the digest of the blob's pseudonymised form. That of a blob that is left out or missing is keyed,
        because it would confirm a guess of the whole blob.
        """
        if digest and digest not in self._digests:
            self._digests[digest] = self._names.digest(digest)
            with suppress(BlobMissing):
                if blob_type is not None:
                    changed = self._struct(msgspec.msgpack.decode(self._source.blob(digest), type=blob_type))
                    self._digests[digest], self._blobs[self._digests[digest]] = content(changed)
        return self._digests.get(digest, "")
