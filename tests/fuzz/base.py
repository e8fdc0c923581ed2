"""A campaign: a law, and the cases on which it is tried, generated from a seed."""

from __future__ import annotations

import contextlib
import random
import signal
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Processor seconds that one text may take: a hundred times what the slowest one needs.
PATIENCE_S = 20.0
# No mutation makes a text longer than this: what matters is the shape.
MOST_BYTES = 4000

#: A law that must hold for any bytes; it raises when it is broken.
Law = Callable[[bytes], None]
#: A law about a whole program, tried in an empty folder.
Story = Callable[[random.Random, Path], None]


class SlowError(AssertionError):
    """A text took longer than anybody would wait."""


@dataclass(frozen=True)
class Texts:
    """A law about texts, tried on a corpus and on mutations of it."""

    law: Law
    corpus: Callable[[], Sequence[bytes]]
    words: Sequence[bytes] = ()

    def case(self, chance: random.Random, texts: Sequence[bytes]) -> bytes:
        """Return a mutated text of the corpus."""
        return mutated(chance.choice(texts), chance, texts, self.words)


@dataclass(frozen=True)
class Stories:
    """A law about whole programs; each case runs in a folder of its own."""

    story: Story


Campaign = Texts | Stories


def run(
    campaign: Campaign, count: int, seed: int, tell: Callable[[int], None] = lambda done: None
) -> Iterator[str]:
    """Try this many cases and yield what is wrong with each one that breaks its law.

    Case n is the same for the same seed. `tell` gets the number of cases that are done, before each one.
    """
    texts = campaign.corpus() if isinstance(campaign, Texts) else ()
    for number in range(count):
        tell(number)
        chance = random.Random(f"{seed}:{number}")
        if isinstance(campaign, Texts):
            text = campaign.case(chance, texts)
            broken = judged(campaign.law, text)
            if broken:
                yield f"seed {seed}, case {number}: {text!r}\n  {broken}"
            continue
        with tempfile.TemporaryDirectory(prefix="gangplan-fuzz-") as folder:
            try:
                campaign.story(chance, Path(folder))
            except Exception as error:  # noqa: BLE001  any exception is what is looked for
                yield f"seed {seed}, case {number}: {type(error).__name__}: {error}"


def judged(law: Law, text: bytes) -> str:
    """Return how a text breaks a law; empty when it does not."""
    try:
        with within(PATIENCE_S):
            law(text)
    except Exception as error:  # noqa: BLE001  any exception is what is looked for
        return f"{type(error).__name__}: {error}"
    return ""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise SlowError when the block takes more processor time; this interrupts Python's `re`, too."""

    def too_slow(_number: int, _frame: types.FrameType | None) -> None:
        raise SlowError(f"it takes more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def mutated(text: bytes, chance: random.Random, texts: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return the text with one to six small changes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        begin = chance.randrange(len(text) + 1)
        end = min(len(text), begin + chance.choice((0, 1, 1, 2, 4, 8, 30)))
        kind = chance.randrange(8)
        if kind == 0:
            new = bytes([chance.randrange(256)])
        elif kind == 1:
            new = b""
        elif kind == 2:
            new = text[begin:end] * chance.choice((2, 3, 50))
        elif kind == 3:
            other = chance.choice(texts)
            at = chance.randrange(len(other) + 1)
            new = other[at : at + chance.choice((1, 4, 16, 64))]
        elif kind == 4:
            new = text[begin:end][::-1]
        elif kind == 5:
            new = chance.choice((b"0", b"-1", b"9223372036854775808", b"1e999", "é\u202e🚀".encode(), b"\0"))
        else:
            new = chance.choice(words) if words else bytes([chance.choice(b" \n\t:-[]{}'\"\\,.")])
        text = (text[:begin] + new + text[end:])[:MOST_BYTES]
    return text
