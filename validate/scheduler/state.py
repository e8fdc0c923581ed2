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

from gangplan.validate.scheduler.model import HOST_KEY, FitQuestion, PodKind, SpreadConstraint
from gangplan.validate.scheduler.node import NodeContent, build_empty_content, has_node_room_for_pod

Tree = Any  # tuple of (subtree or Content, how many), sorted
BoardState = tuple[Tree, ...]
DomainPath = tuple[int, ...]


class Board:
    """The rules for placing pods, for one question."""

    def __init__(self, question: FitQuestion) -> None:
        """Prepare the pools. The sizes of nested domains must divide each other (see
        `has_nested_domains`)."""
        self.question = question
        self._levels = [_list_domain_levels(question, at) for at in range(len(question.pools))]
        self._sums: dict[Tree, NodeContent] = {}
        self._rooms: dict[tuple[int, NodeContent, int], bool] = {}
        self._none = build_empty_content(question)

    def start(self) -> BoardState:
        """Return the state in which no node has pods."""
        return tuple(
            _build_empty_node_tree(pool.count, self._none, [size for size, _ in self._levels[at]])
            for at, pool in enumerate(self.question.pools)
        )

    def total(self, state: BoardState) -> NodeContent:
        """Return the number of pods of each kind on all nodes."""
        return _sum_node_contents(
            self._none, [self._sum(tree, len(self._levels[at])) for at, tree in enumerate(state)]
        )

    def in_pool(self, state: BoardState, pool: int) -> NodeContent:
        """Return the number of pods of each kind in a pool."""
        return self._sum(state[pool], len(self._levels[pool]))

    def moves(self, state: BoardState, kind: int) -> Iterator[tuple[int, DomainPath, NodeContent]]:
        """Yield where one more pod of a kind may go: the pool, the path and the node's present content."""
        one = self.question.kinds[kind]
        total = self.total(state)
        spreads = [(each, *self._least(state, one, each)) for each in one.spreads]
        for at, is_home in enumerate(one.homes):
            if not is_home or not self._has_keys(one, at):
                continue
            for path, around in self._places(state[at], at):
                content = around[HOST_KEY]
                if self._room(at, content, kind) and self._accepts(state, kind, at, around, total, spreads):
                    yield at, path, content

    def put(self, state: BoardState, kind: int, pool: int, path: DomainPath) -> BoardState:
        """Return the state with one more pod."""
        return (*state[:pool], _add_pod_to_node_tree(state[pool], path, kind), *state[pool + 1 :])

    def _room(self, pool: int, content: NodeContent, kind: int) -> bool:
        key = (pool, content, kind)
        if key not in self._rooms:
            self._rooms[key] = has_node_room_for_pod(self.question, pool, content, kind)
        return self._rooms[key]

    def _has_keys(self, one: PodKind, pool: int) -> bool:
        places = self.question.pools[pool].places
        keys = {*one.near, *(each.key for each in one.spreads)}
        return all(key == HOST_KEY or places[key] is not None for key in keys)

    def _places(self, tree: Tree, pool: int) -> Iterator[tuple[DomainPath, dict[int, NodeContent]]]:
        """Yield every distinct node of a pool, and the pods of its domains by key."""
        keys = [keys for _, keys in self._levels[pool]]

        def descend(
            tree: Tree, depth: int, path: DomainPath, around: dict[int, NodeContent]
        ) -> Iterator[Any]:
            for index, (child, _) in enumerate(tree):
                if depth == len(keys):
                    yield (*path, index), {**around, HOST_KEY: child}
                else:
                    pods = self._sum(child, len(keys) - depth - 1)
                    yield from descend(
                        child, depth + 1, (*path, index), {**around, **dict.fromkeys(keys[depth], pods)}
                    )

        yield from descend(tree, 0, (), {})

    def _around(
        self, state: BoardState, pool: int, around: dict[int, NodeContent], key: int
    ) -> NodeContent | None:
        """Return the pods in a node's domain of a key, or None if the node is in no domain."""
        if key in around:
            return around[key]
        value = self.question.pools[pool].places[key]
        if value is None:
            return None
        same = [at for at, one in enumerate(self.question.pools) if one.places[key] == value]
        return _sum_node_contents(self._none, [self.in_pool(state, at) for at in same])

    def _accepts(
        self,
        state: BoardState,
        kind: int,
        pool: int,
        around: dict[int, NodeContent],
        total: NodeContent,
        spreads: list[tuple[SpreadConstraint, int, dict[str, int]]],
    ) -> bool:
        one = self.question.kinds[kind]
        for each, least, named in spreads:
            value = None if each.key == HOST_KEY else self.question.pools[pool].places[each.key]
            if isinstance(value, str):
                there = named.get(value, 0)
            else:
                there = _count_pods_of_kinds(
                    self._around(state, pool, around, each.key) or self._none, each.matched
                )
            if there + each.counts_itself - least > each.skew:
                return False
        if one.near and not self._is_near(state, kind, pool, around):
            return False
        for key, strangers in one.apart:
            domain = self._around(state, pool, around, key)
            if domain is not None and _count_pods_of_kinds(domain, strangers):
                return False
        for at, other in enumerate(self.question.kinds):
            for key, strangers in other.apart:
                if kind in strangers and total[at]:
                    domain = self._around(state, pool, around, key)
                    if domain is not None and domain[at]:
                        return False
        return True

    def _is_near(self, state: BoardState, kind: int, pool: int, around: dict[int, NodeContent]) -> bool:
        """Return whether every term's domain has a friend; a first pod that is its own friend needs none."""
        one = self.question.kinds[kind]
        domains = [self._around(state, pool, around, key) for key in one.near]
        if all(domain is not None and _count_pods_of_kinds(domain, one.friends) for domain in domains):
            return True
        return kind in one.friends and not self._counted(state, one)

    def _counted(self, state: BoardState, one: PodKind) -> bool:
        """Return whether any friend is on a node that has the label of a term."""
        return any(
            _count_pods_of_kinds(self.in_pool(state, at), one.friends)
            for at, pool in enumerate(self.question.pools)
            if any(key == HOST_KEY or pool.places[key] is not None for key in one.near)
        )

    def _least(self, state: BoardState, one: PodKind, each: SpreadConstraint) -> tuple[int, dict[str, int]]:
        """Return the pods in the least full domain that a constraint counts, and those in named domains."""
        least: int | None = None
        named: dict[str, int] = {}
        domains = 0
        keys = {other.key for other in one.spreads}
        for at, pool in enumerate(self.question.pools):
            if not each.counted[at] or not pool.count:
                continue
            if any(key != HOST_KEY and pool.places[key] is None for key in keys):
                continue
            value = 1 if each.key == HOST_KEY else pool.places[each.key]
            if isinstance(value, str):
                named[value] = named.get(value, 0) + _count_pods_of_kinds(
                    self.in_pool(state, at), each.matched
                )
                continue
            for pods, times in self._domains(state[at], at, each.key):
                found = _count_pods_of_kinds(pods, each.matched)
                domains += times
                least = found if least is None else min(least, found)
        values = [*named.values(), *([] if least is None else [least])]
        if domains + len(named) < each.domains:
            return 0, named
        return min(values, default=2**31), named

    def _domains(self, tree: Tree, pool: int, key: int) -> Iterator[tuple[NodeContent, int]]:
        """Yield the domains of a key in a pool: their pods, and the number of such domains."""
        levels = self._levels[pool]
        depth = (
            len(levels) if key == HOST_KEY else next(i for i, (_, keys) in enumerate(levels) if key in keys)
        )

        def descend(tree: Tree, level: int, times: int) -> Iterator[tuple[NodeContent, int]]:
            for child, number in tree:
                if level < depth:
                    yield from descend(child, level + 1, times * number)
                elif depth == len(levels):
                    yield child, times * number
                else:
                    yield self._sum(child, len(levels) - depth - 1), times * number

        yield from descend(tree, 0, 1)

    def _sum(self, tree: Tree, depth: int) -> NodeContent:
        """Return the pods of each kind in a tree with `depth` levels above its nodes."""
        if tree not in self._sums:
            parts = [
                tuple(n * times for n in (child if depth == 0 else self._sum(child, depth - 1)))
                for child, times in tree
            ]
            self._sums[tree] = _sum_node_contents(self._none, parts)
        return self._sums[tree]


def has_nested_domains(question: FitQuestion) -> bool:
    """Return whether the domains of each pool are nested, as a board requires."""
    for at in range(len(question.pools)):
        sizes = [size for size, _ in _list_domain_levels(question, at)]
        if any(wide % narrow for wide, narrow in pairwise(sizes)):
            return False
    return True


def _list_domain_levels(question: FitQuestion, pool: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return the sizes of domains, widest first, each with its keys."""
    found: dict[int, list[int]] = {}
    for key, size in enumerate(question.pools[pool].places):
        if isinstance(size, int) and size:
            found.setdefault(size, []).append(key)
    return [(size, tuple(found[size])) for size in sorted(found, reverse=True)]


def _build_empty_node_tree(count: int, none: NodeContent, sizes: list[int]) -> Tree:
    """Return a tree of `count` empty nodes, which fill the domains in order."""
    if not sizes:
        return ((none, count),) if count else ()
    parts = []
    for times, nodes in ((count // sizes[0], sizes[0]), (1 if count % sizes[0] else 0, count % sizes[0])):
        if times and nodes:
            parts.append((_build_empty_node_tree(nodes, none, sizes[1:]), times))
    return tuple(sorted(parts))


def _add_pod_to_node_tree(tree: Tree, path: DomainPath, kind: int) -> Tree:
    child, number = tree[path[0]]
    if len(path) == 1:
        changed = (*child[:kind], child[kind] + 1, *child[kind + 1 :])
    else:
        changed = _add_pod_to_node_tree(child, path[1:], kind)
    counts = dict(tree)
    counts[child] = number - 1
    counts[changed] = counts.get(changed, 0) + 1
    return tuple(sorted((each, times) for each, times in counts.items() if times))


def _count_pods_of_kinds(content: NodeContent, kinds: frozenset[int]) -> int:
    return sum(content[at] for at in kinds)


def _sum_node_contents(none: NodeContent, parts: list[NodeContent]) -> NodeContent:
    return tuple(map(sum, zip(none, *parts, strict=True)))
