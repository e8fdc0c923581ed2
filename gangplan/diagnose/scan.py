"""Scan the text of a log for causes. Logs of gigabytes are read in pieces."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from gangplan.diagnose.evidence import Log, RunPart, Sighting, parse_run_part_from_evidence_pod_name
from gangplan.diagnose.signs import (
    MAX_FOLLOWING_LINES,
    MAX_WINDOW_LENGTH,
    FoundSign,
    Sign,
    find_signs_of_causes,
)

#: Bytes that are read at once, and the bound of the overlap of two pieces, so that a sign sees the lines
#: after it.
PIECE = 1 << 20
#: Lines kept from the end of a log.
LAST = 12
_LONGEST = 240
# Sightings of one cause that are kept of a log.
_MOST = 2_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TIME = re.compile(r"^(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+")
# A worker of an MPIJob or in people's words, where no pod of a JobSet is named.
_WORKER_HOST = re.compile(r"(?:^|-)worker-(\d{1,6})(?=[.:]|$)")
_WORKER_WORDS = re.compile(r"(?<!DataLoader )\b[Ww]orker[ -](\d{1,6})\b(?![/.])")
_POD = r"(?P<pod>\S+-0-\d+-[a-z0-9]{5})"
# Prefixes of lines: kubectl logs --prefix; gangplan logs; mpirun --tag-output of Open MPI 4 and 5; torch;
# Hydra's -prepend-rank.
_FRONTS = (
    re.compile(r"^\[pod/(?P<pod>[^/\]]+)/[^\]]*\] ?"),
    re.compile(r"^(?:launcher|worker (?P<worker>\d+)|(?P<launcher>launcher)) *\| ?"),
    re.compile(r"^\[(?:[^\]\s]*[@,])?\d*,?(?P<rank>\d+)\]<std(?:out|err|diag)>: ?"),
    re.compile(r"^\[rank(?P<rank>\d+)\]:? ?"),
    re.compile(r"^\[(?P<rank>\d+)\] "),
    # Rows of `kubectl get pods` and `kubectl get events`, which stay as they are.
    re.compile(rf"^(?=(?:\S+ +)?{_POD} +\d+/\d+ )"),
    re.compile(rf"^(?=\S+ +(?:Normal|Warning) +\S+ +pod/{_POD} )"),
)


def scan_log_for_signs(
    file: str, read: Callable[[int], bytes], signs: tuple[Sign, ...], who: RunPart | None = None
) -> Log | None:
    """Scan a log that `read` returns in pieces. Returns None for bytes that are not text."""
    of = who or RunPart()
    found: list[Sighting] = []
    last: deque[str] = deque(maxlen=LAST)
    count, rest = 0, ""
    decoder = getincrementaldecoder("utf-8")("replace")
    is_first = True
    while True:
        piece = read(PIECE)
        if is_first and _is_binary(piece[:8192]):
            return None
        is_first = False
        text = rest + decoder.decode(piece, final=not piece)
        cut = len(text) if not piece else _find_log_piece_end(text)
        if not cut and len(text) > 4 * PIECE:
            cut = len(text)  # one endless line, such as a progress bar
        whole, rest = text[:cut], text[cut:]
        if whole:
            if "\r" in whole:
                whole = whole.replace("\r\n", "\n").replace("\r", "\n")
            _collect_log_sightings(whole, count, file, signs, of, found)
            lines = whole.split("\n")
            last.extend(line for line in lines[-3 * LAST :] if line.strip())
            count += len(lines) - 1 if whole.endswith("\n") else len(lines)
        if not piece:
            return Log(file, count, tuple(found), tuple(_clean_log_line(line) for line in last), of)


def _is_binary(head: bytes) -> bool:
    """Return whether the bytes are not text. A few zero bytes are allowed: Open MPI 5 writes some."""
    few = len(head) // 20
    return head.count(0) > few or head.decode("utf-8", "replace").count("\ufffd") > few


def _find_log_piece_end(text: str) -> int:
    """Return where to end a piece so that the next one has all lines after a sign; 0 if nowhere."""
    end = len(text)
    for _ in range(MAX_FOLLOWING_LINES + 1):
        end = text.rfind("\n", max(0, len(text) - MAX_WINDOW_LENGTH - PIECE // 2), end)
        if end < 0:
            return 0
    return end + 1


def _collect_log_sightings(
    text: str, before: int, file: str, signs: tuple[Sign, ...], who: RunPart, found: list[Sighting]
) -> None:
    position, line = 0, before
    counts = Counter((one.cause, one.is_warning) for one in found)
    for one in find_signs_of_causes(text, signs):
        line += text.count("\n", position, one.start)
        position = one.start
        counts[one.cause, one.is_warning] += 1
        if counts[one.cause, one.is_warning] <= _MOST:
            found.append(_build_log_sighting(text, one, line + 1, file, who))


def _build_log_sighting(text: str, one: FoundSign, line: int, file: str, who: RunPart) -> Sighting:
    said, at, front = split_off_log_line_prefixes(_shorten_line_around_sign(text, one))
    facts = dict(one.facts)
    whose = replace(
        who,
        run=front.run or who.run,
        role=front.role or who.role,
        worker=who.worker if front.worker is None else front.worker,
        rank=who.rank if front.rank is None else front.rank,
    )
    if rank := facts.pop("rank", ""):
        whose = replace(whose, rank=int(rank))
    host = parse_run_part_from_evidence_pod_name(facts.get("host", ""))
    if host.role:
        whose = replace(whose, run=host.run, role=host.role, worker=host.worker)
    elif match := _WORKER_HOST.search(facts.get("host", "")) or (
        _WORKER_WORDS.search(said) if whose.worker is None else None
    ):
        whose = replace(whose, role="node", worker=int(match[1]))
    if one.cause == "exception":  # the end of a traceback says more than its beginning
        said = facts.get("what", said)
    return Sighting(one.cause, file, line, "", said, whose, at, facts, one.is_warning)


def _shorten_line_around_sign(text: str, one: FoundSign) -> str:
    """Return the line; of a long one, the part around the needle."""
    if one.end - one.start <= 4 * _LONGEST:
        return text[one.start : one.end]
    return text[max(one.start, one.needle - _LONGEST // 2) : min(one.end, one.needle + _LONGEST)]


def split_off_log_line_prefixes(line: str) -> tuple[str, str, RunPart]:
    """Return a line without its prefixes, its time, and the part of the run that wrote it."""
    text, at, who = _ANSI.sub("", line), "", RunPart()
    for _ in range(len(_FRONTS) + 2):
        if match := _TIME.match(text):
            at = at or match["at"].replace(" ", "T")
        else:
            match = next((found for front in _FRONTS if (found := front.match(text))), None)
            if match is None:
                break
            facts = match.groupdict()
            if facts.get("pod"):
                pod = parse_run_part_from_evidence_pod_name(facts["pod"])
                who = replace(pod, rank=who.rank)
            elif facts.get("worker"):
                who = replace(who, role="node", worker=int(facts["worker"]))
            elif facts.get("rank"):
                who = replace(who, rank=int(facts["rank"]))
            elif text.startswith("launcher"):
                who = replace(who, role="launcher", worker=None)
        text = text[match.end() :]
    text = " ".join(text.split())
    return (text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."), at, who


def _clean_log_line(line: str) -> str:
    text = _ANSI.sub("", line).rstrip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
