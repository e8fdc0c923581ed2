"""The nodes with their pods, grouped, and where one more pod may go by kube-scheduler's filters.

A pool is a tree: domains of the widest key, inside them those of the next, and finally nodes, each as the
number of pods of each kind. Equal subtrees are stored once with their number, so a pool of thousands of nodes
needs only a few entries. Sources: pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread},
Kubernetes v1.34.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from gangplan.validate.scheduler.model import HOST, Kind, Question, Spread
from gangplan.validate.scheduler.node import Content, empty, has_room

Tree = Any  # tuple of (subtree or Content, how many), sorted
State = tuple[Tree, ...]
Path = tuple[int, ...]


class Board:
    """The rules for placing pods, for one question."""

    def __init__(self, question: Question) -> None:
        """Prepare the pools. The sizes of nested domains must divide each other (see `nests`)."""
        self.question = question
        self._levels = [_levels(question, at) for at in range(len(question.pools))]
        self._sums: dict[Tree, Content] = {}
        self._rooms: dict[tuple[int, Content, int], bool] = {}
        self._none = empty(question)

    def start(self) -> State:
        """Return the state in which no node has pods."""
        return tuple(
            _nodes(pool.count, self._none, [size for size, _ in self._levels[at]])
            for at, pool in enumerate(self.question.pools)
        )

    def total(self, state: State) -> Content:
        """Return the number of pods of each kind on all nodes."""
        return _add(self._none, [self._sum(tree, len(self._levels[at])) for at, tree in enumerate(state)])

    def in_pool(self, state: State, pool: int) -> Content:
        """Return the number of pods of each kind in a pool."""
        return self._sum(state[pool], len(self._levels[pool]))

    def moves(self, state: State, kind: int) -> Iterator[tuple[int, Path, Content]]:
        """Yield where one more pod of a kind may go: the pool, the path and the node's present content."""
        one = self.question.kinds[kind]
        total = self.total(state)
        spreads = [(each, *self._least(state, one, each)) for each in one.spreads]
        for at, is_home in enumerate(one.homes):
            if not is_home or not self._has_keys(one, at):
                continue
            for path, around in self._places(state[at], at):
                content = around[HOST]
                if self._room(at, content, kind) and self._accepts(state, kind, at, around, total, spreads):
                    yield at, path, content

    def put(self, state: State, kind: int, pool: int, path: Path) -> State:
        """Return the state with one more pod."""
        return (*state[:pool], _put(state[pool], path, kind), *state[pool + 1 :])

    def _room(self, pool: int, content: Content, kind: int) -> bool:
        key = (pool, content, kind)
        if key not in self._rooms:
            self._rooms[key] = has_room(self.question, pool, content, kind)
        return self._rooms[key]

    def _has_keys(self, one: Kind, pool: int) -> bool:
        places = self.question.pools[pool].places
        keys = {*one.near, *(each.key for each in one.spreads)}
        return all(key == HOST or places[key] is not None for key in keys)

    def _places(self, tree: Tree, pool: int) -> Iterator[tuple[Path, dict[int, Content]]]:
        """Yield every distinct node of a pool, and the pods of its domains by key."""
        keys = [keys for _, keys in self._levels[pool]]

        def descend(tree: Tree, depth: int, path: Path, around: dict[int, Content]) -> Iterator[Any]:
            for index, (child, _) in enumerate(tree):
                if depth == len(keys):
                    yield (*path, index), {**around, HOST: child}
                else:
                    pods = self._sum(child, len(keys) - depth - 1)
                    yield from descend(
                        child, depth + 1, (*path, index), {**around, **dict.fromkeys(keys[depth], pods)}
                    )

        yield from descend(tree, 0, (), {})

    def _around(self, state: State, pool: int, around: dict[int, Content], key: int) -> Content | None:
        """Return the pods in a node's domain of a key, or None if the node is in no domain."""
        if key in around:
            return around[key]
        value = self.question.pools[pool].places[key]
        if value is None:
            return None
        same = [at for at, one in enumerate(self.question.pools) if one.places[key] == value]
        return _add(self._none, [self.in_pool(state, at) for at in same])

    def _accepts(
        self,
        state: State,
        kind: int,
        pool: int,
        around: dict[int, Content],
        total: Content,
        spreads: list[tuple[Spread, int, dict[str, int]]],
    ) -> bool:
        one = self.question.kinds[kind]
        for each, least, named in spreads:
            value = None if each.key == HOST else self.question.pools[pool].places[each.key]
            if isinstance(value, str):
                there = named.get(value, 0)
            else:
                there = _of(self._around(state, pool, around, each.key) or self._none, each.matched)
            if there + each.counts_itself - least > each.skew:
                return False
        if one.near and not self._is_near(state, kind, pool, around):
            return False
        for key, strangers in one.apart:
            domain = self._around(state, pool, around, key)
            if domain is not None and _of(domain, strangers):
                return False
        for at, other in enumerate(self.question.kinds):
            for key, strangers in other.apart:
                if kind in strangers and total[at]:
                    domain = self._around(state, pool, around, key)
                    if domain is not None and domain[at]:
                        return False
        return True

    def _is_near(self, state: State, kind: int, pool: int, around: dict[int, Content]) -> bool:
        """Return whether every term's domain has a friend; a first pod that is its own friend needs none."""
        one = self.question.kinds[kind]
        domains = [self._around(state, pool, around, key) for key in one.near]
        if all(domain is not None and _of(domain, one.friends) for domain in domains):
            return True
        return kind in one.friends and not self._counted(state, one)

    def _counted(self, state: State, one: Kind) -> bool:
        """Return whether any friend is on a node that has the label of a term."""
        return any(
            _of(self.in_pool(state, at), one.friends)
            for at, pool in enumerate(self.question.pools)
            if any(key == HOST or pool.places[key] is not None for key in one.near)
        )

    def _least(self, state: State, one: Kind, each: Spread) -> tuple[int, dict[str, int]]:
        """Return the pods in the least full domain that a constraint counts, and those in named domains."""
        least: int | None = None
        named: dict[str, int] = {}
        domains = 0
        keys = {other.key for other in one.spreads}
        for at, pool in enumerate(self.question.pools):
            if not each.counted[at] or not pool.count:
                continue
            if any(key != HOST and pool.places[key] is None for key in keys):
                continue
            value = 1 if each.key == HOST else pool.places[each.key]
            if isinstance(value, str):
                named[value] = named.get(value, 0) + _of(self.in_pool(state, at), each.matched)
                continue
            for pods, times in self._domains(state[at], at, each.key):
                found = _of(pods, each.matched)
                domains += times
                least = found if least is None else min(least, found)
        values = [*named.values(), *([] if least is None else [least])]
        if domains + len(named) < each.domains:
            return 0, named
        return min(values, default=2**31), named

    def _domains(self, tree: Tree, pool: int, key: int) -> Iterator[tuple[Content, int]]:
        """Yield the domains of a key in a pool: their pods, and the number of such domains."""
        levels = self._levels[pool]
        depth = len(levels) if key == HOST else next(i for i, (_, keys) in enumerate(levels) if key in keys)

        def descend(tree: Tree, level: int, times: int) -> Iterator[tuple[Content, int]]:
            for child, number in tree:
                if level < depth:
                    yield from descend(child, level + 1, times * number)
                elif depth == len(levels):
                    yield child, times * number
                else:
                    yield self._sum(child, len(levels) - depth - 1), times * number

        yield from descend(tree, 0, 1)

    def _sum(self, tree: Tree, depth: int) -> Content:
        """Return the pods of each kind in a tree with `depth` levels above its nodes."""
        if tree not in self._sums:
            parts = [
                tuple(n * times for n in (child if depth == 0 else self._sum(child, depth - 1)))
                for child, times in tree
            ]
            self._sums[tree] = _add(self._none, parts)
        return self._sums[tree]


def nests(question: Question) -> bool:
    """Return whether the domains of each pool are nested, as a board requires."""
    for at in range(len(question.pools)):
        sizes = [size for size, _ in _levels(question, at)]
        if any(wide % narrow for wide, narrow in pairwise(sizes)):
            return False
    return True


def _levels(question: Question, pool: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return the sizes of domains, widest first, each with its keys."""
    found: dict[int, list[int]] = {}
    for key, size in enumerate(question.pools[pool].places):
        if isinstance(size, int) and size:
            found.setdefault(size, []).append(key)
    return [(size, tuple(found[size])) for size in sorted(found, reverse=True)]


def _nodes(count: int, none: Content, sizes: list[int]) -> Tree:
    """Return a tree of `count` empty nodes, which fill the domains in order."""
    if not sizes:
        return ((none, count),) if count else ()
    parts = []
    for times, nodes in ((count // sizes[0], sizes[0]), (1 if count % sizes[0] else 0, count % sizes[0])):
        if times and nodes:
            parts.append((_nodes(nodes, none, sizes[1:]), times))
    return tuple(sorted(parts))


def _put(tree: Tree, path: Path, kind: int) -> Tree:
    child, number = tree[path[0]]
    if len(path) == 1:
        changed = (*child[:kind], child[kind] + 1, *child[kind + 1 :])
    else:
        changed = _put(child, path[1:], kind)
    counts = dict(tree)
    counts[child] = number - 1
    counts[changed] = counts.get(changed, 0) + 1
    return tuple(sorted((each, times) for each, times in counts.items() if times))


def _of(content: Content, kinds: frozenset[int]) -> int:
    return sum(content[at] for at in kinds)


def _add(none: Content, parts: list[Content]) -> Content:
    return tuple(map(sum, zip(none, *parts, strict=True)))
