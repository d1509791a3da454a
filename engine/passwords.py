"""Takes passwords out of whatever is shown: the one redaction of URLs, used by every error and printed line."""

from __future__ import annotations

import re
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
