"""Compare recorded answers of a control plane with gangplan, without a lab."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.e2e.admission import recording, story, story_records
from tests.e2e.admission import report as admission
from tests.e2e.fidelity import kept, report
from tests.e2e.fidelity.ask import Result


def replay(path: Path) -> tuple[int, list[str]]:
    """Return the number of open disagreements in a file, and its report.

    The first line shows what kind of questions the file has.
    """
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    first = json.loads(text[: text.index(b"\n")])
    if "steps" in first:
        told = list(story_records.retold(path))
        return sum(one.is_open for one in told), story.lines(told, path.name)
    if "file" in first:
        pairs = list(kept.read(path))
        result = Result(pairs[0][0], 0, [one for _, one in pairs])
        return len(result.disagreements), report.lines(result, {})
    answers = admission.compared(recording.read(path))
    return len(answers.open), admission.lines(answers, path.name)
