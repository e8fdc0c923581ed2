"""A workspace's own policies and packs: names that are taken, files that are ignored, wrong parameters."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from gangplan import policies
from gangplan.errors import Exit
from gangplan.packs.facts import PACK_FACTS
from gangplan.packs.kinds import pack_parameter_kind_of
from gangplan.packs.model import FactParam
from gangplan.packs.read import find_shipped_packs_folder, list_shipped_packs
from gangplan.resolve.facts import resolve_cluster_facts_for_policies
from gangplan.rulebook import SHIPPED_PACKS_FOLDER, load_shipped_rules
from gangplan.rules.specs import WORKERS_OVER_LIMIT
from gangplan.workspace import load_workspace
from tests.workspaces import CLUSTER, REPOSITORY, STOCK, Outcome, gangplan, write

API = "apiVersion: admissionregistration.k8s.io/v1\n"
CLUSTER_FILE = "overlays/lab/cluster.yaml"


def policy(name: str, most: int = 50, kind: str = "trainjobs") -> str:
    """Return a policy about the number of nodes, which starts on line 1."""
    return (
        f"{API}kind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\nspec:\n  matchConstraints:\n"
        "    resourceRules:\n    - {apiGroups: [trainer.kubeflow.org], apiVersions: [v1alpha1],"
        f" operations: [CREATE], resources: [{kind}]}}\n  validations:\n"
        f"  - expression: object.spec.trainer.numNodes <= {most}\n    message: too many nodes\n"
    )


def binding(name: str) -> str:
    """Return the binding of a policy, as another document."""
    return (
        f"---\n{API}kind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: {name}}}\n"
        f"spec: {{policyName: {name}, validationActions: [Deny]}}\n"
    )


def pack(*names: str, tail: str = "") -> str:
    """Return a pack.yaml whose first policy is on line 4."""
    lines = "".join(f"  {name}: {{title: Nodes., why: The lab., fix: Fewer{tail}}}\n" for name in names)
    return f"title: Our own.\nwhy: They hold here.\npolicies:\n{lines}"


def workspace(root: Path, packs: str, files: dict[str, str]) -> Path:
    """Write the small workspace with a cluster that lists packs."""
    return write(root, {**STOCK, CLUSTER_FILE: f"{CLUSTER}policies: {{packs: {packs}}}\n", **files})


def one(outcome: Outcome) -> tuple[str, str]:
    """Return place and rule of the one error."""
    ((place, rule),) = outcome.errors()
    return place, rule


def commands(root: Path) -> list[Outcome]:
    """Run every command that reads policies."""
    return [
        gangplan("validate", "-C", root),
        gangplan("policy", "list", "-C", root),
        gangplan("policy", "test", "-C", root),
        gangplan("policy", "export", "-C", root, "--cluster", "lab"),
    ]


# Names


@pytest.mark.parametrize("packs", ["[baseline, ours]", "[ours, baseline]", "[baseline]"])
def test_a_policy_cannot_take_the_name_of_a_shipped_one(tmp_path: Path, packs: str) -> None:
    files = {
        "policies/ours/pack.yaml": pack("host-path"),
        "policies/ours/host-path.yaml": policy("host-path"),
    }
    root = workspace(tmp_path, packs, files)
    for outcome in commands(root):
        assert outcome.code == Exit.INPUT
        assert one(outcome) == ("policies/ours/pack.yaml:4:3", "pack-invalid")
        assert "'host-path' is already a policy of gangplan's pack 'baseline'" in outcome.err
        assert "Choose another name" in outcome.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("schema", "a rule of gangplan"),
        ("network-posture-hipaa", "what pack 'hipaa' binds policy 'network-posture' as"),
    ],
)
def test_names_of_rules_and_bindings_are_taken(tmp_path: Path, name: str, said: str) -> None:
    files = {"policies/ours/pack.yaml": pack(name), f"policies/ours/{name}.yaml": policy(name)}
    outcome = gangplan("validate", "-C", workspace(tmp_path, "[]", files))
    assert one(outcome) == ("policies/ours/pack.yaml:4:3", "pack-invalid")
    assert said in outcome.err


@pytest.mark.parametrize("packs", ["[mine, ours]", "[ours, mine]", "[]"])
def test_two_own_packs_cannot_share_a_name(tmp_path: Path, packs: str) -> None:
    files = {
        "policies/ours/pack.yaml": pack("max-nodes"),
        "policies/ours/max-nodes.yaml": policy("max-nodes", 500),
        "policies/mine/pack.yaml": pack("max-nodes"),
        "policies/mine/max-nodes.yaml": policy("max-nodes", 50),
    }
    for outcome in commands(workspace(tmp_path, packs, files)):
        assert outcome.code == Exit.INPUT
        assert one(outcome) == ("policies/ours/pack.yaml:4:3", "pack-invalid")
        assert "'max-nodes' is already a policy of pack 'mine'" in outcome.err


@pytest.mark.parametrize("name", ["host-path", "schema", "few"])
def test_a_policy_outside_packs_cannot_take_a_name_in_use(tmp_path: Path, name: str) -> None:
    files = {
        "policies/own.yaml": policy(name) + binding(name),
        "policies/ours/pack.yaml": pack("few"),
        "policies/ours/few.yaml": policy("few"),
    }
    for outcome in commands(workspace(tmp_path, "[baseline]", files)):
        assert outcome.code == Exit.INPUT
        assert one(outcome) == ("policies/own.yaml:3:18", "pack-invalid")


def test_a_pack_cannot_replace_a_shipped_one(tmp_path: Path) -> None:
    root = workspace(tmp_path, "[baseline]", {})
    copy = root / "policies/baseline"
    shutil.copytree(find_shipped_packs_folder() / "baseline", copy)
    assert gangplan("validate", "-C", root).code == Exit.CLEAN, "the same bytes are no other pack"
    (copy / "host-path.yaml").unlink()
    for outcome in commands(root):
        assert outcome.code == Exit.INPUT
        assert one(outcome) == ("policies/baseline/pack.yaml:1:1", "pack-invalid")
        assert "gangplan has a pack 'baseline' of its own" in outcome.err
        assert "host-path.yaml is missing" in outcome.err
        assert "Choose another name" in outcome.err


def test_an_empty_pack_under_a_shipped_name_does_not_crash(tmp_path: Path) -> None:
    text = "title: t\nwhy: w\npolicies: {}\n"
    root = workspace(tmp_path, "[hipaa, gdpr]", {"policies/hipaa/pack.yaml": text})
    for outcome in commands(root):
        assert outcome.code == Exit.INPUT
        assert one(outcome) == ("policies/hipaa/pack.yaml:1:1", "pack-invalid")


def test_every_shipped_pack_is_listed() -> None:
    assert sorted(file.parent.name for file in SHIPPED_PACKS_FOLDER.glob("*/pack.yaml")) == sorted(
        policies.BUILTIN_PACKS
    )
    assert (REPOSITORY / "policies").samefile(SHIPPED_PACKS_FOLDER)


# References


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("title: t\nwhy: w\nneeds: [basline]\n", "3:9", "there is no policy pack 'basline'"),
        ("title: t\nwhy: w\nuses:\n  host-pat: {}\n", "4:3", "no pack has a policy 'host-pat'"),
        ("title: t\nwhy: w\nuses: {run-restarts: {least: 1}}\n", "3:23", "has no parameter 'least'"),
        ("title: t\nwhy: w\nuses: {run-restarts: {most: {fact: regoin}}}\n", "3:29", "no fact 'regoin'"),
        (pack("few", tail=", told_by: [shema]"), "4:61", "there is no rule 'shema'"),
        (pack("few", tail=", params: {most: 3}"), "4:51", "takes no parameters"),
    ],
)  # fmt: skip
def test_unknown_names_in_a_pack_are_reported(tmp_path: Path, text: str, place: str, said: str) -> None:
    files = {"policies/ours/pack.yaml": text}
    if "few:" in text:
        files["policies/ours/few.yaml"] = policy("few")
    for outcome in commands(workspace(tmp_path, "[ours]", files)):
        assert outcome.code == Exit.INPUT
        assert one(outcome) == (f"policies/ours/pack.yaml:{place}", "pack-invalid")
        assert said in outcome.err


def test_rules_of_own_packs_are_known(tmp_path: Path) -> None:
    """An unwaivable policy refuses its waiver offline, as the binding would; findings and explain know the
    page."""
    waiver = (
        "apiVersion: gangplan.dev/v1\nkind: Waiver\nrule: few\nscope: {team: nlp}\n"
        "reason: The nodes of this lab are few.\napprover: a@example.com\nexpires: '2026-12-31'\n"
    )
    files = {
        "policies/ours/pack.yaml": pack("few", tail=", waivable: false"),
        "policies/ours/few.yaml": policy("few", 2),
        "policies/waivers/w.yaml": waiver,
    }
    root = workspace(tmp_path, "[ours]", files)
    outcome = gangplan("validate", "-C", root, "--today", "2026-07-01")
    assert ("policies/waivers/w.yaml:3:7", "waiver-not-allowed") in outcome.errors()
    assert load_workspace(root).rulebook.rules["few"].is_own
    assert "few" not in load_workspace(write(tmp_path / "other", STOCK)).rulebook.rules
    assert "few" not in load_shipped_rules()


def test_a_waiver_of_a_rule_covers_equivalent_own_policies(tmp_path: Path) -> None:
    files = {
        "policies/ours/pack.yaml": pack("few", tail=", told_by: [workers-over-limit]"),
        "policies/ours/few.yaml": policy("few"),
    }
    rulebook = load_workspace(workspace(tmp_path, "[ours]", files)).rulebook
    assert "few" in rulebook.policies_of(WORKERS_OVER_LIMIT)


# Ignored files


@pytest.mark.parametrize(
    ("file", "help"),
    [
        ("policies/own.yml", "Rename it to own.yaml."),
        ("policies/ours/own.yaml", "Add policies/ours/pack.yaml"),
        ("policies/ours/pack.yml", "Rename it to policies/ours/pack.yaml."),
        ("policies/listed/few.yml", "Rename it to few.yaml."),
        ("policies/listed/more/few.yaml", "Move it to policies/listed/."),
        ("policies/listed/tests/few.x.allow.yml", "Rename it to few.x.allow.yaml."),
        ("policies/listed/tests/deep/few.x.allow.yaml", "Move it to policies/listed/."),
        ("policies/tests/own.x.allow.yml", "Rename it to own.x.allow.yaml."),
        ("policies/waivers/2026/x.yaml", "Move it to policies/waivers/."),
    ],
)
def test_a_file_that_would_be_ignored_is_reported(tmp_path: Path, file: str, help: str) -> None:
    files = {"policies/listed/pack.yaml": pack("few"), "policies/listed/few.yaml": policy("few")}
    root = workspace(tmp_path, "[]", {**files, file: "nonsense: [\n"})
    for outcome in commands(root)[:3]:
        assert outcome.code == Exit.INPUT
        assert one(outcome) == (f"{file}:1:1", "policy-file-ignored")
        assert help in outcome.err


def test_unrelated_files_are_left_alone(tmp_path: Path) -> None:
    files = {"policies/README.md": "x", "policies/.cache/x.yaml": "[", "policies/.x.yaml": "["}
    assert gangplan("validate", "-C", workspace(tmp_path, "[]", files)).code == Exit.CLEAN


# Parameters


@pytest.mark.parametrize(
    ("params", "column", "said"),
    [
        ("run-deadline: {seconds: lots}", 73, "must be a number"),
        ("run-deadline: {seconds: '3600'}", 73, "must be a number"),
        ("run-deadline: {seconds: 3.5}", 73, "must be a whole number"),
        ("run-deadline: {seconds: 99999999999999999999}", 73, "must be a whole number"),
        ("run-deadline: {seconds: true}", 73, "must be a number"),
        ("image-scan: {required: 1}", 72, "must be true or false"),
        ("image-catalog: {also: none}", 71, "must be a list of strings"),
        ("image-digest: {environment: [prod]}", 77, "must be a string"),
        ("image-fips: {fips: maybe}", 68, "must be true or false"),
    ],
)
def test_a_parameter_must_have_the_kind_of_its_default(
    tmp_path: Path, params: str, column: int, said: str
) -> None:
    text = f"{CLUSTER}policies: {{packs: [lifecycle, images], params: {{{params}}}}}\n"
    root = write(tmp_path, {**STOCK, CLUSTER_FILE: text})
    line = len(text.splitlines())
    for outcome in (
        gangplan("validate", "-C", root),
        gangplan("policy", "export", "-C", root, "--cluster", "lab"),
    ):
        assert outcome.code == Exit.INPUT
        assert one(outcome) == (f"{CLUSTER_FILE}:{line}:{column}", "policy-param")
        assert said in outcome.err
        assert "For example" in outcome.err


@pytest.mark.parametrize(
    ("value", "column", "said"),
    [("[1]", 66, 'Quote it: "1".'), ("{a: 1}", 65, "a string, a number, true, false or a list of strings")],
)
def test_a_value_of_no_known_kind_is_reported_once(
    tmp_path: Path, value: str, column: int, said: str
) -> None:
    text = f"{CLUSTER}policies: {{packs: [lifecycle], params: {{run-deadline: {{seconds: {value}}}}}}}\n"
    outcome = gangplan("validate", "-C", write(tmp_path, {**STOCK, CLUSTER_FILE: text}))
    assert one(outcome) == (f"{CLUSTER_FILE}:{len(text.splitlines())}:{column}", "spec-value")
    assert said in outcome.err


def test_packs_set_parameters_of_the_right_kind() -> None:
    """Values that packs set for each other's policies have the kind of the default."""
    defaults = {
        name: page.params for one in list_shipped_packs().values() for name, page in one.policies.items()
    }
    for written in list_shipped_packs().values():
        for name, params in written.uses.items():
            for key, value in params.items():
                assert pack_parameter_kind_of(value) == pack_parameter_kind_of(defaults[name][key]), (
                    name,
                    key,
                )
    asked = {
        value.fact
        for params in defaults.values()
        for value in params.values()
        if isinstance(value, FactParam)
    }
    assert asked <= set(PACK_FACTS)


def test_every_fact_is_listed(tmp_path: Path) -> None:
    found = resolve_cluster_facts_for_policies(load_workspace(write(tmp_path, STOCK)), "lab")
    assert set(found) == set(PACK_FACTS)
    for name, page in PACK_FACTS.items():
        assert page.kind != "truth" or found[name] in ("true", "false"), name
        assert page.meaning.endswith(".")


@pytest.mark.parametrize(
    ("data", "place", "rule"),
    [
        ("{max: 20}", "15:13", "policy-invalid"),
        ("{max: '20'}", "", ""),
    ],
)
def test_parameter_objects_are_checked_against_their_schema(
    tmp_path: Path, data: str, place: str, rule: str
) -> None:
    text = policy("names") + "---\napiVersion: v1\nkind: ConfigMap\n"
    text += f"metadata: {{name: names, namespace: default}}\ndata: {data}\n" + binding("names")
    root = workspace(tmp_path, "[]", {"policies/own.yaml": text})
    outcomes = [
        gangplan("validate", "-C", root),
        gangplan("policy", "export", "-C", root, "--cluster", "lab"),
    ]
    for outcome in outcomes:
        assert outcome.errors() == ([(f"policies/own.yaml:{place}", rule)] if place else [])
        assert (outcome.code == Exit.CLEAN) == (not place)
    assert ("ConfigMap/default/names: data.max" in outcomes[0].err) == bool(place)


def test_parameters_of_an_unknown_kind_are_reported(tmp_path: Path) -> None:
    text = "apiVersion: example.com/v1\nkind: Limits\nmetadata: {name: a}\n"
    outcome = gangplan("validate", "-C", workspace(tmp_path, "[]", {"policies/own.yaml": text}))
    assert one(outcome) == ("policies/own.yaml:2:7", "schema-missing")


# Policies that match nothing


@pytest.mark.parametrize(
    ("kind", "help"),
    [
        ("trainjob", "Did you mean 'trainjobs'?"),
        ("TrainJobs", "Did you mean 'trainjobs'?"),
        ("jobsets", "It is in apiGroups: [jobset.x-k8s.io]."),
        ("trainjobs", ""),
        ("trainjobs/status", ""),
        ("'*'", ""),
    ],
)
def test_a_resource_that_does_not_exist_is_reported(tmp_path: Path, kind: str, help: str) -> None:
    files = {"policies/own.yaml": policy("few", kind=kind) + binding("few")}
    outcome = gangplan("validate", "-C", workspace(tmp_path, "[]", files))
    told = [(one.place, one.rule, one.help) for one in outcome.findings if one.rule == "policy-inert"]
    assert told == ([("policies/own.yaml:7:102", "policy-inert", help)] if help else [])


def test_a_group_that_is_not_installed_is_not_reported(tmp_path: Path) -> None:
    own = policy("few", kind="clusterqueues").replace("trainer.kubeflow.org", "kueue.x-k8s.io")
    for number, kueue in enumerate(('kueue: "0.19.2", ', "")):
        cluster = CLUSTER.replace('kueue: "0.19.2", ', kueue).replace("region:", "gang: none\nregion:")
        files = {**STOCK, CLUSTER_FILE: cluster, "policies/own.yaml": own + binding("few")}
        outcome = gangplan("validate", "-C", write(tmp_path / str(number), files))
        assert "policy-inert" not in outcome.err


def test_the_help_points_into_the_policy(tmp_path: Path) -> None:
    files = {"policies/own.yaml": policy("few", 2) + binding("few")}
    root = workspace(tmp_path / "a", "[]", files)
    (shown,) = gangplan("validate", "-C", root).findings
    assert shown.help == "Follow the policy in policies/own.yaml:9:17, or change it."
    broken = policy("few").replace("object.spec.trainer.numNodes", "object.spec.trainer.nodes")
    root = workspace(
        tmp_path / "b",
        "[]",
        {"policies/own.yaml": broken.replace("CREATE", "CREATE, UPDATE") + binding("few")},
    )
    for shown in gangplan("validate", "-C", root).findings:
        assert "policies/own.yaml:9:" in shown.place + shown.help


# Cases


def test_a_policy_with_dots_in_its_name_has_cases(tmp_path: Path) -> None:
    job = "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: a, namespace: t},"
    job += " spec: {runtimeRef: {name: x}, trainer: {numNodes: %d}}}"
    name = "few-nodes.example.com"
    root = workspace(
        tmp_path,
        "[baseline]",
        {
            "policies/nodes.yaml": policy(name, 4) + binding(name),
            f"policies/tests/{name}.few.allow.yaml": f"object: {job % 4}\n",
            f"policies/tests/{name}.one-more.deny.yaml": f"object: {job % 5}\nmessage: too many nodes\n",
        },
    )
    outcome = gangplan("policy", "test", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "policy-case" not in gangplan("validate", "-C", root).err
    write(
        root, {f"policies/tests/{name}.one-more.deny.yaml": f"object: {job % 4}\nmessage: too many nodes\n"}
    )
    assert gangplan("policy", "test", "-C", root).code == Exit.FINDINGS


def test_testing_without_cases_is_an_error(tmp_path: Path) -> None:
    files = {"policies/ours/pack.yaml": pack("few", "two"), "policies/own.yaml": policy("three")}
    files |= {f"policies/ours/{name}.yaml": policy(name) for name in ("few", "two")}
    root = workspace(tmp_path, "[ours]", files)
    outcome = gangplan("policy", "test", "ours", "-C", root)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert "nothing was checked: none of 2 policies has a case" in outcome.err
    outcome = gangplan("policy", "test", "three", "-C", root)
    assert "nothing was checked: the policy has no case" in outcome.err
    case = "object: {apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob,"
    case += " metadata: {name: a, namespace: t}, spec: {runtimeRef: {name: x}, trainer: {numNodes: 3}}}\n"
    write(root, {"policies/ours/tests/few.three.allow.yaml": case})
    outcome = gangplan("policy", "test", "ours", "-C", root)
    assert outcome.code == Exit.CLEAN
    said = "checked 1 policy, 1 case: all as they should be; 1 policy without a case: not checked\n"
    assert outcome.out == said


def test_explain_shows_own_packs_and_runs_none_of_their_text(tmp_path: Path) -> None:
    page = {"title": "::error::pwned", "why": "Red \x1b[31m text.", "fix": "Nothing."}
    pack = {"title": "::warning::mine", "why": "To see.", "policies": {"few-nodes": page}}
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    named = yaml.safe_dump({**policy, "metadata": {"name": "few-nodes"}})
    files = {"policies/mine/pack.yaml": yaml.safe_dump(pack), "policies/mine/few-nodes.yaml": named}
    root = write(tmp_path, {**STOCK, **files})
    for name in ("mine", "few-nodes"):
        outcome = gangplan("explain", name, "-C", root)
        assert outcome.code == Exit.CLEAN, outcome.err
        assert outcome.out.startswith(f"{name} (")
        assert "\x1b" not in outcome.out
        assert not any(line.startswith("::") for line in outcome.out.splitlines())


# Where lines come from


def test_why_knows_a_policy_without_labels(tmp_path: Path) -> None:
    files = {"policies/ours/pack.yaml": pack("few"), "policies/ours/few.yaml": policy("few")}
    root = workspace(tmp_path, "[ours]", files)
    assert gangplan("render", "-C", root).code == Exit.CLEAN
    place = "rendered/lab/platform/policies.yaml"
    lines = (root / place).read_text(encoding="utf-8").splitlines()
    outcome = gangplan("why", "-C", root, f"{place}:{lines.index('  name: gangplan-few') + 1}")
    assert outcome.code == Exit.CLEAN, outcome.err
    assert "policies/ours/few.yaml:3:" in outcome.out
