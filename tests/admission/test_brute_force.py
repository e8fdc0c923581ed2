"""Quota, flavors and topology: on thousands of small worlds the solver and a brute force agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.kueue.tree import QuotaTree as Quotas
from gangplan.validate.kueue import judge_admission
from gangplan.validate.kueue.counting import PlacedShape, Slices, TakenAmounts, add_pod_request
from gangplan.validate.kueue.domains import Flavors, TopologyDomain
from gangplan.validate.kueue.domains import TopologyTree as Domains
from gangplan.validate.kueue.members import read_quota_setup_of_cluster
from gangplan.validate.kueue.topology import PlacementError, TopologySearch, place_pod_set_in_topology
from gangplan.validate.world import HOSTNAME_LABEL, NodeGroup, World
from tests.admission.worlds import VERSIONS

Body = dict[str, Any]
LIMITS = st.one_of(st.none(), st.integers(0, 6))
FLAVORS = ("red", "green", "blue")
KEY = ("red", "gpu")
Tree = dict[str, tuple[str, str, dict[str, tuple[int, int | None, int | None]]]]


@st.composite
def trees(draw: st.DrawFn, flavors: tuple[str, ...] = ("red",)) -> Tree:
    """Draw name -> kind, parent, flavor -> (nominal, borrowing limit, lending limit), without cycles."""
    cohorts = [f"c{number}" for number in range(draw(st.integers(1, 3)))]
    found: Tree = {}
    for number, name in enumerate(cohorts):
        parent = draw(st.sampled_from(["", *cohorts[:number]])) if number else ""
        amounts = {}
        for flavor in flavors:
            limits = (draw(LIMITS), draw(LIMITS)) if parent else (None, None)
            amounts[flavor] = draw(st.integers(0, 3)), *limits
        found[name] = "Cohort", parent, amounts
    for number in range(draw(st.integers(1, 3))):
        parent = draw(st.sampled_from(["", *cohorts]))
        amounts = {}
        for flavor in flavors:
            nominal = draw(st.integers(0, 5))
            lend = draw(st.one_of(st.none(), st.integers(0, nominal)))
            amounts[flavor] = (nominal, draw(LIMITS), lend) if parent else (nominal, None, None)
        found[f"q{number}"] = "ClusterQueue", parent, amounts
    return found


def bodies(tree: Tree, groups: int = 1, fungibility: str = "MayStopSearch") -> list[Body]:
    """Return the tree as objects; with two groups, every flavor counts `cpu` in the second, without limit."""
    found = []
    for name, (kind, parent, amounts) in tree.items():
        flavors = []
        for flavor, (nominal, borrow, lend) in amounts.items():
            item = {"name": "gpu", "nominalQuota": str(nominal)}
            item |= {} if borrow is None else {"borrowingLimit": str(borrow)}
            item |= {} if lend is None else {"lendingLimit": str(lend)}
            flavors.append({"name": flavor, "resources": [item]})
        above = {"cohortName" if kind == "ClusterQueue" else "parentName": parent} if parent else {}
        listed = [{"coveredResources": ["gpu"], "flavors": flavors}]
        if groups == 2:
            endless = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": "1k"}]}
            listed.append({"coveredResources": ["cpu"], "flavors": [endless]})
        spec = {**above, "resourceGroups": listed}
        if kind == "ClusterQueue":
            spec |= {"namespaceSelector": {}, "flavorFungibility": {"whenCanBorrow": fungibility}}
        found.append({"kind": kind, "metadata": {"name": name}, "spec": spec})
    return found


class Brute:
    """Quota by its definition: what a node uses beyond its own part counts in its parent, within limits."""

    def __init__(self, tree: Tree, flavor: str, used: Mapping[str, int]) -> None:
        self.tree, self.flavor, self.used = tree, flavor, dict(used)

    def amounts(self, name: str) -> tuple[int, int | None, int | None]:
        return self.tree[name][2][self.flavor]

    def subtree(self, name: str) -> int:
        below = [child for child, one in self.tree.items() if one[1] == name]
        return self.amounts(name)[0] + sum(self.subtree(child) - self.own(child) for child in below)

    def own(self, name: str) -> int:
        """Return the amount that is never lent."""
        lend = self.amounts(name)[2]
        return 0 if lend is None else max(0, self.subtree(name) - lend)

    def usage(self, name: str) -> int:
        if self.tree[name][0] == "ClusterQueue":
            return self.used.get(name, 0)
        return sum(self.above(child) for child, one in self.tree.items() if one[1] == name)

    def above(self, name: str) -> int:
        """Return the part of a node's usage that counts in its parent."""
        return max(0, self.usage(name) - self.own(name))

    def path(self, name: str) -> Iterator[str]:
        while name:
            yield name
            name = self.tree[name][1]

    def holds(self, queue: str, amount: int) -> bool:
        """Return whether this much more breaks no limit on the way up."""
        with_it = Brute(self.tree, self.flavor, {**self.used, queue: self.used.get(queue, 0) + amount})
        for name in self.path(queue):
            borrow = self.amounts(name)[1]
            if not self.tree[name][1]:
                return with_it.usage(name) <= self.subtree(name)
            if borrow is not None and with_it.above(name) > self.subtree(name) - self.own(name) + borrow:
                return False
        return True

    def most(self, queue: str) -> int:
        """Return the most that is free; -1 if not even 0 is allowed."""
        return max((amount for amount in range(40) if self.holds(queue, amount)), default=-1)


def loaded(draw: st.DataObject, tree: Tree) -> dict[str, int]:
    """Draw usage that a cluster can reach: each queue takes what is free at its turn."""
    used: dict[str, int] = {}
    names = [name for name, one in tree.items() if one[0] == "ClusterQueue"]
    for name in draw.draw(st.lists(st.sampled_from(names), max_size=5)):
        free = Brute(tree, "red", used).most(name)
        used[name] = used.get(name, 0) + draw.draw(st.integers(0, max(0, free)))
    return used


def quotas_of(tree: Tree) -> Quotas:
    """Return the tree in the form of Kueue's arithmetic."""
    setup = read_quota_setup_of_cluster(World("lab", VERSIONS, tuple(bodies(tree)), ()))
    return Quotas(setup.queues, setup.cohorts)


@settings(max_examples=700, deadline=None)
@given(trees(), st.data())
def test_available_and_potential_quota_equal_brute_force(tree: Tree, data: st.DataObject) -> None:
    used = loaded(data, tree)
    idle = quotas_of(tree)
    loaded_tree = idle.loaded({name: {KEY: amount} for name, amount in used.items()})
    at = idle.index[KEY]
    for name, number in idle.numbers.items():
        assert idle.most(name, KEY) == idle.available(number, at) == Brute(tree, "red", {}).most(name)
        expected = Brute(tree, "red", used).most(name)
        assert max(-1, loaded_tree.balance(number, at)) == expected
        assert loaded_tree.available(number, at) == max(0, expected)
    for name, amount in used.items():
        loaded_tree.remove(idle.numbers[name], {at: amount})
    assert loaded_tree.usage == idle.usage


@settings(max_examples=300, deadline=None)
@given(trees(), st.integers(1, 12))
def test_the_borrowing_height_equals_brute_force(tree: Tree, amount: int) -> None:
    quotas = quotas_of(tree)
    for name, number in quotas.numbers.items():
        brute = Brute(tree, "red", {name: amount})
        height, _ = quotas.reach(number, quotas.index[KEY], amount)
        enough = [one for one in brute.path(name) if brute.usage(one) <= brute.subtree(one)]
        assert (height == 0) == (enough[:1] == [name] or not tree[name][1])
        if enough and enough[0] != name:
            assert height == depth_below(tree, enough[0])


def depth_below(tree: Tree, name: str) -> int:
    """Return the steps from a cohort down to its deepest descendant."""
    below = [child for child, one in tree.items() if one[1] == name]
    return 1 + max(depth_below(tree, child) for child in below) if below else 0


# --- flavors -----------------------------------------------------------------------------------------------


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Body], list[tuple[int, int, set[str]]]]:
    """Draw a JobSet, and (pods, GPUs of one pod, flavors that its selector allows) of each pod set."""
    jobs, meant = [], []
    for number in range(draw(st.integers(1, 3))):
        pods, each = draw(st.integers(1, 3)), draw(st.integers(0, 3))
        wanted = draw(st.one_of(st.none(), st.sampled_from(FLAVORS)))
        tolerant = draw(st.booleans())
        allowed = {one for one in FLAVORS if wanted in (None, one)}
        allowed -= set() if tolerant else {"blue"}
        spec: Body = {
            "containers": [{"name": "x", "resources": {"requests": {"gpu": str(each), "cpu": "1"}}}]
        }
        spec |= {"nodeSelector": {"colour": wanted}} if wanted else {}
        spec |= {"tolerations": [{"key": "blue", "operator": "Exists"}]} if tolerant else {}
        template = {"spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}}}
        jobs.append({"name": f"p{number}", "replicas": 1, "template": template})
        meant.append((pods, each, allowed))
    labels = {"kueue.x-k8s.io/queue-name": "training"}
    metadata = {"name": "run", "namespace": "team", "labels": labels}
    return [{"kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs}}], meant


def world_with(tree: Tree, fungibility: str) -> World:
    """Return the tree, three flavors (blue is tainted), one without limit, and the queue q0."""
    standing: list[Body] = [
        {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"nodeLabels": {"colour": name}}}
        for name in FLAVORS
    ]
    standing[2]["spec"]["nodeTaints"] = [{"key": "blue", "value": "", "effect": "NoSchedule"}]
    standing.append({"kind": "ResourceFlavor", "metadata": {"name": "any"}, "spec": {}})
    local = {"metadata": {"name": "training", "namespace": "team"}, "spec": {"clusterQueue": "q0"}}
    standing += [{"kind": "LocalQueue", **local}, *bodies(tree, 2, fungibility)]
    return World("lab", VERSIONS, tuple(standing), ())


def greedy(tree: Tree, meant: list[tuple[int, int, set[str]]], tries_on: bool) -> list[str] | None:
    """Return each pod set's flavor: the first that fits with earlier sets, without borrowing if possible."""
    used: dict[str, int] = {}
    chosen = []
    for pods, each, allowed in meant:
        fits = []
        for flavor in FLAVORS:
            whole = used.get(flavor, 0) + pods * each
            if flavor in allowed and Brute(tree, flavor, {}).holds("q0", whole):
                fits.append(
                    (borrowing(tree, flavor, whole) if tries_on else 0, FLAVORS.index(flavor), flavor)
                )
        if not fits:
            return None
        flavor = min(fits)[2]
        chosen.append(flavor)
        used[flavor] = used.get(flavor, 0) + pods * each
    return chosen


def borrowing(tree: Tree, flavor: str, amount: int) -> int:
    brute = Brute(tree, flavor, {"q0": amount})
    enough = next(one for one in brute.path("q0") if brute.usage(one) <= brute.subtree(one))
    return 0 if enough == "q0" else depth_below(tree, enough)


def valid(tree: Tree, meant: list[tuple[int, int, set[str]]], chosen: tuple[str, ...]) -> bool:
    if any(flavor not in allowed for flavor, (_, _, allowed) in zip(chosen, meant, strict=True)):
        return False
    for flavor in set(chosen):
        whole = sum(pods * each for one, (pods, each, _) in zip(chosen, meant, strict=True) if one == flavor)
        if not Brute(tree, flavor, {}).holds("q0", whole):
            return False
    return True


@settings(max_examples=700, deadline=None)
@given(trees(FLAVORS), runs(), st.booleans())
def test_assigned_flavors_are_possible_and_greedy(
    tree: Tree, run: tuple[list[Body], list[tuple[int, int, set[str]]]], tries_on: bool
) -> None:
    objects, meant = run
    verdict = judge_admission(world_with(tree, "TryNextFlavor" if tries_on else "MayStopSearch"), objects)
    first = greedy(tree, meant, tries_on)
    possible = [one for one in product(FLAVORS, repeat=len(meant)) if valid(tree, meant, one)]
    if verdict.outcome == "admit":
        assert tuple(verdict.assignment[f"p{at}"]["gpu"] for at in range(len(meant))) in possible
        assert all(verdict.assignment[f"p{at}"]["cpu"] == "any" for at in range(len(meant)))
    if first is not None:
        assert verdict.outcome == "admit"
        assert [verdict.assignment[f"p{at}"]["gpu"] for at in range(len(meant))] == first
    if not possible:
        assert verdict.outcome == "never"
        assert verdict.cause in ("NoMatchingFlavor", "ExceedsMaxQuota")


# --- topology ----------------------------------------------------------------------------------------------

LEVELS = ("block", "rack", HOSTNAME_LABEL)


@st.composite
def sites(draw: st.DrawFn) -> tuple[NodeGroup, ...]:
    """Draw up to three groups of nodes in racks of blocks."""
    return tuple(
        NodeGroup(
            name,
            draw(st.integers(1, 6)),
            {"pool": "x"},
            (),
            {"gpu": Fraction(draw(st.integers(0, 4))), "pods": Fraction(draw(st.sampled_from([1, 110])))},
            (("block", 4), ("rack", 2), (HOSTNAME_LABEL, 1)),
        )
        for name in draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    )


def room(nodes: tuple[NodeGroup, ...], level: int, each: int) -> dict[tuple[str, ...], int]:
    """Return how many pods fit into each domain of a level."""
    found: dict[tuple[str, ...], int] = {}
    for group in nodes:
        for number in range(group.count):
            pods = int(group.free["pods"])
            fit = min(pods, int(group.free["gpu"]) // each) if each else pods
            place = (f"{group.name}{number // 4}", f"{group.name}{number // 2}", f"{group.name}{number}")
            found[place[: level + 1]] = found.get(place[: level + 1], 0) + fit
    return found


def placed_in(
    tree: Domains, search: TopologySearch, shape: PlacedShape, taken: TakenAmounts
) -> list[tuple[TopologyDomain, int, int]] | None:
    """Return where the pods go, or None if they do not fit."""
    try:
        return place_pod_set_in_topology(tree, search, shape, taken)
    except PlacementError:
        return None


@settings(max_examples=700, deadline=None)
@given(
    sites(),
    st.integers(1, 12),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(["required", "preferred", "unconstrained"]),
    st.integers(1, 3),
)
def test_pods_are_placed_in_domains_if_they_fit(
    nodes: tuple[NodeGroup, ...], count: int, each: int, level: int, mode: str, size: int
) -> None:
    flavor = {"metadata": {"name": "x"}, "spec": {"nodeLabels": {"pool": "x"}, "topologyName": "t"}}
    topology = {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": one} for one in LEVELS]}}
    tree = Flavors([flavor], [topology], nodes).tree("x")
    assert tree is not None
    level = 2 if mode == "unconstrained" else level
    slices = Slices(size if count % size == 0 else 1, 2, {})
    shape = PlacedShape({}, (), add_pod_request({"gpu": each}))
    search = TopologySearch(count, level, slices, mode == "required", mode == "unconstrained", 0)
    there = room(nodes, level, each)
    by_node = room(nodes, 2, each)

    def slices_in(domain: tuple[str, ...]) -> int:
        return sum(fit // slices.size for at, fit in by_node.items() if at[: len(domain)] == domain)

    wanted = count // slices.size
    if mode == "required":
        fits = any(slices_in(domain) >= wanted for domain in there)
    else:
        fits = slices_in(()) >= wanted
    taken: TakenAmounts = {}
    placed = placed_in(tree, search, shape, taken)
    assert (placed is not None) == fits
    if placed is None:
        return
    assert sum(pods for _, pods, _ in placed) == count
    assert all(pods % slices.size == 0 for _, pods, _ in placed)
    if mode == "required":
        assert len({leaf.values[: level + 1] for leaf, _, _ in placed}) == 1
    for leaf, _, _ in placed:
        held = taken[leaf.values[-1:]]
        assert all(held[name] <= leaf.capacity[name] for name in held)


@settings(max_examples=300, deadline=None)
@given(sites(), st.integers(1, 8), st.integers(1, 8), st.integers(0, 3), st.integers(0, 3))
def test_pod_sets_share_nodes_within_their_capacity(
    nodes: tuple[NodeGroup, ...], one: int, two: int, first: int, second: int
) -> None:
    flavor = {"metadata": {"name": "x"}, "spec": {"nodeLabels": {"pool": "x"}, "topologyName": "t"}}
    topology = {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": one} for one in LEVELS]}}
    tree = Flavors([flavor], [topology], nodes).tree("x")
    assert tree is not None
    taken: TakenAmounts = {}
    placed = 0
    for count, each in ((one, first), (two, second)):
        search = TopologySearch(count, 2, Slices(1, 2, {}), False, True, 0)
        leaves = placed_in(tree, search, PlacedShape({}, (), add_pod_request({"gpu": each})), taken)
        placed += sum(pods for _, pods, _ in leaves or ())
    capacity = {leaf.values[-1:]: leaf.capacity for leaf in tree.leaves}
    for at, held in taken.items():
        assert all(held[name] <= capacity[at][name] for name in held)
    assert sum(held["pods"] for held in taken.values()) == placed


def test_the_fullest_node_with_room_comes_first() -> None:
    """Unconstrained pods fill what is left over; others take the best fit."""
    flavor = {"metadata": {"name": "x"}, "spec": {"nodeLabels": {"pool": "x"}, "topologyName": "t"}}
    topology = {"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": HOSTNAME_LABEL}]}}
    nodes = tuple(
        NodeGroup(name, 1, {"pool": "x"}, (), {"gpu": Fraction(gpus)}) for name, gpus in (("a", 8), ("b", 2))
    )
    tree = Flavors([flavor], [topology], nodes).tree("x")
    assert tree is not None
    shape = PlacedShape({}, (), add_pod_request({"gpu": 1}))
    for count, free, expected in ((2, True, ["b-0"]), (3, True, ["a-0"]), (1, False, ["b-0"])):
        search = TopologySearch(count, 0, Slices(1, 0, {}), False, free, 0)
        placed = placed_in(tree, search, shape, {})
        assert placed is not None
        assert [leaf.values[-1] for leaf, _, _ in placed] == expected
