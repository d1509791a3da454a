"""No password of a URL is shown, however the URL is written and wherever it is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.main import main
from kerf.adapters.manager.writable_record import open_writable
from kerf.adapters.store.open import open_record
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.errors import InputError, KerfError
from kerf.engine.model.settings import Settings
from kerf.engine.passwords import without_password, without_passwords
from kerf.engine.runtime.runtime import Runtime

PASSWORD = "hunter2"
URLS = [
    "postgresql://kerf:hunter2@db:5432/kerf?schema=kerf",
    "postgres://:hunter2@db/kerf",
    "postgres:/kerf:hunter2@db/kerf",
    "postgresql+psycopg://kerf:hunter2@db/kerf",
    "kerf:hunter2@db/kerf",
    "postgresql://kerf:hun@hunter2@db/kerf",
    "postgresql://kerf:a/hunter2@db/kerf",
    "postgresql://kerf:a?hunter2@db/kerf",
    "postgresql://kerf:a#hunter2@db/kerf",
    "postgresql://kerf@corp:hunter2@db/kerf",
    "postgresql://kerf:a hunter2@db/kerf",
    "postgresql://kerf:100%hunter2@db/kerf",
    "postgresql://kerf@db/kerf?password=hunter2&schema=kerf",
    "postgresql://kerf@db/kerf?pass%77ord=hunter2",
    "postgresql://kerf@db/kerf?sslpassword=hunter2",
    "postgresql://kerf@db/kerf?oauth_client_secret=hunter2",
    "postgresql://[kerf:hunter2@db/kerf",
]


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_shown_without_its_password(url: str) -> None:
    shown = without_password(url)
    assert PASSWORD not in shown
    assert "db" in shown
    assert shown == without_password(shown)


@pytest.mark.parametrize(
    "url",
    ["postgresql://kerf@db:5432/kerf?schema=kerf&sslmode=require", "sqlite:///var/lib/kerf/a:b@c.kerf", "record.kerf",
     "https://sqs.eu-west-1.amazonaws.com/1/queue", "file.kerf?", "/a/b?c=d"],
)  # fmt: skip
def test_a_url_without_password_stays_as_it_is(url: str) -> None:
    assert without_password(url) == url


@pytest.mark.parametrize("url", [url for url in URLS if " " not in url and ":/" in url])
def test_no_error_shows_a_password_whoever_raised_it(url: str) -> None:
    error = KerfError(f"cannot open {url}", where=f"--store {url}, position 3", hint=f"Is {url} right?")
    assert PASSWORD not in f"{error} {error!r} {error.where} {error.hint} {error.message} {error.args}"
    assert "position 3" in str(error)


def test_the_form_of_libpq_shows_no_password() -> None:
    assert without_passwords("host=db password=hunter2 user=kerf") == "host=db password=… user=kerf"
    assert PASSWORD not in without_passwords("host=db password = 'a hunter2' user=kerf")


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("command", [["log"], ["verify"], ["explain"], ["log", "--subject"], ["log", "x.kerf"]])
def test_no_command_shows_a_password(command: list[str], url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """KERF113 where nothing is, KERF200 where the command line is wrong, KERF100 where no server answers."""
    place = url.replace("@db", "@127.0.0.1:1")
    arguments = [command[0], place, *command[1:]] if "--subject" in command else [*command, place]
    assert main(arguments) != 0
    shown = capsys.readouterr()
    assert PASSWORD not in shown.out + shown.err
    assert "KERF" in shown.err


@pytest.mark.parametrize("url", URLS)
def test_a_store_named_by_no_url_is_shown_without_password(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """KERF333, which `kerf run` and `kerf doctor` raise."""
    from kerf.adapters.store.open import require_url

    with pytest.raises(InputError) as refused:
        require_url(f"x{url}")
    assert refused.value.code == "KERF333"
    assert PASSWORD not in str(refused.value)


def test_a_record_of_the_other_mode_is_refused_without_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KERF342, which stands in the controller's log."""
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    Runtime(store, holder="a", settings=Settings(observe=True), record="0" * 32, engine="test", now=0)
    monkeypatch.setattr("kerf.adapters.manager.writable_record.open_record", lambda url, mode: store)
    with pytest.raises(InputError) as refused:
        open_writable("postgresql://kerf:hunter2@db/kerf", observe=False)
    assert refused.value.code == "KERF342"
    assert PASSWORD not in str(refused.value)
    assert "postgresql://kerf@db/kerf" in str(refused.value)


@pytest.mark.parametrize("url", [url for url in URLS if url.startswith(("postgresql://", "postgres://"))])
def test_what_libpq_says_of_a_url_shows_no_password(url: str) -> None:
    """It quotes pieces of a URL that it takes apart at other places than its author."""
    with pytest.raises(KerfError) as refused:
        open_record(url.replace("@db", "@127.0.0.1:1"))
    shown = f"{refused.value} {refused.value.__cause__}"
    assert PASSWORD not in shown
