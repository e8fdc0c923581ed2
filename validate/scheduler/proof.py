"""The proof that the pods of a run find nodes; problems are reported at the field that causes them.

The proof of admission reports runs that Kueue never admits. If Kueue (by topology) or another scheduler
chooses the nodes, only problems that hold for every choice are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gangplan.kueue.units import convert_from_kueue_count
from gangplan.model.amounts import format_with_unit
from gangplan.model.backend import BACKEND_BY_KIND, role_of
from gangplan.records import dataclass
from gangplan.rules.model import Rule
from gangplan.rules.nodes import NO_NODE_FITS, NODES_TIGHT, NODES_TOO_FEW, NODES_UNJUDGED
from gangplan.rules.workers import GPUS_FORGOTTEN
from gangplan.validate.expand import EXPANDERS
from gangplan.validate.kueue.model import NeverError
from gangplan.validate.kueue.request import build_run_request
from gangplan.validate.problems import PathStep, Problem
from gangplan.validate.scheduler.admitted import AdmittedPods, find_node_fit_of_admitted_pods
from gangplan.validate.scheduler.advice import (
    find_largest_pod_count_fitting_nodes,
    find_largest_pod_request_fitting_nodes,
)
from gangplan.validate.scheduler.fits import fit_pods
from gangplan.validate.scheduler.forgotten import ForgottenGpus, find_forgotten_gpus
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.pods import PodShape
from gangplan.validate.scheduler.reduce import count_free_node_units, explain_unfit_node_group
from gangplan.validate.scheduler.undeclared import find_undeclared_node_labels
from gangplan.validate.world import (
    BuiltRun,
    NodeGroup,
    World,
    find_spec_field_asking_for_resource,
    is_undeclared_resource,
)

OTHERWISE = "Change what the pods ask of nodes, or the labels and taints of a pool in cluster.yaml."
UNTOLD = (
    "State the nodes of the topology level in cluster.yaml, or leave the choice of nodes to the scheduler."
)
WORDS = {"cpu": "CPU", "memory": "memory"}


def check_node_fit(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Report at most one problem: no suitable node, too few, forgotten GPUs or a fit that depends on luck."""
    try:
        found = find_node_fit_of_admitted_pods(world, run.once(build_run_request, world))
    except NeverError:  # no runtime: the gate reports it
        return
    if found is None or not found.pods:
        return
    pods, fit = found.pods, found.fit
    case = UnfitRun(world, run, pods, fit)
    if (no_gpus := _explain_missing_gpus(world, run, found)) is not None:
        yield case.without_gpus(no_gpus)
    elif fit.verdict == "no":
        labels = find_undeclared_node_labels(world, pods)
        yield case.untold(labels) if labels else case.misfit()
    elif fit.verdict == "unknown":
        yield case.unjudged()
    elif fit.verdict == "possible" and fit.sure is not None and all(one.is_default for one in pods):
        yield case.tight()


def _explain_missing_gpus(world: World, run: BuiltRun, found: AdmittedPods) -> ForgottenGpus | None:
    why = find_forgotten_gpus(world, run, found.pods)
    return None if why is None or (why.is_meant and found.fit.verdict != "no") else why


def has_forgotten_gpus(world: World, run: BuiltRun) -> bool:
    """Return whether `check_node_fit` reports forgotten GPUs for a spec that does not explicitly request
    none."""
    found = find_node_fit_of_admitted_pods(world, run.once(build_run_request, world))
    why = _explain_missing_gpus(world, run, found) if found is not None and found.pods else None
    return why is not None and not why.is_meant


@dataclass(frozen=True, slots=True)
class UnfitRun:
    """A run whose pods may not all find a node."""

    world: World
    run: BuiltRun
    pods: Sequence[PodShape]
    fit: Fit

    def without_gpus(self, why: ForgottenGpus) -> tuple[int, Problem]:
        """Return the problem of workers without GPUs on nodes with GPUs, which lack nodes or waste them."""
        if self.fit.verdict == "no":
            one = next(each for each in self.pods if self._placed(each) < each.count)
            is_nowhere = fit_pods(self.world, [replace(one, count=1)]).bound == 0
            message = f"{self._subject(one, is_nowhere)}: {why.message}"
            return self._problem(
                NO_NODE_FITS if is_nowhere else NODES_TOO_FEW, message, f"{why.help}.", why.field
            )
        message = f"{why.message} The run takes nodes of pool {why.pool} and leaves their GPUs idle."
        help = f"{why.help}, or gpus: 0 where none are wanted."
        return self._problem(GPUS_FORGOTTEN, message, help, why.field)

    def misfit(self) -> tuple[int, Problem]:
        """Return the problem of pods that never find a node."""
        one = next(each for each in self.pods if self._placed(each) < each.count)
        nowhere = fit_pods(self.world, [replace(one, count=1)]).bound == 0
        many = self._many()
        changes, fields = self._changes(one, many, nowhere)
        rule = NO_NODE_FITS if nowhere else NODES_TOO_FEW
        field = "workers" if many is not None and not nowhere else next(iter(fields), "nodePool")
        message = f"{self._subject(one, nowhere)}: {self._pools(one)}"
        advice = " or ".join(changes)
        return self._problem(rule, message, f"Use {advice}." if advice else OTHERWISE, field)

    def tight(self) -> tuple[int, Problem]:
        """Return the problem that kube-scheduler may miss the placements of all pods."""
        one = next((each for each in self.pods if each.name == "launcher"), self.pods[-1])
        many = self._many() or one
        number = find_largest_pod_count_fitting_nodes(
            self.world, self.pods, many.name, lambda fit: fit.verdict == "sure"
        )
        message = (
            f"all {self.fit.pods} pods find a node only if kube-scheduler happens to leave room for them:"
            f" on an empty cluster between {self.fit.sure} and {self.fit.pods} of them run"
        )
        advice = f"Use at most {self._shown_count(many, number)}." if number else "Ask for less per pod."
        return self._problem(NODES_TIGHT, message, advice, "workers")

    def unjudged(self) -> tuple[int, Problem]:
        """Return the problem that the cluster file lacks a fact or that there are too many choices to try."""
        told = self.fit.reasons or (f"{self.fit.bound} of {self.fit.pods} pods were placed",)
        message = f"whether the pods find nodes is not judged: {'; '.join(told)}"
        return self._problem(NODES_UNJUDGED, message, UNTOLD, "nodePool")

    def untold(self, labels: Sequence[str]) -> tuple[int, Problem]:
        """Return the problem of selected labels that no pool states: it is unknown which nodes have them."""
        one = next(each for each in self.pods if self._placed(each) < each.count)
        many = f"label{'' if len(labels) == 1 else 's'} {' and '.join(labels)}"
        message = (
            f"whether the pods find nodes is not judged: a {_describe_pod_role(one)} asks for nodes with the"
            f" {many}, which no pool states"
        )
        help = f"Write the {many} in labels of the pools whose nodes have it, in cluster.yaml."
        return self._problem(NODES_UNJUDGED, message, help, "nodePool")

    def _problem(self, rule: Rule, message: str, help: str, field: str) -> tuple[int, Problem]:
        at, made = next(
            (at, BACKEND_BY_KIND.get(body["kind"]))
            for at, body in enumerate(self.run.bodies)
            if body["kind"] in EXPANDERS
        )
        path: tuple[PathStep, ...] = made.workers if made and rule == NODES_TOO_FEW else ("spec",)
        return at, Problem(path, message, help, rule, field)

    def _is_worker(self, one: PodShape) -> bool:
        return one.name == self.run.unit.job.backend.role("worker")

    def _placed(self, one: PodShape) -> int:
        return sum(self.fit.placements.get(one.name, {}).values())

    def _many(self) -> PodShape | None:
        """Return the pod set whose number of pods the spec states."""
        return next((one for one in self.pods if self._is_worker(one) and one.count > 1), None)

    def _changes(self, one: PodShape, many: PodShape | None, nowhere: bool) -> tuple[list[str], list[str]]:
        """Return changes of single numbers that make all pods fit, and their fields."""
        changes, fields = [], []
        number = (
            find_largest_pod_count_fitting_nodes(self.world, self.pods, many.name, _can_all_pods_fit)
            if many is not None and not nowhere
            else 0
        )
        if many is not None and number:
            changes.append(f"at most {self._shown_count(many, number)}")
            fields.append("workers")
        for resource in sorted(one.requests, key=lambda name: (name not in WORDS, name)):
            amount = find_largest_pod_request_fitting_nodes(
                self.world, self.pods, one.name, resource, _can_all_pods_fit
            )
            if amount:
                changes.append(
                    f"at most {_format_resource_amount(resource, amount)} per {_describe_pod_role(one)}"
                )
                fields.append(self._field(one, resource))
        return changes, fields

    def _field(self, one: PodShape, resource: str) -> str:
        other = next((role for role in self.run.unit.job.others if role.name == one.name), None)
        if other is not None:
            return str(other.place[0])
        if not self._is_worker(one) and not self.run.unit.job.launcher_runs_ranks:
            return f"launcher.{resource}" if resource in WORDS else "launcher"
        return find_spec_field_asking_for_resource(self.run.unit, resource)

    def _shown_count(self, one: PodShape, number: int) -> str:
        """Format a number of workers as the spec counts them: a launcher that runs ranks is one of them."""
        if not self._is_worker(one):
            return f"{number} pods of {one.name}"
        workers = number + int(self.run.unit.job.launcher_runs_ranks)
        return f"{workers} worker{'' if workers == 1 else 's'}"

    def _subject(self, one: PodShape, nowhere: bool) -> str:
        name = _describe_pod_role(one)
        if nowhere:
            return f"no node takes a {name}"
        if one.count == 1:
            return f"the {name} finds no node next to the others"
        return f"only {self._placed(one)} of {one.count} {name}s find a node"

    def _pools(self, one: PodShape) -> str:
        """Describe the resources of the pools that accept these pods; without any, quote kube-scheduler."""
        homes = [
            group for group in self.world.nodes if group.count and not explain_unfit_node_group(one, group)
        ]
        if not homes:
            return fit_pods(self.world, [replace(one, count=1)]).reasons[0]
        said = "; ".join(self._pool(one, group) for group in homes)
        wants = " and ".join(
            _format_resource_amount(resource, one.requests[resource]) for resource in sorted(one.requests)
        )
        return f"{said}, a {_describe_pod_role(one)} wants {wants}{self._words()}"

    def _pool(self, one: PodShape, group: NodeGroup) -> str:
        told = [
            name for name in sorted(one.requests) if name in group.free or not is_undeclared_resource(name)
        ]
        has = " and ".join(
            _format_resource_amount(resource, count_free_node_units(group.free, resource))
            for resource in told
        )
        nodes = "1 node" if group.count == 1 else f"{group.count} nodes"
        return f"pool {group.name} has {nodes} with {has} for runs{' on each' if group.count > 1 else ''}"

    def _words(self) -> str:
        """Quote kube-scheduler's first message in parentheses, if there is one."""
        told = next((text for text in self.fit.reasons if text), "")
        return f" ({told.removesuffix('.')})" if told else ""


def _can_all_pods_fit(fit: Fit) -> bool:
    return fit.fits


def _describe_pod_role(one: PodShape) -> str:
    return role_of(one.name) or f"pod of {one.name}"


def _format_resource_amount(resource: str, units: int) -> str:
    """Format an amount: `124 CPU`, `1900 GiB of memory`, `8 GPUs`."""
    return format_with_unit(resource, convert_from_kueue_count(resource, units))
