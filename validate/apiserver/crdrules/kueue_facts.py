"""The rules in the CRDs of Kueue 0.15 to 0.19, in words of our own. Those of Workloads are left out."""

from __future__ import annotations

from gangplan.validate.apiserver.crdrules.rule_fact import (
    IMMUTABLE_RULE,
    KUEUE_GROUP,
    RuleFact,
    build_crd_rule_facts,
    build_immutable_crd_field_facts,
)

_EFFECTS = "['NoSchedule', 'PreferNoSchedule', 'NoExecute']"


def _build_queue_crd_rule_facts() -> list[RuleFact]:
    limits = "self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))"
    without = "a borrowingLimit needs a cohort to borrow from"
    both = "self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor'"
    borrow = (
        "self.reclaimWithinCohort != 'Never' || !has(self.borrowWithinCohort)"
        " || self.borrowWithinCohort.policy == 'Never'"
    )
    cohort = "has(self.cohort{0}) || !has(self.resourceGroups) || {1}"
    return [
        *build_crd_rule_facts(
            f"{KUEUE_GROUP}/v1beta1", "ClusterQueue", "spec", (cohort.format("", limits), without)
        ),
        *build_crd_rule_facts(
            f"{KUEUE_GROUP}/v1beta2", "ClusterQueue", "spec", (cohort.format("Name", limits), without)
        ),
        *build_crd_rule_facts(
            KUEUE_GROUP,
            "ClusterQueue",
            "spec.flavorFungibility",
            (
                f"!has(self.preference) || {both}",
                "preference only where whenCanBorrow and whenCanPreempt are TryNextFlavor",
            ),
        ),
        *build_crd_rule_facts(
            KUEUE_GROUP,
            "ClusterQueue",
            "spec.preemption",
            (borrow, "borrowWithinCohort needs reclaimWithinCohort other than Never"),
        ),
        *build_crd_rule_facts(
            KUEUE_GROUP,
            "ClusterQueue Cohort",
            "spec.resourceGroups.[]",
            (
                "self.flavors.all(f, f.resources.size() == self.coveredResources.size())",
                "every flavor must state all coveredResources, and no others",
            ),
        ),
        *build_immutable_crd_field_facts(KUEUE_GROUP, "LocalQueue", "spec.clusterQueue"),
        *build_immutable_crd_field_facts(KUEUE_GROUP, "AdmissionCheck", "spec.controllerName"),
    ]


def _build_flavor_crd_rule_facts() -> list[RuleFact]:
    topology = "!has(oldSelf.topologyName) || "
    same = "has(self.{0}) == has(oldSelf.{0}) && (!has(self.{0}) || self.{0} == oldSelf.{0})"
    fixed = tuple(
        (topology + f"({same.format(name)})", f"{name} cannot change once there is a topologyName")
        for name in ("nodeLabels", "tolerations", "topologyName")
    )
    spec = "spec"
    return [
        *build_crd_rule_facts(
            KUEUE_GROUP,
            "ResourceFlavor",
            spec,
            (
                "!has(self.topologyName) || self.nodeLabels.size() > 0",
                "topologyName needs at least one node label",
            ),
        ),
        *build_crd_rule_facts(
            KUEUE_GROUP,
            "ResourceFlavor",
            spec,
            (topology + IMMUTABLE_RULE, "a flavor with a topologyName cannot change"),
            until="0.16",
        ),
        *build_crd_rule_facts(KUEUE_GROUP, "ResourceFlavor", spec, *fixed, since="0.17"),
        *build_crd_rule_facts(
            KUEUE_GROUP,
            "ResourceFlavor",
            "spec.nodeTaints",
            (f"!self.exists(t, !(t.effect in {_EFFECTS}))", f"effect must be one of {_EFFECTS}"),
        ),
        *_build_toleration_crd_rule_facts(),
        *_build_topology_crd_rule_facts(),
    ]


def _build_toleration_crd_rule_facts() -> list[RuleFact]:
    return build_crd_rule_facts(
        KUEUE_GROUP,
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


def _build_topology_crd_rule_facts() -> list[RuleFact]:
    last = (
        "!self.exists(l, l.nodeLabel == 'kubernetes.io/hostname')"
        " || self[self.size() - 1].nodeLabel == 'kubernetes.io/hostname'"
    )
    unique = "self.all(l, self.exists_one(other, other == l))"
    return [
        *build_immutable_crd_field_facts(KUEUE_GROUP, "Topology", "spec.levels"),
        *build_crd_rule_facts(
            KUEUE_GROUP,
            "Topology",
            "spec.levels",
            (unique, "a level is listed twice"),
            (last, "kubernetes.io/hostname can only be the last level"),
        ),
    ]


def _build_multi_kueue_crd_rule_facts() -> list[RuleFact]:
    one = "has(self.kubeConfig) != has(self.clusterProfileRef)"
    return [
        *build_crd_rule_facts(
            f"{KUEUE_GROUP}/v1beta2",
            "MultiKueueCluster",
            "spec.clusterSource",
            (one, "exactly one of kubeConfig and clusterProfileRef"),
        ),
        *build_crd_rule_facts(
            f"{KUEUE_GROUP}/v1beta2",
            "MultiKueueConfig",
            "spec.clusters",
            ("self.all(c, self.exists_one(other, other == c))", "a cluster is listed twice"),
            since="0.18",
        ),
    ]


KUEUE_FACTS = (
    *_build_queue_crd_rule_facts(),
    *_build_flavor_crd_rule_facts(),
    *_build_multi_kueue_crd_rule_facts(),
)
