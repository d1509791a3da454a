"""Errors of questions to a record (KERF2xx). What is wrong with the record itself is KERF1xx."""

from __future__ import annotations

from kerf.engine.errors import KerfError


class ReplayError(KerfError):
    """Root of replay's errors."""

    code = "KERF201"


class PositionUnknown(ReplayError):
    """The text is neither a position nor a time, or it lies outside of the record."""

    code = "KERF202"


class SubjectUnknown(ReplayError):
    """The record never mentions this pod, node, NodeClaim or decision."""

    code = "KERF203"


class SubjectAmbiguous(ReplayError):
    """The name stands for several things, in several namespaces."""

    code = "KERF210"


class BeginningMissing(ReplayError):
    """The record does not begin at position 1, so nothing in it can be decided again."""

    code = "KERF204"


class PartialRecord(ReplayError):
    """The record was imported, and its source does not tell what the question needs."""

    code = "KERF211"


class NotObserved(ReplayError):
    """The record was made in control mode, so it holds no decisions of Karpenter to compare with."""

    code = "KERF206"


class ChangeRefused(ReplayError):
    """A change of a what-if that does not apply: it names something unknown, or a field that cannot hold the value."""

    code = "KERF208"


class DecidedByNewer(ReplayError):
    """The record was decided by a newer engine, whose deciders this one does not have."""

    code = "KERF209"


class DeclarationRefused(ReplayError):
    """A file of declared changes that cannot be read, or declares what no engine of this version can differ in."""

    code = "KERF220"


class PolicyRefused(ReplayError):
    """A policy that cannot be read: an unknown key, a value of the wrong form, or a time outside of the record."""

    code = "KERF221"


class NotModelled(ReplayError):
    """The record, or a part of it, has something that no model can run, or lacks what one needs."""

    code = "KERF213"


class ModelTooFar(ReplayError):
    """Without a change the model is too far from what was recorded, so nothing follows from it."""

    code = "KERF214"
