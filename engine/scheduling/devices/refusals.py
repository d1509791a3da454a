"""Why a place cannot give a pod its devices: which request finds too few, and how many devices each selector ruled
out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.kubernetes.devices import ALL, DeviceRequest, ResourceClaim
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.devices.matching import Matcher, wanted_count
from kerf.engine.scheduling.devices.pools import DeviceKey, DeviceOffer
from kerf.engine.scheduling.devices.search import tolerated
from kerf.engine.scheduling.reasons import SchedulingCode, reason


def refusal(
    matcher: Matcher,
    offer: DeviceOffer | None,
    claims: Iterable[ResourceClaim],
    about: Mapping[str, str],
    taken: frozenset[DeviceKey] = frozenset(),
) -> Reason:
    """The reason. `offer`: the devices of the place; None if a claim has its devices elsewhere. `taken`: devices that
    others have. `about`: parameters that the reason carries besides."""
    if offer is None:
        return reason(SchedulingCode.DEVICES_ELSEWHERE, claims=[claim.key for claim in claims], **about)
    for claim in claims:
        for request in claim.requests:
            shortfalls = [_short(matcher, offer, alternative, taken) for alternative in request.first_of or (request,)]
            if all(shortfall is not None for shortfall in shortfalls):
                params = shortfalls[0] or {}
                name = f"{claim.key}/{request.name}"
                return reason(SchedulingCode.DEVICES, request=name, devices=len(offer.devices), **params, **about)
    return reason(SchedulingCode.DEVICES_TOGETHER, claims=[claim.key for claim in claims], **about)


def _short(
    matcher: Matcher, offer: DeviceOffer, request: DeviceRequest, taken: frozenset[DeviceKey]
) -> dict[str, str | int | list[str]] | None:
    """The parameters of a reason if a request finds fewer devices than it asks for; None if it finds enough."""
    cuts = matcher.cuts(offer, request)
    try:
        left = matcher.matching(offer, [ResourceClaim("", "", (request,))])[id(request)]
    except CelError as error:
        return {"wanted": wanted_count(request), "left": 0, "selectors": [f"{error.code}: {error.message}"]}
    open_to_it = [device for device in left if tolerated(request, device.device)]
    free = [device for device in open_to_it if request.admin or device.key not in taken]
    enough = (
        len(free) == len(left) and bool(left) and offer.whole if request.mode == ALL else len(free) >= request.count
    )
    if enough:
        return None
    ruled_out = [f"{cut.selector} ({cut.given - cut.left} of {cut.given})" for cut in cuts if cut.left < cut.given]
    for what, before, after in (("taints", left, open_to_it), ("others have them", open_to_it, free)):
        if len(after) < len(before):
            ruled_out.append(f"{what} ({len(before) - len(after)} of {len(before)})")
    return {"wanted": wanted_count(request), "left": len(free), "selectors": ruled_out or ["nothing"]}
