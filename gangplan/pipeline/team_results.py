"""Known results of the specs of one team, and what a command adds to them."""

from __future__ import annotations

import json
import marshal
import zlib
from collections.abc import Mapping
from dataclasses import field

from gangplan.pipeline.stored import Json, RuleFinder, SharedValues, dump_expanded_task_result
from gangplan.pipeline.worker import TaskResult
from gangplan.records import dataclass


@dataclass(slots=True)
class TeamResults:
    """The specs of a team: folders, digests, which results were taken, which judge saw them, and what is new.

    `before` counts the specs in its `record`, which is held until its results are requested.
    """

    folders: Mapping[str, str]
    before: int
    record: Json
    digests: dict[str, str] = field(default_factory=dict)
    judges: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    _new: dict[str, str] = field(default_factory=dict)
    _shared: SharedValues | None = None
    _folded: bytes = b""

    def __post_init__(self) -> None:
        """Start the shared values with those of the record."""
        self._shared = SharedValues(self.record["shared"])

    @property
    def has_new(self) -> bool:
        """Whether there is anything to add to the record."""
        return bool(self._new or self._folded)

    def note(self, result: TaskResult, rules: RuleFinder) -> None:
        """Note a new result of a spec. Only its text is held, a third of the size."""
        new, shared = self.new()
        try:
            told = dump_expanded_task_result(result, rules, shared) if result.is_lasting else None
        except ValueError:
            told = None
        new[result.file] = "" if told is None else json.dumps(told, separators=(",", ":"))

    def new(self) -> tuple[dict[str, str], SharedValues]:
        """Return what is new, as JSON by file (empty: not to be kept), and what results have in common."""
        if self._shared is None:
            self._new, values = marshal.loads(zlib.decompress(self._folded))
            self._shared, self._folded = SharedValues(values), b""
        return self._new, self._shared

    def fold(self) -> None:
        """Compress what is new to a twentieth of its size, until it is requested again."""
        if self._shared is not None and self._new:
            self._folded = zlib.compress(marshal.dumps((self._new, self._shared.values)), 1)
            self._new, self._shared = {}, None
