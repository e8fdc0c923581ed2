"""Answers about objects, as the control plane gave them: later code is compared with them offline."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.e2e.fidelity.ask import Answered
from tests.e2e.fidelity.edits import Edit
from tests.e2e.fidelity.questions import Question
from tests.e2e.fidelity.sides import Verdict, gangplan_says, versions_of
from tests.e2e.fidelity.worlds import Emitted
from tests.lab.profiles import Profile, find

Object = dict[str, Any]


def write(path: Path, profile: Profile, answered: Iterable[Answered]) -> None:
    """Write one line per rendered file, then one per question about it."""
    lines: list[Object] = []
    last: Emitted | None = None
    for one in answered:
        question = one.question
        if question.emitted is not last:
            last = question.emitted
            lines.append({"profile": profile.name, "file": asdict(last)})
        edits = [edit.as_case() for edit in question.edits]
        asked = {"index": question.index, "mutation": question.mutation, "edits": edits}
        lines.append({**asked, "server": asdict(one.server)})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 6, mtime=0))


def read(path: Path) -> Iterator[tuple[Profile, Answered]]:
    """Yield the answers in a file, with what gangplan says now."""
    for line in map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines()):
        if "file" in line:
            profile, emitted = find(line["profile"]), Emitted(**line["file"])
            continue
        edits = tuple(map(Edit.of, line["edits"]))
        question = Question(emitted, line["index"], line["mutation"], edits)
        server = Verdict(**{**line["server"], "warnings": tuple(line["server"]["warnings"])})
        ours = gangplan_says(question.bodies(), versions_of(profile))
        yield profile, Answered(question, ours, server)
