"""Claims, connections, secrets and ConfigMaps that are not on every cluster of the team."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.source import load_objects
from tests import workspaces
from tests.workspaces import gangplan

TEAM, SPEC = "specs/nlp/team.yaml", "specs/nlp/filings.yaml"
# Two clusters that differ only in their names.
FAR = {"overlays/far/cluster.yaml": workspaces.CLUSTER}
BOTH = workspaces.SPEC + "clusters: [lab, far]\n"
CLAIM = "filings: {accessModes: [ReadWriteMany]"
LIDAR = "lidar: {"


def check(root: Path, lines: str, *edits: tuple[str, str], spec: str = BOTH) -> list[tuple[str, str, str]]:
    """Return place, rule and message of findings, with lines added to the spec and edits of the team file."""
    team = workspaces.TEAM + "configMaps: [tuning]\n"
    for old, new in edits:
        assert old in team
        team = team.replace(old, new, 1)
    workspaces.write(workspaces.stock(root), {**FAR, TEAM: team, SPEC: spec + lines})
    found = gangplan("validate", "-C", root).findings
    return [(one.place, one.rule, one.message) for one in found if one.rule != "rdma-bypasses-policy"]


def only(name: str, *clusters: str) -> tuple[str, str]:
    return "secrets:", f"onlyOn: {{{name}: [{', '.join(clusters)}]}}\nsecrets:"


NEAR = (CLAIM, CLAIM + ", clusters: [lab]")
LINES = workspaces.SPEC.count("\n") + 2


@pytest.mark.parametrize(
    ("lines", "edits", "what", "column"),
    [
        ("data: {filings: /data}\n", [NEAR], "claim 'filings'", 8),
        ("checkpoint: {to: filings}\n", [NEAR], "claim 'filings'", 18),
        ("data: {lidar: env}\n", [(LIDAR, LIDAR + "clusters: [lab], ")], "connection 'lidar'", 8),
        ("data: {lidar: env}\n", [only("lidar-s3", "lab")], "secret 'lidar-s3'", 8),
        (
            "secrets: {env: {HF: huggingface/token}}\n",
            [only("huggingface", "lab")],
            "secret 'huggingface'",
            21,
        ),
        ("secrets: {files: {huggingface: /hf}}\n", [only("huggingface", "lab")], "secret 'huggingface'", 19),
        ("files: {tuning: /etc/tuning}\n", [only("tuning", "lab")], "ConfigMap 'tuning'", 9),
        ("env: {A: {configMap: tuning/a}}\n", [only("tuning", "lab")], "ConfigMap 'tuning'", 22),
        (
            "setup: [{command: [ls], env: {A: {configMap: tuning/a}}}]\n",
            [only("tuning", "lab")],
            "ConfigMap 'tuning'",
            46,
        ),
        (
            "data: {filings: /data}\nsteps: [{fetch: lidar/x, to: /data}]\n",
            [(LIDAR, LIDAR + "clusters: [lab], ")],
            "connection 'lidar'",
            17,
        ),
    ],
)
def test_something_that_is_on_another_cluster_is_reported(
    lines: str, edits: list[tuple[str, str]], what: str, column: int, tmp_path: Path
) -> None:
    told = [one for one in check(tmp_path / "a", lines, *edits) if one[1] == "not-there"]
    line = LINES + lines.count("\n") - 1
    assert told == [(f"{SPEC}:{line}:{column}", "not-there", f"{what} is on lab, and this run goes to far")]
    near = workspaces.SPEC + "clusters: [lab]\n"
    assert [one for one in check(tmp_path / "b", lines, *edits, spec=near) if one[1] == "not-there"] == []
    everywhere = [(old, new.replace("[lab]", "[lab, far]")) for old, new in edits]
    assert [one for one in check(tmp_path / "c", lines, *everywhere) if one[1] == "not-there"] == []


def test_a_bucket_is_where_its_claim_is(tmp_path: Path) -> None:
    claim = "lidar-files: {accessModes: [ReadOnlyMany]"
    found = check(tmp_path, "data: {radar: /radar}\n", (claim, claim + ", clusters: [far]"))
    assert [message for _, rule, message in found if rule == "not-there"] == [
        "claim 'lidar-files' is on far, and this run goes to lab"
    ]


@pytest.mark.parametrize(
    ("edit", "rule", "help"),
    [
        (
            only("huggingfaces", "lab"),
            "not-there",
            "Correct the name, or declare it under secrets or configMaps.",
        ),
        (only("filings", "lab"), "not-there", "Write clusters: in the claim or connection itself."),
        (only("huggingface", "lib"), "cluster-unknown", "Did you mean 'lab'?"),
        ((CLAIM, CLAIM + ", clusters: [lib]"), "cluster-unknown", "Did you mean 'lab'?"),
    ],
)
def test_unknown_names_in_the_teams_file_are_reported(
    edit: tuple[str, str], rule: str, help: str, tmp_path: Path
) -> None:
    workspaces.write(workspaces.stock(tmp_path), {**FAR, TEAM: workspaces.TEAM.replace(*edit, 1), SPEC: BOTH})
    (found,) = [
        one
        for one in gangplan("validate", "-C", tmp_path).findings
        if one.rule in ("not-there", "cluster-unknown")
    ]
    assert (found.rule, found.help) == (rule, help)
    assert found.place.startswith(f"{TEAM}:")


def test_a_claim_is_rendered_only_on_its_clusters(tmp_path: Path) -> None:
    made = "filings: {accessModes: [ReadWriteMany], size: 2Ti, storageClass: files, clusters: [far]}"
    team = workspaces.TEAM.replace(CLAIM + "}", made)
    kind = "storageClasses: {files: {accessModes: [ReadWriteMany]}}\n"
    cluster = workspaces.CLUSTER
    files = {"overlays/far/cluster.yaml": cluster + kind, TEAM: team, SPEC: BOTH}
    workspaces.write(workspaces.stock(tmp_path), files)
    outcome = gangplan("render", "-C", tmp_path)
    assert outcome.code == 0, outcome.err  # lab has no such class, and does not need it
    claims = {
        path.relative_to(tmp_path / "rendered").parts[0]
        for path in (tmp_path / "rendered").rglob("*.yaml")
        for body in load_objects(path.read_bytes())
        if body["kind"] == "PersistentVolumeClaim"
    }
    assert claims == {"far"}


CLASS = "storageClasses: {files: {accessModes: [ReadWriteMany], default: true}}\n"
SIZED = "{accessModes: [ReadWriteMany], size: 2Ti"
LOCAL_DISK = "{pool: a100}, localDisk: {storageClass: nvme, size: 7Ti}"
VOLUME = "volumes: {work: {storageClass: files, accessMode: ReadWriteMany, size: 1Gi}}\n"


def counted(root: Path, claims: str, most: int = 1, spec: str = "", lab: str = "") -> list[tuple[str, str]]:
    """Return place and rule of each error if lab may hold so many claims, and far any number."""
    team = workspaces.TEAM.replace("[lab]", "[lab, far]").replace("claims:\n", f"claims:\n{claims}")
    near = workspaces.CLUSTER.replace("{pool: a100}", LOCAL_DISK)
    near += f"{CLASS}{VOLUME}limits: {{objects: {{claims: {most}}}}}\n"
    if lab:
        near = near.replace("{queue: training}", f"{{queue: training, {lab}}}")
    files = {"overlays/lab/cluster.yaml": near, "overlays/far/cluster.yaml": workspaces.CLUSTER + CLASS}
    workspaces.write(workspaces.stock(root), {**files, TEAM: team, SPEC: workspaces.SPEC + spec})
    return gangplan("validate", "-C", root).errors()


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        (f"  a: {SIZED}}}\n  b: {SIZED}, clusters: [far]}}\n  c: {SIZED}, clusters: [far]}}\n", []),
        (f"  a: {SIZED}, clusters: [lab]}}\n  b: {SIZED}}}\n", [(f"{TEAM}:6:3", "claims-too-many")]),
        (
            f"  a: {SIZED}, claimName: x, clusters: [lab]}}\n  b: {SIZED}, claimName: x, clusters: [far]}}\n",
            [],
        ),
        (
            f"  a: {SIZED}, claimName: x, clusters: [lab]}}\n  b: {SIZED}, claimName: x}}\n",
            [(f"{TEAM}:6:43", "claim-twice")],
        ),
    ],
)
def test_claims_are_counted_where_they_are(tmp_path: Path, claims: str, told: list[tuple[str, str]]) -> None:
    assert counted(tmp_path, claims, spec="clusters: [lab]\n") == told


ELSEWHERE = f"  a: {SIZED}, clusters: [far]}}\n"
NFS = "filings: {nfs: {server: nfs.example.com, path: /films}, size: 2Ti}"


@pytest.mark.parametrize("spec", ["scratch: {size: 2Ti, medium: local}\n", "volumes: {work: /w}\n"])
def test_claims_of_workers_are_added_to_those_of_their_cluster(tmp_path: Path, spec: str) -> None:
    """Four workers need a claim each, in addition to those of the team and of the platform's volumes."""
    spec += "clusters: [lab]\n"
    assert counted(tmp_path, ELSEWHERE, 4, spec) == []
    volumes = f"persistentVolumes: {{{NFS}}}"
    assert [rule for _, rule in counted(tmp_path, ELSEWHERE, 4, spec, volumes)] in (
        ["scratch-claims"],
        ["volume-over-quota"],
    )
    assert counted(tmp_path, ELSEWHERE, 5, spec, volumes) == []


def test_claims_of_volumes_are_added_to_those_of_their_cluster(tmp_path: Path) -> None:
    assert counted(tmp_path, ELSEWHERE, 1, "clusters: [lab]\n", f"persistentVolumes: {{{NFS}}}") == []


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("environment: prod\n", True),
        ("environment: prod\npolicies: {packs: [baseline]}\n", False),
        ("environment: dev\n", False),
        ("", False),
    ],
)
def test_a_production_cluster_without_policies_is_a_warning(line: str, is_told: bool, tmp_path: Path) -> None:
    cluster = workspaces.CLUSTER.replace("region:", f"{line}region:", 1)
    root = workspaces.write(workspaces.stock(tmp_path), {"overlays/lab/cluster.yaml": cluster})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "policies-none"]
    assert [(one.severity, one.place) for one in found] == (
        [("warning", "overlays/lab/cluster.yaml:4:14")] if is_told else []
    )


def test_a_secret_is_rendered_only_on_its_clusters(tmp_path: Path) -> None:
    """Neither the service account nor the store of another cluster names it."""
    store = 'secretStore: {name: vault, path: "training/{team}/{secret}"}\n'
    team = workspaces.TEAM.replace("secrets:", "pullSecrets: [pull]\nonlyOn: {pull: [far]}\nsecrets:")
    files = dict.fromkeys(("overlays/lab/cluster.yaml", *FAR), workspaces.CLUSTER + store)
    workspaces.write(workspaces.stock(tmp_path), {**files, TEAM: team, SPEC: BOTH})
    outcome = gangplan("render", "-C", tmp_path)
    assert outcome.code == 0, outcome.err
    named = {
        cluster: "name: pull\n" in (tmp_path / f"rendered/{cluster}/tenants/nlp/tenant.yaml").read_text()
        for cluster in ("lab", "far")
    }
    assert named == {"lab": False, "far": True}
