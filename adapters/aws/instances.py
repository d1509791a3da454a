"""Instances that exist: finding one by its claim, describing, terminating (A-315, A-326…A-331)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kerf.adapters.aws import tags
from kerf.adapters.aws.endings import MALFORMED, Endings
from kerf.adapters.aws.session import AwsError, Clients, call, filters, pages
from kerf.adapters.aws.zonal_shift import ZonalShifts
from kerf.engine.model import labels
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import (
    IN_SHIFTED_ZONE,
    EffectAnswered,
    InstanceSeen,
    LaunchAnswered,
    TaggedInstance,
)

BATCH = 500
PAGE = 1000
ALIVE = ("pending", "running", "stopping", "stopped")
VISIBLE = (*ALIVE, "shutting-down")
"""A terminated instance counts as one that EC2 does not know (A-326)."""
NAME = "Name"
SETTLING = 60_000
"""How long (ms) EC2 may not describe an instance after its start. So long it counts as pending."""


class Instances:
    def __init__(
        self,
        clients: Clients,
        cluster: str,
        clock: Callable[[], int],
        shifts: ZonalShifts,
        *,
        reserved: bool = True,
        runs_on: Callable[[str, str], None] = lambda instance, reservation: None,
    ) -> None:
        """`runs_on` is told of each instance that runs on a capacity reservation, whenever EC2 says so."""
        self._clients, self._shifts = clients, shifts
        self._reserved, self._runs_on = reserved, runs_on
        self._cluster = cluster
        self._clock = clock
        self._started: dict[str, tuple[int, str]] = {}
        self._endings = Endings(clients)

    def started(self, answer: LaunchAnswered) -> None:
        """Remember a launch, so that its instance is not taken for gone before EC2 shows it."""
        now = self._clock()
        self._started = {i: known for i, known in list(self._started.items()) if known[0] + SETTLING > now}
        self._started[answer.instance] = (now, answer.claim)
        tagged = TaggedInstance(answer.instance, answer.claim, now, answer.capacity_type)
        self._shifts.remember(answer.zone_id, "pending", tagged)

    def find(self, order: LaunchInstance, zone_ids: Mapping[str, str], *, intent: str) -> LaunchAnswered | None:
        """The instance that carries the claim's tag. Raises `AwsError`."""
        conditions = [
            {"Name": f"tag:{tags.NODECLAIM}", "Values": [order.claim]},
            {"Name": f"tag:{tags.CLUSTER}", "Values": [self._cluster]},
            *filters(instance_state_name=ALIVE),
        ]
        entries = sorted(self._described(Filters=conditions), key=lambda entry: str(entry["InstanceId"]))
        return adopted(entries[0], order, zone_ids, intent, reserved=self._reserved) if entries else None

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        """One for each id, in the order asked; in a shifted zone as it was last seen (A-381). Raises `AwsError`."""
        hidden = self._shifts.hidden()
        entries: dict[str, Any] = {}
        asked = [instance for instance in instances if instance not in hidden]
        for start in range(0, len(asked), BATCH):
            batch = asked[start : start + BATCH]
            self._clients.listener.batched("describe_instances", 0.0, len(batch))  # nobody waits for it
            entries |= self._batch(batch)
        return [
            InstanceSeen(instance, hidden[instance].status, hidden[instance].instance.claim)
            if instance in hidden
            else self._seen(instance, entries.get(instance))
            for instance in instances
        ]

    def listing(self) -> list[TaggedInstance]:
        """kerf's instances, by instance id (A-327), those in shifted zones too (A-381). EC2 may not show a new instance
        for a while: until then it is added here. An instance may be terminated because of its tags, so they are checked
        here too. Raises `AwsError`."""
        conditions = [
            *({"Name": "tag-key", "Values": [key]} for key in (tags.NODEPOOL, tags.NODECLASS)),
            {"Name": f"tag:{tags.CLUSTER}", "Values": [self._cluster]},
            *filters(instance_state_name=ALIVE),
        ]
        tagged = [self._noted(entry) for entry in self._described(Filters=conditions) if self._ours(entry)]
        there = {instance.instance for instance in tagged}
        hidden = [known.instance for name, known in self._shifts.hidden().items() if name not in there]
        there.update(instance.instance for instance in hidden)
        now = self._clock()
        young = [
            TaggedInstance(instance, claim, started)
            for instance, (started, claim) in self._started.items()
            if instance not in there and now < started + SETTLING
        ]
        return sorted([*tagged, *hidden, *young], key=lambda instance: instance.instance)

    def profiles(self) -> set[str]:
        """The names of the instance profiles that instances of this cluster have. Raises `AwsError`."""
        ours = [{"Name": f"tag:{tags.CLUSTER}", "Values": [self._cluster]}, *filters(instance_state_name=VISIBLE)]
        arns = (entry.get("IamInstanceProfile", {}).get("Arn", "") for entry in self._described(Filters=ours))
        return {arn.rpartition("/")[2] for arn in arns if arn}

    def of_reservations(self, reservations: Sequence[str]) -> list[str]:
        """The instances of this cluster that run on these capacity reservations. Raises `AwsError`."""
        conditions = [
            {"Name": f"tag:{tags.CLUSTER}", "Values": [self._cluster]},
            *filters(capacity_reservation_id=reservations, instance_state_name=ALIVE),
        ]
        return sorted(str(entry["InstanceId"]) for entry in self._described(Filters=conditions))

    def name(self, instances: Mapping[str, str]) -> dict[str, AwsError]:
        """Tag instances (id → name) that have no Name with it; a user's own stays (A-323, A-324). Those in shifted
        zones wait (A-381). Returns what EC2 has against single ones. Raises `AwsError`."""
        ids = sorted(instances.keys() - self._shifts.hidden().keys())
        found = {
            key: entry
            for start in range(0, len(ids), BATCH)
            for key, entry in self._batch(ids[start : start + BATCH]).items()
        }
        against: dict[str, AwsError] = {}
        for instance, entry in found.items():
            if NAME not in tags.tag_map(entry.get("Tags")):
                named = [{"Key": NAME, "Value": instances[instance]}]
                if refused := self._tag(instance, named):
                    against[instance] = refused
        return against

    def _tag(self, instance: str, named: list[dict[str, str]]) -> AwsError | None:
        try:
            call(self._clients.ec2.create_tags, Resources=[instance], Tags=named)
        except AwsError as error:
            if error.of_anything:
                raise
            return None if error.not_found else error  # it may be gone since it was described
        return None

    def _ours(self, entry: Mapping[str, Any]) -> bool:
        own = tags.tag_map(entry.get("Tags"))
        return tags.NODEPOOL in own and tags.NODECLASS in own and own.get(tags.CLUSTER) == self._cluster

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        """Terminate an instance: one that is gone or going is a success (A-330). A refusal is an answer; only silence
        raises. One in a shifted zone waits until the shift ends (A-381)."""
        if instance in self._shifts.hidden():
            later = "its zone is shifted: it is asked again when it is not"
            return EffectAnswered(intent, False, IN_SHIFTED_ZONE, later)
        refused = self._endings.end(instance)
        if refused is not None:
            if refused.unknown:
                raise refused
            return EffectAnswered(intent, refused.not_found, refused.aws_code, refused.detail)
        self._started.pop(instance, None)
        self._shifts.forget(instance)
        return EffectAnswered(intent, ok=True, code="200")

    def _batch(self, instances: list[str]) -> dict[str, Any]:
        """Ask for many ids at once. One that EC2 does not know, or that is none (A-328), spoils the call; then each
        half is asked for by itself, until what spoils it is alone (A-287)."""
        try:
            entries = self._described(InstanceIds=instances, Filters=filters(instance_state_name=VISIBLE))
        except AwsError as error:
            if not error.not_found and error.aws_code != MALFORMED:
                raise
            if len(instances) == 1:
                return {}
            half = len(instances) // 2
            return self._batch(instances[:half]) | self._batch(instances[half:])
        return {entry["InstanceId"]: entry for entry in entries}

    def _described(self, **parameters: Any) -> list[dict[str, Any]]:
        """The instances, by pages unless by their ids: EC2 refuses to give those by pages (A-327)."""
        if "InstanceIds" not in parameters:
            parameters["MaxResults"] = PAGE
        reservations = pages(self._clients.ec2.describe_instances, "Reservations", **parameters)
        return [entry for reservation in reservations for entry in reservation["Instances"]]

    def _seen(self, instance: str, entry: Mapping[str, Any] | None) -> InstanceSeen:
        if entry is not None:
            noted = self._noted(entry)
            return InstanceSeen(instance, entry["State"]["Name"], noted.claim, noted.capacity_type)
        started, claim = self._started.get(instance, (0, ""))
        if started and self._clock() < started + SETTLING:
            return InstanceSeen(instance, "pending", claim)
        self._shifts.forget(instance)  # else a later shift of its zone would show it again
        return InstanceSeen(instance, "gone", claim)

    def _noted(self, entry: Mapping[str, Any]) -> TaggedInstance:
        """The instance, whose zone is remembered."""
        tagged = _tagged(entry, reserved=self._reserved)
        if tagged.capacity_type == labels.RESERVED:
            self._runs_on(tagged.instance, entry["CapacityReservationId"])
        self._shifts.remember(entry.get("Placement", {}).get("AvailabilityZoneId", ""), entry["State"]["Name"], tagged)
        return tagged


def _tagged(entry: Mapping[str, Any], *, reserved: bool) -> TaggedInstance:
    launched = entry.get("LaunchTime")
    claim = tags.tag_map(entry.get("Tags")).get(tags.NODECLAIM, "")
    started = int(launched.timestamp() * 1000) if launched else 0
    return TaggedInstance(entry["InstanceId"], claim, started, capacity_type(entry, reserved=reserved))


def adopted(
    entry: Mapping[str, Any], order: LaunchInstance, zone_ids: Mapping[str, str], intent: str, *, reserved: bool = True
) -> LaunchAnswered:
    """An instance found after the fact, as the answer to its launch (A-315, A-331)."""
    zone = entry["Placement"]["AvailabilityZone"]
    launched = entry.get("LaunchTime")
    return LaunchAnswered(
        intent=intent,
        claim=order.claim,
        instance=entry["InstanceId"],
        provider_id=f"aws:///{zone}/{entry['InstanceId']}",
        instance_type=entry["InstanceType"],
        zone=zone,
        zone_id=zone_ids.get(zone, ""),
        capacity_type=capacity_type(entry, reserved=reserved),
        image=entry.get("ImageId", ""),
        subnet=entry.get("SubnetId", ""),
        security_groups=tuple(sorted(group["GroupId"] for group in entry.get("SecurityGroups", ()))),
        launched=int(launched.timestamp() * 1000) if launched else 0,
        adopted=True,
    )


def capacity_type(entry: Mapping[str, Any], *, reserved: bool = True) -> str:
    """How an instance was bought: spot, from a reservation it was bound to, or on demand (A-331). `reserved` is the
    gate ReservedCapacity."""
    if entry.get("SpotInstanceRequestId"):
        return labels.SPOT
    preference = entry.get("CapacityReservationSpecification", {}).get("CapacityReservationPreference")
    if reserved and entry.get("CapacityReservationId") and preference == "capacity-reservations-only":
        return labels.RESERVED
    return labels.ON_DEMAND
