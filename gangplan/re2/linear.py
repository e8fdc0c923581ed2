"""A matcher that reads every character of the text once, regardless of the pattern.

It follows all paths through the pattern in parallel, the preferred one first (Pike's machine: Rob Pike's
`sam`, and Go 1.24 `regexp/exec.go`). So the match is the one that Go reports: the leftmost, and among those
the one that a backtracking matcher would find first.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gangplan.re2.tree import Anchor, Choice, Letter, PatternNode, Repeat, Series
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class MatchSpan:
    """A match: the text between two positions."""

    text: str
    start: int
    end: int

    def span(self) -> tuple[int, int]:
        """Return the start and the end of the match."""
        return self.start, self.end

    def group(self) -> str:
        """Return the text that matched."""
        return self.text[self.start : self.end]


class _Accepts(dict[str, bool]):
    """A cache of whether a class contains a character."""

    def __init__(self, pattern: str) -> None:
        self.fullmatch = re.compile(pattern).fullmatch

    def __missing__(self, character: str) -> bool:
        self[character] = answer = self.fullmatch(character) is not None
        return answer


_Holds = Callable[[str, int], "re.Match[str] | None"]


class PatternMachine:
    """A pattern as steps. A search visits each step at most once for each character of the text."""

    def __init__(self, node: PatternNode) -> None:
        # What step i needs: a character of a class, or (in `holds`) a position in the text.
        self.accepts: dict[int, _Accepts] = {}
        self.holds: dict[int, _Holds] = {}
        # The steps after step i, the preferred one first.
        self.leads: list[tuple[int, ...]] = []
        self.classes: dict[str, _Accepts] = {}
        self.final = self._step()
        self.first = self._node(node, self.final)

    # From the pattern to steps, built backwards: each step needs the one after it.

    def _step(self, *leads: int) -> int:
        self.leads.append(leads)
        return len(self.leads) - 1

    def _node(self, node: PatternNode, then: int) -> int:
        if isinstance(node, Letter):
            step = self._step(then)
            if node.text not in self.classes:
                self.classes[node.text] = _Accepts(node.text)
            self.accepts[step] = self.classes[node.text]
            return step
        if isinstance(node, Anchor):
            step = self._step(then)
            self.holds[step] = re.compile(node.text).match
            return step
        if isinstance(node, Choice):
            return self._step(*(self._node(item, then) for item in node.items))
        if isinstance(node, Series):
            for item in reversed(node.items):
                then = self._node(item, then)
            return then
        return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        if node.high < 0:
            step = self._loop(node, then)
        else:
            step = then
            for _ in range(node.high - node.low):
                step = self._either(self._node(node.item, step), then, node.lazy)
        for _ in range(node.low - (node.high < 0 < node.low)):
            step = self._node(node.item, step)
        return step

    def _loop(self, node: Repeat, then: int) -> int:
        """Build x*, or x+ if at least one is required. For an x that can be empty, x* is (x+)?, as in Go."""
        fork = self._step()
        body = self._node(node.item, fork)
        self.leads[fork] = (then, body) if node.lazy else (body, then)
        if node.low:
            return body
        return self._either(body, then, node.lazy) if self._can_be_empty(body, fork) else fork

    def _either(self, body: int, then: int, lazy: bool) -> int:
        return self._step(then, body) if lazy else self._step(body, then)

    def _can_be_empty(self, body: int, fork: int) -> bool:
        stack, seen = [body], set[int]()
        while stack:
            step = stack.pop()
            if step == fork:
                return True
            if step not in seen and step not in self.accepts:
                seen.add(step)
                stack += self.leads[step]
        return False

    # Search

    def search(self, text: str, start: int = 0) -> MatchSpan | None:
        """Return the first match at or after `start`, or None."""
        found: MatchSpan | None = None
        threads: dict[int, int] = {}
        for at in range(start, len(text) + 1):
            if found is None:
                self._enter(threads, self.first, at, text, at)
            if not threads:
                break
            character = text[at : at + 1]
            ahead: dict[int, int] = {}
            for step, began in threads.items():
                if step == self.final:
                    # All later threads are less preferred.
                    found = MatchSpan(text, began, at)
                    break
                if character and step in self.accepts and self.accepts[step][character]:
                    self._enter(ahead, self.leads[step][0], began, text, at + 1)
            threads = ahead
        return found

    def _enter(self, threads: dict[int, int], step: int, began: int, text: str, at: int) -> None:
        """Add the steps that are reachable without reading a character, in order of preference."""
        stack = [step]
        while stack:
            step = stack.pop()
            if step in threads:
                continue
            threads[step] = began
            if step not in self.accepts and (step not in self.holds or self.holds[step](text, at)):
                stack += reversed(self.leads[step])
