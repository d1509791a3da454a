"""What a shell offers behind a word that is begun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.command_table import COMMANDS
from kerf.adapters.cli.main import main
from kerf.adapters.store.files.bundle import export_bundle
from kerf.adapters.store.files.golden import GoldenStore, write_golden
from kerf.adapters.store.open import open_record
from tests.support.records import stored, whole_life
from tests.support.repository import ROOT

GOLDEN = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"


@pytest.fixture
def offered(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: object) -> list[str]:
        assert main(["__complete", *map(str, words)]) == 0
        lines = capsys.readouterr().out.partition("\x1fbegin\n")[2].splitlines()
        return [line.partition("\t")[0] for line in lines]

    return run


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("records")
    file = stored(folder / "life.kerf", whole_life().store)
    store = open_record(file)
    export_bundle(store, folder / "life.kerfb")
    write_golden(store, folder / "golden")
    store.close()
    return {"file": file, "bundle": folder / "life.kerfb", "golden": folder / "golden"}


@pytest.mark.parametrize("form", ["file", "bundle", "golden"])
def test_names_of_a_record(offered: Any, places: dict[str, Path], form: str) -> None:
    record = places[form]
    before = sorted(record.parent.iterdir())
    everything = offered("explain", record, "")
    assert {"default/a", "n1", "default"} <= {*everything}
    assert offered("story", record, "n") == ["n1"]
    assert "node/n1" in offered("explain", record, "node/")
    assert offered("explain", record, "node", "") == ["n1"]
    assert "default/a" in offered("log", record, "--subject", "default/")
    assert offered("whatif", record, "--remove", "") == ["node/n1"]
    assert "pod/default/a" in offered("whatif", record, "--delete", "pod/")
    assert sorted(record.parent.iterdir()) == before


def test_fields_of_nodepools_and_moments(offered: Any) -> None:
    assert "nodepool/default.spec.limits.cpu=" in offered("whatif", GOLDEN, "--set", "nodepool/default.spec.lim")
    moments = offered("status", GOLDEN, "--at", "")
    decisions = [entry.position for entry in GoldenStore(GOLDEN).scan() if entry.type == "decision.made"]
    assert {"start", "end", "now", "-15m", str(decisions[-1])} <= {*moments}


def test_files_that_records_have(offered: Any, tmp_path: Path) -> None:
    for name in ("a.kerf", "b.kerfb", "c.txt", ".hidden.kerf"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert offered("at", f"{tmp_path}/") == [f"{tmp_path}/{name}" for name in ("a.kerf", "b.kerfb", "folder/")]
    assert offered("at", f"{tmp_path}/b") == [f"{tmp_path}/b.kerfb"]
    assert offered("at", f"{tmp_path}/none/") == []


def test_what_is_no_record_has_no_names_and_says_nothing(
    offered: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key press connects to no database either."""
    (tmp_path / "text").write_text("hello")
    (tmp_path / "cut.kerfb").write_bytes(b"kerfb\x00\x00\x02\x00\x00\xff\xff{")
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("connected"))
    for record in (
        tmp_path / "none",
        tmp_path / "text",
        tmp_path / "cut.kerfb",
        tmp_path,
        "postgresql://x@127.0.0.1/y",
    ):
        assert offered("explain", record, "d") == []
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command.name in script for command in COMMANDS)
    assert "__complete" in script
    assert "--no-capacity" in script
    if shell == "bash":
        file = tmp_path / "kerf.bash"
        file.write_text(script)
        assert subprocess.run(["bash", "-n", file], check=False).returncode == 0


_TAB_IN_BASH = """
source kerf.bash
COMP_WORDS=(kerf explain life.kerf node/); COMP_CWORD=3
_kerf
printf '%s\\n' "${COMPREPLY[@]}"
"""
_TAB_IN_FISH = "source kerf.fish; complete -C'kerf explain life.kerf node/'"
_TAB_IN_ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; {load}; echo REA""DY'
zpty -r -m shell seen '*READY*'
zpty -w -n shell 'kerf explain life.kerf node/'$'\\t'
zpty -r -m shell seen '*node/n1*'
print -r -- "$seen"
"""
"""In a terminal of its own, since zsh completes nowhere else. The name comes from kerf: only its kind was typed."""
_TABS = {
    "bash": ("kerf.bash", ["bash", "--norc", "-c", _TAB_IN_BASH]),
    "fish": ("kerf.fish", ["fish", "--no-config", "-c", _TAB_IN_FISH]),
    "zsh": ("_kerf", ["zsh", "-f", "-c", _TAB_IN_ZSH.replace("{load}", ":")]),
    "zsh-sourced": ("kerf.zsh", ["zsh", "-f", "-c", _TAB_IN_ZSH.replace("{load}", "source kerf.zsh")]),
}


@pytest.mark.real_time
@pytest.mark.parametrize("way", _TABS)
def test_a_real_shell_completes_the_names_of_a_record(
    way: str, places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, command = _TABS[way]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    assert main(["completion", way.partition("-")[0]]) == 0
    (tmp_path / name).write_text(capsys.readouterr().out)
    shutil.copy(places["file"], tmp_path / "life.kerf")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HOME": str(tmp_path), "TERM": "xterm"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert "node/n1" in done.stdout, done.stderr
