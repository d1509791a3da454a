"""Keys and signatures in minisign's format: what minisign made is read, and what kerf makes minisign takes.

`VECTOR_KEY` and `VECTOR` are the example of the documentation of the crate minisign-verify, by minisign's author: a
signature of the file "test". Debian's minisign 0.11 made `PLAIN` (`minisign -G -W`), `PLAIN_SIGNATURE` of the same
file (`minisign -S -t hello`), and `LOCKED`, whose password is "kerf" (`minisign -G`), for this test.
"""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from kerf.adapters.store.files import minisign
from kerf.adapters.store.files.minisign import SecretKey, SignatureRefused
from kerf.engine.errors import InputError
from kerf.engine.record.errors import RecordExists, StoreError

VECTOR_KEY = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
VECTOR = """untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1633700835\tfile:test\tprehashed
wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==
"""
PLAIN = """untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA4pLGlmcvKqSjmgd46FJfWyyubhI1nCa9reAr/dEqTrrz0zrJS03QyqG3HaAW2ySYuKnjj7n9cWF6mhcmeG2RSHDGzTaZerZfAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
"""
PLAIN_PUBLIC = "RWTiksaWZy8qpKG3HaAW2ySYuKnjj7n9cWF6mhcmeG2RSHDGzTaZerZf"
PLAIN_SIGNATURE = """untrusted comment: signature from minisign secret key
RUTiksaWZy8qpCVYo5iNJDdZ0L8M/o4tBPfXSDMGrWs6OfrPTA2EoYlaADrwSiUqOfdI68mNeoFDGV4SvVhU9A4NLk4L0h8giA8=
trusted comment: hello
iVVxULAyescuV5AqMEXLz5LKDqoBEXHHxxysm0lkYQVoFIfl2SwAerOaRK99eIKSIT6cEOqAOF4RNonVYyspBA==
"""
LOCKED = """untrusted comment: minisign encrypted secret key
RWRTY0IydAi+nLWK84LczfF+EhqtLT2GOTAgNHwZwlvKb0dwIhAAAAACAAAAAAAAAEAAAAAAdhzyy28DD1kUPNq6LEWM+4rjozJXjZYI03CDBD4qUTQZ2H0ahhQmqVGYa0LEqWECmwowHpae1NDdVcMNwfIwwe+q8E7Kf/YvaKT2nUvvSuNZ/GN9Ujt/H+PCGPq7nZVze5fFZXuwP7E=
"""
LOCKED_PUBLIC = "RWRYGmXORgUj96zveL/M5AdzljJg8xQe2aqy9VFtWl4068LcY3NyZ4zJ"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "test"
    path.write_text("test")
    return path


def written(file: Path, signature: bytes | str) -> Path:
    path = file.with_name("test.minisig")
    path.write_bytes(signature.encode() if isinstance(signature, str) else signature)
    return path


def key_file(folder: Path, content: str, mode: int = 0o600) -> Path:
    path = folder / "given.key"
    path.write_text(content)
    path.chmod(mode)
    return path


def no_password() -> str:
    raise AssertionError("a key without a password asks for none")


def checked(file: Path, signature: bytes | str, public_key: str) -> str:
    """The code that a check ends with; empty if the signature holds."""
    try:
        found = minisign.read_signature(written(file, signature))
        minisign.check(file, found, minisign.read_public_key(public_key))
    except (SignatureRefused, InputError) as error:
        return error.code
    return ""


@pytest.mark.parametrize(("signature", "key"), [(VECTOR, VECTOR_KEY), (PLAIN_SIGNATURE, PLAIN_PUBLIC)])
def test_signatures_of_minisign_hold_and_tell_what_was_changed(file: Path, signature: str, key: str) -> None:
    other = SecretKey(bytes(8), bytes(32)).public.text
    assert checked(file, signature, key) == ""
    assert checked(file, signature.replace("\n", "\r\n"), key) == ""
    assert checked(file, signature, other) == "KERF120"
    file.write_text("tesu")
    assert checked(file, signature, key) == "KERF121"


def test_a_changed_trusted_comment_is_told_apart_from_a_changed_file(file: Path) -> None:
    assert checked(file, PLAIN_SIGNATURE.replace("hello", "hullo"), PLAIN_PUBLIC) == "KERF122"


def test_a_key_with_anothers_id_is_refused(file: Path) -> None:
    forger = SecretKey(b64decode(PLAIN_PUBLIC)[2:10], bytes(32))
    assert checked(file, minisign.sign(file, forger, "hello"), PLAIN_PUBLIC) == "KERF121"


@pytest.mark.parametrize(
    "signature",
    [
        "", "untrusted comment: \n", VECTOR[:-20], VECTOR + "more\n", VECTOR.replace("untrusted", "trusted"),
        VECTOR.replace("\ntrusted", "\nuntrusted"), VECTOR.replace("RUQf", "RWQf"), VECTOR.replace("RUQf", "R!Qf"),
        VECTOR.replace("timestamp", "\udcff").encode(errors="surrogateescape"), b"\xff" * 100, "x" * 100_000,
    ],
)  # fmt: skip
def test_malformed_signatures_are_refused(file: Path, signature: str | bytes) -> None:
    assert checked(file, signature, VECTOR_KEY) == "KERF123"


def test_a_key_of_minisign_signs(file: Path, tmp_path: Path) -> None:
    key = minisign.read_secret_key(key_file(tmp_path, PLAIN), no_password)
    assert key.public.text == PLAIN_PUBLIC
    assert checked(file, minisign.sign(file, key, "position:1"), PLAIN_PUBLIC) == ""


def test_a_made_key_pair_is_private_and_signs(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    public = minisign.make_key(path)
    assert [stat.S_IMODE(made.stat().st_mode) for made in (path, tmp_path / "own.key.pub")] == [0o600, 0o600]
    key = minisign.read_secret_key(path, no_password)
    assert (key.public, minisign.read_public_key(str(tmp_path / "own.key.pub"))) == (public, public)
    assert checked(file, minisign.sign(file, key, "hello"), public.text) == ""


@pytest.mark.parametrize("there", ["own.key", "own.key.pub"])
def test_a_made_key_overwrites_nothing(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("the user's")
    with pytest.raises(RecordExists):
        minisign.make_key(tmp_path / "own.key")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {there: "the user's"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_secret_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(InputError, match=r"KERF124.*chmod 600"):
        minisign.read_secret_key(key_file(tmp_path, PLAIN, mode), no_password)


def cost(key: str, operations: int, memory: int) -> bytes:
    content = b64decode(key.splitlines()[1])
    return content[:38] + operations.to_bytes(8, "little") + memory.to_bytes(8, "little") + content[54:]


@pytest.mark.parametrize(
    "content",
    [
        b"", b64decode(PLAIN_PUBLIC), b64decode(PLAIN.splitlines()[1])[:-1], b"Ed" + bytes(156),
        b64decode(PLAIN.splitlines()[1])[:100] + bytes(58),
        cost(LOCKED, 1 << 26, 1 << 30), cost(LOCKED, 1 << 25, 1 << 63),
    ],
)  # fmt: skip
def test_malformed_secret_keys_are_refused(tmp_path: Path, content: bytes) -> None:
    path = key_file(tmp_path, f"untrusted comment: \n{b64encode(content).decode()}\n")
    with pytest.raises(InputError, match="KERF123"):
        minisign.read_secret_key(path, no_password)


def test_no_key_at_all(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="KERF113"):
        minisign.read_secret_key(tmp_path / "none", no_password)
    with pytest.raises(StoreError, match="KERF113"):
        minisign.read_public_key(str(tmp_path / "none"))
    with pytest.raises(InputError, match="KERF123"):
        minisign.read_public_key(str(key_file(tmp_path, PLAIN)))


def test_a_password_opens_its_key_alone(tmp_path: Path) -> None:
    """libsodium's "interactive" cost is scrypt with N = 2**14, r = 8, p = 1."""
    key = minisign.read_secret_key(key_file(tmp_path, PLAIN), no_password)
    secret = key.id + key.seed + key.public.key
    secret += hashlib.blake2b(b"Ed" + secret, digest_size=32).digest()
    salt = bytes(range(32))
    stream = hashlib.scrypt(b"open", salt=salt, n=1 << 14, r=8, p=1, maxmem=1 << 25, dklen=104)
    limits = (1 << 19).to_bytes(8, "little") + (1 << 24).to_bytes(8, "little")
    content = b"EdScB2" + salt + limits + bytes(a ^ b for a, b in zip(secret, stream, strict=True))
    path = key_file(tmp_path, f"untrusted comment: \n{b64encode(content).decode()}\n")
    assert minisign.read_secret_key(path, lambda: "open") == key
    with pytest.raises(InputError, match="KERF125"):
        minisign.read_secret_key(path, lambda: "shut")


@pytest.mark.slow  # scrypt takes 1 GiB and some seconds, as minisign asks of it
def test_a_key_of_minisign_with_a_password_signs(tmp_path: Path) -> None:
    key = minisign.read_secret_key(key_file(tmp_path, LOCKED), lambda: "kerf")
    assert key.public.text == LOCKED_PUBLIC


@pytest.mark.skipif(shutil.which("minisign") is None, reason="minisign is not installed")
def test_minisign_takes_keys_and_signatures(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    public = minisign.make_key(path)
    signature = minisign.sign(file, minisign.read_secret_key(path, no_password), "position:1\tchain:00")
    told = subprocess.run(
        ["minisign", "-V", "-m", file, "-x", written(file, signature), "-p", f"{path}.pub"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert (told.returncode, b"position:1\tchain:00" in told.stdout) == (0, True)
    theirs = tmp_path / "theirs.minisig"
    subprocess.run(["minisign", "-S", "-m", file, "-x", theirs, "-s", path], capture_output=True, check=True)
    assert checked(file, theirs.read_bytes(), public.text) == ""
