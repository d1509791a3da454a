"""Keys and signatures in the format of minisign: Ed25519 over a file's BLAKE2b-512, with a comment that is signed too.

https://jedisct1.github.io/minisign/ describes the format. A key or signature is a comment line and a line of base64:

    public key:  "Ed" | id (8) | key (32)
    secret key:  "Ed" | "Sc" or two zeros | "B2" | salt (32), ops (8), memory (8) for scrypt | secret (104)
    the secret:  id (8) | seed (32) | key (32) | checksum (32): zeros, or under a password, which XORs it all with
                 scrypt's stream, the BLAKE2b-256 of "Ed" and the rest
    signature:   "ED" | id (8) | signature (64), a line "trusted comment: …", and a signature over both signatures

Errors: `SignatureRefused` (KERF120 to KERF122), and InputError for what cannot be read (KERF123), for a secret key that
others may read (KERF124), and for a wrong password (KERF125).
"""

from __future__ import annotations

import hashlib
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from kerf.adapters.store.files.private_files import regular_file, write_whole
from kerf.adapters.store.sqlite.errors import readable
from kerf.engine.errors import InputError, KerfError

SIGNATURE_SUFFIX, PUBLIC_SUFFIX = ".minisig", ".pub"
_UNTRUSTED, _TRUSTED = b"untrusted comment: ", b"trusted comment: "
_ED25519, _HASHED, _CHECKSUM, _SCRYPT, _NO_PASSWORD = b"Ed", b"ED", b"B2", b"Sc", b"\0\0"
_ID, _KEY, _SIGNATURE = 8, 32, 64
_CLEAR, _SECRET = 52, 104
_BLOCK, _LEAST_OPERATIONS = 8, 1 << 15
_MOST_OPERATIONS, _MOST_MEMORY = 1 << 25, 1 << 30
"""What minisign itself asks of scrypt. A key file that asks for more is refused."""
_LONGEST = 16 << 10
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SignatureRefused(KerfError):
    """A signature does not hold: it is of another key, or the file or the trusted comment was changed."""

    code = "KERF121"


class PublicKey(Struct, frozen=True):
    id: bytes
    key: bytes

    @property
    def name(self) -> str:
        """Returns the id as minisign shows it."""
        return self.id[::-1].hex().upper()

    @property
    def text(self) -> str:
        return b64encode(_ED25519 + self.id + self.key).decode()


class SecretKey(Struct, frozen=True):
    id: bytes
    seed: bytes

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.id, self._private().public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        return self._private().sign(message)

    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.seed)


class Signature(Struct, frozen=True):
    """`of_all` is over `of_file` and the comment."""

    id: bytes
    of_file: bytes
    comment: str
    of_all: bytes


def make_key(path: Path) -> PublicKey:
    """Makes a key pair: the secret key at `path`, the public one beside it (.pub), both for their owner alone.

    Raises what `write_whole` raises; no file is overwritten.
    """
    beside = path.with_name(path.name + PUBLIC_SUFFIX)
    if regular_file(beside) is not None:
        write_whole(beside)  # raises RecordExists, before the secret key is written
    made = SecretKey(token_bytes(_ID), token_bytes(_KEY))
    public = made.public
    secret = made.id + made.seed + public.key
    clear = _ED25519 + _NO_PASSWORD + _CHECKSUM + bytes(_CLEAR - 4)
    write_whole(path, _file(b"kerf's secret key, for minisign too", clear + secret + bytes(_KEY)))
    write_whole(beside, _file(b"minisign public key " + public.name.encode(), b64decode(public.text)))
    return public


def sign(file: Path, key: SecretKey, comment: str) -> bytes:
    """Returns the content of a signature file. `comment` is one printable line."""
    of_file = key.sign(_digest(file))
    of_all = key.sign(of_file + comment.encode())
    first = _file(b"signature of a bundle of kerf", _HASHED + key.id + of_file)
    return first + _TRUSTED + comment.encode() + b"\n" + b64encode(of_all) + b"\n"


def check(file: Path, signature: Signature, key: PublicKey) -> None:
    """Checks a signature of a file, and its trusted comment. Raises `SignatureRefused`."""
    if signature.id != key.id:
        told = f"the signature is of the key {PublicKey(signature.id, b'').name}, not of {key.name}"
        hint = "Give the public key of the one who signed, from a place that you trust"
        raise SignatureRefused(told, where=str(file), hint=hint, code="KERF120")
    verify = Ed25519PublicKey.from_public_bytes(key.key).verify
    try:
        verify(signature.of_file, _digest(file))
    except InvalidSignature:
        hint = "Ask for the file and its signature again, and trust nothing in this one"
        told = "the file is not the one that was signed"
        raise SignatureRefused(told, where=str(file), hint=hint, code="KERF121") from None
    try:
        verify(signature.of_all, signature.of_file + signature.comment.encode())
    except InvalidSignature:
        hint = "The file itself is as it was signed; ask for its signature again"
        told = "the signature's trusted comment was changed"
        raise SignatureRefused(told, where=str(file), hint=hint, code="KERF122") from None


def read_signature(path: Path) -> Signature:
    with _understood(path):
        _, encoded, comment, of_all = _lines(path, 4)
        if not comment.startswith(_TRUSTED):
            raise ValueError("its third line is no trusted comment")
        content = _content(encoded, _HASHED, _ID + _SIGNATURE)
        of_all = _content(of_all, b"", _SIGNATURE)
        return Signature(content[:_ID], content[_ID:], comment.removeprefix(_TRUSTED).decode(), of_all)


def read_public_key(given: str) -> PublicKey:
    """Returns the public key that is given as text, or in a file."""
    try:
        content = _content(given.encode(), _ED25519, _ID + _KEY)
    except ValueError:
        file = Path(given)
        with _understood(file):
            content = _content(_lines(file, 2)[1], _ED25519, _ID + _KEY)
    return PublicKey(content[:_ID], content[_ID:])


def read_secret_key(path: Path, password: Callable[[], str]) -> SecretKey:
    """Returns the secret key in a file. `password` is asked for it if the key has one."""
    with readable(path), path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & _OTHERS:
            told = "others than its owner may read or write the secret key"
            raise InputError(told, where=str(path), hint=f"Run chmod 600 {path}", code="KERF124")
    with _understood(path):
        content = _content(_lines(path, 2)[1], _ED25519, _CLEAR + _SECRET)
        how, checksum, scrypt, secret = content[:2], content[2:4], content[4:_CLEAR], content[_CLEAR:]
        if checksum != _CHECKSUM or how not in (_SCRYPT, _NO_PASSWORD):
            raise ValueError("it is no secret key")
        if how == _SCRYPT:
            secret = _unlocked(secret, scrypt, password)
        secret, checksum = secret[:-_KEY], secret[-_KEY:]
        if how == _SCRYPT and checksum != blake2b(_ED25519 + secret, digest_size=_KEY).digest():
            raise InputError("the password is wrong", where=str(path), hint="Try again", code="KERF125")
        key = SecretKey(secret[:_ID], secret[_ID : _ID + _KEY])
        if key.public.key != secret[_ID + _KEY :]:
            raise ValueError("its two keys are no pair")
        return key


def _file(comment: bytes, content: bytes) -> bytes:
    return _UNTRUSTED + comment + b"\n" + b64encode(content) + b"\n"


def _digest(file: Path) -> bytes:
    with readable(file), file.open("rb") as content:
        return hashlib.file_digest(content, blake2b).digest()


def _unlocked(secret: bytes, scrypt: bytes, password: Callable[[], str]) -> bytes:
    """Returns the secret without its password. libsodium says how much work scrypt takes as operations and memory."""
    salt, operations, memory = scrypt[:32], *(int.from_bytes(scrypt[at : at + 8], "little") for at in (32, 40))
    if operations > _MOST_OPERATIONS or memory > _MOST_MEMORY:
        raise ValueError("its password asks for more work than minisign's own")
    operations = max(operations, _LEAST_OPERATIONS)
    by_operations = operations < memory // 32
    most = operations // (4 * _BLOCK) if by_operations else memory // (128 * _BLOCK)
    n = 1 << max(1, (most // 2).bit_length())
    p = 1 if by_operations else max(1, operations // 4 // n // _BLOCK)
    stream = hashlib.scrypt(
        password().encode(), salt=salt, n=n, r=_BLOCK, p=p, maxmem=128 * _BLOCK * (n + p + 2), dklen=len(secret)
    )
    return bytes(mine ^ of_stream for mine, of_stream in zip(secret, stream, strict=True))


def _lines(path: Path, count: int) -> list[bytes]:
    """Returns the lines of a file that begins with an untrusted comment. Raises ValueError for another number."""
    with readable(path), path.open("rb") as file:
        content = file.read(_LONGEST + 1)
    lines = [line.removesuffix(b"\r") for line in content.removesuffix(b"\n").split(b"\n")]
    if len(content) > _LONGEST or len(lines) != count or not lines[0].startswith(_UNTRUSTED):
        raise ValueError(f"it is not {count} lines after {_UNTRUSTED.decode()!r}")
    return lines


def _content(encoded: bytes, algorithm: bytes, length: int) -> bytes:
    """Returns what follows the algorithm. Raises ValueError."""
    content = b64decode(encoded, validate=True)
    if not content.startswith(algorithm):
        raise ValueError(f"it is not of the algorithm {algorithm.decode()}")
    if len(content) != len(algorithm) + length:
        raise ValueError(f"it has {len(content)} bytes")
    return content[len(algorithm) :]


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        hint = "Give files as minisign or kerf bundle writes them"
        told = f"this is no key or signature of minisign: {error}"
        raise InputError(told, where=str(path), hint=hint, code="KERF123") from None
