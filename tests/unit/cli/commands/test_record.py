"""The commands on records, from outside: exit codes, JSON, one coded line for each error."""

from __future__ import annotations

import errno
import io
import json
import os
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.store.files.bundle import BundleStore
from kerf.adapters.store.files.golden import write_golden
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.entries import UnknownEntry
from kerf.engine.record.observations import RecordStarted
from kerf.engine.scheduling import provision
from tests.contract.store_contract import turn
from tests.support.records import changed, position_of, stored, tampered, whole_life
from tests.support.repository import ROOT
from tests.support.world import World


@pytest.fixture(scope="module")
def life() -> World:
    return whole_life()


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory, life: World) -> Path:
    return stored(tmp_path_factory.mktemp("records") / "life.kerf", life.store)


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory, life: World) -> Path:
    position = position_of(life.store, "claim.launched")
    return stored(
        tmp_path_factory.mktemp("records") / "forged.kerf", tampered(life.store, changed(position, price=9.0))
    )


Told = tuple[int, str, str]


@pytest.fixture
def kerf(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*tokens: object) -> Told:
        code = main([str(token) for token in tokens])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_verify_says_same(kerf: Any, record: Path) -> None:
    code, out, err = kerf("verify", record)
    assert (code, err) == (0, "")
    assert out.startswith("same: ")


def test_verify_says_diverged_and_where(kerf: Any, forged: Path) -> None:
    code, out, _ = kerf("verify", forged)
    assert code == 1
    assert "payload.price: 9.0 → 0.096" in out
    code, out, _ = kerf("verify", forged, "--json")
    assert code == 1
    assert json.loads(out)["divergences"][0]["path"] == "payload.price"


def test_verify_says_unsupported(kerf: Any, life: World, tmp_path: Path) -> None:
    position = position_of(life.store, "decision.made")
    older = stored(tmp_path / "older.kerf", tampered(life.store, changed(position, version=0)))
    code, out, _ = kerf("verify", older)
    assert code == 4
    assert f"decision-version: provision 0, today's is {provision.VERSION}" in out


def test_verify_says_corrupt(kerf: Any, record: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "life.kerfb"
    assert kerf("bundle", "export", record, bundle)[0] == 0
    damaged = bytearray(bundle.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    bundle.write_bytes(damaged)
    code, out, err = kerf("verify", bundle)
    assert code == 3
    assert "KERF109" in out + err
    code, _, err = kerf("bundle", "inspect", bundle)
    assert (code, err.split(":")[0]) == (3, "KERF109")


def test_at_shows_the_state(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("at", record, "+38.6s")
    assert code == 0
    assert "1 initialized" in out
    assert "m5.large" in out
    code, out, _ = kerf("at", record, "12", "--json")
    assert json.loads(out)["position"] == 12


def test_log_tells_the_story_and_filters(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("log", record)
    assert code == 0
    assert "default/a and 4 more" in out
    assert "is in service, 37s after the request" in out
    _, everything, _ = kerf("log", record, "--all")
    assert len(everything.splitlines()) > len(out.splitlines())
    _, late, _ = kerf("log", record, "--since", "+30m")
    assert len(late.splitlines()) < len(out.splitlines())
    assert "takes office" not in late
    _, early, _ = kerf("log", record, "--until", "6")
    assert "cannot be scheduled" not in early
    _, one, _ = kerf("log", record, "--subject", "default/b", "--json")
    assert {json.loads(line)["code"] for line in one.splitlines()} == {
        "pod-waiting", "plan-made", "pod-bound", "pod-gone",
    }  # fmt: skip


SPOT = ROOT / "tests" / "golden" / "spot-interruption"


def test_log_filters_by_kind_name_namespace_workload_and_reason(kerf: Any) -> None:
    def told(*flags: str) -> list[dict[str, Any]]:
        code, out, _ = kerf("log", SPOT, "--all", "--json", *flags)
        assert code == 0
        return [json.loads(line) for line in out.splitlines()]

    def about(event: dict[str, Any]) -> list[str]:
        return [event["subject"], *event.get("related", [])]

    everything = told()
    kinds = [event for event in everything if any(name.startswith("nodeclaim/") for name in about(event))]
    assert 0 < len(kinds) < len(everything)
    assert told("--kind", "nodeclaims") == kinds
    pods = [event for event in everything if any("pod/other/inflate-" in name for name in about(event))]
    assert told("--name", "inflate-*", "--kind", "po") == pods
    assert told("--namespace", "other", "--kind", "pod") == pods
    assert told("--workload", "other/inflate") == told("--workload", "inflate") == pods
    interrupted = told("--reason", "interrupted", "--kind", "nodeclaim")
    assert {event["code"] for event in interrupted} >= {"claim-condemned", "claim-terminated"}
    launched = [event for event in everything if event["code"] == "claim-launched"]
    assert told("--reason", "claim-launched") == launched


def test_log_of_what_no_object_is_says_so(kerf: Any) -> None:
    code, out, err = kerf("log", SPOT, "--kind", "node", "--namespace", "other")
    assert (code, out) == (1, "")
    assert err.startswith("Nothing in the record concerns --kind node --namespace other. ")


def test_log_of_an_unknown_subject_says_so(kerf: Any, record: Path) -> None:
    for options in ([], ["--json"]):
        code, out, err = kerf("log", record, "--subject", "nobody", *options)
        assert (code, out) == (1, "")
        assert err.startswith("Nothing in the record concerns nobody")
    subject = json.loads(kerf("log", record, "--json")[1].splitlines()[-1])["subject"]
    code, out, err = kerf("log", record, "--subject", subject)
    assert (code, bool(out), err) == (0, True, "")
    assert "record up to 1 concerns" in kerf("log", record, "--subject", subject, "--until", "1")[2]


def test_log_of_a_subject_whose_events_the_flags_leave_out_says_so(kerf: Any, record: Path) -> None:
    code, out, err = kerf("log", record, "--subject", "default/b", "--since", "+9h")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].endswith("of default/b left out: leave out --since or give --all to be told")
    assert "Is it pod/default/b" in kerf("log", record, "--subject", "pod/default/bb")[2]


def test_a_log_that_ends_before_it_begins_is_refused(kerf: Any, record: Path) -> None:
    code, out, err = kerf("log", record, "--since", "5", "--until", "3")
    assert (code, out) == (2, "")
    assert err.startswith("KERF202: --since 5 is later than --until 3")


def test_a_log_of_a_time_in_which_nothing_happened_is_empty(kerf: Any, record: Path) -> None:
    entries = [json.loads(line) for line in kerf("log", record, "--all", "--json")[1].splitlines()]
    before, after = max(pairwise(entries), key=lambda pair: pair[1]["at"] - pair[0]["at"])
    start, gap = entries[0]["at"], after["at"] - before["at"]
    times = [f"+{before['at'] - start + gap * share // 4}ms" for share in (1, 3)]
    assert kerf("log", record, "--since", times[0], "--until", times[1]) == (0, "", "")
    code, _, err = kerf("log", record, "--since", times[1], "--until", times[0])
    assert (code, err.startswith(f"KERF202: --since {times[1]} is later than --until {times[0]}")) == (2, True)
    code, out, err = kerf("log", record, "--since", "now")
    assert (code, out, err.startswith("Nothing is in the record since then")) == (0, "", True)


@pytest.mark.parametrize(
    "command",
    [
        ("log", "--since", "-10m"), ("log", "--until", "-0s", "--json"), ("at", "-0s"), ("at", "-0s", "--json"),
        ("at", "--json"), ("explain", "pod", "default/b", "--at", "-0s"), ("story", "default/b", "--at", "-0s"),
    ],
)  # fmt: skip
def test_a_time_before_the_end_begins_with_a_hyphen_and_is_a_time(
    command: tuple[str, ...], kerf: Any, record: Path
) -> None:
    name, *rest = command
    code, out, err = kerf(name, record, *rest)
    assert (code, bool(out), err) == (0, True, "")


def test_a_duration_that_no_clock_holds_is_named_as_such(kerf: Any, record: Path) -> None:
    assert "292 years" in kerf("at", record, "+999999999h")[2]


def test_a_limit_below_nothing_is_usage(kerf: Any, record: Path) -> None:
    code, _, err = kerf("verify", record, "--limit", "-1")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("KERF200: ")


def test_a_bundle_of_nothing_is_not_made(kerf: Any, record: Path, tmp_path: Path) -> None:
    code, _, err = kerf("bundle", "export", record, tmp_path / "x.kerfb", "--since", "13", "--until", "3")
    assert (code, (tmp_path / "x.kerfb").exists()) == (2, False)
    assert err.startswith("KERF202: --since 13 is later than --until 3")


def test_a_part_misses_nothing_that_the_record_has(kerf: Any, record: Path, tmp_path: Path) -> None:
    """A base names hashes that are no blobs: these are not missing."""
    code, out, _ = kerf("bundle", "export", record, tmp_path / "x.kerfb", "--since", "20", "--json")
    assert (code, json.loads(out)["missing"]) == (0, 0)


def test_log_since_a_position_begins_with_it(kerf: Any, record: Path) -> None:
    _, out, _ = kerf("log", record, "--since", "13", "--json")
    assert json.loads(out.splitlines()[0])["position"] == 13


def test_log_in_karpenters_shape(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("log", record, "--karpenter")
    assert code == 0
    assert "launched nodeclaim" in [json.loads(line)["message"] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("pod", "default/a", "m5.large is the cheapest of the 3 types that can take all of them, at $0.0960/h"),
        ("node", "n1", "it had to go because of: empty"),
        ("decision", "12", "for 5 pods"),
    ],
)
def test_explain(kerf: Any, record: Path, kind: str, name: str, said: str) -> None:
    code, out, _ = kerf("explain", record, kind, name)
    assert code == 0
    assert said in out
    code, out, _ = kerf("explain", record, kind, name, "--json")
    assert code == 0
    assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize(("kind", "name"), [("node", "n1"), ("pod", "default/a"), ("decision", "12")])
def test_explain_takes_kind_and_name_in_one_as_kubectl_does(kerf: Any, record: Path, kind: str, name: str) -> None:
    assert kerf("explain", record, f"{kind}/{name}") == kerf("explain", record, kind, name)


@pytest.mark.parametrize("kind", ["nodes", "no", "Node"])
def test_kinds_are_taken_as_kubectl_takes_them(kerf: Any, record: Path, kind: str) -> None:
    for command in ("explain", "story"):
        plain = kerf(command, record, "node", "n1")
        assert plain[0] == 0
        assert kerf(command, record, f"{kind}/n1") == kerf(command, record, kind, "n1") == plain
    assert kerf("log", record, "--subject", f"{kind}/n1") == kerf("log", record, "--subject", "node/n1")


@pytest.mark.parametrize(
    "command",
    [("explain", "{record}", "node/n1", "--at"), ("story", "{record}", "node/n1", "--at"), ("at", "{record}")],
)
def test_an_answer_as_of_after_the_last_entry_says_that_it_is_as_of_that_entry(
    kerf: Any, record: Path, command: tuple[str, ...]
) -> None:
    asked = [word.format(record=record) for word in command]
    code, out, err = kerf(*asked, "+20h")
    assert (code, bool(out)) == (0, True)
    assert "after the record's last entry (position " in err
    code, out, err = kerf(*asked, "+900h")
    assert (code, out, "The record runs from" in err) == (2, "", True)
    for known in ("-1s", "-0s", "end", "40"):
        assert kerf(*asked, known)[2] == ""


def test_explain_as_of_then(kerf: Any, record: Path) -> None:
    _, out, _ = kerf("explain", record, "node", "n1", "--at", "31")
    assert "5 pods on it to move: default/a, default/b, default/c, default/d, default/e" in out
    assert "it is still here: its pods need a node, and none is cheaper than $0.0960/h" in out


@pytest.mark.parametrize(("kind", "name"), [("node", "n1"), ("pod", "default/a")])
def test_story_takes_the_kind_as_a_word_of_its_own_as_explain_does(
    kerf: Any, record: Path, kind: str, name: str
) -> None:
    assert kerf("story", record, kind, name) == kerf("story", record, f"{kind}/{name}")
    assert kerf("story", record, kind, name)[0] == 0


def test_a_log_since_after_the_last_entry_says_that_there_is_nothing(kerf: Any, record: Path) -> None:
    code, out, err = kerf("log", record, "--since", "+900h")
    assert (code, out) == (0, "")
    assert err.startswith("Nothing is in the record since then: its last entry is of 2")
    assert kerf("log", record, "--since", "-1m")[2] == ""


def test_what_a_command_has_no_use_for_is_named(kerf: Any, record: Path) -> None:
    code, _, err = kerf("log", record, "node/n1")
    assert code == 2
    assert err.startswith("KERF200: kerf log takes no more arguments, and has no use for 'node/n1'. Try --help")


def test_the_cost_of_a_node_that_is_gone_is_its_whole_cost(kerf: Any, record: Path) -> None:
    _, out, _ = kerf("explain", record, "node", "n1")
    assert "terminated" in out.splitlines()[0]
    assert out.splitlines()[0].endswith(" in all")
    _, out, _ = kerf("explain", record, "node", "n1", "--at", "31")
    assert out.splitlines()[0].endswith(" so far")


def test_story(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("story", record, "default/a")
    assert code == 0
    assert "because of 12" in out
    _, out, _ = kerf("story", record, "n1", "--json")
    assert json.loads(out)["subject"] == "node/n1"


def test_bundles_are_records_too(kerf: Any, record: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "life.kerfb"
    code, out, _ = kerf("bundle", "export", record, bundle, "--pseudonymise", "--json")
    assert code == 0
    info = json.loads(out)
    assert (info["first"], info["sanitised"]) == (1, True)
    assert json.loads(kerf("bundle", "inspect", bundle, "--json")[1]) == info
    shown = kerf("bundle", "inspect", bundle)[1]
    assert ("left out, for their names" in shown) == bool(info["missing"]), "that is on purpose, and no loss"
    assert "missing in the source" not in shown
    assert kerf("verify", bundle)[0] == 0, "names decide the order of equals, and pseudonyms keep it"
    assert "default/a" not in kerf("log", bundle, "--all")[1]


def test_a_plain_bundle_verifies(kerf: Any, record: Path, tmp_path: Path) -> None:
    kerf("bundle", "export", record, tmp_path / "plain.kerfb")
    assert kerf("verify", tmp_path / "plain.kerfb")[0] == 0


def test_golden_folders_are_records_too(kerf: Any, record: Path, tmp_path: Path) -> None:
    with_store = SQLiteStore(record, "read")
    write_golden(with_store, tmp_path / "case")
    with_store.close()
    assert kerf("verify", tmp_path / "case")[0] == 0
    assert kerf("at", tmp_path / "case")[0] == 0


@pytest.mark.parametrize(
    ("tokens", "code"),
    [
        (["verify", "nowhere.kerf"], "KERF113"),
        (["verify"], "KERF200"),
        (["frobnicate"], "KERF200"),
        (["at", "{record}", "yesterday"], "KERF202"),
        (["explain", "{record}", "pod", "default/nobody"], "KERF203"),
        (["explain", "{record}", "decision", "twelve"], "KERF202"),
        (["explain", "{record}", "planet", "mars"], "KERF200"),
        (["explain", "{record}", "planet/mars"], "KERF203"),
        (["explain", "{record}", "node"], "KERF200"),
        (["explain", "{record}", "node/"], "KERF200"),
        (["story", "{record}", "nobody"], "KERF203"),
        (["log", "{record}", "--since", "soon"], "KERF202"),
        (["bundle", "export", "{record}", "{record}"], "KERF114"),
        (["bundle", "inspect", "{record}"], "KERF108"),
    ],
)
def test_an_error_is_one_coded_line_on_stderr(kerf: Any, record: Path, tokens: list[str], code: str) -> None:
    status, out, err = kerf(*(token.format(record=record) for token in tokens))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith(f"{code}: ")


@pytest.mark.parametrize("command", ["", "log", "at", "explain", "story", "verify", "bundle", "bundle export"])
def test_help(kerf: Any, command: str) -> None:
    code, out, _ = kerf(*command.split(), "--help")
    assert code == 0
    assert "Usage: kerf" in out


@pytest.mark.parametrize("command", ["log", "at", "explain", "story", "verify"])
def test_help_has_examples(kerf: Any, command: str) -> None:
    assert f"kerf {command} " in kerf(command, "--help")[1].replace("Usage: kerf", "")


def test_a_record_that_somebody_else_is_writing_can_be_read(kerf: Any, tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "live.kerf", "create")
    World(store).prepare()  # type: ignore[arg-type]
    code, out, _ = kerf("log", tmp_path / "live.kerf")
    assert code == 0
    assert "NodePool default is there" in out
    store.close()


def test_json_is_what_the_structs_are(kerf: Any, record: Path) -> None:
    from kerf.replay.time_travel.state_summary import StateSummary

    _, out, _ = kerf("at", record, "--json")
    summary = msgspec.json.decode(out, type=StateSummary)
    told = {name: value for name, value in msgspec.json.decode(out).items() if not name.endswith("_time")}
    assert msgspec.json.decode(msgspec.json.encode(summary)) == told


def _disk_of(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Files take so many bytes in all, and then fail as a full disk does."""

    class File(io.FileIO):
        def write(self, data: Any) -> int:
            nonlocal room
            taken = super().write(bytes(data)[:room]) if room else 0
            room -= taken
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
            return taken

    monkeypatch.setattr(os, "fdopen", lambda descriptor, mode: io.BufferedWriter(File(descriptor, mode)))


@pytest.mark.parametrize(("command", "room"), [("export", 0), ("export", 200), ("golden", 0), ("golden", 8_000)])
def test_a_full_disk_is_one_coded_line_and_leaves_nothing(
    kerf: Any, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, room: int
) -> None:
    _disk_of(monkeypatch, room)
    guards = ["--guards", "g"] if command == "golden" else []
    code, out, err = kerf("bundle", command, record, tmp_path / "new", *guards)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("KERF105: ")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_one_coded_line(kerf: Any, record: Path, tmp_path: Path) -> None:
    code, _, err = kerf("bundle", "export", record, tmp_path / "no" / "x.kerfb")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("KERF113: ")
    (tmp_path / "file").write_text("mine")
    code, _, err = kerf("bundle", "golden", record, tmp_path / "file" / "case", "--guards", "g")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("KERF100: ")


def test_observe_report_of_a_record_of_control_mode_is_refused(kerf: Any, record: Path) -> None:
    """kerf acted itself there: nothing is beside what it decided, so the report would be empty."""
    code, out, err = kerf("observe", "report", record)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("KERF206: ")
    assert "kerf run --mode observe" in err


# ── pseudonyms ──────────────────────────────────────────────────────────────────────────────────────────────────────


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_key_of_pseudonyms_is_random_and_kept_beside_the_bundle(kerf: Any, record: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.kerfb", tmp_path / "two.kerfb"
    for bundle in (one, two):
        code, _, told = kerf("bundle", "export", record, bundle, "--pseudonymise")
        assert code == 0
        assert f"{bundle}.key" in told
        assert (mode_of(bundle), mode_of(Path(f"{bundle}.key"))) == (0o600, 0o600)
    assert list(BundleStore(one).encoded()) != list(BundleStore(two).encoded())
    assert Path(f"{one}.key").read_bytes() != Path(f"{two}.key").read_bytes()


def test_the_same_key_gives_the_same_pseudonyms(kerf: Any, record: Path, tmp_path: Path) -> None:
    key = tmp_path / "my.key"
    for name in ("one", "two"):
        assert kerf("bundle", "export", record, tmp_path / name, "--pseudonymise", "--key", key)[0] == 0
    assert mode_of(key) == 0o600
    assert list(BundleStore(tmp_path / "one").encoded()) == list(BundleStore(tmp_path / "two").encoded())
    assert not (tmp_path / "one.key").exists()


def test_with_key_and_record_pseudonyms_are_mapped_back(kerf: Any, record: Path, tmp_path: Path) -> None:
    """Also those of a part of the record, in which names have other ranks."""
    bundle, part = tmp_path / "b.kerfb", tmp_path / "part.kerfb"
    kerf("bundle", "export", record, bundle, "--pseudonymise")
    kerf("bundle", "export", record, part, "--pseudonymise", "--key", f"{bundle}.key", "--since", "20")
    given = json.loads(kerf("bundle", "names", record, "--key", f"{bundle}.key", "--json")[1])
    pods = {e.payload.name for file in (bundle, part) for e in BundleStore(file).scan() if isinstance(e.payload, Pod)}
    assert pods
    code, out, _ = kerf("bundle", "names", record, *sorted(pods), "--key", f"{bundle}.key")
    assert code == 0
    assert {line.split()[1] for line in out.splitlines()} <= set(given.values())
    code, _, told = kerf("bundle", "names", record, "pod-1-0123456789abcdef", "--key", f"{bundle}.key")
    assert (code, "pod-1-0123456789abcdef" in told) == (1, True)
    code, _, told = kerf("bundle", "names", bundle, "--key", f"{bundle}.key")
    assert (code, "KERF201" in told) == (2, True)


def test_a_key_is_neither_overwritten_nor_left_behind(kerf: Any, record: Path, tmp_path: Path) -> None:
    bundle, key = tmp_path / "b.kerfb", tmp_path / "b.kerfb.key"
    key.write_text("somebody else's file, which stays")
    code, _, told = kerf("bundle", "export", record, bundle, "--pseudonymise")
    assert (code, "KERF114" in told, bundle.exists()) == (2, True, False)
    assert key.read_text().startswith("somebody")
    key.unlink()
    assert kerf("bundle", "export", record, tmp_path / "none" / "b", "--pseudonymise")[0] == 2
    assert kerf("bundle", "export", record, bundle, "--pseudonymise", "--until", "9999999")[0] == 2
    assert not key.exists()


def test_entries_of_a_newer_kerf_are_counted(kerf: Any, tmp_path: Path) -> None:
    newer = UnknownEntry("acme.seen", 3, msgspec.Raw(msgspec.msgpack.encode({"who": "acme"})))
    with closing(SQLiteStore(tmp_path / "r.kerf", "create")) as store:
        store.append(turn([RecordStarted("r-1", "0.1.0"), newer, newer], first=1))
    _, out, told = kerf("bundle", "export", tmp_path / "r.kerf", tmp_path / "b.kerfb", "--pseudonymise")
    assert told.startswith("Note: entries of a newer kerf: 2. What they say is left out, because ")
    assert "entries of a newer kerf: 2, left empty" in out
    assert "acme" not in out + told
    _, out, told = kerf("bundle", "export", tmp_path / "r.kerf", tmp_path / "plain.kerfb")
    assert ("entries of a newer kerf: 2\n" in out, told) == (True, "")


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 5000])
def test_a_file_that_is_no_key_is_refused(kerf: Any, record: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "k").write_bytes(content)
    code, _, told = kerf("bundle", "export", record, tmp_path / "b", "--pseudonymise", "--key", tmp_path / "k")
    assert (code, told[:8]) == (2, "KERF207:")
    assert kerf("bundle", "names", record, "--key", tmp_path / "none")[2].startswith("KERF207")


def test_a_key_without_pseudonyms_is_refused(kerf: Any, record: Path, tmp_path: Path) -> None:
    assert kerf("bundle", "export", record, tmp_path / "b", "--key", tmp_path / "k")[2].startswith("KERF200")
