"""Compare what gangplan says about a run with what Kueue did: the differences, and known causes."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from gangplan.model.support import LATEST_KUEUE, KueueLine
from gangplan.validate.apiserver.forms import parse_accepted_amount
from gangplan.validate.gate import find_object_problems as gate
from gangplan.validate.kueue import AdmissionVerdict, judge_admission
from gangplan.validate.kueue.members import read_kueue_line
from gangplan.validate.problems import format_path
from gangplan.validate.scheduler.admitted import fit_admitted_run
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.world import World
from tests.e2e.admission.recording import Answer, Seen

Object = dict[str, Any]
NO_WORKLOAD = "NoWorkload"
#: Reasons of Kueue without finer ones (before 0.19, or without UnadmittedWorkloadsObservability).
COARSE = ("Pending", "Inadmissible")
LACKING = re.compile(
    r"insufficient (?:unused )?quota for \S+ in flavor (?P<flavor>[^,; ]+), (?:\S+ more needed"
    r"|previously considered podsets requests \(\w+\) \+ current podset request \(\w+\)"
    r" > maximum capacity \(\w+\))"
)


@dataclass(frozen=True, slots=True)
class Said:
    """gangplan's answer: the gate's refusal, the solver's verdict, and how the pods of an admitted run
    fit."""

    refusal: str
    verdict: AdmissionVerdict
    fit: Fit | None = None
    kueue: KueueLine = LATEST_KUEUE

    @property
    def admits(self) -> bool:
        """Whether the solver admits the run."""
        return self.verdict.outcome == "admit"


@dataclass(frozen=True, slots=True)
class Known:
    """A difference with a known cause.

    `said` and `seen` are searched for in the words of the two sides. `mistake` names the world's mistake, and
    `holds` checks the world and the assignment.
    """

    name: str
    what: str
    said: str
    seen: str
    cause: str
    mistake: str = ""
    holds: Callable[[Answer], bool] | None = None


def _clashes(answer: Answer) -> bool:
    """Return whether a pod set got flavors that require different values of one node label."""
    for flavors in answer.seen.assignment.values():
        seen: dict[str, str] = {}
        for name in set(flavors.values()):
            body = answer.world.find("ResourceFlavor", name) or {}
            for key, value in ((body.get("spec") or {}).get("nodeLabels") or {}).items():
                if seen.setdefault(key, value) != value:
                    return True
    return False


def _is_without_overhead(answer: Answer) -> bool:
    """Return whether Kueue's message is the one for pods whose RuntimeClass has no overhead."""
    standing = tuple(
        {**body, "overhead": None} if body["kind"] == "RuntimeClass" else body
        for body in answer.world.standing
    )
    bare = judge_admission(replace(answer.world, standing=standing), answer.bodies)
    return plain(bare.message) in {plain(message) for _, message in answer.seen.said}


def _is_unordered(answer: Answer) -> bool:
    """Return whether Kueue iterates over resources in the order of a Go map."""
    return answer.world.versions.kueue in ("0.15", "0.16", "0.17", "0.18")


def _asks_for_nothing(answer: Answer) -> bool:
    """Return whether some pods request no resources."""
    return any(not each for _, each in judge_admission(answer.world, answer.bodies).requests.values())


KNOWN: tuple[Known, ...] = (
    Known(
        name="no-condition-at-all",
        what="reason",
        said=r"unavailable in ClusterQueue",
        seen=r"^ pending :",
        cause="Kueue 0.19.2 with UnadmittedWorkloadsObservability has no reason for a resource that no group"
        " covers; the API server refuses its condition ('conditions[0].reason ... at least 1 chars long')",
    ),
    Known(
        name="reason-overwritten",
        what="reason",
        said=r"never Misconfigured: resources (validation failed|didn't satisfy)",
        seen=r"^ pending PendingEvaluation:",
        cause="Kueue 0.19.2 judges the requests with a LimitRange's defaults in its scheduler and without"
        " them in its workload controller, which then overwrites the condition (workload_controller.go)",
    ),
    Known(
        name="message-overwritten",
        what="words",
        said=r"resources validation failed",
        seen=r"didn't satisfy LimitRange constraints",
        cause="the same of the message: with the defaults a request is above its limit, without them above"
        " the LimitRange's max; refused either way",
    ),
    *(
        Known(
            name="topology-of-nothing",
            what=what,
            said=r"assign flavors to pod set",
            seen=r"",
            cause="Kueue places pods that ask for nothing and then finds no room for them, over and over; its"
            " condition is that of whichever attempt came last",
            holds=_asks_for_nothing,
        )
        for what in ("reason", "words")
    ),
    Known(
        name="topology-of-nothing-before-0.16",
        what="outcome",
        said=r"no flavor assigned",
        seen=r"admitted",
        cause="Kueue 0.15 admits pods that ask for nothing although it finds no flavor to place them by;"
        " gangplan refuses them, as every later version does. No rendered pod asks for nothing",
        holds=_asks_for_nothing,
    ),
    Known(
        name="uncovered-first-or-last",
        what="words",
        said=r"couldn't assign flavors to pod set",
        seen=r"resource \S+ unavailable in ClusterQueue",
        cause="before 0.19 Kueue goes over the resources in the order of a Go map: which of two wrong ones it"
        " names is chance; refused either way",
        holds=_is_unordered,
    ),
    Known(
        name="words-without-overhead",
        what="words",
        said=r"didn't satisfy LimitRange constraints",
        seen=r"didn't satisfy LimitRange constraints",
        cause="Kueue 0.19.2 counts the overhead of a RuntimeClass against a LimitRange in its scheduler, and"
        " not in its workload controller, which then overwrites the message (workload_controller.go, without"
        " AdjustResources); refused either way",
        holds=_is_without_overhead,
    ),
    *(
        Known(
            name="check-of-another-controller",
            what=what,
            said=r"",
            seen=r"^( pending (Suspended|Inadmissible)|): +ClusterQueue .* is inactive",
            cause="a queue is inactive until the controller of its admission check reports it; a workspace"
            " does not say which controllers run, so gangplan takes it that they do",
            mistake="check_without_controller",
        )
        for what in ("outcome", "reason", "words")
    ),
    Known(
        name="circle-closed-later",
        what="reason",
        said=r"never Suspended: ClusterQueue .* is inactive",
        seen=r"^ pending (PendingEvaluation|Misconfigured):",
        cause="queues that stood before their cohorts came to form a circle still call themselves active, so"
        " Kueue's workload controller overwrites the scheduler's 'is inactive'; never admitted all the same",
        mistake="circle",
    ),
    Known(
        name="pod-security",
        what="fit",
        said=r"",
        seen=r"is forbidden: violates PodSecurity",
        cause="the namespace's pod security standard refuses the pods of a patched runtime, when a Job makes"
        " them; neither Kueue nor node fit looks at it: policies do",
    ),
    Known(
        name="labels-of-two-groups",
        what="fit",
        said=r"",
        seen=r"",
        cause="flavors of two resource groups want different values of one node label: Kueue gives the pods"
        " either, at random (podset.FromAssignment goes over a Go map); gangplan refuses such a queue",
        holds=_clashes,
    ),
)


def say(world: World, bodies: Sequence[Object]) -> Said:
    """Ask gangplan: first the gate, as the pipeline does, then the solvers, whatever the gate says."""
    refusal = ""
    for body, problems in zip(bodies, gate(bodies, world.versions), strict=True):
        if problems and not refusal:
            refusal = f"{body['kind']}: {format_path(problems[0].path)}: {problems[0].message}"
    verdict = judge_admission(world, bodies)
    fit = fit_admitted_run(world, bodies) if verdict.outcome == "admit" else None
    return Said(refusal, verdict, fit, read_kueue_line(world) or LATEST_KUEUE)


def differences(said: Said, seen: Seen) -> list[tuple[str, str]]:
    """Return where the two sides differ: (what, both sides in words).

    A server refuses an object that the gate refuses sooner or later: at once, or when pods are created.
    """
    is_refused = seen.outcome in ("refused", "silent")
    if said.refusal and is_refused:
        return []
    if said.refusal and seen.fits:
        return [("gate", f"gangplan {_words(said)}; Kueue admitted it, all {seen.pods} pods have a node")]
    said = replace(said, refusal="", fit=None) if said.refusal else said
    both = f"gangplan {_words(said)}; Kueue {seen.outcome} {seen.reason}: {seen.message}"
    if said.admits != (seen.outcome == "admitted"):
        return [("outcome", both)]
    if said.admits:
        return [*_assignment(said.verdict, seen), *_requests(said.verdict, seen), *_fit(said, seen)]
    if (said.verdict.reason == NO_WORKLOAD) != is_refused:
        return [("reason", both)]
    turns = seen.said
    if seen.outcome == "pending" and not {reason for reason, _ in turns} & {*COARSE, said.verdict.reason}:
        return [("reason", both)]
    mine = [plain(said.verdict.message), plain(said.verdict.cause_message)]
    # Only the latest Kueue names every resource that a flavor lacks.
    alike = is_less if said.kueue != LATEST_KUEUE else str.__eq__
    pairs = itertools.product((plain(message) for _, message in turns), mine)
    if seen.outcome == "pending" and not any(alike(one, each) for one, each in pairs):
        return [("words", f"gangplan: {said.verdict.message}\n      Kueue:    {seen.message}")]
    return []


def plain(message: str) -> str:
    """Return a message without the ellipsis that Kueue appends when it shortens one."""
    return message.removesuffix(" ...").strip()


def is_less(theirs: str, mine: str) -> bool:
    """Return whether a message is ours with fewer lacking resources, but some of every flavor.

    Kueue up to v0.18 stops at the first resource that a flavor lacks, in the order of a Go map, which varies
    (flavorassigner.go findFlavorForPodSets); v0.19 and gangplan name all of them.
    """
    flavors = [{found["flavor"] for found in LACKING.finditer(text)} for text in (mine, theirs)]
    lacks = [Counter(found[0] for found in LACKING.finditer(text)) for text in (mine, theirs)]
    rest = [LACKING.sub("", text).replace(", ", "") for text in (mine, theirs)]
    return rest[0] == rest[1] and flavors[0] == flavors[1] and lacks[1] <= lacks[0]


def _words(said: Said) -> str:
    if said.refusal:
        return f"refuses: {said.refusal}"
    return f"{said.verdict.outcome} {said.verdict.reason}: {said.verdict.message}"


def _assignment(verdict: AdmissionVerdict, seen: Seen) -> list[tuple[str, str]]:
    mine = {name: dict(flavors) for name, flavors in verdict.assignment.items()}
    theirs = {name: dict(flavors) for name, flavors in seen.assignment.items()}
    return [] if mine == theirs else [("assignment", f"gangplan {mine}; Kueue {theirs}")]


def _requests(verdict: AdmissionVerdict, seen: Seen) -> list[tuple[str, str]]:
    """Compare the pods, and what Kueue charges for them."""
    mine = {name: (count, _total(count, one)) for name, (count, one) in verdict.requests.items()}
    theirs = {
        name: (
            count,
            {
                key: Fraction(parse_accepted_amount(text).nano, 10**9)
                for key, text in seen.requests[name].items()
            },
        )
        for name, count in seen.counts.items()
    }
    charged = {
        name: (count, {key: value for key, value in total.items() if key in theirs.get(name, (0, {}))[1]})
        for name, (count, total) in mine.items()
    }
    return [] if charged == theirs else [("requests", f"gangplan {mine}; Kueue {theirs}")]


def _total(count: int, one: Any) -> dict[str, Fraction]:
    found = {name: value * count for name, value in one.items()}
    return {**found, "pods": Fraction(count)}


def _fit(said: Said, seen: Seen) -> list[tuple[str, str]]:
    """Compare node fit, which promises all pods, at most so many, or that it depends on the scheduler's
    choice.

    Where pods are left over, only the maximum is compared: a launcher that waits for workers which never run
    is not even created, while gangplan says how many pods there is room for.
    """
    fit = said.fit
    if fit is None:
        return []
    is_less = fit.verdict == "sure" and not seen.fits
    is_more = fit.is_exact and seen.bound > fit.bound
    if not is_less and not is_more:
        return []
    mine = f"gangplan: {fit.verdict}, {fit.sure} to {fit.bound} of {fit.pods} {'; '.join(fit.reasons)}"
    return [("fit", f"{mine}; Kueue admitted, scheduler bound {seen.bound} of {seen.pods} {seen.unbound}")]


def known(what: str, text: str, answer: Answer, table: Sequence[Known] = KNOWN) -> Known | None:
    """Return the known cause of a difference, if it is in the table."""
    mine, _, theirs = text.partition("Kueue")
    for one in table:
        if (
            one.what == what
            and re.search(one.said, mine)
            and re.search(one.seen, theirs)
            and one.mistake in ("", answer.mistake)
            and (one.holds is None or one.holds(answer))
        ):
            return one
    return None


def opened(answer: Answer) -> list[tuple[str, str]]:
    """Return the differences of an answer that have no known cause."""
    found = differences(say(answer.world, answer.bodies), answer.seen)
    return [(what, text) for what, text in found if known(what, text, answer) is None]
