"""The assignment of a flavor to every resource of every pod set.

Source: Kueue v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,flavor_assigner_attempts,
tas_flavorassigner}.go, compared with v0.15.2 and v0.18.2. A usage snapshot does not show which workloads hold
the quota, so preemption is not simulated: a flavor that does not fit now has no candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from gangplan.kueue.flavors import (
    WORST_FIT,
    FlavorFit,
    FlavorMode,
    find_flavor_quota_mode,
    is_preferred_flavor,
    should_try_next_flavor,
)
from gangplan.kueue.model import ResourceGroup
from gangplan.kueue.tree import QuotaTree
from gangplan.kueue.units import KUEUE_PODS, convert_from_kueue_count, format_kueue_amount
from gangplan.model.support import KueueLine
from gangplan.records import dataclass
from gangplan.validate.kueue.chosen import (
    FIT_MODE,
    NO_FIT_MODE,
    PodSetChoice,
    PodSetRequest,
    WorkloadAssignment,
    choose_worse_reason,
    group_pod_sets_by_group_name,
    record_tried_flavor_of_pod_set,
)
from gangplan.validate.kueue.matching import find_untolerated_taint, fits_resource_flavor_labels
from gangplan.validate.kueue.model import (
    EXCEEDS_MAX_QUOTA,
    NO_MATCHING_FLAVOR,
    WAITING_FOR_QUOTA,
    CountedAmounts,
    Shortage,
)
from gangplan.validate.kueue.standing import KueueWorld, QueueState


@dataclass(slots=True)
class Assigner:
    """The flavor assigner of one workload in one queue.

    `start` is where the last attempt stopped (pod set -> resource -> index); `only` is the flavor of a
    variant (ConcurrentAdmission).
    """

    standing: KueueWorld
    queue: QueueState
    tree: QuotaTree
    kueue: KueueLine
    start: Sequence[Mapping[str, int]] = ()
    only: str = ""

    def assign(self, wanted: Sequence[PodSetRequest]) -> WorkloadAssignment:
        """Assign flavors, or record why not; stop at the first group of pod sets without one."""
        out = WorkloadAssignment()
        covers_pods = self.queue.quotas.group_of(KUEUE_PODS) is not None
        for members in group_pod_sets_by_group_name(wanted):
            totals = [one.total(covers_pods) for _, one in members]
            requests: CountedAmounts = {}
            for total in totals:
                for name, amount in total.items():
                    requests[name] = requests.get(name, 0) + amount
            found = self._flavors_for(members, requests, out)
            failed = False
            for (_, one), total in zip(members, totals, strict=True):
                flavors = self._own_flavors(one, total, found.flavors)
                tried = {name: at for name, at in found.tried.items() if name in flavors}
                chosen = PodSetChoice(one, flavors, list(found.reasons), dict(found.attempts), tried)
                out.chosen.append(chosen)
                for name, (flavor, _) in chosen.flavors.items():
                    out.usage[flavor, name] = out.usage.get((flavor, name), 0) + total.get(name, 0)
                failed = failed or bool(total and not chosen.flavors)
            if failed:
                out.is_cut = True
                if len(out.chosen) < len(wanted) and out.mode == FIT_MODE:
                    # It requests zero of resources that the queue does not cover: Kueue drops the other pod
                    # sets, and its own webhook refuses the admission.
                    out.chosen[-1].error = "nothing that it asks for is covered by the ClusterQueue"
                break
        return out

    def _own_flavors(
        self, one: PodSetRequest, total: CountedAmounts, found: Mapping[str, tuple[str, FlavorMode]]
    ) -> dict[str, tuple[str, FlavorMode]]:
        if total:
            return {name: flavor for name, flavor in found.items() if name in total}
        if one.topology is None or not one.topology.group or not self.kueue.groups_without_quota:
            return {}
        return {
            name: flavor
            for name, flavor in found.items()
            if self.standing.flavors.tree(flavor[0]) is not None
        }

    def _flavors_for(
        self, members: Sequence[tuple[int, PodSetRequest]], requests: CountedAmounts, out: WorkloadAssignment
    ) -> PodSetChoice:
        found = PodSetChoice(members[0][1])
        for name in self._in_order(requests):
            group = self.queue.quotas.group_of(name)
            if group is None:
                if requests[name] == 0 and self.kueue.skips_unasked:
                    continue
                found.flavors, found.reasons = {}, [f"resource {name} unavailable in ClusterQueue"]
                return found
            if name in found.flavors:
                continue
            flavors, reasons = self._try(members, requests, group, out, found, name)
            if not flavors:
                found.flavors, found.reasons = {}, reasons
                return found
            found.flavors.update(flavors)
            found.reasons += reasons
        return found

    def _try(
        self,
        members: Sequence[tuple[int, PodSetRequest]],
        requests: CountedAmounts,
        group: ResourceGroup,
        out: WorkloadAssignment,
        found: PodSetChoice,
        first: str,
    ) -> tuple[dict[str, tuple[str, FlavorMode]], list[str]]:
        """Try the flavors of one resource group in order until one fits well enough."""
        mine = {name: amount for name, amount in requests.items() if name in group.resources}
        reasons: list[str] = []
        best: dict[str, tuple[str, FlavorMode]] = {}
        best_suits, rules = WORST_FIT, self.queue.quotas.fungibility
        begin = self._begin(members[0][0], first)
        last = begin - 1
        shortages: list[Shortage] = []
        mismatches: dict[str, str] = {}
        for last in range(begin, len(group.flavors)):
            flavor = group.flavors[last]
            if self.only not in ("", flavor):
                reasons.append(
                    f"skipping flavor {flavor} due to WorkloadAllowedResourceFlavorAnnotation annotation"
                )
                continue
            wrong = self._mismatch(flavor, members, group)
            if wrong:
                reasons.append(wrong)
                mismatches[flavor] = wrong
                record_tried_flavor_of_pod_set(found, flavor, NO_FIT_MODE, NO_MATCHING_FLAVOR)
                continue
            modes, suits, said, why = self._fits(members, flavor, mine, out, shortages)
            reasons += said
            record_tried_flavor_of_pod_set(found, flavor, suits[0], why)
            if not should_try_next_flavor(suits, rules):
                best, best_suits = modes, suits
                break
            if is_preferred_flavor(suits, best_suits, rules, self.kueue):
                best, best_suits = modes, suits
        stopped = -1 if last == len(group.flavors) - 1 else last
        found.tried.update(dict.fromkeys(best, stopped))
        if not best:
            out.shortages += shortages
            out.mismatches.update(mismatches)
        return best, [] if best_suits[0] == FIT_MODE else reasons

    def _in_order(self, requests: CountedAmounts) -> list[str]:
        """Sort resources as Kueue assigns them: by hash since 0.19 (slice_requests.go), before at random."""
        return sorted(requests, key=hash_resource_name) if self.kueue.orders_by_hash else sorted(requests)

    def _begin(self, at: int, resource: str) -> int:
        known = self.start[at] if at < len(self.start) else {}
        return known[resource] + 1 if resource in known else 0

    def _mismatch(self, name: str, members: Iterable[tuple[int, PodSetRequest]], group: ResourceGroup) -> str:
        """Return why the pods cannot use a flavor, or ""."""
        if name not in self.standing.flavors:
            return f"flavor {name} not found"
        flavor = self.standing.flavors[name]
        labels = flavor.labels
        keys = set(labels)
        if self.kueue.matches_group_labels:
            keys = {
                key
                for one in group.flavors
                if one in self.standing.flavors
                for key in self.standing.flavors[one].labels
            }
        for _, one in members:
            spec = one.pods.spec
            wrong = self._topology_mismatch(name, one, group)
            if wrong:
                return wrong
            taint = find_untolerated_taint(
                flavor.taints, [*(spec.get("tolerations") or ()), *flavor.tolerations]
            )
            if taint:
                told = f"{{{taint['key']} {taint.get('value') or ''} {taint['effect']} <nil>}}"
                return f"untolerated taint {told} in flavor {name}"
            if not fits_resource_flavor_labels(spec, labels, keys):
                return f"flavor {name} doesn't match node affinity"
        return ""

    def _topology_mismatch(self, name: str, one: PodSetRequest, group: ResourceGroup) -> str:
        has = bool(self.standing.flavors.topology_name(name))
        if one.topology is None or not one.topology.is_explicit:
            if self.queue.is_topology_only or not has:
                return ""
            return f'Flavor "{name}" supports only TopologyAwareScheduling'
        if not has:
            if self.kueue.mixes_flavors and not set(one.placed) & set(group.resources):
                return ""
            return f'Flavor "{name}" does not support TopologyAwareScheduling'
        tree = self.standing.flavors.tree(name)
        if tree is None:
            return f'Flavor "{name}" information missing in TAS cache'
        if not one.topology.levels_in(tree.levels):
            return f'Flavor "{name}" does not contain the requested level'
        return ""

    def _fits(
        self,
        members: Sequence[tuple[int, PodSetRequest]],
        flavor: str,
        requests: CountedAmounts,
        out: WorkloadAssignment,
        shortages: list[Shortage],
    ) -> tuple[dict[str, tuple[str, FlavorMode]], FlavorFit, list[str], str]:
        """Check each resource of a group in one flavor.

        Return the modes, (worst mode, borrowing), the messages and the worst reason.
        """
        modes: dict[str, tuple[str, FlavorMode]] = {}
        worst, borrowed, said, why = FIT_MODE, 0, [], ""
        quotas, tree = self.queue.quotas, self.tree
        for name in sorted(requests):
            key = flavor, name
            before, asked = out.usage.get(key, 0), requests[name]
            at, most = tree.index[key], tree.most(quotas.name, key)
            mode, height = find_flavor_quota_mode(
                tree, quotas, at, before + asked, self.standing.setup.fair_sharing
            )
            if before + asked > most:
                said.append(
                    f"insufficient quota for {name} in flavor {flavor}, previously considered podsets"
                    f" requests ({format_kueue_amount(name, before)}) + current podset request"
                    f" ({format_kueue_amount(name, asked)}) > maximum capacity"
                    f" ({format_kueue_amount(name, most)})"
                )
                total, limit = (
                    convert_from_kueue_count(name, before + asked),
                    convert_from_kueue_count(name, most),
                )
                shortages.append(Shortage(members[0][1].pods.name, name, flavor, total, limit))
                worst, why = NO_FIT_MODE, choose_worse_reason(why, EXCEEDS_MAX_QUOTA)
                continue
            if mode is not FIT_MODE:
                more = format_kueue_amount(
                    name, before + asked - tree.available(tree.numbers[quotas.name], at)
                )
                said.append(f"insufficient unused quota for {name} in flavor {flavor}, {more} more needed")
                why = choose_worse_reason(why, WAITING_FOR_QUOTA)
            worst, borrowed = min(worst, mode), max(borrowed, height)
            modes[name] = flavor, mode
        return modes, (worst, borrowed), said, why


@lru_cache(maxsize=256)
def hash_resource_name(name: str) -> int:
    """Return the 64-bit FNV-1a hash of a text."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value
