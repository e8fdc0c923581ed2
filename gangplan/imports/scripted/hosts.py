"""Loops over the hosts of a job that start a program on each by ssh: every worker of a run starts it itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.idioms import THIS_HOST
from gangplan.imports.scripted.pieces import ExpandedWord, PartialText, WordPiece
from gangplan.plan.launchers import program_name_of
from gangplan.plan.launchers.prefixes import REMOTE_SHELLS

# Options of OpenSSH 9 with a value, which may be the next word.
_WITH_VALUE = frozenset("bcDEeFIiJLlmOopQRSWw")
# `i=$((i+1))`, `((i++))`, `((i+=1))`, `let i++`, `i=$(expr $i + 1)`.
_COUNTS = re.compile(
    r"\b([A-Za-z_]\w*)=\$\(\(\s*\$?\{?\1\}?\s*\+\s*1\s*\)\)|\(\(\s*([A-Za-z_]\w*)\s*(?:\+\+|\+=\s*1)\s*\)\)"
    r"|\(\(\s*\+\+\s*([A-Za-z_]\w*)\s*\)\)|\blet\s+[\"']?([A-Za-z_]\w*)\s*(?:\+\+|\+=\s*1)"
    r"|\b([A-Za-z_]\w*)=(?:\$\(|`)\s*expr\s+\$\{?\5\}?\s+\+\s+1\s*[)`]"
)
# Other arithmetic that a round leaves to the next: `i=$((i+2))`, `((n--))`, `ports+=" $p"`.
_CHANGES = re.compile(
    r"\b[A-Za-z_]\w*(?:\+=|-=|\*=|\+\+|--(?=\s*\)))|\b([A-Za-z_]\w*)=(?:\$\(\(|\$\[|\$\(\s*expr|`\s*expr)[^\n;]*\b\1\b"
    r"|\(\(\s*(?:\+\+|--)|\blet\s"
)
_OPENS = re.compile(r"(?:^|[;&|\n]|\bthen\b|\bdo\b|\belse\b)\s*(?:if|case|while|until|for|select)\b")
_CLOSES = re.compile(r"(?:^|[;&|\s])(?:fi|esac|done)(?=[;&|\s]|$)")
_THEN = re.compile(r"(?:&&|\|\|)\s*$")
_OWN_HOST = re.compile(
    r"\$\{?(?:HOSTNAME|HOST|SLURMD_NODENAME)(?:%%?\.\*)?\}?|(?:\$\(|`)\s*hostname(?:\s+-\w)?\s*[)`]"
)
# The scheduler's name for the number of a worker, which a run expresses in its own way.
_NUMBER = "$SLURM_NODEID"


def set_round_numbers(scope: ScriptScope, head: str, body: str) -> dict[str, str | None] | None:
    """Give what counts the rounds of a loop over all hosts the number of the worker; return its values after it.

    Return None for a loop whose counters are not as simple as that: each is counted by one in every round, once,
    and read before. The file of PBS names a host once for each of its ranks, so such a loop has other rounds.
    """
    is_of_ranks = "PBS_NODEFILE" in head and not re.search(r"\buniq\b|sort\s+-\w*u", head)
    if is_of_ranks and scope.values.get("PBS_NUM_PPN", "1") != "1":
        return None
    counts = list(_COUNTS.finditer(body))
    names = [next(name for name in one.groups() if name) for one in counts]
    rest = _COUNTS.sub(lambda found: " " * len(found[0]), body)
    if _CHANGES.search(rest) or len(set(names)) < len(names):
        return None
    after: dict[str, str | None] = {}
    for name, found in zip(names, counts, strict=True):
        first = scope.values.get(name, "0")
        is_known = isinstance(first, str) and re.fullmatch(r"[0-9]{1,9}", first) is not None
        is_read_later = re.search(rf"\$\{{?{name}\b", rest[found.end() :])
        is_calculated = re.search(rf"\(\([^()]*\b{name}\b", rest)
        if not is_known or is_read_later or is_calculated or _is_conditional(body[: found.start()]):
            return None
        begin, rounds = int(str(first)), scope.values.get("SLURM_NNODES")
        after[name] = str(begin + int(rounds)) if isinstance(rounds, str) and rounds.isdecimal() else None
        text = _NUMBER if begin == 0 else f"$(({begin}+{_NUMBER}))"
        scope.values[name] = PartialText((WordPiece(text, is_open=True),))
    return after


def _is_conditional(before: str) -> bool:
    """Return whether what follows a text of a loop's body may not run in every round, or more than once."""
    return len(_OPENS.findall(before)) != len(_CLOSES.findall(before)) or bool(_THEN.search(before))


def is_own_host(raw: str) -> bool:
    """Return whether a word of a script is the name of the host that reads it."""
    return _OWN_HOST.fullmatch(raw.strip('"')) is not None


def find_remote_start(texts: Sequence[str]) -> tuple[str, int] | None:
    """Return the host of an ssh with a command, and the index where the command begins; None for others."""
    if not texts or program_name_of(texts[0]) not in REMOTE_SHELLS:
        return None
    at = 1
    while at < len(texts) and texts[at].startswith("-"):
        at += 1 + (texts[at][-1:] in _WITH_VALUE and len(texts[at]) == 2)
    return (re.sub(r"^[^@]+@", "", texts[at]), at + 1) if at + 1 < len(texts) else None


def unwrap_remote_shell(fields: list[ExpandedWord]) -> list[ExpandedWord]:
    """Return the words of a command without the ssh to the host of this round, as that host's shell reads them."""
    found = find_remote_start([one.text for one in fields])
    if found is None or found[0] != THIS_HOST:
        return fields
    return build_shell_command(fields[found[1] :])


def build_shell_command(fields: Sequence[ExpandedWord]) -> list[ExpandedWord]:
    """Return the command whose shell reads these words as a script, joined by spaces as ssh and eval do."""
    pieces: list[WordPiece] = []
    for one in fields:
        pieces += [*([WordPiece(" ", is_quoted=True)] if pieces else []), *one.pieces]
    return [ExpandedWord((WordPiece(word),)) for word in ("bash", "-c")] + [ExpandedWord(tuple(pieces))]
