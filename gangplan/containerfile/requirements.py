"""Check the requirements files of an image: unless each line names one build, the next image differs.

The format is pip's (pip 25, requirements-file-format): comments, lines continued after a backslash, options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gangplan.containerfile.facts import ContainerfileFacts
from gangplan.containerfile.told import build_lint_finding
from gangplan.findings import Finding
from gangplan.rules.containerfiles import CONTAINERFILE_REQUIREMENT_OPEN

_FILE = re.compile(r"(?=[\w.-]*requirements)[\w.-]+\.(?:txt|in)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_EXACT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[^]]*\])?\s*===?\s*[\w.!+-]+\s*(?:;.*)?")
# A file with its checksum, or a commit by its id.
_FIXED = re.compile(r"#(?:[^#]*&)?sha(?:256|384|512)=[0-9a-f]{64,}|@[0-9a-f]{40}(?:[#\s]|$)|--hash[= ]sha")


def check_copied_pip_requirements_files(
    file: str, facts: ContainerfileFacts, read: Callable[[str], str | None]
) -> Iterator[Finding]:
    """Check the requirements files that a Containerfile copies, and their .in sources, at their own lines."""
    folder = file.rpartition("/")[0]
    names = [one.source for one in facts.copied if _FILE.fullmatch(one.source.rpartition("/")[2])]
    sources = [f"{name.removesuffix('.txt')}.in" for name in names if name.endswith(".txt")]
    for name in dict.fromkeys((*names, *sources)):
        text = read(name)
        beside = f"{folder}/{name}" if folder else name
        for line, words in _list_pip_requirement_lines(text or ""):
            if not _is_exact(words):
                message = f"'{words[:80]}' does not say which version is installed"
                yield build_lint_finding(CONTAINERFILE_REQUIREMENT_OPEN, beside, line, 1, message)


def _list_pip_requirement_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and text of each requirement; options are skipped, except -e and --editable."""
    whole, begin = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        begin = begin or number
        part = _COMMENT.sub("", line)
        if part.endswith("\\"):
            whole += f"{part[:-1]} "
            continue
        words, whole, at, begin = f"{whole}{part}".strip(), "", begin, 0
        if words and (not words.startswith("-") or words.startswith(("-e", "--editable"))):
            yield at, words


def _is_exact(words: str) -> bool:
    """Return whether a requirement names one build by version, checksum or commit."""
    bare = words.partition(" --")[0].strip()
    return bool(_FIXED.search(words)) or bool(_EXACT.fullmatch(bare))
