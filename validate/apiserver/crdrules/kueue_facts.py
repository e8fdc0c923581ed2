"""The rules in the CRDs of Kueue 0.15 to 0.19, in words of our own. Those of Workloads are left out."""

from __future__ import annotations

from gangplan.validate.apiserver.crdrules.rule_fact import FIXED, KUEUE, RuleFact, facts, fixed

_EFFECTS = "['NoSchedule', 'PreferNoSchedule', 'NoExecute']"


def _queues() -> list[RuleFact]:
    limits = "self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))"
    without = "a borrowingLimit needs a cohort to borrow from"
    both = "self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor'"
    borrow = (
        "self.reclaimWithinCohort != 'Never' || !has(self.borrowWithinCohort)"
        " || self.borrowWithinCohort.policy == 'Never'"
    )
    cohort = "has(self.cohort{0}) || !has(self.resourceGroups) || {1}"
    return [
        *facts(f"{KUEUE}/v1beta1", "ClusterQueue", "spec", (cohort.format("", limits), without)),
        *facts(f"{KUEUE}/v1beta2", "ClusterQueue", "spec", (cohort.format("Name", limits), without)),
        *facts(
            KUEUE,
            "ClusterQueue",
            "spec.flavorFungibility",
            (
                f"!has(self.preference) || {both}",
                "preference only where whenCanBorrow and whenCanPreempt are TryNextFlavor",
            ),
        ),
        *facts(
            KUEUE,
            "ClusterQueue",
            "spec.preemption",
            (borrow, "borrowWithinCohort needs reclaimWithinCohort other than Never"),
        ),
        *facts(
            KUEUE,
            "ClusterQueue Cohort",
            "spec.resourceGroups.[]",
            (
                "self.flavors.all(f, f.resources.size() == self.coveredResources.size())",
                "every flavor must state all coveredResources, and no others",
            ),
        ),
        *fixed(KUEUE, "LocalQueue", "spec.clusterQueue"),
        *fixed(KUEUE, "AdmissionCheck", "spec.controllerName"),
    ]


def _flavors() -> list[RuleFact]:
    topology = "!has(oldSelf.topologyName) || "
    same = "has(self.{0}) == has(oldSelf.{0}) && (!has(self.{0}) || self.{0} == oldSelf.{0})"
    fixed = tuple(
        (topology + f"({same.format(name)})", f"{name} cannot change once there is a topologyName")
        for name in ("nodeLabels", "tolerations", "topologyName")
    )
    spec = "spec"
    return [
        *facts(
            KUEUE,
            "ResourceFlavor",
            spec,
            (
                "!has(self.topologyName) || self.nodeLabels.size() > 0",
                "topologyName needs at least one node label",
            ),
        ),
        *facts(
            KUEUE,
            "ResourceFlavor",
            spec,
            (topology + FIXED, "a flavor with a topologyName cannot change"),
            until="0.16",
        ),
        *facts(KUEUE, "ResourceFlavor", spec, *fixed, since="0.17"),
        *facts(
            KUEUE,
            "ResourceFlavor",
            "spec.nodeTaints",
            (f"!self.exists(t, !(t.effect in {_EFFECTS}))", f"effect must be one of {_EFFECTS}"),
        ),
        *_tolerations(),
        *_topologies(),
    ]


def _tolerations() -> list[RuleFact]:
    return facts(
        KUEUE,
        "ResourceFlavor",
        "spec.tolerations",
        (
            "self.all(t, has(t.key) || t.operator == 'Exists')",
            "without a key the operator must be Exists",
        ),
        (
            "self.all(t, !has(t.tolerationSeconds) || t.effect == 'NoExecute')",
            "tolerationSeconds only with effect NoExecute",
        ),
        (
            "self.all(t, !has(t.operator) || t.operator in ['Exists', 'Equal'])",
            "operator is Exists or Equal",
        ),
        (
            "self.all(t, !(has(t.operator) && t.operator == 'Exists') || !has(t.value))",
            "no value with operator Exists",
        ),
        (f"self.all(t, !has(t.effect) || t.effect in {_EFFECTS})", f"effect must be one of {_EFFECTS}"),
    )


def _topologies() -> list[RuleFact]:
    last = (
        "!self.exists(l, l.nodeLabel == 'kubernetes.io/hostname')"
        " || self[self.size() - 1].nodeLabel == 'kubernetes.io/hostname'"
    )
    unique = "self.all(l, self.exists_one(other, other == l))"
    return [
        *fixed(KUEUE, "Topology", "spec.levels"),
        *facts(
            KUEUE,
            "Topology",
            "spec.levels",
            (unique, "a level is listed twice"),
            (last, "kubernetes.io/hostname can only be the last level"),
        ),
    ]


def _multi_kueue() -> list[RuleFact]:
    one = "has(self.kubeConfig) != has(self.clusterProfileRef)"
    return [
        *facts(
            f"{KUEUE}/v1beta2",
            "MultiKueueCluster",
            "spec.clusterSource",
            (one, "exactly one of kubeConfig and clusterProfileRef"),
        ),
        *facts(
            f"{KUEUE}/v1beta2",
            "MultiKueueConfig",
            "spec.clusters",
            ("self.all(c, self.exists_one(other, other == c))", "a cluster is listed twice"),
            since="0.18",
        ),
    ]


KUEUE_FACTS = (*_queues(), *_flavors(), *_multi_kueue())
