"""Read evidence from files, folders and standard input.

Objects are what `kubectl get -o json` or `-o yaml` writes (one, a List, or several documents); any other text
is a log, including the output of `kubectl describe`.
"""

from __future__ import annotations

import io
import json
import os
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from gangplan.diagnose.evidence import (
    Evidence,
    Log,
    RunPart,
    SavedObject,
    parse_run_part_from_evidence_pod_name,
)
from gangplan.diagnose.scan import scan_log_for_signs
from gangplan.diagnose.signs import Sign
from gangplan.diagnose.tidy import drop_malformed_fields
from gangplan.errors import UserError
from gangplan.source.manifests import ManifestError, load_objects

#: The objects of a large cluster take tens of megabytes.
MOST_BYTES = 512 * 2**20
MOST_FILES = 20_000
_HEAD = 4096
# The beginning of a YAML line that kubectl writes.
_YAML = re.compile(rb"^(?:---\s*$|apiVersion:|kind:|items:)", re.MULTILINE)
# The first lines of `kubectl describe`.
_DESCRIBED = re.compile(rb"\s*Name: {3,}\S+\s*\n(?:Namespace|Labels|Priority): ")
# Byte order marks, and what they stand for: Windows PowerShell's `>` writes UTF-16.
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}
# What kubectl prints instead of objects or a log (kubectl v1.34).
_NOTHING = re.compile(
    r"No resources found|Error from server(?: \(\w+\))?: |Unable to connect to the server: |error: (?:the server|You must be logged in)"
)
_DESCRIPTORS = frozenset({Path("/dev/fd"), Path("/proc/self/fd")})
_SKIPPED = frozenset({".git", ".gangplan", "node_modules", "__pycache__"})


def all_signs() -> tuple[Sign, ...]:
    """Return the signs of logs, narrower ones first."""
    from gangplan.diagnose import signs_cluster, signs_mpi, signs_program

    return (*signs_mpi.MPI_SIGNS, *signs_cluster.CLUSTER_SIGNS, *signs_program.PROGRAM_SIGNS)


def read_evidence(named: Sequence[str], stdin: Callable[[], BinaryIO]) -> Evidence:
    """Read files, folders and `-`. Raises UserError for a file that is missing, unreadable or cut off.

    One of a folder is left out, since the others may say enough.
    """
    things: list[SavedObject] = []
    logs: list[Log] = []
    skipped: list[str] = []
    broken: list[str] = []
    signs = all_signs()
    for file, is_named, opened in _find_evidence_sources(named, stdin):
        try:
            found = _read_evidence_file(file, opened, signs)
        except UserError as error:
            if is_named:
                raise
            broken.append(error.message)
            continue
        if found is None:
            skipped.append(file)
        elif isinstance(found, Log):
            logs += [found] if found.lines else []
        else:
            things += found
    return Evidence(tuple(things), tuple(logs), tuple(skipped), tuple(broken))


def _read_evidence_file(
    file: str, opened: Callable[[], BinaryIO], signs: tuple[Sign, ...]
) -> Log | list[SavedObject] | None:
    """Return the log or the objects of a file; None for one that is not text."""
    with opened() as stream:
        head = stream.read(_HEAD)
        rest = _prepend_head_to_stream(head, stream)
        if mark := next((mark for mark in _MARKS if head.startswith(mark)), None):
            head, rest = (
                head[len(mark) :].decode(_MARKS[mark], "replace").encode(),
                _convert_evidence_to_utf8(rest, mark),
            )
        if not _is_file_of_saved_objects(file, head):
            log = scan_log_for_signs(file, rest, signs, _parse_run_part_from_log_name(file))
            if log is None:
                return None
            _refuse_answer_without_evidence(log)
            return replace(log, is_described=_DESCRIBED.match(head) is not None)
        return _parse_saved_objects(file, _read_evidence_bytes(file, rest))


def _refuse_answer_without_evidence(log: Log) -> None:
    """Raise UserError for a file in which kubectl says only that there is nothing, or why it got nothing."""
    if 0 < log.lines <= len(log.last) and all(_NOTHING.match(line) for line in log.last):
        raise UserError(
            f"{log.file} has neither a log nor objects, but an answer of kubectl: {log.last[0]}",
            "Save them again, with the name and the namespace that gangplan status shows for the run.",
        )


def scan_received_log_for_signs(file: str, text: str, who: RunPart) -> Log:
    """Return a log received over a connection."""
    log = scan_log_for_signs(
        file, _prepend_head_to_stream(text.encode("utf-8", "replace"), io.BytesIO()), all_signs(), who
    )
    return log or Log(file, 0, (), (), who)


def _find_evidence_sources(
    named: Sequence[str], stdin: Callable[[], BinaryIO]
) -> Iterator[tuple[str, bool, Callable[[], BinaryIO]]]:
    """Yield each file, whether it was named itself, and how to open it."""
    count = 0
    for name in named:
        if name == "-":
            yield "standard input", True, stdin
            continue
        path = Path(name)
        if not path.exists():
            raise UserError(
                f"there is no file {name}",
                "Save what the cluster says: kubectl get trainjobs,jobsets,jobs,pods,events -o json > run.json.",
            )
        _refuse_endless_evidence_file(path)
        for one in _list_evidence_files(path):
            count += 1
            if count > MOST_FILES:
                raise UserError(f"{name} has more than {MOST_FILES} files", "Name those of one run.")
            yield one.as_posix(), one == path, lambda one=one: _open_evidence_file(one)  # type: ignore[misc]


def _refuse_endless_evidence_file(path: Path) -> None:
    """Raise UserError for a pipe or device that may never end. The shell's own <(...) do."""
    if path.is_file() or path.is_dir() or path.parent in _DESCRIPTORS or path == Path("/dev/stdin"):
        return
    kind = "pipe" if path.is_fifo() else "socket" if path.is_socket() else "device"
    raise UserError(f"{path} is a {kind}, and not a file", f"Send it to gangplan diagnose - < {path}.")


def _open_evidence_file(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "Check its permissions.") from error


def _list_evidence_files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED)
        for name in sorted(files):
            file = Path(folder, name)
            if file.is_file() and not file.is_symlink():
                yield file


def _prepend_head_to_stream(head: bytes, stream: BinaryIO) -> Callable[[int], bytes]:
    """Return a reader of the stream from its start, including the bytes that were read to recognise it."""
    left = [head]

    def read(size: int) -> bytes:
        return left.pop() if left and left[0] else stream.read(size)

    return read


def _convert_evidence_to_utf8(read: Callable[[int], bytes], mark: bytes) -> Callable[[int], bytes]:
    """Return a reader of the same text in UTF-8, without its byte order mark."""
    decoder = getincrementaldecoder(_MARKS[mark])("replace")
    left = [mark]

    def read_text(size: int) -> bytes:
        while piece := read(size):
            if left:
                piece = piece[len(left.pop()) :]
            if text := decoder.decode(piece):
                return text.encode("utf-8", "replace")
        return decoder.decode(b"", final=True).encode("utf-8", "replace")

    return read_text


def _read_evidence_bytes(file: str, read: Callable[[int], bytes]) -> bytes:
    parts: list[bytes] = []
    size = 0
    while piece := read(1 << 20):
        parts.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise UserError(
                f"{file} is larger than {MOST_BYTES >> 20} MiB", "Save the objects of one namespace."
            )
    return b"".join(parts)


def _is_file_of_saved_objects(file: str, head: bytes) -> bool:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if file.endswith((".log", ".txt", ".out", ".err")):
        return start.startswith(b"{") and b'"apiVersion"' in head
    if start.startswith(b"{"):
        # Programs log in JSON too, one object per line. kubectl writes the first brace on a line of its own.
        return b'"apiVersion"' in head or (file.endswith(".json") and b'"items"' in head)
    return file.endswith((".yaml", ".yml")) or (_YAML.search(start) is not None and b"apiVersion:" in head)


def _parse_saved_objects(file: str, data: bytes) -> list[SavedObject]:
    bodies: Iterable[Any]
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{"):
        bodies = _parse_consecutive_saved_objects(file, start)
    else:
        try:
            bodies = load_objects(data.decode("utf-8", "replace"))
        except ManifestError as error:
            raise UserError(f"{file}:{error.line or 1}: {error.message}", "Save it again.") from error
    found = (one for body in bodies for one in _unwrap_saved_object_list(body))
    return [SavedObject(drop_malformed_fields(one), file) for one in found]


def _parse_consecutive_saved_objects(file: str, data: bytes) -> list[Any]:
    """Parse consecutive objects, as several calls of `kubectl get` write them."""
    text = data.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    found: list[Any] = []
    position = 0
    while position < len(text):
        try:
            body, position = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", position)) + 1
            said = getattr(error, "msg", "nested too deeply")
            raise UserError(
                f"{file}:{line}: this is not JSON: {said}", "Save it again; it may have been cut off."
            ) from error
        found.append(body)
        while position < len(text) and text[position] in " \t\r\n":
            position += 1
    return found


def _unwrap_saved_object_list(body: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a List; anything that is not a Kubernetes object is left out."""
    if not isinstance(body, dict):
        return
    items = body.get("items")
    if isinstance(items, list) and str(body.get("kind") or "List").endswith("List"):
        kind = str(body.get("kind") or "List").removesuffix("List")
        for one in items:
            if isinstance(one, dict):
                yield one if one.get("kind") else {"kind": kind, **one}
    elif body.get("kind") and isinstance(body.get("metadata"), dict):
        yield body


def _parse_run_part_from_log_name(file: str) -> RunPart:
    """Parse the name of a log into the part of a run: `<pod>.log`, `worker-3.log`, `launcher.txt`."""
    for part in reversed(Path(file).parts):
        bare = re.sub(r"\.(?:log|txt|out|err|current|previous)$", "", part)
        who = parse_run_part_from_evidence_pod_name(bare)
        if who.role:
            return who
        if match := re.fullmatch(r"(?:.*[-_.])?(launcher|worker|rank)[-_.]?(\d+)?", bare):
            if match[1] == "launcher":
                return RunPart(role="launcher")
            if match[2] is not None:
                number = int(match[2])
                return RunPart(rank=number) if match[1] == "rank" else RunPart(role="node", worker=number)
    return RunPart()


def named_after(log: Log, who: RunPart) -> Log:
    """Return the log with the part of the run that wrote it."""
    return replace(log, who=who)
