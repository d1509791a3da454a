"""The wheel holds kerf alone, and lives with a project that has folders named as the houses are."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kerf
from tests.support.repository import ROOT

HOUSES = ("engine", "adapters", "projections", "replay")

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Runs a command, which must succeed, and gives what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the wheel is installed, without its dependencies: this environment has them."""
    target = tmp_path_factory.mktemp("installed")
    pip = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index")
    run(sys.executable, *pip, "--target", target, wheel, cwd=target)
    return target


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project with packages named as the houses are."""
    for house in HOUSES:
        (tmp_path / house).mkdir()
        (tmp_path / house / "__init__.py").write_text(f"WHOSE = 'the user\\'s {house}'\n", encoding="utf-8")
    return tmp_path


def test_the_wheel_holds_kerf_and_nothing_beside_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "kerf",
        f"kerf_autoscaler-{kerf.__version__}.dist-info",
    }
    assert len(names) == len(set(names))


def test_the_wheel_holds_every_file_of_the_houses_as_a_real_file(wheel: Path) -> None:
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *HOUSES, cwd=ROOT).split()
    expected = {f"kerf/{path}": ROOT / path for path in listed if (ROOT / path).is_file()}
    assert "kerf/engine/model/__init__.py" in expected
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        missing = sorted(expected.keys() - names)
        assert not missing, f"not in the wheel: {missing}"
        changed = sorted(name for name, path in expected.items() if archive.read(name) != path.read_bytes())
        assert not changed, f"another content in the wheel: {changed}"
    assert {"kerf/py.typed", "kerf/__main__.py"} <= names


def test_the_source_archive_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    (again,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())


def test_data_files_of_a_house_are_packed(tmp_path: Path) -> None:
    """A tree laid out as this one, with one data file of each kind in a house and in a folder below it."""
    kinds = ("json", "yaml", "html", "css", "js", "txt", "zst")
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "kerf").mkdir()
    for name in ("__init__.py", "__main__.py", "py.typed"):
        (tmp_path / "kerf" / name).write_bytes((ROOT / "kerf" / name).read_bytes())
    for house in HOUSES:
        (tmp_path / house / "below").mkdir(parents=True)
        (tmp_path / "kerf" / house).symlink_to(Path("..") / house)
        for folder in (tmp_path / house, tmp_path / house / "below"):
            for kind in kinds:
                (folder / f"data.{kind}").write_text("{}", encoding="utf-8")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "out", cwd=tmp_path)
    (built,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        names = set(archive.namelist())
    expected = {f"kerf/{house}/{sub}data.{kind}" for house in HOUSES for sub in ("", "below/") for kind in kinds}
    assert expected <= names


@pytest.mark.parametrize("first", ["user", "kerf"])
def test_kerf_and_the_project_keep_their_own_modules(first: str, installed: Path, project: Path) -> None:
    imports = ["import engine, adapters, projections, replay"]
    imports.insert(
        len(imports) if first == "user" else 0,
        "import kerf.engine.model, kerf.adapters.cli, kerf.projections, kerf.replay",
    )
    program = "\n".join(
        [
            *imports,
            f"for house in {HOUSES!r}:",
            "    ours, users = getattr(kerf, house), globals()[house]",
            "    print(ours.__name__, ours.__file__, users.__name__, users.__file__, users.WHOSE, sep='|')",
        ]
    )
    printed = run(sys.executable, "-W", "error", "-c", program, cwd=project, PYTHONPATH=str(installed))
    assert printed.splitlines() == [
        f"kerf.{house}|{installed / 'kerf' / house / '__init__.py'}"
        f"|{house}|{project / house / '__init__.py'}|the user's {house}"
        for house in HOUSES
    ]


def test_pytest_in_the_project_sees_both(installed: Path, project: Path) -> None:
    (project / "test_both.py").write_text(
        "import engine, replay\nimport kerf.engine, kerf.replay\n"
        "def test_both():\n"
        "    assert engine.WHOSE and replay.WHOSE and kerf.replay is not replay\n"
        "    assert kerf.engine is not engine and kerf.engine.__name__ == 'kerf.engine'\n"
        f"    assert kerf.engine.__file__.startswith({str(installed)!r})\n",
        encoding="utf-8",
    )
    # The project's own folder stands first on the path, as `python -m pytest` puts it.
    printed = run(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",  # of the developers, and not of the project
        cwd=project,
        PYTHONPATH=str(installed),
    )
    assert "1 passed" in printed
