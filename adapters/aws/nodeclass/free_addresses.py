"""Counts the free addresses of subnets: what EC2 last told, less what launches since then will use (A-232, A-233)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from msgspec import Struct

from kerf.engine.model.karpenter.ec2nodeclasses import ResolvedSubnet


class _Count(Struct):
    """Of one subnet. Each answer of EC2 begins a new one."""

    free: int
    taken: int = 0


class Taken(Struct, frozen=True):
    """What one launch takes, by zone: the subnet that it may use, the count that its addresses are in, and how many
    they are."""

    subnets: dict[str, str]
    counts: dict[str, _Count]
    addresses: dict[str, int]


class FreeAddresses:
    """Safe for threads."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self._counting = threading.Lock()

    def told(self, free: Mapping[str, int]) -> None:
        """Take in what EC2 says of subnets. What launches took of these is forgotten; of others it still counts."""
        with self._counting:
            self._counts |= {subnet: _Count(addresses) for subnet, addresses in free.items()}

    def known(self) -> dict[str, int]:
        """Free addresses by subnet, as EC2 last told."""
        with self._counting:
            return {subnet: count.free for subnet, count in self._counts.items()}

    def used_up(self, subnet: str) -> None:
        """EC2 found none in a subnet (A-293)."""
        self.told({subnet: 0})

    def take(self, subnets: Iterable[ResolvedSubnet], addresses: Mapping[str, int]) -> Taken:
        """Choose the subnet with most free addresses in each of these zones, and take so many addresses of it. Of
        equals the one that comes first in the status (A-96) is chosen: EC2 told of more, or it is the first given."""
        chosen: dict[str, tuple[tuple[int, int], str]] = {}
        with self._counting:
            for subnet in subnets:
                count = self._counts.setdefault(subnet.id, _Count(0))
                left = count.free - count.taken, count.free
                if subnet.zone in addresses and (subnet.zone not in chosen or left > chosen[subnet.zone][0]):
                    chosen[subnet.zone] = (left, subnet.id)
            counts = {zone: self._counts[subnet] for zone, (_, subnet) in chosen.items()}
            for zone, count in counts.items():
                count.taken += addresses[zone]
        return Taken({zone: subnet for zone, (_, subnet) in chosen.items()}, counts, dict(addresses))

    def give_back(self, taken: Taken, used: str) -> None:
        """Return the addresses of all zones but the one that was used. A count that EC2's answer has replaced is not
        touched: it never had them."""
        with self._counting:
            for zone, count in taken.counts.items():
                if zone != used:
                    count.taken -= taken.addresses[zone]
