"""Waivers: what they excuse and what they do not, for how long, and which marks servers get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.emit import is_run_file
from gangplan.errors import Exit
from gangplan.findings import Finding, Location, Waived, find_worst_severity, sort_findings
from gangplan.model.quantity import parse_memory_quantity
from gangplan.resolve.waiver_checks import list_known_policy_ids
from gangplan.rulebook import Rulebook, find_rule_example, load_shipped_rules, topic_of
from gangplan.rules.model import Severity
from gangplan.spec.waiver_files import load_waiver_files
from gangplan.waivers import Subject, apply_waivers_to_findings, list_waived_policies, remove_waiver_marks
from tests import plain, workspaces
from tests.rules.worlds import command, put
from tests.workspaces import Outcome, gangplan, write

TODAY = "2026-07-01"
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own-policy}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [kueue.x-k8s.io], apiVersions: [v1beta1], operations: [CREATE], resources: [workloads]}
  validations: [{expression: "true"}]
"""


def waiver(rule: str = "gpus-unusual", **changes: Any) -> str:
    """Return a waiver file; a change to None leaves the field out."""
    fields = {
        "apiVersion": "gangplan.dev/v1",
        "kind": "Waiver",
        "rule": rule,
        "scope": {"team": "nlp"},
        "reason": "The nodes of this lab have six GPUs each.",
        "approver": "ml-platform@example.com",
        "expires": "2027-01-31",
        **changes,
    }
    return yaml.safe_dump(
        {name: value for name, value in fields.items() if value is not None}, sort_keys=False
    )


def waived(root: Path, *texts: str) -> Path:
    """Write these waivers into the workspace."""
    return write(root, {f"policies/waivers/w{number}.yaml": text for number, text in enumerate(texts)})


def six(root: Path) -> Path:
    """Write a spec with six GPUs per worker, which breaks gpus-unusual (a warning)."""
    spec = workspaces.SPEC.replace("gpus: 2", "gpus: 6").replace("workers: 4", "workers: 2")
    return write(root, {"specs/nlp/filings.yaml": spec})


def long(root: Path, hours: int = 24 * 14) -> Path:
    """Write a spec above the limit of seven days, which breaks timeout-over-limit (an error)."""
    spec = workspaces.SPEC + f"timeout: {hours}h\nextendedTimeout: true\n"
    return write(root, {"specs/nlp/filings.yaml": spec})


def check(root: Path, *flags: str, today: str = TODAY) -> Outcome:
    """Run a validation as of a day."""
    return gangplan("validate", "-C", root, "--today", today, "--engine", "serial", *flags)


def rules_of(outcome: Outcome) -> list[str]:
    """Return the rules of the findings."""
    return [shown.rule for shown in outcome.findings]


# What it excuses


def test_a_waived_error_is_shown_and_does_not_count(root: Path) -> None:
    long(root)
    assert check(root).errors() == [("specs/nlp/filings.yaml:9:10", "timeout-over-limit")]
    waived(root, waiver("timeout-over-limit", reason="The solver cannot save its state."))
    outcome = check(root)
    assert outcome.code == Exit.CLEAN
    assert rules_of(outcome) == ["timeout-over-limit"]
    assert "waived until 2027-01-31: The solver cannot save its state." in outcome.err
    assert "policies/waivers/w0.yaml:3:7" in outcome.err
    assert "1 run" in outcome.out
    assert "1 waived" in outcome.out


def test_a_waived_run_is_rendered(root: Path, builder: str) -> None:
    waived(long(root), waiver("timeout-over-limit"))
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    (text,) = [data for path, data in workspaces.rendered(root).items() if is_run_file(path)]
    jobs = [body for body in plain.load_all(text) if body["kind"] == "TrainJob"]
    assert jobs[0]["spec"]["activeDeadlineSeconds"] == 14 * 24 * 3600


def test_a_waived_warning_passes_fail_on(root: Path) -> None:
    six(root)
    assert check(root, "--fail-on", "warning").code == Exit.FINDINGS
    waived(root, waiver())
    assert check(root, "--fail-on", "warning").code == Exit.CLEAN


def test_the_json_report_names_the_waiver(root: Path) -> None:
    waived(six(root), waiver())
    (finding,) = json.loads(check(root, "--format", "json").out)["findings"]
    assert finding["waiver"]["until"] == "2027-01-31"
    assert finding["waiver"]["file"] == "policies/waivers/w0.yaml"
    assert finding["waiver"]["approver"] == "ml-platform@example.com"


SCOPES: list[tuple[dict[str, str], bool]] = [
    ({"team": "nlp"}, True),
    ({"job": "filings"}, True),
    ({"cluster": "lab"}, True),
    ({"cluster": "l*", "team": "n?p", "job": "fil*"}, True),
    ({"job": "filing"}, False),
    ({"job": "*s-old"}, False),
    ({"cluster": "lab", "job": "other"}, False),
]


@pytest.mark.parametrize(("scope", "covers"), SCOPES)
def test_a_waiver_covers_only_runs_in_its_scope(root: Path, scope: dict[str, str], covers: bool) -> None:
    waived(six(root), waiver(scope=scope))
    outcome = check(root, "--fail-on", "warning")
    assert outcome.code == (Exit.CLEAN if covers else Exit.FINDINGS)
    assert ("waiver-unused" in rules_of(outcome)) == (not covers)


@pytest.mark.parametrize(
    ("limit", "covers"),
    [
        ({"timeout": "14d"}, True),
        ({"timeout": "13d23h"}, False),
        ({"timeout": "30d", "workers": 4}, True),
        ({"timeout": "30d", "workers": 3}, False),
        ({"memory": "32Gi", "cpu": 8, "gpus": 2, "retries": 0}, True),
        ({"memory": "31Gi"}, False),
    ],
)
def test_a_run_beyond_the_limit_is_not_excused(root: Path, limit: dict[str, Any], covers: bool) -> None:
    waived(long(root), waiver("timeout-over-limit", limit=limit))
    assert (check(root).code == Exit.CLEAN) == covers


def test_another_cluster_is_not_excused(root: Path) -> None:
    """One place breaks a rule on two clusters, and one of them is waived: the other counts."""
    six(root)
    clusters = workspaces.TEAM.replace("clusters: [lab]", "clusters: [lab, second]")
    write(root, {"specs/nlp/team.yaml": clusters, "overlays/second/cluster.yaml": workspaces.CLUSTER})
    waived(root, waiver(scope={"cluster": "lab"}))
    outcome = check(root, "--fail-on", "warning")
    assert outcome.code == Exit.FINDINGS
    assert rules_of(outcome) == ["gpus-unusual", "gpus-unusual"]
    assert outcome.err.count("waived until") == 1


def test_a_finding_in_a_platform_file_can_be_waived(root: Path) -> None:
    cluster = workspaces.CLUSTER.replace('kueue: "0.19.2", ', "").replace(
        "region:", "gang: none\nenvironment: prod\nregion:"
    )
    write(root, {"overlays/lab/cluster.yaml": cluster})
    before = check(root)
    assert "gang-none-in-prod" in rules_of(before), before.err
    waived(root, waiver("gang-none-in-prod", scope={"cluster": "lab"}))
    after = check(root)
    assert "waived until" in after.err
    assert "waiver-unused" not in rules_of(after)


# What cannot be waived, and what is wrong with a waiver


def test_only_few_rules_can_be_waived() -> None:
    """A waiver must not hide a run that cannot work: no rule of these topics, nor schema, can be waived."""
    waivable = {page for page in load_shipped_rules().values() if page.may_be_waived}
    assert "schema" not in waivable
    assert "never-admitted" not in waivable
    assert not {
        name
        for name in waivable
        if topic_of(load_shipped_rules()[name]) in ("core", "nodes", "admission", "objects")
    }
    assert 10 <= len([name for name in waivable if not name.is_policy]) <= 58
    assert not load_shipped_rules()["waiver-granted"].may_be_waived, (
        "or a label by hand would waive the guard of labels"
    )


@pytest.mark.parametrize(
    ("changes", "rule", "line", "says"),
    [
        ({"rule": "gpus-unusal"}, "waiver-rule-unknown", 3, "Did you mean 'gpus-unusual'?"),
        ({"rule": "no-node-fits"}, "waiver-not-allowed", 3, "cannot be waived"),
        ({"scope": {"team": "npl"}}, "waiver-scope", 5, "Did you mean 'nlp'?"),
        ({"scope": {"cluster": "la", "team": "nlp"}}, "waiver-scope", 5, "Did you mean 'lab'?"),
        ({"scope": {"team": "x*"}}, "waiver-scope", 5, "no team fits 'x*'"),
        ({"scope": {}}, "spec-value", 4, "every run of every team"),
        ({"scope": {"cluster": "*", "job": "**"}}, "spec-value", 5, "every run of every team"),
        ({"scope": {"team": "?*"}}, "spec-value", 5, "every run of every team"),
        ({"scope": {"cluster": "?*", "job": "????"}}, "spec-value", 5, "every run of every team"),
        ({"scope": {"cluster": "*-*", "team": "*"}}, "spec-value", 5, "every run of every team"),
        ({"reason": None}, "spec-missing-field", 1, "For example reason: "),
        ({"reason": "because"}, "spec-value", 6, "Say in a sentence"),
        ({"reason": "Everybody"}, "spec-value", 6, "fewer than 10 characters"),
        ({"approver": None}, "spec-missing-field", 1, "For example approver: "),
        ({"approver": "  "}, "spec-value", 7, "nobody approved it"),
        ({"approver": "\u200b"}, "spec-value", 7, "nobody approved it"),
        ({"reason": "\u200b" * 20}, "spec-value", 6, "fewer than 10 characters"),
        ({"expires": "2026-02-30"}, "spec-value", 8, "not a valid date"),
        ({"expires": None}, "spec-missing-field", 1, "For example expires: "),
        ({"expired": "2026-12-31"}, "spec-unknown-field", 9, "'expires' is set as well"),
        ({"limit": {"timeout": "soon"}}, "spec-value", 10, "soon"),
    ],
)
def test_each_mistake_in_a_waiver_is_reported_at_its_line(
    root: Path, changes: dict[str, Any], rule: str, line: int, says: str
) -> None:
    waived(six(root), waiver(**changes))
    outcome = check(root)
    assert outcome.code == Exit.INPUT, outcome.err
    (shown,) = [one for one in outcome.findings if one.severity == "error"]
    assert shown.rule == rule
    assert shown.place.startswith(f"policies/waivers/w0.yaml:{line}:")
    assert says in shown.message + shown.help


def test_known_policies_are_those_of_packs_and_of_the_workspace(root: Path) -> None:
    """A file in a folder that is not a pack is never evaluated, and no folder hides a pack of gangplan."""
    pack = yaml.safe_dump({"title": "Mine.", "why": "To see.", "policies": {}})
    own = {"mine/pack.yaml": pack, "mine/of-mine.yaml": "", "loose/stray.yaml": "", "images/pack.yaml": pack}
    write(root, {f"policies/{name}": text for name, text in own.items()} | {"policies/own.yaml": POLICY})
    known = list_known_policy_ids(root)
    assert {"of-mine", "own-policy", "host-namespaces", "image-digest"} <= known
    assert not {"stray", "pack"} & known


def test_files_that_would_be_ignored_are_refused(root: Path) -> None:
    waived(root)
    write(root, {"policies/waivers/a.yml": waiver(), "policies/waivers/README.md": "notes\n"})
    assert check(root).errors() == [("policies/waivers/a.yml", "spec-file-name")]
    (root / "policies/waivers/b.yaml").symlink_to("a.yml")
    assert check(root).errors() == [("policies/waivers/b.yaml", "file-unreadable")]


# How long


@pytest.mark.parametrize(
    ("expires", "code", "found"),
    [
        ("2026-06-30", Exit.FINDINGS, {"waiver-expired", "gpus-unusual"}),
        ("2026-07-01", Exit.CLEAN, {"waiver-ends-soon", "gpus-unusual"}),
        ("2026-07-31", Exit.CLEAN, {"waiver-ends-soon", "gpus-unusual"}),
        ("2026-08-01", Exit.CLEAN, {"gpus-unusual"}),
        ("2027-07-02", Exit.CLEAN, {"gpus-unusual"}),
        ("2027-07-03", Exit.FINDINGS, {"waiver-too-long", "gpus-unusual"}),
    ],
)
def test_a_waiver_ends_on_its_day_with_a_warning_before(
    root: Path, expires: str, code: Exit, found: set[str]
) -> None:
    waived(six(root), waiver(expires=expires))
    outcome = check(root)
    assert outcome.code == code, outcome.err
    assert set(rules_of(outcome)) == found
    for shown in outcome.findings:
        if shown.rule.startswith("waiver"):
            assert shown.place == "policies/waivers/w0.yaml:8:10"


def test_findings_of_an_expired_waiver_count_again(root: Path) -> None:
    waived(long(root), waiver("timeout-over-limit", expires="2026-06-30"))
    outcome = check(root)
    assert outcome.code == Exit.FINDINGS  # the waiver is read, but over: not 2
    assert [rule for _, rule in outcome.errors()] == ["waiver-expired", "timeout-over-limit"]
    assert "it excused 1 finding" in outcome.err
    assert "which is over" in outcome.err


def test_a_renewed_waiver_replaces_the_old(root: Path) -> None:
    waived(long(root), waiver("timeout-over-limit", expires="2026-06-30"), waiver("timeout-over-limit"))
    outcome = check(root)
    assert "it excused" not in outcome.err
    assert "waived until 2027-01-31: " in outcome.err
    assert "1 error, 1 waived" in outcome.out


def test_rendering_does_not_depend_on_the_day(root: Path, builder: str) -> None:
    """A tag renders the same forever, even when its waivers have expired."""
    waived(long(root), waiver("timeout-over-limit", expires="2020-01-31"))
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    waived(root, waiver("timeout-over-limit", expires="2027-01-31"))
    assert gangplan("render", "-C", root, "--check").code == Exit.CLEAN


def test_unused_waivers_are_reported_only_if_everything_was_checked(root: Path) -> None:
    waived(root, waiver())
    assert rules_of(check(root)) == ["waiver-unused"]
    assert rules_of(check(root, "--team", "nlp")) == []
    assert rules_of(check(root, "--cluster", "lab")) == []
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "imag: x\n"})
    assert rules_of(check(root)) == ["spec-unknown-field"]  # what else the spec breaks is not known


# What a server gets


def bodies(root: Path, *parts: str) -> list[dict[str, Any]]:
    """Return the rendered objects of files whose path contains one of the parts."""
    files = workspaces.rendered(root)
    chosen = [data for path, data in files.items() if any(part in path for part in parts)]
    return [body for data in chosen for body in plain.load_all(data)]


def labels_of(value: Any) -> list[dict[str, str]]:
    """Return every mapping called labels."""
    if isinstance(value, list):
        return [found for one in value for found in labels_of(one)]
    if not isinstance(value, dict):
        return []
    own = [value["labels"]] if isinstance(value.get("labels"), dict) else []
    return own + [found for one in value.values() for found in labels_of(one)]


MARK = "gangplan.dev/waived-own-policy"


def test_a_waived_policy_marks_only_the_run(root: Path, builder: str) -> None:
    write(root, {"policies/own.yaml": POLICY, "specs/nlp/other.yaml": workspaces.SPEC})
    plain = (workspaces.render(root), workspaces.rendered(root))[1]
    waived(root, waiver("own-policy", scope={"team": "nlp", "job": "filings"}))
    workspaces.render(root)
    marked, other, tenant = (bodies(root, part) for part in ("/filings-", "/other-", "tenant.yaml"))
    assert {body["kind"] for body in marked} == {"NetworkPolicy", "TrainingRuntime", "TrainJob"}
    found = [
        labels
        for body in marked
        for labels in labels_of(body)
        if "gangplan.dev/run" in labels or MARK in labels
    ]
    assert len(found) >= 8  # the objects, the runtime's jobs and pods
    assert all(labels[MARK] == "true" for labels in found)
    assert not any(MARK in labels for labels in labels_of([*other, *tenant]))
    (root / "policies/waivers/w0.yaml").unlink()
    workspaces.render(root)
    assert workspaces.rendered(root) == plain


def test_a_waiver_for_a_team_marks_the_objects_of_the_team(root: Path, builder: str) -> None:
    write(root, {"policies/own.yaml": POLICY})
    waived(root, waiver("own-policy"))
    workspaces.render(root)
    assert all(MARK in body["metadata"]["labels"] for body in bodies(root, "tenant.yaml", "/runs/"))
    assert not any(MARK in labels for labels in labels_of(bodies(root, "/platform/")))


@pytest.mark.parametrize("read", ["size() < 2", "all(one, object.metadata.labels[one] == 'x')"])
def test_a_breach_is_not_placed_at_a_waiver_of_another_policy(read: str, root: Path, builder: str) -> None:
    """The policy reads all labels, among them the mark of the waiver."""
    own = POLICY.replace("kueue.x-k8s.io", '""').replace("v1beta1", "v1").replace("workloads", "namespaces")
    own = own.replace('"true"', f'"object.metadata.labels.{read}"').replace("own-policy", "few-labels")
    binding = {"policyName": "few-labels", "validationActions": ["Deny"]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}
    bound = yaml.safe_dump({**kind, "metadata": {"name": "few-labels"}, "spec": binding})
    write(root, {"policies/own.yaml": POLICY, "policies/few.yaml": f"{own}---\n{bound}"})
    waived(root, waiver("own-policy"))
    (found,) = [one for one in check(root).findings if one.rule == "few-labels"]
    assert not found.place.startswith("policies/waivers/")


def test_a_built_in_rule_marks_nothing(root: Path, builder: str) -> None:
    six(root)
    workspaces.render(root)
    plain = workspaces.rendered(root)
    waived(root, waiver())
    workspaces.render(root)
    assert workspaces.rendered(root) == plain


@pytest.mark.parametrize("label", [MARK, "gangplan.dev/waived-image-digest"])
def test_a_spec_cannot_mark_itself(root: Path, label: str) -> None:
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + f'labels: {{{label}: "true"}}\n'})
    assert [rule for _, rule in check(root).errors()] == ["label-reserved"]


def test_policies_are_evaluated_without_the_marks() -> None:
    body = {
        "kind": "TrainJob",
        "metadata": {"labels": {MARK: "true", "a": "b"}},
        "spec": [{"labels": {MARK: "true"}}],
    }
    assert remove_waiver_marks(body, ["own-policy"]) == {
        "kind": "TrainJob",
        "metadata": {"labels": {"a": "b"}},
        "spec": [{"labels": {}}],
    }
    assert remove_waiver_marks(body, []) is body
    assert remove_waiver_marks(body, ["another"]) == body, "a mark that nobody gave stays, and is judged"
    assert body["metadata"] == {"labels": {MARK: "true", "a": "b"}}, "the object itself is not touched"


# The parts


def test_a_policy_finding_is_excused_by_its_name(tmp_path: Path) -> None:
    waived(tmp_path, waiver("own-policy", scope={"team": "nlp"}, limit={"memory": "64Gi"}))
    findings: list[Finding] = []
    waivers = load_waiver_files(tmp_path, Rulebook(), findings)
    assert not findings
    found = Finding(Rulebook().policy("own-policy"), Location("specs/nlp/a.yaml", 1, 1), "no")
    small = Subject("lab", "nlp", "a", {"memory": parse_memory_quantity("64Gi")})
    large = Subject("lab", "nlp", "a", {"memory": parse_memory_quantity("65Gi")})
    assert [one.counts for one in apply_waivers_to_findings([found], waivers, small)] == [False]
    assert [one.counts for one in apply_waivers_to_findings([found], waivers, large)] == [True]
    assert apply_waivers_to_findings([found], waivers, Subject("lab", "vision", "a")) == [found]
    assert (list_waived_policies(waivers, small), list_waived_policies(waivers, large)) == (
        ("own-policy",),
        (),
    )


def test_waived_findings_come_last_and_do_not_count_until_they_expire() -> None:
    where = Location("specs/nlp/a.yaml", 1, 1)
    live = Finding(Rulebook().policy("schema"), where, "no")
    quiet = Finding(Rulebook().policy("schema"), where, "no", waiver=Waived(where, "2027-01-31", "r", "a"))
    over = Finding(
        Rulebook().policy("schema"), where, "no", waiver=Waived(where, "2020-01-31", "r", "a", True)
    )
    assert sort_findings([quiet, live, quiet]) == [live, quiet]
    assert [find_worst_severity([one]) for one in (live, quiet, over)] == [
        Severity.ERROR,
        None,
        Severity.ERROR,
    ]


# With the packs


PACKED = workspaces.CLUSTER + "policies: {packs: [baseline, labels, lifecycle]}\n"
CONTACT = "contact: nlp@example.com\n"


def packed(root: Path, team: str = CONTACT) -> Path:
    """Write the workspace with packs; its team names no cost centre."""
    return write(root, {"overlays/lab/cluster.yaml": PACKED, "specs/nlp/team.yaml": workspaces.TEAM + team})


def test_a_waived_policy_is_shown_and_its_objects_are_marked(root: Path, builder: str) -> None:
    """The bindings skip objects with the mark."""
    before = check(packed(root))
    assert {rule for _, rule in before.errors()} == {"cost-centre"}, before.err
    assert before.code == Exit.FINDINGS
    waived(root, waiver("cost-centre", reason="The team is being moved to another division."))
    after = check(root)
    assert after.code == Exit.CLEAN, after.err
    assert "waived until 2027-01-31: The team is being moved" in after.err
    assert "waiver-unused" not in rules_of(after)
    workspaces.render(root)
    (namespace,) = [body for body in bodies(root, "tenant.yaml") if body["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["gangplan.dev/waived-cost-centre"] == "true"


def test_a_waiver_of_a_rule_covers_the_policy_with_the_same_meaning(root: Path, builder: str) -> None:
    """timeout-over-limit reports what run-deadline would refuse on the server: one waiver covers both."""
    packed(long(root), CONTACT + "costCentre: cc-1\n")
    waived(root, waiver("timeout-over-limit", limit={"timeout": "14d"}))
    outcome = check(root)
    assert outcome.code == Exit.CLEAN, outcome.err
    workspaces.render(root)
    found = [body["metadata"]["labels"] for body in bodies(root, "/filings-")]
    assert all(labels["gangplan.dev/waived-run-deadline"] == "true" for labels in found)
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "timeout: 15d\nextendedTimeout: true\n"})
    assert {rule for _, rule in check(root).errors()} == {"timeout-over-limit"}


def test_a_mark_in_a_patch_is_refused(root: Path, builder: str) -> None:
    """A patch belongs to the platform, but a waiver has a reason, an approver and an end."""
    patch = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: TrainJob}
  patch: |-
    - {op: add, path: /metadata/labels/gangplan.dev~1waived-run-deadline, value: "true"}
"""
    packed(root, CONTACT + "costCentre: cc-1\n")
    assert check(root).code == Exit.CLEAN
    write(root, {"overlays/lab/kustomization.yaml": patch})
    outcome = check(root)
    assert {rule for _, rule in outcome.errors()} == {"waiver-granted"}, outcome.err
    waived(root, waiver("waiver-granted"))
    assert {rule for _, rule in check(root).errors()} == {"waiver-granted", "waiver-not-allowed"}


def test_every_binding_skips_waived_objects(root: Path) -> None:
    """Bindings of policies that cannot be waived skip none."""
    from gangplan.policy.choose import choose_policies
    from gangplan.policy.objects import build_policy_objects
    from gangplan.resolve.facts import resolve_cluster_facts_for_policies
    from gangplan.workspace import load_workspace

    packs = ", ".join(load_workspace(root).policies.names)
    write(root, {"overlays/lab/cluster.yaml": workspaces.CLUSTER + f"policies: {{packs: [{packs}]}}\n"})
    workspace = load_workspace(root)
    taken, wrong = choose_policies(
        workspace.policies, workspace.clusters["lab"], resolve_cluster_facts_for_policies(workspace, "lab")
    )
    assert not wrong
    found = [source.body for source in build_policy_objects(taken, "cluster.yaml")]
    bindings = [body for body in found if body["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert len(bindings) > 30
    for body in bindings:
        policy = body["spec"]["policyName"]
        asked = body["spec"]["matchResources"].get("objectSelector", {}).get("matchExpressions", [])
        mark = {"key": f"gangplan.dev/waived-{policy}", "operator": "DoesNotExist"}
        assert (mark in asked) == load_shipped_rules()[policy].may_be_waived


WAIVABLE = [page for page in load_shipped_rules().values() if page.may_be_waived and find_rule_example(page)]


@pytest.mark.parametrize("rule", WAIVABLE, ids=str)
def test_a_waiver_reaches_every_rule_that_can_be_waived(rule: Any, tmp_path: Path, builder: str) -> None:
    """Every stage must apply waivers: otherwise a finding could never be excused."""
    root = tmp_path / "workspace"
    example = find_rule_example(rule)
    assert example
    put(root, example, "before")
    teams = sorted(path.parent.name for path in root.glob("specs/*/team.yaml"))
    clusters = sorted(path.parent.name for path in root.glob("overlays/*/cluster.yaml"))
    scopes = [*({"team": name} for name in teams), *({"cluster": name} for name in clusters)]
    waived(root, *(waiver(str(rule), scope=scope) for scope in scopes))
    outcome = command(root, f"{example.run} --format json")
    told = [one for one in json.loads(outcome.out)["findings"] if one["rule"] == rule]
    assert told, outcome.err
    assert all(one.get("waiver") for one in told), told
