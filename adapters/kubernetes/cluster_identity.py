"""Asks the API server which cluster it is of: the uid of the namespace kube-system."""

from __future__ import annotations

import msgspec

from kerf.adapters.kubernetes.errors import Unreachable
from kerf.adapters.kubernetes.session import Session
from kerf.engine.record.errors import UNDECODABLE

PATH = "/api/v1/namespaces/kube-system"


class _Metadata(msgspec.Struct):
    uid: str


class _Namespace(msgspec.Struct):
    metadata: _Metadata


async def cluster_uid(session: Session) -> str:
    """Returns the uid of the namespace kube-system, which never changes; "" if the API server does not return it."""
    try:
        answer = await session.request("GET", PATH)
        return msgspec.json.decode(answer.body, type=_Namespace).metadata.uid
    except (Unreachable, *UNDECODABLE):
        return ""
