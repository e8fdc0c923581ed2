"""The output of `gangplan gitops argocd` and `flux`: safe options for runs, guardrails that heal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.delivery import argocd
from gangplan.emit import is_run_file
from gangplan.gitops.argocd import CHILD_KINDS, ArgoCluster, ArgoOptions, build_argocd_objects, spaced_kinds
from gangplan.gitops.flux import MULTIKUEUE, build_flux_objects
from gangplan.gitops.source import RepositorySource
from gangplan.model.backend import TRAINJOB
from gangplan.model.kinds import find_kinds_of_parts
from gangplan.objects import BINDING_KIND, POLICY_KIND
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.policy.export import list_policy_guardrails
from gangplan.source import load_objects
from gangplan.tools.kustomize import find_kustomize_engine
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.e2e.story import ROOT
from tests.golden import EXAMPLES, render_example
from tests.workspaces import gangplan, stock, write

SOURCE = RepositorySource("https://git.example.com/ml/jobs.git", "main", "argocd")
TEAMS = {"nlp": "team-nlp", "research": "research"}
PARTS = ["platform", "tenants", "runs"]


def made(
    source: RepositorySource = SOURCE, options: ArgoOptions | None = None, **more: Any
) -> dict[str, Any]:
    """Return projects and applications of one cluster, by kind and name."""
    given = {"name": "us-cloud", "teams": TEAMS, "override_field": "runtimePatches", **more}
    bodies = build_argocd_objects(ArgoCluster(**given), source, PARTS, options)
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    """Return projects and applications of one cluster, by kind and name."""
    return made()


def test_runs_have_a_project_and_an_application_per_team(objects: dict[str, Any]) -> None:
    assert sorted(objects) == [
        "AppProject/us-cloud-guardrails",
        "AppProject/us-cloud-runs-nlp",
        "AppProject/us-cloud-runs-research",
        "Application/us-cloud-platform",
        "Application/us-cloud-runs-nlp",
        "Application/us-cloud-runs-research",
        "Application/us-cloud-tenants",
    ]
    spec = objects["AppProject/us-cloud-runs-nlp"]["spec"]
    assert spec["destinations"] == [{"name": "us-cloud", "namespace": "team-nlp"}]
    assert "clusterResourceWhitelist" not in spec


def test_the_last_record_of_a_team_is_pruned(objects: dict[str, Any]) -> None:
    """Its folder leaves Git with it, and an application whose path is gone syncs nothing (Argo CD 3.5.1)."""
    spec = objects["Application/us-cloud-runs-nlp"]["spec"]
    assert spec["source"]["path"] == "rendered/us-cloud"
    assert spec["source"]["directory"] == {"recurse": True, "include": "runs/nlp/*"}
    assert spec["syncPolicy"]["automated"]["allowEmpty"] is True


def test_waves_lead_from_projects_to_runs(objects: dict[str, Any]) -> None:
    waves = {
        name: int(body["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
        for name, body in objects.items()
    }
    order = [
        "AppProject/us-cloud-runs-nlp",
        *(f"Application/us-cloud-{one}" for one in ("platform", "tenants", "runs-nlp")),
    ]
    assert sorted(order, key=waves.__getitem__) == order
    assert len({waves[name] for name in order}) == len(order)


def test_paths_of_a_workspace_in_a_bigger_repository_have_its_folder() -> None:
    objects = made(RepositorySource(SOURCE.repository, "main", "argocd", "ml/jobs"))
    paths = [
        body["spec"]["source"]["path"] for name, body in objects.items() if name.startswith("Application/")
    ]
    assert paths == [
        "ml/jobs/rendered/us-cloud/platform",
        "ml/jobs/rendered/us-cloud/tenants",
        "ml/jobs/rendered/us-cloud",
        "ml/jobs/rendered/us-cloud",
    ]


@pytest.mark.parametrize(
    ("given", "field"), [("prod-us", "name"), ("https://10.0.0.1:6443", "server")], ids=["name", "server"]
)
def test_clusters_are_named_as_argo_cd_names_them(given: str, field: str) -> None:
    for body in made(destination=given).values():
        places = body["spec"].get("destinations") or [body["spec"]["destination"]]
        assert all(place[field] == given and len(place) == 2 for place in places)


def test_failed_syncs_are_retried_a_limited_number_of_times(objects: dict[str, Any]) -> None:
    def limits(found: dict[str, Any]) -> set[int]:
        return {
            body["spec"]["syncPolicy"]["retry"]["limit"]
            for name, body in found.items()
            if name[:11] == "Application"
        }

    assert limits(objects) == {5}
    assert limits(made(options=ArgoOptions(retries=2))) == {2}


@pytest.mark.parametrize(
    ("argocd", "has_it"), [("", True), ("3.5.1", True), ("3.2.0", True), ("3.1.9", False)]
)
def test_retries_refresh_where_argo_cd_can(argocd: str, has_it: bool, tmp_path: Path) -> None:
    """With `retry.refresh`, the next attempt takes the change that fixes the sync.

    Argo CD 3.1 refuses the field.
    """
    root = write_with_argocd(tmp_path, argocd)
    applications = [one for one in build_argocd_objects_of_lab(root) if one["kind"] == "Application"]
    assert applications
    retries = [one["spec"]["syncPolicy"]["retry"] for one in applications]
    assert all(one.get("refresh", False) is has_it for one in retries)


@pytest.mark.parametrize(
    ("argocd", "name"),
    [("", "gangplan-*"), ("3.5.1", "gangplan-*"), ("3.3.0", "gangplan-*"), ("3.2.9", ""), ("3.1.0", "")],
)
def test_projects_restrict_names_where_argo_cd_can(argocd: str, name: str, tmp_path: Path) -> None:
    """The CRD of Argo CD 3.2 does not have the field."""
    root = write_with_argocd(tmp_path, argocd)
    (listed,) = [
        one["spec"]["clusterResourceWhitelist"]
        for one in build_argocd_objects_of_lab(root)
        if "clusterResourceWhitelist" in one.get("spec", {})
    ]
    names = {one["kind"]: one.get("name", "") for one in listed}
    assert names[POLICY_KIND] == names[BINDING_KIND] == name


@pytest.mark.parametrize(
    ("versions", "flags", "argocd", "flux"),
    [
        ("", [], True, True),
        ('argocd: "3.5.1", flux: "2.9.0", ', [], True, True),
        ('argocd: "3.5.1", ', [], True, False),
        ('flux: "2.9.0", ', [], False, True),
        ('flux: "2.9.0", ', ["--cluster", "lab"], True, True),
    ],
)
def test_a_cluster_has_files_of_the_engines_that_sync_it(
    versions: str, flags: list[str], argocd: bool, flux: bool, tmp_path: Path
) -> None:
    """The other cluster states no engine; a cluster that the command names always has files."""
    root = workspaces.stock(tmp_path / "jobs")
    cluster = workspaces.CLUSTER
    stated = cluster.replace("versions: {", f"versions: {{{versions}")
    workspaces.write(root, {"overlays/lab/cluster.yaml": stated, "overlays/other/cluster.yaml": cluster})
    workspaces.render(root)
    for engine, has_it in (("argocd", argocd), ("flux", flux)):
        written = tmp_path / engine
        url = "https://git.example.com/ml/jobs.git"
        outcome = workspaces.gangplan("gitops", engine, "-C", root, "--repo", url, "-o", written, *flags)
        assert outcome.code == 0, outcome.err
        assert (written / "lab.yaml").is_file() is has_it
        assert (written / "other.yaml").is_file() is (not flags)


@pytest.mark.parametrize(("engine", "other"), [("argocd", 'flux: "2.9.0"'), ("flux", 'argocd: "3.5.1"')])
def test_an_engine_that_syncs_no_cluster_is_an_error(engine: str, other: str, tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "jobs")
    cluster = workspaces.CLUSTER.replace("versions: {", f"versions: {{{other}, ")
    workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    workspaces.render(root)
    outcome = workspaces.gangplan("gitops", engine, "-C", root, "--repo", "https://git.example.com/a.git")
    assert outcome.code == 2
    assert f"no cluster is synced by {engine}" in outcome.err


def write_with_argocd(tmp_path: Path, argocd: str) -> Path:
    """Write and render a workspace whose cluster states this version of Argo CD, or none."""
    root = workspaces.stock(tmp_path / "jobs")
    if argocd:
        cluster = workspaces.CLUSTER.replace("versions: {", f'versions: {{argocd: "{argocd}", ')
        workspaces.write(root, {"overlays/lab/cluster.yaml": cluster})
    workspaces.render(root)
    return root


def build_argocd_objects_of_lab(root: Path) -> list[dict[str, Any]]:
    """Return the objects that `gangplan gitops argocd` prints for the cluster, without its settings."""
    url = "https://git.example.com/ml/jobs.git"
    text = workspaces.gangplan("gitops", "argocd", "-C", root, "--repo", url, "--cluster", "lab").out
    return list(load_objects(text.split("# ---")[0]))


def test_recipients_are_subscribed_to_failures() -> None:
    objects = made(options=ArgoOptions(recipients=(("slack", "ml-runs"),)))
    prefix = "notifications.argoproj.io/subscribe."
    for name, body in objects.items():
        told = {key.removeprefix(prefix) for key in body["metadata"]["annotations"] if key.startswith(prefix)}
        wanted = (
            {"gangplan-sync-failed.slack", "gangplan-degraded.slack"} if name[:11] == "Application" else set()
        )
        assert told == wanted


def test_the_plugin_gets_the_workspace_and_prints_one_folder() -> None:
    objects = made(
        RepositorySource(SOURCE.repository, "main", "argocd", "ml"), options=ArgoOptions(has_plugin=True)
    )
    source = objects["Application/us-cloud-runs-nlp"]["spec"]["source"]
    assert (source["path"], "directory" in source) == ("ml", False)
    assert source["plugin"] == {
        "name": "gangplan",
        "parameters": [{"name": "cluster", "string": "us-cloud"}, {"name": "folder", "string": "runs/nlp"}],
    }


def test_records_of_runs_are_pruned_and_no_run_is_healed(objects: dict[str, Any]) -> None:
    automated = objects["Application/us-cloud-runs-nlp"]["spec"]["syncPolicy"]["automated"]

    assert automated == {"enabled": True, "prune": True, "allowEmpty": True, "selfHeal": False}


@pytest.mark.parametrize("part", ["platform", "tenants"])
def test_guardrails_are_pruned_and_healed(objects: dict[str, Any], part: str) -> None:
    automated = objects[f"Application/us-cloud-{part}"]["spec"]["syncPolicy"]["automated"]

    assert automated == {"enabled": True, "prune": True, "selfHeal": True}


@pytest.mark.parametrize("part", ["platform", "tenants", "runs-nlp"])
def test_server_side_apply_goes_with_server_side_diff(objects: dict[str, Any], part: str) -> None:
    application = objects[f"Application/us-cloud-{part}"]

    assert "ServerSideApply=true" in application["spec"]["syncPolicy"]["syncOptions"]
    assert (
        application["metadata"]["annotations"]["argocd.argoproj.io/compare-options"] == "ServerSideDiff=true"
    )


def test_no_application_replaces_or_forces(objects: dict[str, Any]) -> None:
    options = [
        option
        for body in objects.values()
        for option in body["spec"].get("syncPolicy", {}).get("syncOptions", [])
    ]

    assert not [option for option in options if option.startswith(("Force", "Replace"))]


def test_fields_that_kueue_writes_are_ignored_as_the_trainer_has_them(objects: dict[str, Any]) -> None:
    # Trainer 2.1 got the fields of 2.2, so its runs drifted as soon as Kueue started them.
    (new,) = objects["Application/us-cloud-runs-nlp"]["spec"]["ignoreDifferences"]
    (old,) = (
        ignored
        for body in made(teams={"nlp": "nlp"}, override_field="podTemplateOverrides").values()
        for ignored in body["spec"].get("ignoreDifferences", ())
    )

    assert new["jsonPointers"] == ["/spec/suspend", "/spec/managedBy"]
    assert all("runtimePatches" in one for one in new["jqPathExpressions"])
    assert old["jsonPointers"] == [*new["jsonPointers"], "/spec/podTemplateOverrides", "/spec/labels"]
    assert "jqPathExpressions" not in old


def test_the_old_trainer_of_the_sample_gets_its_own_fields() -> None:
    outcome = gangplan("gitops", "argocd", "-C", ROOT, "--repo", SOURCE.repository)

    parts = outcome.out.split("\n---\n")
    old = next(one for one in parts if "name: eu-airgap-runs-" in one and "kind: Application" in one)
    new = next(one for one in parts if "name: us-cloud-runs-" in one and "kind: Application" in one)
    assert ("podTemplateOverrides" in old, "runtimePatches" in old) == (True, False)
    assert ("podTemplateOverrides" in new, "runtimePatches" in new) == (False, True)


def test_the_runs_application_names_a_namespace_that_its_project_allows(objects: dict[str, Any]) -> None:
    # Found with a real Argo CD: an empty namespace matches no destination, and the application never syncs.
    allowed = {item["namespace"] for item in objects["AppProject/us-cloud-runs-nlp"]["spec"]["destinations"]}

    assert objects["Application/us-cloud-runs-nlp"]["spec"]["destination"]["namespace"] in allowed


def test_the_runs_project_allows_exactly_the_kinds_of_a_run() -> None:
    texts = [
        text for path, text in preview_render(Request(ROOT, ("us-cloud",))).texts.items() if is_run_file(path)
    ]
    # The sample has no files next to its specs.
    texts += [path.read_text() for path in render_example("files-beside-the-spec").glob("*/runs/*/*-*.yaml")]
    rendered = {
        (body["apiVersion"].rpartition("/")[0], body["kind"]) for text in texts for body in load_objects(text)
    }

    rows = find_kinds_of_parts("runs")
    assert rendered == {(one.group, one.name) for one in rows if one.needs in ("", "trainer")}
    assert not {(one.group, one.name) for one in rows if one.needs != "after"} & set(CHILD_KINDS)
    assert not {"Secret", "ConfigMap"} & {kind for _, kind in CHILD_KINDS}


@pytest.mark.parametrize("has_claims", [True, False])
def test_runs_bring_claims_only_where_workers_claim_devices(has_claims: bool) -> None:
    spec = made(has_claims=has_claims)["AppProject/us-cloud-runs-nlp"]["spec"]
    template = {"group": "resource.k8s.io", "kind": "ResourceClaimTemplate"}
    assert (template in spec["namespaceResourceWhitelist"]) == has_claims


def test_the_file_of_a_cluster_decides_whether_runs_bring_claims() -> None:
    for example, has_claims in (("claimed-nics", True), ("rdma-rails", False)):
        workspace = load_workspace(ROOT / "tests/examples" / example / "input")
        assert argocd._build_argocd_cluster(workspace, "lab", "").has_claims == has_claims


def test_guardrails_stay_in_the_namespaces_of_teams(objects: dict[str, Any]) -> None:
    """A file that somebody slips in must neither reach the system's namespaces nor bring other kinds."""
    spec = objects["AppProject/us-cloud-guardrails"]["spec"]
    assert [one["namespace"] for one in spec["destinations"]] == ["research", "team-nlp", "gangplan-policies"]
    kinds = {one["kind"] for one in spec["namespaceResourceWhitelist"]}
    assert kinds == {kind for _, kind in spaced_kinds()}
    assert not kinds & {"Secret", "Role", "ClusterRoleBinding", "Pod", "Job", "Deployment"}
    homes = {one["namespace"] for one in spec["destinations"]}
    for part in ("platform", "tenants"):
        assert objects[f"Application/us-cloud-{part}"]["spec"]["destination"]["namespace"] in homes


def files_of_examples(pattern: str) -> list[Path]:
    """Return the rendered files of all examples."""
    return [path for one in EXAMPLES for path in sorted(render_example(one.name).glob(pattern))]


def test_guardrails_allow_every_rendered_kind() -> None:
    known = {(one.group, one.name) for one in find_kinds_of_parts("policies", "platform", "tenants")}
    for file in files_of_examples("*/[pt]*/**/*.yaml"):
        for body in load_objects(file.read_bytes()):
            group = body["apiVersion"].rpartition("/")[0]
            assert (group, body["kind"]) in known, file


def test_guardrails_allow_what_own_policies_need(tmp_path: Path) -> None:
    """These are the kinds and namespaces of their parameters, and policies, but only under names of ours."""
    own = (
        "{apiVersion: example.com/v1, kind: Limits, metadata: {name: a}}\n---\n"
        "{apiVersion: example.com/v1, kind: TeamLimits, metadata: {name: b, namespace: limits}}\n"
    )
    root = write(stock(tmp_path), {"policies/own.yaml": own})
    policies = list_policy_guardrails(load_workspace(root), "lab")
    spec = made(policies=policies)["AppProject/us-cloud-guardrails"]["spec"]
    assert {"group": "example.com", "kind": "Limits"} in spec["clusterResourceWhitelist"]
    assert {"group": "example.com", "kind": "TeamLimits"} in spec["namespaceResourceWhitelist"]
    assert {"limits", "gangplan-policies"} <= {one["namespace"] for one in spec["destinations"]}
    for kind in (POLICY_KIND, BINDING_KIND):
        group = "admissionregistration.k8s.io"
        assert {"group": group, "kind": kind, "name": "gangplan-*"} in spec["clusterResourceWhitelist"]


def test_no_sync_waits_for_a_claim_or_a_vault() -> None:
    """A claim may be pending until a run uses it, and no run is admitted before its queue exists."""
    seen = set()
    for file in files_of_examples("*/tenants/**/*.yaml"):
        bodies = load_objects(file.read_bytes())
        waves = [int(body["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"]) for body in bodies]
        for body, wave in zip(bodies, waves, strict=True):
            if body["kind"] in ("PersistentVolumeClaim", "ExternalSecret", "LocalQueue"):
                assert wave == max(waves), (file, body["kind"])
                seen.add(body["kind"])
    assert seen == {"PersistentVolumeClaim", "ExternalSecret", "LocalQueue"}


def test_guardrails_may_use_the_namespace_of_prometheus() -> None:
    bodies = list(made(teams={"nlp": "team-nlp"}, others=["watch"]).values())
    spaces = [one["namespace"] for one in bodies[0]["spec"]["destinations"]]
    assert spaces == ["team-nlp", "watch", "gangplan-policies"]
    assert [one["namespace"] for one in bodies[1]["spec"]["destinations"]] == ["team-nlp"]


# Flux


def flux(parts: list[str]) -> dict[str, dict[str, Any]]:
    """Return the objects that Flux reads on one cluster, by kind and name."""
    source = RepositorySource("https://git.example.com/a.git", "main", "flux-system")
    bodies = build_flux_objects("lab", source, parts)
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}


def test_flux_prunes_all_parts_and_runs_protect_themselves() -> None:
    objects = flux(["platform", "tenants", "runs"])
    assert {name: body["spec"].get("prune") for name, body in objects.items()} == {
        "GitRepository/lab-rendered": None,
        "Kustomization/lab-platform": True,
        "Kustomization/lab-tenants": True,
        "Kustomization/lab-runtimes": True,
        "Kustomization/lab-runs": True,
    }
    assert not any(body["spec"].get("force") for body in objects.values())


def test_flux_waits_for_queues_but_for_no_run() -> None:
    objects = flux(["platform", "tenants", "runs"])
    specs = {name.removeprefix("Kustomization/lab-"): body["spec"] for name, body in objects.items()}
    parts = ("platform", "tenants", "runs")
    assert [specs[part]["wait"] for part in (*parts, "runtimes")] == [True, False, False, False]
    kinds = [[one["kind"] for one in specs[part]["healthCheckExprs"]] for part in parts]
    assert kinds == [["ClusterQueue"], ["LocalQueue"], ["TrainJob"]]


def test_flux_without_kueue_checks_no_queue() -> None:
    source = RepositorySource("https://git.example.com/a.git", "main", "flux-system")
    bodies = build_flux_objects("lab", source, ["platform", "runs"], has_kueue=False)
    assert ["healthCheckExprs" in body["spec"] for body in bodies] == [False, False, False, True]


@pytest.mark.parametrize(
    ("revision", "reference"),
    [("v1", {"tag": "v1"}), ("sha256:" + "0" * 64, {"digest": "sha256:" + "0" * 64})],
)
def test_flux_reads_oci_artifacts(revision: str, reference: dict[str, str]) -> None:
    source = RepositorySource("oci://registry.example.com/ml/jobs", revision, "flux-system")
    artifact, kustomization = build_flux_objects("lab", source, ["platform"])
    assert (artifact["kind"], artifact["spec"]["ref"]) == ("OCIRepository", reference)
    assert kustomization["spec"]["sourceRef"] == {"kind": "OCIRepository", "name": "lab-rendered"}


def test_flux_reads_only_one_folder_of_a_bigger_repository(tmp_path: Path) -> None:
    """Git reads the ignore rules as Flux does."""
    source = RepositorySource("https://git.example.com/a.git", "main", "flux-system", "ml/jobs")
    repository, kustomization = build_flux_objects("lab", source, ["platform"])
    assert kustomization["spec"]["path"] == "./ml/jobs/rendered/lab/platform"
    (tmp_path / ".gitignore").write_text(repository["spec"]["ignore"])
    files = [
        "ml/jobs/rendered/lab/a.yaml",
        "ml/jobs/specs/a.yaml",
        "ml/a.yaml",
        "web/a.yaml",
        "rendered/a.yaml",
    ]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    left = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert left == ["ml/jobs/rendered/lab/a.yaml"]


def test_flux_applies_the_parts_one_after_the_other() -> None:
    objects = flux(["platform", "runs"])
    assert "dependsOn" not in objects["Kustomization/lab-platform"]["spec"]
    assert objects["Kustomization/lab-runtimes"]["spec"]["dependsOn"] == [{"name": "lab-platform"}]
    assert objects["Kustomization/lab-runs"]["spec"]["dependsOn"] == [{"name": "lab-runtimes"}]
    assert "Kustomization/lab-tenants" not in objects


KIND = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"


@pytest.mark.parametrize("hands_on", [False, True])
def test_flux_creates_runs_once_leaves_archived_ones_and_replaces_records(
    hands_on: bool, builder: str, tmp_path: Path
) -> None:
    """kustomize, which Flux builds with, applies the patches."""
    source = RepositorySource("https://git.example.com/a.git", "main", "flux-system")
    patches = build_flux_objects("lab", source, ["runs"], hands_on=hands_on)[-1]["spec"]["patches"]
    annotations = {
        "new": "{a: b}",
        "archived": "{kustomize.toolkit.fluxcd.io/ssa: Ignore}",
        "over": "{gangplan.dev/state: stopped}",
    }
    for name, written in annotations.items():
        marks = f"  name: {name}\n  labels: {{gangplan.dev/run: {name}}}\n  annotations: {written}\n"
        text = f"{KIND}metadata:\n{marks}spec: {{suspend: true}}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    kustomization = {"resources": [f"{name}.yaml" for name in annotations], "patches": patches}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(kustomization))
    found = find_kustomize_engine()
    assert found is not None
    command = [found.path, "kustomize" if "kubectl" in found.label else "build", tmp_path]
    built = {
        body["metadata"]["name"]: body
        for body in load_objects(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    }
    prefix = "kustomize.toolkit.fluxcd.io/"
    told = {
        name: {
            key.removeprefix(prefix): value
            for key, value in body["metadata"]["annotations"].items()
            if key.startswith(prefix)
        }
        for name, body in built.items()
    }
    assert told == {
        "new": {"ssa": "IfNotPresent"},
        "archived": {"ssa": "Ignore"},
        "over": {"force": "enabled"},
    }
    assert {name: body["spec"].get("managedBy") for name, body in built.items()} == {
        "new": None,
        "archived": None,
        "over": TRAINJOB.manager if hands_on else MULTIKUEUE,
    }


def test_flux_replaces_no_record_without_kueue() -> None:
    source = RepositorySource("https://git.example.com/a.git", "main", "flux-system")
    *_, patch = build_flux_objects("lab", source, ["runs"], has_kueue=False)[-1]["spec"]["patches"]
    assert "kind: All" not in patch["patch"]
    assert "IfNotPresent" in patch["patch"]


@pytest.mark.parametrize("has_runs", [True, False])
def test_flux_finds_all_runs_and_also_that_none_are_left(
    has_runs: bool, builder: str, tmp_path: Path
) -> None:
    """Build a whole cluster as Flux does, once for runtimes and once for runs: no object is in both."""
    source = RepositorySource("https://git.example.com/a.git", "main", "flux-system")
    tree = ROOT / "rendered/us-cloud"
    files = [path for path in sorted(tree.rglob("*.yaml")) if has_runs or "runs" not in path.parts]
    for path in files:
        (tmp_path / path.relative_to(tree)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to(tree)).write_bytes(path.read_bytes())
    names = [path.relative_to(tree).as_posix() for path in files]
    found = find_kustomize_engine()
    assert found is not None
    command = [found.path, "kustomize" if "kubectl" in found.label else "build", tmp_path]
    built = []
    for body in build_flux_objects("us-cloud", source, ["runs"])[1:]:
        assert body["spec"]["path"] == "./rendered/us-cloud"
        patches = body["spec"]["patches"]
        (tmp_path / "kustomization.yaml").write_text(json.dumps({"resources": names, "patches": patches}))
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        built.append(load_objects(text))
    runs = [body for path in files if "runs" in path.parts for body in load_objects(path.read_text())]
    assert sorted(_key(body) for body in (*built[0], *built[1])) == sorted(_key(body) for body in runs)
    assert bool(runs) == has_runs
    assert "TrainJob" not in {body["kind"] for body in built[0]}


def _key(body: dict[str, Any]) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]
