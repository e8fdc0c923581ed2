"""Compare both sides' answers: counts, causes, and every unexplained difference in full."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.e2e.admission.compare import Known, Said, differences, known, say
from tests.e2e.admission.recording import Answer

LONGEST = 900


@dataclass(frozen=True, slots=True)
class Open:
    """A difference without a known cause."""

    answer: Answer
    what: str
    text: str

    def __str__(self) -> str:
        made = ", ".join([self.answer.mistake, *self.answer.edits]).strip(", ") or "as drawn"
        return f"{self.answer.profile} {self.answer.name} ({made}), {self.what}: {self.text[:LONGEST]}"


@dataclass(slots=True)
class Compared:
    """The numbers of questions and worlds, and how the answers compare."""

    asked: int = 0
    worlds: set[tuple[str, str, str]] = field(default_factory=set)
    agree: int = 0
    twice: int = 0  # asked again, with more patience
    seconds: float = 0.0  # of gangplan's side
    known: Counter[Known] = field(default_factory=Counter)
    open: list[Open] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def take(self, answer: Answer) -> None:
        """Compare gangplan's answer with Kueue's, and count the result."""
        began = time.perf_counter()
        said: Said = say(answer.world, answer.bodies)
        self.seconds += time.perf_counter() - began
        self.asked += 1
        self.worlds.add(answer.place)
        self.twice += answer.asked > 1
        seen = answer.seen
        pods = "" if seen.outcome != "admitted" else ", all pods bound" if seen.fits else ", pods left over"
        self.seen[f"{seen.outcome} {seen.reason}".strip() + pods] += 1
        found = [(what, text, known(what, text, answer)) for what, text in differences(said, seen)]
        self.agree += not found
        for what, text, cause in found:
            if cause is None:
                self.open.append(Open(answer, what, text))
        if found and all(cause is not None for _, _, cause in found):
            self.known.update({cause for _, _, cause in found if cause is not None})


def compared(answers: Iterable[Answer]) -> Compared:
    """Compare all answers."""
    result = Compared()
    for answer in answers:
        result.take(answer)
    return result


def lines(result: Compared, title: str, troubles: Sequence[str] = ()) -> list[str]:
    """Return the lines of the report."""
    open_names = {(one.answer.profile, one.answer.name) for one in result.open}
    rest = result.asked - result.agree - len(open_names)
    counts = f"asked {result.asked} in {len(result.worlds)} worlds"
    counts += f", agree {result.agree}, known {rest}, open {len(open_names)}"
    out = [
        f"will this run be admitted, and where do its pods go? {title}",
        f"  {counts}; {result.twice} asked twice; gangplan's side took {result.seconds:.2f} s",
        "  what Kueue and the scheduler did:",
    ]
    out += [f"    {count:5} {what}" for what, count in result.seen.most_common()]
    out.append(f"  known causes: {len(result.known)}")
    out += [f"    {count:5} {one.name}: {one.cause}" for one, count in result.known.most_common()]
    out += [f"  open: {one}" for one in result.open]
    out += [f"  trouble of the harness: {trouble}" for trouble in troubles]
    return out
