"""Errors of the simulation (KERF8xx)."""

from __future__ import annotations

from kerf.engine.errors import InputError, KerfError


class SimulationError(KerfError):
    """The simulation itself cannot go on."""

    code = "KERF800"


class EndlessLoopError(SimulationError):
    """The step budget is used up; the message names what kept going."""

    code = "KERF801"


class TimelineError(InputError):
    """A Timeline, or one of its actions, does not parse. `where` is the object and the field path."""

    code = "KERF810"


class NoSuchTargetError(InputError):
    """An action names an object, or selects instances, that do not exist when its time comes."""

    code = "KERF811"


class DocumentError(InputError):
    """A document that the simulated cluster cannot hold."""

    code = "KERF820"


class AnswerLostError(SimulationError):
    """The virtual cloud did what it was asked, but its answer never arrived. Look for the instance, then try again."""

    code = "KERF830"
