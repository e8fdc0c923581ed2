"""What a second judge has seen of the texts in `rendered/`, and what it still has to see.

Results without a judge are noted with the *batch* that they came with: those of one command. A batch knows
the files that have all schema facts of its other files (decision 0019). While these are unchanged, a judge
need not see the others of the batch; once one of them is gone, it has to see all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from hashlib import sha256

from gangplan.incremental.store import RecordStore
from gangplan.records import dataclass

_PREFIX = "batch-"
# How many batches are kept: each command that adds results without a judge makes one; a judge ends them all.
MOST_BATCHES = 256


@dataclass(slots=True)
class SecondOpinions:
    """What `judge` still has to see, by batch; its label is empty without a judge."""

    store: RecordStore
    judge: str = ""
    _pending: dict[str, dict[str, str]] = field(default_factory=dict)

    def count(self, texts: Sequence[tuple[str, str]], seen_by: str) -> None:
        """Note the texts (path, digest) of a result, and what has seen them: a judge, or a batch."""
        if self.judge and seen_by != self.judge:
            self._pending.setdefault(seen_by, {}).update(texts)

    def unjudged(self, standing: Callable[[], Callable[[str], str]]) -> list[str]:
        """Return the files in `rendered/` that the judge must see, so that it has seen all of them.

        `standing` makes a function that returns the digest of a file if it holds what is rendered now.
        """
        found: set[str] = set()
        holding = standing() if self._pending else str
        for batch, texts in self._pending.items():
            telling = self._telling(batch)
            found.update(
                texts
                if telling is None or any(holding(path) != digest for path, digest in telling.items())
                else telling
            )
        return sorted(found)

    def batch(self, texts: Iterable[tuple[str, str]], telling: Collection[str]) -> str:
        """Return the name of a new batch of texts without a judge; empty if it is not known which are
        `telling`."""
        if not telling:
            return ""
        files = dict(sorted(one for one in texts if one[0] in telling))
        name = _PREFIX + sha256(repr(files).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self.store.put(f"batches/{name}", {"telling": files})
        self.store.keep_newest("batches", MOST_BATCHES)
        return name

    def _telling(self, batch: str) -> Mapping[str, str] | None:
        record = self.store.get(f"batches/{batch}") if batch.startswith(_PREFIX) else None
        return record["telling"] if isinstance(record, dict) else None
