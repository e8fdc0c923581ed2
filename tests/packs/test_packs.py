"""The packs that come with gangplan: complete, well documented, and each policy checked by its cases."""

from __future__ import annotations

import atexit
import copy
import re
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gangplan.objects import BINDING_KIND, dump_all
from gangplan.packs.own import OwnPolicies
from gangplan.packs.read import PackFolder, PolicySource
from gangplan.policy.cases import build_policy_case_suites, judge_policy_cases
from gangplan.policy.checks import build_policy_checker, check_policies, collect_policy_sources
from gangplan.policy.choose import ChosenPolicy, choose_policies
from gangplan.policy.objects import build_policy_objects
from gangplan.resolve.facts import ENCRYPTING_REGIMES, REGIMES, resolve_cluster_facts_for_policies
from gangplan.rulebook import SHIPPED_PACKS_FOLDER as FOLDER
from gangplan.rulebook import load_built_in_rules, load_shipped_rules
from gangplan.source import load_objects
from gangplan.validate.apiserver.pod_security import find_pod_security_violations as refusals
from gangplan.validate.apiserver.policy.model import PlacedObject
from gangplan.validate.apiserver.policy.read import read_policy_objects
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.workspace import Workspace, load_workspace
from tests.workspaces import CLUSTER, STOCK, gangplan, rendered, write

NOWHERE = Path("/nonexistent")
PACKS = OwnPolicies().names
REQUIRED = {
    *("baseline", "restricted", "images", "labels", "lifecycle", "priorities", "network", "data"),
    *("residency", *REGIMES),
}


def pack(name: str) -> PackFolder:
    """Return a pack that comes with gangplan, after checking that nothing is wrong with it."""
    folder, findings = OwnPolicies().find(name)
    assert not findings
    assert folder is not None
    return folder


POLICIES = [(name, policy) for name in PACKS for policy in pack(name).policies]


@cache
def cases(name: str) -> dict[str, Counter[str]]:
    """Map each policy to the numbers of its cases that allow, that deny, and that are near the line."""
    found: dict[str, Counter[str]] = {}
    for file in sorted((FOLDER / name / "tests").iterdir()):
        policy, case, verdict, ending = file.name.split(".")
        assert ending == "yaml"
        found.setdefault(policy, Counter()).update([verdict, "near" if case.startswith("near-") else "plain"])
    return found


def test_no_pack_is_missing() -> None:
    assert set(PACKS) >= REQUIRED
    assert len(POLICIES) == len({policy for _, policy in POLICIES}), "a policy stands in one pack"
    assert len(POLICIES) >= 50


@pytest.mark.parametrize(("name", "policy"), POLICIES)
def test_a_policy_has_cases_on_both_sides_and_near_the_line(name: str, policy: str) -> None:
    found = cases(name)[policy]
    assert found["allow"] >= 1
    assert found["deny"] >= 1
    assert found["near"] >= 1


@pytest.mark.parametrize(("name", "policy"), POLICIES)
def test_a_policy_fails_closed_and_says_what_it_saw(name: str, policy: str) -> None:
    folder = pack(name)
    body, page = folder.policies[policy].body, folder.pack.policies[policy]
    spec = body["spec"]
    assert spec["failurePolicy"] == "Fail"
    assert all(one.get("messageExpression") for one in spec["validations"])
    assert body["metadata"]["labels"]["gangplan.dev/pack"] == name
    # Every parameter that is used is declared.
    text = dump_all([body])
    used = set(re.findall(r"params\.data\.([A-Za-z]\w*)", text))
    assert used <= set(page.params)
    assert bool(page.params) == ("paramKind" in spec)
    unused = set(page.params) - used
    assert not unused or policy in ("data-residency", "bucket-residency"), "those are looked up by their area"


@pytest.mark.parametrize(("name", "policy"), POLICIES)
def test_a_page_names_rules_that_exist(name: str, policy: str) -> None:
    page = pack(name).pack.policies[policy]
    assert set(page.told_by) <= set(load_built_in_rules())
    assert load_shipped_rules()[policy].summary == page.title


@pytest.mark.parametrize("suite", build_policy_case_suites(Workspace(NOWHERE)), ids=lambda suite: suite.pack)
def test_every_case_is_decided_as_it_states(suite: Any) -> None:
    """Verdict and message are compared; the same cases go to a real API server in
    tests/e2e/test_policies.py."""
    count, wrong = judge_policy_cases(suite, set(suite.policies))
    assert count >= 3 * len(suite.policies)
    assert not [str(finding) for finding in wrong]


# Kept until the tests end: policies are read when they first judge.
_STOCK = tempfile.TemporaryDirectory(prefix="gangplan-packs-")
atexit.register(_STOCK.cleanup)


@cache
def workspace(kubernetes: str = "1.34.4") -> Workspace:
    """Return a workspace whose cluster lists every pack."""
    packs = f"policies: {{packs: [{', '.join(PACKS)}]}}\n"
    root = Path(_STOCK.name) / kubernetes
    text = CLUSTER.replace('"1.34.4"', f'"{kubernetes}"').replace("region:", f"{packs}region:")
    loaded = load_workspace(write(root, {**STOCK, "overlays/lab/cluster.yaml": text}))
    findings = loaded.findings
    assert not findings
    return loaded


def test_all_packs_fit_together() -> None:
    """Every parameter has a value, every binding its policy and its parameters, and no name occurs twice."""
    sources, _, findings = collect_policy_sources(workspace(), "lab")
    assert not findings
    bodies = [source.body for source in sources]
    seen = Counter((body["kind"], body["metadata"]["name"]) for body in bodies)
    assert set(seen.values()) == {1}
    assert {name for kind, name in seen if kind == "ValidatingAdmissionPolicy"} == {
        one for _, one in POLICIES
    }
    for body in bodies:
        if body["kind"] == "ConfigMap":
            assert all(isinstance(value, str) for value in body["data"].values())
        if body["kind"] == "ValidatingAdmissionPolicyBinding":
            assert ("ValidatingAdmissionPolicy", body["spec"]["policyName"]) in seen
            param = body["spec"].get("paramRef")
            assert param is None or ("ConfigMap", param["name"]) in seen


# Policies use nothing newer, so that one set of files serves every cluster from here on. Excluded are:
# two-variable loops (1.32), semver (1.33) and the new functions of lists (1.34).
@pytest.mark.parametrize("kubernetes", ["1.31.9", "1.32.9", "1.33.13", "1.34.4", "1.36.3"])
def test_every_policy_compiles_on_every_kubernetes(kubernetes: str) -> None:
    assert check_policies(workspace(kubernetes)) == []
    # Shipped policies are trusted: their fields and those of their bindings are not checked, and they are
    # compiled when they first judge. Here they are not trusted.
    sources, _, _ = collect_policy_sources(workspace(kubernetes), "lab")
    assert all(one.is_shipped for one in sources if one.body["kind"] == BINDING_KIND)
    reading = read_policy_objects(
        [PlacedObject(one.body, one.document, one.file) for one in sources], versions(kubernetes)
    )
    assert reading.problems == []
    assert {one.policy.name for one in reading.policies} == {one for _, one in POLICIES}


def test_bindings_are_trusted_if_all_their_names_are_shipped() -> None:
    _, pages, _ = collect_policy_sources(workspace(), "lab")
    for one in pages.values():
        names = {"": True, "-hipaa": True, "-own": False, "-own-hipaa": False, "-Hipaa": False}
        for end, is_trusted in names.items():
            named = replace(one, name=f"{one.policy}{end}")
            assert {source.is_shipped for source in bound(named)} == {is_trusted}, named.name
        own = replace(one, source=replace(one.source, is_shipped=False))
        assert {source.is_shipped for source in bound(own)} == {False}


def bound(one: ChosenPolicy) -> list[PolicySource]:
    """Return the bindings of a policy."""
    return [
        source
        for source in build_policy_objects([one], "cluster.yaml")
        if source.body["kind"] == BINDING_KIND
    ]


def versions(kubernetes: str) -> SchemaVersions:
    """Return the versions of a cluster that has policies and nothing else."""
    return SchemaVersions(kubernetes.rpartition(".")[0])


def test_policies_that_need_a_newer_cluster_are_reported() -> None:
    """Address ranges are known since 1.31: an API server accepts what the minor before it has."""
    findings = check_policies(workspace("1.30.9"))
    assert {finding.where.file.split("/")[-1] for finding in findings} == {
        "network-endpoints.yaml",
        "network-internet.yaml",
        "network-posture.yaml",
    }


@pytest.mark.parametrize("name", PACKS)
def test_marks_of_waivers_are_guarded_wherever_bindings_heed_them(name: str) -> None:
    """Anyone who may create runs can write a label: the guard comes with every pack, and there is no way
    around it."""
    folder = pack(name)
    assert {"waiver-granted"} <= {*folder.pack.policies, *folder.pack.uses} or "baseline" in folder.pack.needs
    file = workspace().clusters["lab"]
    taken, _ = choose_policies(
        workspace().policies, file, resolve_cluster_facts_for_policies(workspace(), "lab")
    )
    for source in build_policy_objects(taken, "x"):
        if source.body["kind"] == "ValidatingAdmissionPolicyBinding":
            policy = source.body["spec"]["policyName"]
            marked = f"gangplan.dev/waived-{policy}" in dump_all([source.body])
            assert marked == (policy != "waiver-granted")


def test_regimes_that_require_encryption_are_those_of_the_facts() -> None:
    """Facts assume about the claims of a team what these packs enforce."""
    asking = {name for name in REGIMES if "storage-encrypted" in pack(name).pack.uses}
    assert asking == ENCRYPTING_REGIMES
    assert all("claims-encrypted" in {**pack(name).pack.uses, **pack(name).policies} for name in asking)


def test_a_regime_tightens_what_holds_for_all() -> None:
    """With other parameters a policy is bound a second time, only for objects with the label."""
    file = workspace().clusters["lab"]
    taken, _ = choose_policies(
        workspace().policies, file, resolve_cluster_facts_for_policies(workspace(), "lab")
    )
    by_name = {one.name: one for one in taken}
    assert by_name["network-posture"].params["floor"] == "default"
    assert by_name["network-posture-hipaa"].params["floor"] == "restricted"
    assert by_name["network-posture-hipaa"].label == "hipaa"
    assert by_name["audit-retention-pci-dss"].params["least"] == "365"
    names_of = [one.body["metadata"]["name"] for one in build_policy_objects(taken, "x")]
    assert "network-posture-hipaa-object" in names_of


def test_an_equal_policy_of_a_regime_is_not_bound_twice() -> None:
    """A regime that requires what baseline already requires, with the same parameters, adds nothing."""
    file = workspace().clusters["lab"]
    taken, _ = choose_policies(
        workspace().policies, file, resolve_cluster_facts_for_policies(workspace(), "lab")
    )
    by_name = {one.name: one for one in taken}
    assert "host-path" in pack("hipaa").pack.uses
    assert "host-path" in by_name
    assert "host-path-hipaa" not in by_name
    for one in taken:
        base = by_name[one.policy]
        same = (one.params, one.action) == (base.params, base.action)
        assert one is base or base.label or not same, one.name


def escapes() -> list[tuple[tuple[Any, ...], Any]]:
    """Return changes of a pod that Pod Security restricted refuses: (where, what)."""
    context = ("containers", 0, "securityContext")
    return [
        *(((name,), True) for name in ("hostNetwork", "hostPID", "hostIPC")),
        (("volumes",), [{"name": "x", "hostPath": {"path": "/"}}]),
        (("volumes",), [{"name": "x", "nfs": {"server": "a", "path": "/"}}]),
        ((*context, "privileged"), True),
        ((*context, "procMount"), "Unmasked"),
        ((*context, "capabilities"), {"add": ["SYS_ADMIN"], "drop": ["ALL"]}),
        ((*context, "capabilities"), {"add": ["CHOWN"], "drop": ["ALL"]}),
        ((*context, "capabilities"), {"drop": ["NET_RAW"]}),
        ((*context, "allowPrivilegeEscalation"), True),
        ((*context, "runAsNonRoot"), False),
        ((*context, "runAsUser"), 0),
        ((*context, "seccompProfile"), {"type": "Unconfined"}),
        (("containers", 0, "ports"), [{"containerPort": 80, "hostPort": 80}]),
        (("securityContext", "runAsUser"), 0),
        (("securityContext", "seccompProfile"), {"type": "Unconfined"}),
    ]


@cache
def run_and_checker() -> tuple[dict[str, Any], Any]:
    """Return a rendered runtime, and the checker that judges it."""
    root = workspace().root
    text = (root / "overlays/lab/cluster.yaml").read_text()
    mild = re.sub(r"policies: .*\n", "policies: {packs: [restricted]}\n", text)
    (root / "mild").mkdir(exist_ok=True)
    files = {**STOCK, "overlays/lab/cluster.yaml": mild}
    home = write(root / "mild", files)
    assert gangplan("render", "-C", home).code == 0
    bodies = [body for text in rendered(home).values() for body in load_objects(text)]
    (runtime,) = [body for body in bodies if body["kind"] == "TrainingRuntime"]
    return runtime, build_policy_checker(load_workspace(home), "lab", bodies)


@pytest.mark.parametrize(("where", "what"), escapes(), ids=str)
def test_restricted_refuses_what_pod_security_refuses(where: tuple[Any, ...], what: Any) -> None:
    runtime, checker = run_and_checker()
    assert checker.evaluator.judge([runtime]) == []
    changed = copy.deepcopy(runtime)
    spec = changed["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert not list(refusals({"spec": spec}, True, 34, 34))
    place = spec
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = what
    assert list(refusals({"spec": spec}, True, 34, 34)), "Pod Security refuses it"
    violations = checker.evaluator.judge([changed])
    assert violations
    assert len(violations) == 1, [one.message for one in violations]
