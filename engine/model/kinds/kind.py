"""What the declaration of a watched kind says.

Derived from it: how objects are decoded (model.manifests.decode), listed and watched (adapters.kubernetes.watch), what
the record calls them (record.entry_types), how the fold keeps them (state.objects.rules), what kerf must be allowed to
do (adapters.cli.doctor.rights, the chart), how the timeline tells them, how the simulated API server holds them, and
how the key of a deleted object is pseudonymised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import Read
from kerf.engine.model.settings import Settings


class ServedKind(Struct, frozen=True):
    """One resource of the API: `api` is apiVersion and kind ("apps/v1/Deployment").

    `wire` is the JSON form of the whole document; `read` turns its bytes into the model's struct.
    """

    api: str
    plural: str
    wire: type[Struct]
    read: Callable[[bytes, Report], Read]

    @property
    def group(self) -> str:
        """The API group, "" for the core group."""
        version = self.api.rpartition("/")[0]
        return version.rpartition("/")[0]

    @property
    def path(self) -> str:
        """Returns the path that lists all its objects."""
        return f"{'/apis' if self.group else '/api'}/{self.api.rpartition('/')[0]}/{self.plural}"


def _always(settings: Settings) -> bool:
    return True


class WatchedKind(Struct, frozen=True, kw_only=True):
    """The declaration of a kind. `name` is its lower-case singular in records and ObjectGone: its entries are of type
    "<name>.seen".

    `key` is the attribute of `struct` by which the state and ObjectGone identify an object. `facts` is the field of
    `Facts` that keeps the objects by this key; "" if the fold keeps something else. `digest_field` names the field that
    holds the digest of a PodShape.

    `planned_with` says whether a plan looks at these objects, given the settings and whether CapacityBuffers keep room.
    It is None for a kind with rules of its own in kerf.engine.state.objects. `asked_for_by` restricts that to plans for
    pods of certain shapes.
    """

    name: str
    struct: type[Struct]
    served: tuple[ServedKind, ...]
    key: Literal["uid", "name", "key"]
    facts: str
    namespaced: bool
    planned_with: Callable[[Settings, bool], bool] | None = None
    asked_for_by: Callable[[PodShape], bool] | None = None
    watched_with: Callable[[Settings], bool] = _always
    optional: bool = False  # an API server that does not serve it has none
    trim: Callable[[Any], Struct] | None = None  # to what goes into the record
    keep: Callable[[Any, Any], Struct] | None = None  # the new object, with what stays of the old one
    digest_field: str = ""
    schema: int = 1
    upcasters: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
    writes: tuple[tuple[str, tuple[str, ...]], ...] = ()  # subresource ("" for the object) and verbs, in control mode
    announced: bool = False  # the timeline tells a change of it at level "info", not "debug"
    spec: tuple[str, ...] = ()  # as `announced`, if one of these fields changes: what users write, not its status
