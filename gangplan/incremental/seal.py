"""Texts that gangplan reads again only if this user's gangplan wrote them and they are unchanged since.

The contents of a workspace may come from anybody who can open a pull request. A forged result would be a
green check, and a forged journal would remove files. So what is kept there begins with a digest under a key
that is kept elsewhere: `GANGPLAN_CACHE_KEY`, else a file in the user's own cache that is made at first use.
"""

from __future__ import annotations

import os
from hashlib import blake2b

#: The format of sealed texts; those with another number are not read.
FORMAT = b"gangplan 1"
_DIGITS = 64


def read_seal_key() -> bytes | None:
    """Return the key, or None if there is none and none can be made."""
    if given := os.environ.get("GANGPLAN_CACHE_KEY"):
        return blake2b(given.encode("utf-8", "surrogateescape")).digest()
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "gangplan")
    path = os.path.join(folder, "cache.key")
    if not os.path.isabs(path):
        return None
    try:
        return _read_seal_key(path) or _create_seal_key(folder, path)
    except OSError:
        return None


def seal_text(text: bytes, secret: bytes) -> bytes:
    """Return a text with its digest in front."""
    return _compute_seal_digest(text, secret) + b"\n" + text


def open_sealed(data: bytes, secret: bytes) -> bytes | None:
    """Return the text, or None if it is not as it was sealed, or was sealed with another key."""
    text = data[_DIGITS + 1 :]
    return text if data[: _DIGITS + 1] == _compute_seal_digest(text, secret) + b"\n" else None


def _compute_seal_digest(text: bytes, secret: bytes) -> bytes:
    return blake2b(text, digest_size=_DIGITS // 2, key=secret[:64], person=FORMAT).hexdigest().encode()


def _read_seal_key(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            found = file.read(64)
    except FileNotFoundError:
        return None
    return found if len(found) == 32 else None


def _create_seal_key(folder: str, path: str) -> bytes | None:
    """Return a new key, for this user only; of two that are made at once, one stays."""
    os.makedirs(folder, exist_ok=True)
    aside = f"{path}.{os.getpid()}"
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(os.urandom(32))
    try:
        os.link(aside, path)
    except FileExistsError:
        if _read_seal_key(path) is None:
            os.replace(aside, path)
            return _read_seal_key(path)
    os.unlink(aside)
    return _read_seal_key(path)
