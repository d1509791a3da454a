"""Which devices the selectors of a request leave (S-200), and how many each of them ruled out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.kubernetes.devices import ALL, DeviceClass, DeviceRequest, ResourceClaim
from kerf.engine.scheduling.devices.cel_selectors import matches
from kerf.engine.scheduling.devices.pools import DeviceOffer, OfferedDevice
from kerf.engine.scheduling.devices.search import requests_of


class SelectorCut(Struct, frozen=True):
    """How many devices a selector left (`left`), of how many (`given`)."""

    selector: str
    given: int
    left: int


class Matcher:
    """The selectors of one pass. Each is evaluated once for each device."""

    def __init__(self, classes: Mapping[str, DeviceClass]) -> None:
        self._classes = classes
        self._known: dict[tuple[str, str, int], bool | CelError] = {}

    def problem(self, claim: ResourceClaim) -> str:
        """Why nothing can meet a claim; "" if something can."""
        if any(not constraint.match for constraint in claim.constraints):
            return "a constraint other than matchAttribute"
        for request in requests_of([claim]):
            if request.unsupported:
                return request.unsupported
            if request.device_class not in self._classes:
                return f"there is no DeviceClass {request.device_class}"
        return ""

    def matching(self, offer: DeviceOffer, claims: Sequence[ResourceClaim]) -> dict[int, list[OfferedDevice]]:
        """The devices that each request can have, by the id of the request. Raises CelError if a selector has no
        value for a device."""
        return {id(request): self._left(offer, request) for request in requests_of(claims)}

    def cuts(self, offer: DeviceOffer, request: DeviceRequest) -> list[SelectorCut]:
        """What each selector left, one after another. A device for which a selector has no value is not left."""
        left, cuts = list(offer.devices), []
        for expression in self._selectors(request):
            before = len(left)
            left = [device for device in left if self._asked(expression, device) is True]
            cuts.append(SelectorCut(expression, before, len(left)))
        return cuts

    def _left(self, offer: DeviceOffer, request: DeviceRequest) -> list[OfferedDevice]:
        left = []
        for device in offer.devices:
            for expression in self._selectors(request):
                matches = self._asked(expression, device)
                if isinstance(matches, CelError):
                    raise matches
                if not matches:
                    break
            else:
                left.append(device)
        return left

    def _selectors(self, request: DeviceRequest) -> tuple[str, ...]:
        return (*self._classes[request.device_class].selectors, *request.selectors)

    def _asked(self, expression: str, device: OfferedDevice) -> bool | CelError:
        key = expression, device.driver, id(device.device)
        answer = self._known.get(key)
        if answer is None:
            try:
                answer = matches(expression, device.driver, device.device)
            except CelError as error:
                answer = error
            self._known[key] = answer
        return answer


def wanted_count(request: DeviceRequest) -> str:
    """The number of devices that a request asks for, in words."""
    return "all" if request.mode == ALL else str(request.count)
