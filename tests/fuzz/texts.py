"""Queue messages, prices, settings, selectors, user data, keys, and short texts."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kerf.adapters.aws.catalogue.pricing import product_prices, spot_prices
from kerf.adapters.aws.interruption import parse as parse_message
from kerf.adapters.aws.userdata.boot import Boot
from kerf.adapters.aws.userdata.user_data import user_data
from kerf.adapters.cli.figures import read_prices
from kerf.adapters.cli.main import main
from kerf.adapters.manager.settings import age, size
from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.files.minisign import read_public_key, read_secret_key, read_signature
from kerf.adapters.store.pseudonyms.key_file import read_key
from kerf.engine.errors import KerfError
from kerf.engine.model.durations import parse_duration, parse_go_duration, parse_time
from kerf.engine.model.feature_gates import with_gates
from kerf.engine.model.kubernetes.devices import Device
from kerf.engine.model.quantities import format_quantity, parse_quantity
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.devices.cel_selectors import matches
from kerf.engine.scheduling.problem.scheduler_config import default_constraints
from kerf.replay.time_travel.moments import locate
from tests.fuzz.mutations import HOSTILE, damaged, mutated
from tests.fuzz.target import Target, folder, in_file, plain_json
from tests.support import hostile

MESSAGES: list[Any] = [
    {
        "version": "0", "id": "1", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
        "time": "2026-01-15T11:00:00Z", "detail": {"instance-id": "i-1", "instance-action": "terminate"},
    },
    {
        "version": "0", "id": "2", "detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2",
        "time": "2026-01-15T11:00:00Z", "detail": {"instance-id": "i-1", "state": "stopping"},
    },
    {
        "version": "0", "id": "3", "detail-type": "AWS Health Event", "source": "aws.health",
        "time": "2026-01-15T11:00:00Z",
        "detail": {
            "service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": [{"entityValue": "i-1"}],
        },
    },
]  # fmt: skip
PRODUCTS = [
    {
        "product": {"attributes": {"instanceType": "m5.large"}},
        "terms": {"OnDemand": {"t": {"priceDimensions": {"d": {"pricePerUnit": {"USD": "0.096"}}}}}},
    }
]
SPOT = [{"InstanceType": "m5.large", "AvailabilityZone": "a", "Timestamp": "2026", "SpotPrice": "0.03"}]
SCHEDULER = [
    {
        "podTopologySpread": {
            "defaultConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]
        }
    }
]
SELECTORS = [
    'device.driver == "gpu" && device.attributes["gpu"].model in ["a", "b"]',
    'device.capacity["gpu"].memory.compareTo(quantity("10Gi")) >= 0',
    'device.attributes["gpu"].version.isGreaterThan(semver("1.2.3")) ? true : !false',
    "size('abc') + 1 * 2 - -3 % 2 / 1 < 10 || [1, 2][0] == 1",
]
USER_DATA = {
    "AL2023": [
        b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
        b"--//\nContent-Type: text/x-shellscript\n\necho\n--//--\n",
        b"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n",
        b"#!/bin/bash\necho\n",
    ],
    "Bottlerocket": [
        b"[settings.kubernetes]\nmax-pods = 1\nnode-labels = {a = 'b'}\n[[x]]\ny = 1979-05-27T07:32:00Z\n"
    ],
}
TEXTS = [value for value in HOSTILE if isinstance(value, str)]


PRICE_LIST = {"m5.large": 0.08, "m5.large/spot/us-west-2a": "-20%", "spot": 0}


def check_price_list(content: bytes) -> None:
    with suppress(KerfError):
        read_prices(in_file(content))


def check_message(content: bytes) -> None:
    parse_message("m-1", content.decode("utf-8", "replace"))


def check_prices(given: tuple[Any, Any]) -> None:
    product, spot = given
    prices = product_prices([plain_json(product).decode()]).values()
    entries_of_history = [spot] if isinstance(spot, dict) else []
    assert all(map(isfinite, [*prices, *spot_prices(entries_of_history).values()]))


def check_scheduler_config(document: Any) -> None:
    with suppress(KerfError):
        default_constraints(document)


def check_selector(content: bytes) -> None:
    with suppress(KerfError):
        matches(content.decode("utf-8", "replace"), "gpu", Device("d"))


def check_user_data(given: tuple[str, bytes]) -> None:
    family, content = given
    boot = Boot(
        family=family, cluster="c", endpoint="https://c", ca_bundle="", cidr="10.100.0.0/16", max_pods=10,
        custom=content.decode("utf-8", "replace"),
    )  # fmt: skip
    with suppress(KerfError):
        user_data(boot)


def check_text(text: str) -> None:
    """Whatever the command line, an annotation or a field may hold."""
    for read in (parse_duration, parse_go_duration, parse_time, lambda given: with_gates(Settings(), given)):
        with suppress(KerfError):
            read(text)
    for resource in ("cpu", "memory"):
        with suppress(KerfError):
            format_quantity(parse_quantity(text, resource), resource)
    for read_setting in (age, size):
        with suppress(ValueError):  # its caller says which setting it is
            read_setting(text)
    with suppress(KerfError):
        locate(BundleStore(hostile.SOUND), text)


def check_keys(content: bytes) -> None:
    path = in_file(content)
    path.chmod(0o600)
    for read in (read_key, read_signature, lambda file: read_public_key(str(file)), _secret_key):
        with suppress(KerfError):
            read(path)


def _secret_key(path: Path) -> None:
    read_secret_key(path, lambda: "password")


@cache
def keys() -> list[bytes]:
    """A public key, a secret key, and a signature."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        main(["bundle", "generate-key", str(folder() / "own.key")])
        bundle = in_file(hostile.SOUND.read_bytes(), "signed.kerfb")
        main(["bundle", "sign", str(bundle), "--secret-key", str(folder() / "own.key")])
    return [(folder() / name).read_bytes() for name in ("own.key", "own.key.pub", "signed.kerfb.minisig")]


_TEXT = st.one_of(
    st.sampled_from(TEXTS), st.text(max_size=40), st.from_regex(r"[+-]?[0-9]{1,30}(\.[0-9]+)?[a-zA-Zµ]{0,3}")
)

TARGETS: dict[str, Target] = {
    "queue messages": Target(
        mutated(MESSAGES).map(plain_json) | damaged([plain_json(message) for message in MESSAGES]), check_message
    ),
    "price lists": Target(
        mutated([PRICE_LIST]).map(plain_json) | damaged([plain_json(PRICE_LIST), b"m5.large: 0.08\nspot: -20%\n"]),
        check_price_list,
    ),
    "prices": Target(st.tuples(mutated(PRODUCTS), mutated(SPOT)), check_prices),
    "scheduler-config": Target(mutated(SCHEDULER), check_scheduler_config),
    "device selectors": Target(damaged([selector.encode() for selector in SELECTORS]), check_selector),
    "user data": Target(
        st.sampled_from(sorted(USER_DATA)).flatmap(
            lambda family: st.tuples(st.just(family), damaged(USER_DATA[family]))
        ),
        check_user_data,
    ),
    "texts": Target(_TEXT, check_text),
    "keys and signatures": Target(st.deferred(lambda: damaged(keys())), check_keys),
}
