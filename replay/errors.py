"""What may go wrong when a record is asked something (KERF2xx); what is wrong with the record itself is KERF1xx."""

from __future__ import annotations

from kerf.engine.errors import KerfError


class ReplayError(KerfError):
    """Root of replay's errors."""

    code = "KERF201"


class PositionUnknown(ReplayError):
    """A position or time that is not one, or lies outside of the record."""

    code = "KERF202"


class SubjectUnknown(ReplayError):
    """The record never mentions this pod, node, NodeClaim or decision."""

    code = "KERF203"


class BeginningMissing(ReplayError):
    """The record does not begin at position 1: what was before is not known, so nothing can be decided again."""

    code = "KERF204"


class NotObserved(ReplayError):
    """The record was made in control mode: there is nothing in it to compare kerf's decisions with."""

    code = "KERF206"
