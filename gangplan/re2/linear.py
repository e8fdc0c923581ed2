"""A matcher that reads every character of the text once, however the pattern is built.

All ways through the pattern are walked side by side, the preferred one first (Pike's machine: Rob Pike's
`sam`, and Go 1.24 `regexp/exec.go`), so that the match is the one that Go reports: the leftmost, and of those
the one that a backtracking matcher would come to first.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gangplan.re2.tree import Anchor, Choice, Letter, Node, Repeat, Series
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A match: the text between two places."""

    text: str
    start: int
    end: int

    def span(self) -> tuple[int, int]:
        """Where it starts and where it ends."""
        return self.start, self.end

    def group(self) -> str:
        """The text that matched."""
        return self.text[self.start : self.end]


class _Accepts(dict[str, bool]):
    """Whether a character is one of a class, found out once."""

    def __init__(self, pattern: str) -> None:
        self.fullmatch = re.compile(pattern).fullmatch

    def __missing__(self, character: str) -> bool:
        self[character] = answer = self.fullmatch(character) is not None
        return answer


_Holds = Callable[[str, int], "re.Match[str] | None"]


class Machine:
    """A pattern as steps. A search looks at each step once at most for each character of the text."""

    def __init__(self, node: Node) -> None:
        # What step i waits for: a character of a class, or (in `holds`) a place in the text.
        self.accepts: dict[int, _Accepts] = {}
        self.holds: dict[int, _Holds] = {}
        # Where step i leads, the preferred way first.
        self.leads: list[tuple[int, ...]] = []
        self.classes: dict[str, _Accepts] = {}
        self.final = self._step()
        self.first = self._node(node, self.final)

    # From the pattern to steps; each is built in front of the step that follows it.

    def _step(self, *leads: int) -> int:
        self.leads.append(leads)
        return len(self.leads) - 1

    def _node(self, node: Node, then: int) -> int:
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
        """x* as it is, or x+ where once is asked for. An x that can be empty is (x+)?, as in Go."""
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

    # The walk

    def search(self, text: str, start: int = 0) -> Span | None:
        """The first match at `start` or behind it."""
        found: Span | None = None
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
                    # Those behind it are less preferred.
                    found = Span(text, began, at)
                    break
                if character and step in self.accepts and self.accepts[step][character]:
                    self._enter(ahead, self.leads[step][0], began, text, at + 1)
            threads = ahead
        return found

    def _enter(self, threads: dict[int, int], step: int, began: int, text: str, at: int) -> None:
        """Adds the steps that a way comes to without reading on, in order of preference."""
        stack = [step]
        while stack:
            step = stack.pop()
            if step in threads:
                continue
            threads[step] = began
            if step not in self.accepts and (step not in self.holds or self.holds[step](text, at)):
                stack += reversed(self.leads[step])
