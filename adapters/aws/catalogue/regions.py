"""AWS's regions, as of 2026-08, and the ids of their zones. The list suggests a zone for a name that looks like one of
AWS's, and finds the zone of an id. A region that is missing here works all the same."""

from __future__ import annotations

import re

REGIONS = (
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1",
    "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
    "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-1",
    "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "eusc-de-east-1",
    "il-central-1", "me-central-1", "me-south-1", "mx-central-1", "sa-east-1", "us-east-1", "us-east-2",
    "us-gov-east-1", "us-gov-west-1", "us-west-1", "us-west-2",
)  # fmt: skip
ZONES = tuple(f"{region}{letter}" for region in REGIONS for letter in "abcdef")
"""Zones that accounts have, and some that no account has. Local zones are not among them."""

_NAME = re.compile(r"([a-z]+)((?:-[a-z]+)+)-([0-9]+)([a-z])")
_COMPASS = {f"{pole}{side}": pole[0] + side[0] for pole in ("north", "south") for side in ("east", "west")}


def zone_id(zone: str) -> str:
    """The id that stands for a zone in a simulation, such as usw2-az1 for us-west-2a; "" for a name of another form.
    In an account of AWS each letter may stand for another id."""
    name = _NAME.fullmatch(zone)
    if name is None:
        return ""
    first, middle, number, letter = name.groups()
    words = "".join(_COMPASS.get(word, word[0]) for word in middle.split("-")[1:])
    return f"{first}{words}{number}-az{ord(letter) - ord('a') + 1}"


ZONES_BY_ID = {zone_id(zone): zone for zone in ZONES}
