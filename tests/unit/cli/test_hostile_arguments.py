"""Whatever a command is given, it ends with a known exit code and a coded error, and never with a traceback.

Each command that reads something gets each hostile file in each place of its arguments, and each hostile value in each
place of a position, a time, a number or a name.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerf.adapters.cli.command_table import COMMANDS
from kerf.adapters.cli.main import main
from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.retention.policy import Due
from kerf.adapters.store.retention.prune import cut_now
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.errors import FormatUnsupported
from tests.support import hostile
from tests.support.repository import ROOT
from tests.support.slow import slow

EXAMPLES = ROOT / "docs/examples"
CODED = re.compile(r"^KERF(?!000|900|605)\d{3}: ", re.MULTILINE)
FILE = "FILE"
"""Stands for the hostile file in a command's arguments."""

PUBLIC_KEY = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
READING: dict[str, list[str]] = {
    "log": ["log", FILE],
    "log --karpenter": ["log", FILE, "--karpenter"],
    "log --effort": ["log", FILE, "--effort"],
    "at": ["at", FILE],
    "explain pod": ["explain", FILE, "pod", "default/web"],
    "explain node": ["explain", FILE, "node", "ip-10-0-0-1"],
    "explain decision": ["explain", FILE, "decision", "3"],
    "story": ["story", FILE, "default/web"],
    "verify": ["verify", FILE],
    "status": ["status", FILE],
    "diff": ["diff", FILE, "start", "end"],
    "import": ["import", FILE, "--record", "new.kerf"],
    "replay": ["replay", FILE, "--setting", "batch_idle=5s"],
    "whatif": ["whatif", FILE, "--remove", "node/ip-10-0-0-1"],
    "cost": ["cost", FILE],
    "cost --by workload": ["cost", FILE, "--by", "workload"],
    "cost --prices": ["cost", "sound.kerfb", "--prices", FILE],
    "evictions": ["evictions", FILE],
    "churn": ["churn", FILE],
    "capacity": ["capacity", FILE],
    "sql": ["sql", "SELECT count(*) FROM claims", FILE],
    "export": ["export", FILE, "--parquet", "new"],
    "sweep": ["sweep", "sound-plan.yaml", FILE, "--out", "new"],
    "sweep plan": ["sweep", FILE, "sound.kerfb", "--out", "new"],
    "whatif --apply": ["whatif", "sound.kerfb", "--apply", FILE],
    "whatif --add-pods": ["whatif", "sound.kerfb", "--add-pods", FILE],
    "bundle export": ["bundle", "export", FILE, "new.kerfb"],
    "bundle export --pseudonymise": ["bundle", "export", FILE, "new.kerfb", "--pseudonymise"],
    "bundle export --key": ["bundle", "export", "sound.kerfb", "new.kerfb", "--pseudonymise", "--key", FILE],
    "bundle names": ["bundle", "names", FILE, "--key", "sound.key"],
    "bundle names --key": ["bundle", "names", "sound.kerfb", "--key", FILE],
    "bundle inspect": ["bundle", "inspect", FILE],
    "bundle sign": ["bundle", "sign", FILE, "--secret-key", "own.key"],
    "bundle sign --secret-key": ["bundle", "sign", "sound.kerfb", "--secret-key", FILE],
    "bundle verify-signature": ["bundle", "verify-signature", FILE, "--public-key", PUBLIC_KEY],
    "bundle verify-signature --public-key": ["bundle", "verify-signature", "sound.kerfb", "--public-key", FILE],
    "bundle verify-signature --signature": [
        "bundle",
        "verify-signature",
        "sound.kerfb",
        "--public-key",
        PUBLIC_KEY,
        "--signature",
        FILE,
    ],
    "bundle golden": ["bundle", "golden", FILE, "new", "--guards", "nothing"],
    "check": ["check", FILE, "sound.kerfb"],
    "check a record": ["check", str(EXAMPLES / "ci/policy.yaml"), FILE],
    "verify --changes": ["verify", "sound.kerfb", "--changes", FILE],
    "observe report": ["observe", "report", FILE],
    "store prune": ["store", "prune", FILE],
    "store prune --dry-run": ["store", "prune", FILE, "--dry-run"],
    "validate": ["validate", FILE],
    "convert": ["convert", FILE],
    "simulate": ["simulate", FILE, "--until", "1s"],
    "simulate --scheduler-config": ["simulate", "sound.yaml", "--until", "1s", "--scheduler-config", FILE],
    "plan": ["plan", FILE],
    "plan --json": ["plan", FILE, "--json"],
    "plan --catalogues": ["plan", "sound.json", "--catalogues", FILE],
    "disrupt": ["disrupt", FILE],
    "disrupt --catalogues": ["disrupt", "sound.json", "--catalogues", FILE],
    "doctor --kubeconfig": ["doctor", "--kubeconfig", FILE],
    "capture --kubeconfig": ["capture", "new.kerfb", "--kubeconfig", FILE],
    "doctor --store": ["doctor", "--kubeconfig", "missing", "--store", FILE],
    "run --kubeconfig": ["run", "--store", "sqlite:///nowhere/record.kerf", "--kubeconfig", FILE],
}
QUICK = ["at", "bundle inspect", "validate", "plan"]
"""One for each way in which commands read; the others are slow tests."""
WRITING: dict[str, list[str]] = {
    "bundle export": ["bundle", "export", "sound.kerfb", FILE],
    "bundle golden": ["bundle", "golden", "sound.kerfb", FILE, "--guards", "nothing"],
    "bundle generate-key": ["bundle", "generate-key", FILE],
    "bundle sign": ["bundle", "sign", "sound.kerfb", "--secret-key", "own.key", "--signature", FILE],
    "export --parquet": ["export", "sound.kerfb", "--parquet", FILE],
    "import --record": ["import", "sound.log", "--record", FILE],
    "whatif --export": ["whatif", "sound.kerfb", "--export", FILE],
    "verify --write-changes": ["verify", "sound.kerfb", "--write-changes", FILE],
    "simulate --record": ["simulate", "sound.yaml", "--until", "1s", "--record", FILE],
    "demo --record": ["demo", "--record", FILE],
}


def text(content: str | bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "hostile"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def golden_with(line: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "golden").mkdir()
        (folder / "golden/record.jsonl").write_text(line)
        return folder / "golden"

    return make


def folder_as_file(folder: Path) -> Path:
    (folder / "folder").mkdir()
    return folder / "folder"


def folder_of_folders(folder: Path) -> Path:
    (folder / "folder/record.jsonl").mkdir(parents=True)
    (folder / "folder/a.yaml").mkdir()
    return folder / "folder"


def loop_of_links(folder: Path) -> Path:
    (folder / "loop").symlink_to("loop")
    return folder / "loop"


def below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "more"


def bundle_with(encoded: bytes) -> Callable[[Path], Path]:
    return lambda folder: hostile.bundle_of(folder / "b.kerfb", encoded)


HOSTILE: dict[str, Callable[[Path], Path]] = {
    "an empty file": text(""),
    "zeros": text(bytes(1000)),
    "invalid UTF-8": text(b"\xff\xfe{\x80\x81: [\xc3\x28"),
    "a lone surrogate": text('{"name": "\\ud800", "kind": "Pod", "apiVersion": "v1"}'),
    "control characters": text("kind: Pod\napiVersion: v1\nmetadata: {name: \x1b]0;x\x07}\n"),
    "deep JSON": text("[" * 100_000),
    "deep JSON that ends": text('{"a":' * 100_000 + "1" + "}" * 100_000),
    "deep YAML": text("- " * 50_000),
    "a number of 5,000 digits": text("9" * 5_000),
    "numbers of 5,000 digits": text(
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"priority": %s}}' % ("9" * 5_000)
    ),
    "a number beyond floats": text('{"apiVersion": "v1", "kind": "Pod", "a": 1e999, "b": -1e999, "c": .nan}'),
    "a wrong time": text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": "99999-99-99"}}'),
    "a list": text("[1, null, [], {}]"),
    "a string": text('"text"'),
    "documents of nothing": text("---\n---\nnull\n---\n[]\n"),
    "null everywhere": text('{"apiVersion": null, "kind": null, "metadata": null, "spec": null, "catalogues": null}'),
    "null in catalogues": text('{"catalogues": {"a": [null]}}'),
    "YAML tags": text("!!python/object/apply:os.system ['true']\n"),
    "YAML merge": text("a: &a {<<: *a}\n"),
    "YAML set and pairs": text(
        "!!set {a, b}\n---\n!!binary aGVsbG8=\n---\n!!pairs [a: b]\n---\n!!timestamp 2001-99-99\n"
    ),
    "a time as key": text("2001-01-01: a\n1: b\nnull: c\n[a]: d\n"),
    "SQLite alone": text(b"SQLite format 3\x00"),
    "SQLite of zeros": text(b"SQLite format 3\x00" + bytes(5000)),
    "a bundle alone": text(b"kerfb\x00"),
    "a bundle of a newer format": text(b"kerfb\x00\x00\x63" + bytes(100)),
    "a bundle with a long header": text(b"kerfb\x00\x00\x01\xff\xff\xff\xff"),
    "a golden line of a late time": golden_with(
        '{"position":1,"turn":1,"stream":"record","version":1,"type":"record.started","schema":1,'
        '"at":"9999-12-31T23:59:59.999999-23:59","cause":0,"epoch":1,"payload":{"record":"r","engine":"0"}}'
    ),
    "a golden line of 5,000 digits": golden_with('{"position":%s}' % ("9" * 5_000)),
    "a deep golden line": golden_with('{"position":1,"payload":' + "[" * 100_000),
    "a golden folder of invalid UTF-8": golden_with("\udc80".encode("utf-8", "surrogatepass").decode("latin-1")),
    "an empty golden folder": golden_with(""),
    "an entry too deep": bundle_with(hostile.entry(payload=hostile.deep())),
    "an entry of a late time": bundle_with(hostile.entry(at=2**62)),
    "an entry of an unknown type": bundle_with(hostile.entry(type="nobody.knows")),
    "an entry of a huge position": bundle_with(hostile.entry(2**63)),
    "a folder": folder_as_file,
    "a folder of folders": folder_of_folders,
    "nothing": lambda folder: folder / "missing",
    "nothing below a file": below_a_file,
    "a loop of links": loop_of_links,
    "a name of 300 characters": lambda folder: folder / ("n" * 300),
    "a path of 5,000 characters": lambda folder: folder / "/".join(["n" * 200] * 25),
    "a surrogate in the name": lambda folder: folder / os.fsdecode(b"\xff\xfe"),
    "a URL": lambda folder: Path("postgresql:/user:secret@nowhere:99999/x"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with sound files beside the hostile one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    (tmp_path / "sound.kerfb").write_bytes(hostile.SOUND.read_bytes())
    (tmp_path / "sound.key").write_text("0" * 64 + "\n")
    (tmp_path / "sound.log").write_bytes((EXAMPLES / "karpenter.log").read_bytes())
    (tmp_path / "sound-plan.yaml").write_text("grid: {a: {price: spot, to: [1]}}")
    (tmp_path / "sound.yaml").write_bytes((EXAMPLES / "workshop/nodepool.yaml").read_bytes())
    (tmp_path / "sound.json").write_bytes((EXAMPLES / "plan/workshop.json").read_bytes())
    return tmp_path


def ends_well(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    """Runs a command and asserts that its end is one that docs/errors.md has. Returns the exit code."""
    code = main(arguments)
    out, err = capsys.readouterr()
    shown = f"kerf {' '.join(arguments)[:300]}: {code}\n{out[-1000:]}\n{err[-1000:]}"
    assert code in {0, 1, 2, 3, 4}, shown
    assert "Traceback" not in out + err, shown
    assert not re.search("KERF(900|605)", out + err), shown
    if code > 1:
        assert CODED.search(err) or (arguments[0] == "verify" and out), shown
        assert len(err) < 20_000, shown[:2000]
    return code


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("command", [*QUICK, *slow(*(command for command in READING if command not in QUICK))])
def test_a_hostile_file_is_refused(command: str, what: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(HOSTILE[what](folder))
    ends_well([path if word == FILE else word for word in READING[command]], capsys)


# ── values ─────────────────────────────────────────────────────────────────────────────────────────────────────────


VALUE = "VALUE"
WITH_VALUE = [
    ["at", "sound.kerfb", VALUE],
    ["log", "sound.kerfb", "--since", VALUE],
    ["log", "sound.kerfb", "--until", VALUE],
    ["log", "sound.kerfb", "--subject", VALUE],
    ["explain", "sound.kerfb", VALUE, "default/web"],
    ["explain", "sound.kerfb", "pod", VALUE],
    ["explain", "sound.kerfb", "node", VALUE],
    ["explain", "sound.kerfb", "nodeclaim", VALUE],
    ["explain", "sound.kerfb", "decision", VALUE],
    ["explain", "sound.kerfb", "pod", "default/web", "--at", VALUE],
    ["story", "sound.kerfb", VALUE],
    ["story", "sound.kerfb", "node", VALUE],
    ["story", "sound.kerfb", "default/web", "--at", VALUE],
    ["whatif", "sound.kerfb", "--remove", "node/ip-10-0-0-1", "--at", VALUE],
    ["whatif", "sound.kerfb", "--remove", VALUE],
    ["whatif", "sound.kerfb", "--delete", VALUE],
    ["whatif", "sound.kerfb", "--set", VALUE],
    ["whatif", "sound.kerfb", "--set", f"nodepool/default.spec.{VALUE}=1"],
    ["whatif", "sound.kerfb", "--price", f"m5.large={VALUE}"],
    ["whatif", "sound.kerfb", "--no-capacity", VALUE],
    ["whatif", "sound.kerfb", "--setting", f"batch_idle={VALUE}"],
    ["cost", "sound.kerfb", "--since", VALUE],
    ["cost", "sound.kerfb", "--by", VALUE],
    ["verify", "sound.kerfb", "--limit", VALUE],
    ["status", "sound.kerfb", "--at", VALUE],
    ["diff", "sound.kerfb", "start", VALUE],
    ["diff", "sound.kerfb", VALUE],
    ["verify", "sound.kerfb", "--checkpoint", VALUE],
    ["bundle", "verify-signature", "sound.kerfb", "--public-key", VALUE],
    ["bundle", "export", "sound.kerfb", "new.kerfb", "--since", VALUE],
    ["bundle", "export", "sound.kerfb", "new.kerfb", "--until", VALUE],
    ["bundle", "names", "sound.kerfb", VALUE, "--key", "sound.key"],
    ["bundle", "golden", "sound.kerfb", "new", "--guards", VALUE, "--until", VALUE],
    ["store", "prune", "sound.kerf", "--dry-run", "--observations", VALUE],
    ["store", "prune", "sound.kerf", "--dry-run", "--decisions", VALUE],
    ["store", "prune", "sound.kerf", "--dry-run", "--size", VALUE],
    ["validate", "sound.yaml", "--kubernetes-version", VALUE],
    ["simulate", "sound.yaml", "--until", VALUE, "--start", "99999"],
    ["simulate", "sound.yaml", "--until", "1s", "--start", VALUE],
    ["simulate", "sound.yaml", "--until", "1s", "--seed", VALUE],
    ["simulate", "sound.yaml", "--until", "1s", "--feature-gates", VALUE],
    ["plan", "sound.json", "--effort", VALUE],
    ["plan", "sound.json", "--max-steps", VALUE],
    ["doctor", "--kubeconfig", "missing", "--context", VALUE],
    ["doctor", "--kubeconfig", "missing", "--mode", VALUE],
    ["doctor", "--kubeconfig", "missing", "--metrics-port", VALUE],
    ["doctor", "--kubeconfig", "missing", "--batch-max-duration", VALUE],
    ["run", "--store", VALUE, "--kubeconfig", "missing"],
    [VALUE],
    ["bundle", VALUE],
]
VALUES = {
    "5,000 digits": "9" * 5_000,
    "minus 5,000 digits": "-" + "9" * 5_000,
    "a negative number": "-1",
    "a number beyond 64 bits": str(2**64),
    "a number beyond floats": "1e999",
    "no number": "nan",
    "digits that are not ASCII": "٣٣",
    "an endless duration": "+999999999999999999h",
    "an endless duration back": "-999999999999999999h",
    "the end of time": "9999-12-31T23:59:59.999999-23:59",
    "the beginning of time": "0001-01-01T00:00:00+23:59",
    "a time after the end": "99999-01-01T00:00:00Z",
    "nothing": "",
    "a blank": " ",
    "an escape": "\x1b]0;x\x07",
    "a surrogate": "\udcff",
    "300 characters": "n" * 300,
    "a way out": "../../../../etc/passwd",
    "formats": "%s%n{0}{x}",
    "a bracket": "[" * 1_000,
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return hostile.sound_record(tmp_path_factory.mktemp("sound") / "sound.kerf").read_bytes()


@pytest.mark.parametrize("what", ["5,000 digits", *slow(*list(VALUES)[1:])])
def test_a_hostile_value_is_refused(what: str, sound: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sound.kerf").write_bytes(sound)
    for arguments in WITH_VALUE:
        ends_well([word.replace(VALUE, VALUES[what]) for word in arguments], capsys)
        (folder / "new.kerfb").unlink(missing_ok=True)


# ── the system refuses ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [errno.EACCES, *slow(errno.EIO, errno.EMFILE, errno.EISDIR, errno.ENAMETOOLONG)])
def test_a_file_that_the_system_refuses_is_a_coded_error(
    number: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a file has mode 000, which root may read all the same."""
    real = io.open
    sound = {"bundle": "sound.kerfb", "manifest": "sound.yaml", "scenario": "sound.json"}
    kinds = {"validate": "manifest", "convert": "manifest", "simulate": "manifest", "plan": "scenario"}
    kinds["disrupt"] = "scenario"
    refused = set(sound.values())

    def refuse(file: Any, *more: Any, **options: Any) -> Any:
        if not isinstance(file, int) and Path(os.fsdecode(file)).name in refused:
            raise OSError(number, os.strerror(number), str(file))
        return real(file, *more, **options)

    monkeypatch.setattr(io, "open", refuse)
    for words in READING.values():
        file = sound[kinds.get(words[0], "bundle")]
        if FILE in words[:4] and words[0] not in {"run", "doctor"} and words[0] != "store":
            assert ends_well([file if word == FILE else word for word in words], capsys) == 2, words


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("what", ["a folder", "nothing below a file", "a loop of links", "a name of 300 characters"])
def test_a_place_that_cannot_be_written_is_a_coded_error(
    command: str, what: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bundle", "generate-key", "own.key"]) == 0
    path = str(HOSTILE[what](folder))
    if (command, what) == ("bundle golden", "a folder"):
        path = str(folder / "sound.kerfb")
    code = ends_well([path if word == FILE else word for word in WRITING[command]], capsys)
    assert code == 2
    assert (folder / "sound.kerfb").read_bytes() == hostile.SOUND.read_bytes()


# ── a newer kerf ───────────────────────────────────────────────────────────────────────────────────────────────────


ASKING = [
    ["log"], ["log", "--karpenter"], ["log", "--effort"], ["at"], ["explain", "pod", "default/web"],
    ["explain", "node", "ip-10-0-0-1"], ["story", "default/web"], ["verify"],
    ["status"], ["diff", "start"], ["whatif", "--setting", "batch_idle=5s"],
    ["bundle", "export", "new.kerfb", "--since", "60"],
]  # fmt: skip
COPYING = [
    ["bundle", "export", "new.kerfb"], ["bundle", "inspect"], ["bundle", "golden", "new", "--guards", "nothing"],
    ["observe", "report"], ["store", "prune"],
]  # fmt: skip


def on(record: str, words: list[str]) -> list[str]:
    """The command with its record, which stands first of its arguments."""
    at = 2 if words[0] in {"bundle", "observe", "store"} else 1
    return [*words[:at], record, *words[at:]]


def newer_entries() -> list[bytes]:
    """The sound bundle's entries, of which the one at position 20 has a schema that only a newer kerf knows."""
    entries = list(BundleStore(hostile.SOUND).encoded())
    parts = msgspec.msgpack.decode(entries[19], type=list[msgspec.Raw])
    parts[5] = msgspec.Raw(msgspec.msgpack.encode(99))
    entries[19] = msgspec.msgpack.encode(parts)
    return entries


@pytest.mark.parametrize("form", ["bundle", "golden folder"])
def test_an_entry_of_a_newer_schema_ends_each_question_with_4(
    form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile.bundle_of(folder / "newer.kerfb", *newer_entries())
    record = "newer.kerfb"
    if form == "golden folder":
        assert main(["bundle", "golden", record, "newer", "--guards", "nothing"]) == 0
        record = "newer"
    for words in ASKING:
        assert ends_well(on(record, words), capsys) == 4, words
    assert ends_well(["at", record, "19"], capsys) == 0  # before it


@pytest.mark.parametrize("form", ["bundle", "record"])
def test_a_newer_format_ends_each_command_with_4(
    form: str, sound: bytes, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = f"newer.{form}"
    if form == "bundle":
        data = hostile.SOUND.read_bytes()
        (folder / record).write_bytes(data[:6] + (99).to_bytes(2) + data[8:])
    else:
        (folder / "sound.kerf").write_bytes(sound)
        hostile.sqlite_with(folder / record, folder / "sound.kerf", "UPDATE record SET format = 99")
    for words in [*ASKING, *COPYING]:
        if form == "bundle" and words[0] == "store":
            continue
        if form == "record" and words[:2] == ["bundle", "inspect"]:
            continue
        assert ends_well(on(record, words), capsys) == 4, words


def test_a_record_with_entries_of_a_newer_kerf_is_not_cut(folder: Path) -> None:
    """The state that it would begin with leaves them out."""
    store = SQLiteStore(hostile.record_of(folder / "newer.kerf", newer_entries()[:20]), "write")
    try:
        with pytest.raises(FormatUnsupported, match="KERF110"):
            cut_now(store, Due(base=10, after=0))
        assert (store.first_position(), store.last_position()) == (1, 20)
    finally:
        store.close()


def test_every_command_that_reads_is_tried() -> None:
    tried = {
        tuple(words[:2]) if words[0] in {"bundle", "observe", "store"} else (words[0],) for words in READING.values()
    }
    listed = {(command.name,) for command in COMMANDS if not command.subcommands} | {
        (command.name, subcommand) for command in COMMANDS for subcommand in command.subcommands
    }
    assert listed - tried == {("demo",), ("completion",), ("bundle", "generate-key"), ("ui",)}
