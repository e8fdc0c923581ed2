"""A cache of the programs of gangplan's own expressions, stored where and when Python stores its compiled
modules.

Parsing and checking the policies of a cluster takes three times as long as starting Python, and the rules of
CRDs half as long as that. The result depends only on an expression's text, the types of its variables and the
engine, which are the key. A file that cannot be read is silently replaced, as Python does with its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from gangplan.cel.ast import AstNode, MapEntry
from gangplan.cel.checked import Checked
from gangplan.cel.environment import Environment
from gangplan.cel.program import CelProgram
from gangplan.cel.types import Type
from gangplan.records import dataclass

_ENGINE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class _Entry:
    """What callers need from a program before it runs, and the rest, pickled."""

    type: Type
    may_crash: bool
    checked: bytes


class KeptPrograms:
    """The cached programs of one policy, or of a kind's rules. `name` names only the file; the keys identify
    the rest."""

    def __init__(self, name: str) -> None:
        folder = Path(cache_from_source(str(_ENGINE / "kept.py"))).parent
        self._file = folder / f"{name}.{_digest_cel_engine_files()}.{sys.implementation.cache_tag}"
        self._entries: dict[str, _Entry] = {}
        self._is_new = False
        with contextlib.suppress(Exception):  # a damaged file breaks pickle in many ways
            entries = pickle.loads(self._file.read_bytes())
            if all(isinstance(one, _Entry) for one in entries.values()):
                self._entries = entries

    def compile(self, environment: Environment, text: str, composed: Mapping[str, Type]) -> CelProgram:
        """Return a program from the cache, or compile it, to be cached by `save`. Raises `CompileError`.

        `composed` are the types of the environment's variables whose contents vary.
        """
        types = [f"{name}: {type}" for name, type in composed.items()]
        key = "\n".join((str(environment.minor), *environment.variables, "", *types, "", text))
        entry = self._entries.get(key)
        if entry is not None:
            return CelProgram(text, entry.type, entry.may_crash, lambda: _unpickle_checked_cel(entry.checked))
        program = environment.compile(text)
        self._entries[key] = _Entry(program.type, program.may_crash, _pickle_kept_value(program.checked))
        self._is_new = True
        return program

    def save(self) -> None:
        """Write the file if programs were added, atomically."""
        if not self._is_new or sys.dont_write_bytecode:
            return
        self._is_new = False
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._file.parent, delete=False) as file:
                file.write(_pickle_kept_value(self._entries))
            os.replace(file.name, self._file)


@cache
def _digest_cel_engine_files() -> str:
    """Return what identifies this engine: its files by size and time, as Python does for compiled modules."""
    told = []
    for folder in (_ENGINE, _ENGINE / "library"):
        with os.scandir(folder) as files:
            stats = [(one.name, one.stat()) for one in files if one.is_file()]
        told += sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
    return hashlib.sha256(f"{sys.version} {told}".encode()).hexdigest()[:16]


class _Pickler(pickle.Pickler):
    """A pickler of records by their constructors, which takes half the time of pickling their states."""

    def reducer_override(self, one: Any) -> Any:
        if isinstance(one, (AstNode, MapEntry, Type, Checked, _Entry)):
            return type(one), tuple(getattr(one, name) for name in type(one).__match_args__)
        return NotImplemented


def _pickle_kept_value(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getvalue()


def _unpickle_checked_cel(data: bytes) -> Checked:
    found: Checked = pickle.loads(data)
    return found
