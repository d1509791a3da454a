"""Takes passwords out of whatever is shown: the one redaction of URLs, used by every error and printed line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote_plus

_URL = re.compile(r"[A-Za-z][\w+.-]*:/\S*")
_LOGIN = re.compile(r"(?s)\A((?>(?:[A-Za-z][\w+.-]*:(?=/))?/*)[^:/?#]*):.*@")
_SECRET = r"password|passwd|client_secret|(?:client|server)_key"
_PARAMETER = re.compile(rf"(?i)\b(\w*(?:{_SECRET}))(\s*=\s*)('(?:[^'\\]|\\.)*'|[^&\s]+)")
_NAMES_SECRET = re.compile(f"(?i){_SECRET}")


def without_password(url: str) -> str:
    """Returns a URL, which may be mistyped, without its password and without secret parameters.

    What stands between the user and the last "@" is left out, because a password may hold any character unescaped.
    """
    start, question, query = _LOGIN.sub(r"\1@", url, count=1).partition("?")
    parameters = query.split("&")
    kept = [setting for setting in parameters if not _NAMES_SECRET.search(unquote_plus(setting.partition("=")[0]))]
    return start + (question + "&".join(kept) if kept else "")


def without_passwords(text: str) -> str:
    """Returns a text without the passwords of the URLs in it, and of libpq's `password=…`."""
    shown = _URL.sub(lambda found: without_password(found[0]), text)
    return _PARAMETER.sub(r"\1\2…", shown)


_VARIABLE = re.compile(r"(?i)secret|token|passw|credential|access_?key|api_?key")
"""What names of environment variables that hold a secret have in them."""
_ASSIGNED = re.compile(r"""(?x)
    (\b\w*(?:SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|ACCESS_?KEY|API_?KEY)\w*["']?\s*[=:]\s*)
    ("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;)}&]+)""")
_SHORTEST = 6
"""A secret variable's value of fewer characters stands in any text by chance."""


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Returns a text of unknown origin, such as a traceback, without passwords of URLs, without values that are
    assigned to names like AWS_SECRET_ACCESS_KEY, and without the values of such variables of the environment.
    """
    values = {value for name, value in environment.items() if _VARIABLE.search(name) and len(value) >= _SHORTEST}
    for value in sorted(values, key=lambda value: (-len(value), value)):
        text = text.replace(value, "…")
    return _ASSIGNED.sub(r"\1…", without_passwords(text))
