"""Rendered trees, from Git or as rendered now: what differs between them, and the texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path

from gangplan.emit import FileOutcome, TreeChange
from gangplan.records import dataclass
from gangplan.tools.revisions import compute_git_blob_id

# A function from blob ids to the bytes of the blobs.
Blobs = Callable[[Iterable[str]], Mapping[str, bytes]]


@dataclass(slots=True)
class RenderedTree:
    """Files by their paths below rendered/, each with an id of its contents.

    `ids` are those of Git's blobs, or digests if the tree is `read` from files. `committed` are files that
    are known to be as they were committed.
    """

    ids: Mapping[str, str]
    blobs: Blobs | None = None
    read: Callable[[str], bytes] | None = None
    committed: Collection[str] = ()
    _texts: dict[str, bytes] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """Return the text of a file; empty if there is none."""
        return self.data(path).decode("utf-8", "replace")

    def data(self, path: str) -> bytes:
        """Return the bytes of a file; empty if there is none."""
        if path not in self.ids:
            return b""
        if path not in self._texts:
            self.load([path])
        return self._texts[path]

    def peek(self, path: str) -> bytes:
        """Return the bytes of a file without holding them: most files of a tree are only compared."""
        return self.read(path) if self.read is not None and path in self.ids else self.data(path)

    def load(self, paths: Iterable[str]) -> None:
        """Read several files at once."""
        missing = [path for path in paths if path in self.ids and path not in self._texts]
        if self.blobs is not None:
            found = self.blobs({self.ids[path] for path in missing})
            self._texts |= {path: found[self.ids[path]] for path in missing}
        elif self.read is not None:
            self._texts |= {path: self.read(path) for path in missing}

    def below(self, folder: Path, wants: Callable[[str], bool]) -> dict[str, bytes]:
        """Return the bytes of some files, by their paths from the folder above `folder`."""
        paths = [path for path in self.ids if wants(path)]
        self.load(paths)
        return {f"{folder.name}/{path}": self._texts[path] for path in paths}


def read_committed_tree(ids: Mapping[str, str], read: Blobs) -> RenderedTree:
    """Return the tree of the manifests that Git has, by blob."""
    return RenderedTree({path: name for path, name in ids.items() if path.endswith(".yaml")}, read)


def read_rendered_tree_after_change(
    folder: Path,
    stage: Path,
    changes: Mapping[str, TreeChange],
    like: RenderedTree | None = None,
    touched: Collection[str] | None = None,
) -> RenderedTree:
    """Return the tree that is rendered now; the files that differ from `folder` are on a stage.

    Files with results of another tree are read there (`like`). `touched` are the files of `folder` that may
    not be as they were committed, if that is known.
    """

    def read(path: str) -> bytes:
        for place in (stage / path, folder / path):
            if place.is_file():
                return place.read_bytes()
        return like.data(path) if like is not None else b""

    same = set()
    if touched is not None:
        same = {
            path for path, one in changes.items() if one.outcome is FileOutcome.SAME and path not in touched
        }
    return RenderedTree({path: change.digest for path, change in changes.items()}, read=read, committed=same)


def compare_files_of_rendered_trees(before: RenderedTree, after: RenderedTree) -> list[str]:
    """Return the files that are not the same in both trees, sorted.

    Current texts are read to find out, unless they are known to be as they were committed.
    """
    found = []
    for path in sorted({*before.ids, *after.ids}):
        if path not in before.ids or path not in after.ids:
            found.append(path)
        elif before.blobs is None:
            if before.ids[path] != after.ids[path]:
                found.append(path)
        elif path in after.committed:
            continue
        elif compute_git_blob_id(after.peek(path), before.ids[path]) != before.ids[path]:
            found.append(path)
    before.load(found)
    return found
