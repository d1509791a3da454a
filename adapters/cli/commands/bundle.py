"""`kerf bundle`: a record as one file to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from kerf.adapters.cli.parameters import Json, Since, Until
from kerf.engine.errors import InputError

_Place = Annotated[str, Parameter(allow_leading_hyphen=True)]

bundle = App(name="bundle", help="Make, inspect and sign bundles: a record as one file to hand on.")


@bundle.command
def export(
    record: _Place,
    file: _Place = "",
    /,
    *,
    since: Since = "start",
    until: Until = "end",
    pseudonymise: Annotated[bool, Parameter(negative="")] = False,
    key: Path | None = None,
    json: Json = False,
) -> None:
    """Write a record, or a part of it, as a bundle.

    A part brings the state at its beginning along, so that what is in it can be
    decided again. It holds whole turns.

    For example:

        kerf bundle export record.kerf incident.kerfb --pseudonymise
        kerf bundle export record.kerf incident.kerfb --since -2h
        kerf bundle export record.kerf incident.kerfb
            --since 2026-05-01T09:00:00Z --until 2026-05-01T10:00:00Z
        kubectl exec deploy/kerf -- kerf bundle export - > incident.kerfb

    Parameters
    ----------
    record
        A .kerf file, a postgresql:// URL, a .kerfb bundle, or a golden folder. Left out, it is what KERF_STORE names.
    file
        The bundle to write; it must not exist yet. "-" is standard output.
    pseudonymise
        Replace names by pseudonyms, the same ones throughout the bundle.
    key
        The key of the pseudonyms, made if it is not there. Left out, it is new and kept in FILE.key.
    json
        Print what the bundle holds as JSON.
    """
    from kerf.adapters.cli.bundles.exported_bundle import (
        STDOUT,
        Part,
        export_to_file,
        export_to_stdout,
        record_of_controller,
    )
    from kerf.adapters.cli.render.files.bundle import print_bundle

    for place in (record, file):
        if place.startswith("-") and place != STDOUT:
            raise InputError(f"Unknown option: {place}", hint="Try --help", code="KERF200")
    source, target = (record, file) if file else (record_of_controller(), record)
    part = Part(since, until, pseudonymise, key)
    if target == STDOUT:
        export_to_stdout(source, part)
    else:
        print_bundle(export_to_file(source, Path(target), part), Path(target), json=json)


@bundle.command
def names(
    record: _Place,
    pseudonyms: tuple[str, ...] = (),
    /,
    *,
    key: Path,
    json: Json = False,
) -> int:
    """Map pseudonyms back to names, given the record and the key that a bundle was made with.

    Exit codes: 0 all were found, 1 some were not, 2 usage.

    For example:

        kerf bundle names my.kerf --key my.kerfb.key
        kerf bundle names my.kerf pod-0042-9f3a1c2b4d5e6f70 --key my.kerfb.key

    Parameters
    ----------
    record
        The record that the bundle was made of.
    pseudonyms
        Those to map back, from any bundle with this key. Left out, all of them.
    key
        The file that kerf bundle export wrote beside the bundle.
    json
        Print a JSON object: pseudonym to name.
    """
    from kerf.adapters.cli.bundles.pseudonyms import mapped_back
    from kerf.adapters.cli.render.lines import print_error
    from kerf.adapters.cli.render.output import Printer, emit_json

    found = mapped_back(record, key, pseudonyms)
    known = {pseudonym: name for pseudonym, name in found.items() if name is not None}
    if json:
        emit_json(known)
    else:
        for pseudonym, name in known.items():
            Printer().line(f"{pseudonym}  {name}")
    for pseudonym in sorted(found.keys() - known.keys()):
        print_error(f"{pseudonym}: no pseudonym of this record with this key")
    return 0 if len(known) == len(found) else 1


@bundle.command
def inspect(file: Path, /, *, json: Json = False) -> None:
    """Check every byte of a bundle, and show what it holds.

    For example:

        kerf bundle inspect incident.kerfb

    Parameters
    ----------
    file
        A .kerfb bundle.
    json
        Print JSON.
    """
    from kerf.adapters.cli.limits import limited
    from kerf.adapters.cli.render.files.bundle import print_bundle
    from kerf.adapters.store.files.bundle import inspect_bundle

    with limited(file):
        info = inspect_bundle(file)
    print_bundle(info, file, json=json)


@bundle.command(name="generate-key")
def generate_key(secret_key: Path, /, *, json: Json = False) -> None:
    """Make a key pair to sign bundles with, in minisign's format.

    The secret key is for you alone: keep it away from the cluster, offline if you
    can. The public key is for everybody who gets your bundles; tell them by
    another way than the bundle's. The secret key has no password; minisign -C
    gives it one.

    For example:

        kerf bundle generate-key signing.key

    Parameters
    ----------
    secret_key
        The file to write (0600). The public key is written beside it, with .pub after its name.
    json
        Print the public key as JSON.
    """
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.store.files.minisign import PUBLIC_SUFFIX, make_key

    made = make_key(secret_key)
    if json:
        emit_json({"key": made.name, "public_key": made.text})
    else:
        Printer().line(f"{secret_key}: the secret key {made.name}. Keep it to yourself")
        Printer().line(f"{secret_key}{PUBLIC_SUFFIX}: the public key {made.text}")


@bundle.command
def sign(file: Path, /, *, secret_key: Path, signature: Path | None = None, json: Json = False) -> None:
    """Sign a bundle, so that others can tell that it comes from you and was not changed.

    Every byte of the bundle is checked first. The signature is minisign's: minisign
    -V checks it, and minisign -S signs bundles as well. It says, signed too, at
    which position the record ends and which value its chain has there.

    For example:

        kerf bundle sign incident.kerfb --secret-key signing.key

    Parameters
    ----------
    file
        A .kerfb bundle.
    secret_key
        A file by kerf bundle generate-key or minisign -G, which its owner alone may read. Its password is asked for.
    signature
        The file to write; it must not exist yet. Left out, it is FILE.minisig.
    json
        Print JSON.
    """
    from kerf.adapters.cli.bundles.signing import sign as write_signature
    from kerf.adapters.cli.render.files.bundle import print_signed

    print_signed(write_signature(file, secret_key, signature), json=json)


@bundle.command(name="verify-signature")
def verify_signature(file: Path, /, *, public_key: str, signature: Path | None = None, json: Json = False) -> int:
    """Check that a bundle is, byte for byte, what the owner of a key signed.

    This says who made the bundle; kerf verify says whether its decisions are
    made again as they were. Nothing of the bundle is decoded before its signature
    holds.

    Exit codes: 0 the signature holds, 1 it does not (another key, or the bundle or
    the signature's comment was changed), 2 usage or a malformed file, 3 the bundle
    was signed, but is damaged.

    For example:

        kerf bundle verify-signature incident.kerfb --public-key signing.key.pub

    Parameters
    ----------
    file
        A .kerfb bundle.
    public_key
        The signer's public key, or a file with it. Have it from a place that you trust.
    signature
        The signature. Left out, it is FILE.minisig.
    json
        Print JSON.
    """
    from kerf.adapters.cli.bundles.signing import check_signature
    from kerf.adapters.cli.render.files.bundle import print_signed
    from kerf.adapters.cli.render.lines import print_error
    from kerf.adapters.store.files.minisign import SignatureRefused

    try:
        signed = check_signature(file, public_key, signature)
    except SignatureRefused as refused:
        print_error(str(refused))
        return 1
    print_signed(signed, json=json)
    return 0


@bundle.command
def golden(record: str, folder: Path, /, *, guards: str, until: Until = "end") -> None:
    """Write a record, from its beginning, as a golden folder.

    Below a folder named golden it is a test for pytest.

    For example:

        kerf bundle golden my.kerf tests/golden/bad-morning
            --guards "The last spot node is replaced"

    Parameters
    ----------
    record
        A .kerf file or a .kerfb bundle.
    folder
        The folder to write; it must not hold a record yet.
    guards
        What the case guards: the line of its README.md.
    """
    from kerf.adapters.cli.records import opened
    from kerf.adapters.cli.render.output import Printer
    from kerf.adapters.store.files.golden import write_golden
    from kerf.adapters.store.files.private_files import regular_file, write_whole
    from kerf.replay.time_travel.moments import locate

    with opened(record) as store:
        write_golden(store, folder, until=None if until == "end" else locate(store, until))
    readme = folder / "README.md"
    if regular_file(readme) is None:
        write_whole(readme, f"# {folder.name}\n\n{guards}\n".encode())
    Printer().line(f"{folder}: run pytest on it; pytest --golden-update writes it anew, on purpose")
