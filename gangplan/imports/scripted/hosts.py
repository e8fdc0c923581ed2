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
_OWN_HOST = re.compile(
    r"\$\{?(?:HOSTNAME|HOST|SLURMD_NODENAME)(?:%%?\.\*)?\}?|(?:\$\(|`)\s*hostname(?:\s+-\w)?\s*[)`]"
)
# The scheduler's name for the number of a worker, which a run expresses in its own way.
_NUMBER = "$SLURM_NODEID"


def set_round_numbers(scope: ScriptScope, head: str, body: str) -> bool:
    """Give what counts the rounds of a loop over all hosts the number of the worker.

    Return False if it is not known, or if the loop has a round for each rank: the file of PBS names a host once
    for each of its ranks.
    """
    is_of_ranks = "PBS_NODEFILE" in head and not re.search(r"\buniq\b|sort\s+-\w*u", head)
    if is_of_ranks and scope.values.get("PBS_NUM_PPN", "1") != "1":
        return False
    for found in _COUNTS.finditer(body):
        name = next(one for one in found.groups() if one)
        first = scope.values.get(name, "0")
        if not isinstance(first, str) or not re.fullmatch(r"[0-9]{1,9}", first):
            return False
        text = _NUMBER if int(first) == 0 else f"$(({int(first)}+{_NUMBER}))"
        scope.values[name] = PartialText((WordPiece(text, is_open=True),))
    return True


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
