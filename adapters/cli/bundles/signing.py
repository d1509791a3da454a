"""Signing a bundle, and checking who signed it.

The trusted comment of a signature says where the bundle ends, so that it is told without the bundle too.
"""

from __future__ import annotations

import sys
import time
from getpass import getpass
from pathlib import Path

from msgspec import Struct

from kerf.adapters.cli.limits import limited
from kerf.adapters.store.files import minisign
from kerf.adapters.store.files.bundle import inspect_bundle
from kerf.adapters.store.files.bundle_format import BundleInfo
from kerf.adapters.store.files.minisign import PublicKey, SignatureRefused
from kerf.adapters.store.files.private_files import write_whole


class Signed(Struct, frozen=True):
    """A signature that holds. `key` is the signer's id and public key; `comment` is the trusted comment."""

    file: str
    signature: str
    key: str
    public_key: str
    comment: str
    bundle: BundleInfo


def signature_beside(bundle: Path) -> Path:
    return bundle.with_name(bundle.name + minisign.SIGNATURE_SUFFIX)


def sign(bundle: Path, secret_key: Path, signature: Path | None) -> Signed:
    """Checks every byte of a bundle, and writes its signature. Raises InputError and StoreError."""
    key = minisign.read_secret_key(secret_key, lambda: _password(secret_key))
    with limited(bundle):
        info = inspect_bundle(bundle)
    target = signature or signature_beside(bundle)
    comment = "\t".join(f"{name}:{value}" for name, value in _end(info, int(time.time())).items())
    write_whole(target, minisign.sign(bundle, key, comment))
    return _signed(bundle, target, key.public, comment, info)


def check_signature(bundle: Path, public_key: str, signature: Path | None) -> Signed:
    """Checks that a bundle is what the owner of a key signed. Reads nothing of the bundle before that is known.

    Raises SignatureRefused, InputError and StoreError.
    """
    key = minisign.read_public_key(public_key)
    source = signature or signature_beside(bundle)
    found = minisign.read_signature(source)
    minisign.check(bundle, found, key)
    with limited(bundle):
        info = inspect_bundle(bundle)
    said = dict(part.split(":", 1) for part in found.comment.split("\t") if ":" in part)
    for name, value in _end(info).items():
        if said.get(name, value) != value:
            told = f"the trusted comment says {name} {said[name]}, and the bundle {value}"
            raise SignatureRefused(told, where=str(source), hint="Ask for the signature again", code="KERF122")
    return _signed(bundle, source, key, found.comment, info)


def _password(key: Path) -> str:
    """Asks on the terminal; without one it is the first line of standard input, as with minisign."""
    if sys.stdin.isatty():
        return getpass(f"Password of {key}: ")
    return sys.stdin.readline().rstrip("\r\n")


def _end(info: BundleInfo, timestamp: int | None = None) -> dict[str, str]:
    """Where a bundle ends, and when it was signed, as minisign writes such things."""
    when = {} if timestamp is None else {"timestamp": str(timestamp)}
    return when | {"position": str(info.last), "chain": info.chain}


def _signed(bundle: Path, signature: Path, key: PublicKey, comment: str, info: BundleInfo) -> Signed:
    return Signed(str(bundle), str(signature), key.name, key.text, comment, info)
