"""Write the page of an incident into a folder: one page, one style sheet, one classic script, and scripts of data."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import msgspec

from kerf.adapters.cli.render.lines import print_text
from kerf.adapters.cli.render.progress import progress_line
from kerf.adapters.store.sqlite.errors import refused_by_system
from kerf.adapters.web.export.answers import Answers, answers_of
from kerf.adapters.web.export.script import classic_script
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.static.files import page_files
from kerf.engine.errors import InputError
from kerf.replay.errors import PositionUnknown

MAIN = "main.js"
POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; "
    "base-uri 'none'; form-action 'none'"
)
"""As of the server, but for what a page from disk is: it has no origin, and asks nobody."""
_MODULE = f'<script type="module" src="{MAIN}"></script>\n'


class FolderInUse(InputError):
    """The folder of an export holds something."""

    code = "KERF865"


def export(record: str, folder: Path, begin: str = "start", end: str = "end") -> None:
    """Write the page of a record between two moments into a new or empty folder, and say what is in it.

    Raises FolderInUse (KERF865), PositionUnknown (KERF202), and what `open_record` raises.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderInUse(f"{folder} is not empty", hint="Name a new folder: nothing is overwritten")
    with closing(RecordReader(record, short=0)) as reader:
        answers = asyncio.run(reader.ask(lambda read: _asked(read, begin, end)))
    written = _written(folder, answers)
    print_text(f"{folder / 'index.html'}: {written / 1e6:.1f} MB. Open it in a browser; it needs no server.")
    print_text(f"{answers.note}.")


def _asked(reader: RecordReader, begin: str, end: str) -> Answers:
    since, until = reader.moment(begin).at, reader.moment(end).at
    if until < since:
        raise PositionUnknown(f"--until {end} is before --from {begin}", hint="Give the earlier one to --from")
    with progress_line("answers:") as told:

        def tell(number: int) -> None:
            told(number)
            reader.limits.renew()

        return answers_of(reader, since, until, tell)


def _written(folder: Path, answers: Answers) -> int:
    """Write the files, all or none, and return how many bytes they have. Raises StoreError."""
    page = {path: file.read_text("utf-8") for path, file in page_files().items()}
    modules = {path: text for path, text in page.items() if path.endswith(".js")}
    index = page["index.html"]
    styles = [path for path in page if f'href="{path}"' in index and path.endswith(".css")]
    styles.sort(key=lambda path: index.index(f'href="{path}"'))
    texts = {name: _data_script(value) for name, value in _data(answers).items()}
    texts["kerf.js"] = classic_script(modules, MAIN)
    texts["kerf.css"] = "".join(page[path] for path in styles)
    texts["icon.svg"] = page["icon.svg"]
    texts["index.html"] = _index(index, styles, [name for name in texts if name.endswith(".js")])
    new = not folder.exists()
    with refused_by_system(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for name, text in texts.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError:
            for name in texts:
                (folder / name).unlink(missing_ok=True)
            if new:
                folder.rmdir()
            raise
    return sum(len(text.encode()) for text in texts.values())


def _data(answers: Answers) -> dict[str, bytes]:
    """Return the answers by file: the moments apart, which are most of it."""
    encoded = msgspec.to_builtins(answers)
    parts = {f"data-{name}.js": {name: encoded.pop(name)} for name in ("status", "explain")}
    return {name: msgspec.json.encode(part) for name, part in (parts | {"data.js": encoded}).items()}


def _data_script(value: bytes) -> str:
    """Return a script that adds a part to what the page knows. It is parsed as JSON: no name in it is code."""
    text = msgspec.json.encode(value.decode()).decode()
    return f"self.KERF_EXPORT = Object.assign(self.KERF_EXPORT ?? {{}}, JSON.parse({text}));\n"


def _index(index: str, styles: list[str], scripts: list[str]) -> str:
    for name in styles:
        index = index.replace(f'<link rel="stylesheet" href="{name}">\n', "")
    loaded = "".join(f'<script defer src="{name}"></script>\n' for name in scripts)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    index = index.replace('<meta charset="utf-8">\n', f'<meta charset="utf-8">\n{policy}', 1)
    return index.replace(_MODULE, f'<link rel="stylesheet" href="kerf.css">\n{loaded}')
