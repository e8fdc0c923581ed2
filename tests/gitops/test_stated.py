"""gangplan.yaml: the engines that it lists are written, each file in its place, and compared."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gangplan.delivery import engine, stated
from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine
from gangplan.errors import Exit
from gangplan.gitops.made import parse_gitops_command_header
from gangplan.source import load_objects
from tests import workspaces
from tests.gitops.scripts import git
from tests.workspaces import gangplan, tree, write

HEAD = "apiVersion: gangplan.dev/v1\nkind: Workspace\n"
URL = "https://git.example.com/acme/jobs.git"
STATED = f"""\
{HEAD}gitops:
  repo: {URL}
  branch: trunk
  engines:
    argocd: {{retries: 0, destination: {{lab: prod}}, output: deploy/argo}}
    github: {{branch: release}}
    codeowners: {{}}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create a rendered workspace in a folder of a repository."""
    git(tmp_path, "init", "-q")
    root = tmp_path / "ml/jobs"
    workspaces.render(workspaces.stock(root))
    return root


def test_every_engine_is_written_in_its_place(root: Path) -> None:
    write(root, {"gangplan.yaml": STATED})
    outcome = gangplan("gitops", "write", "-C", root)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    top = root.parents[1]
    argo = (root / "deploy/argo/lab.yaml").read_text()
    assert "targetRevision: trunk" in argo
    assert "limit: 0" in argo
    assert "name: prod" in argo
    assert "/ml/jobs/deploy/argo/" in (top / "CODEOWNERS").read_text()
    assert "@acme/nlp" in (top / "CODEOWNERS").read_text()
    workflow = (top / ".github/workflows/gangplan.yaml").read_text()
    assert "release" in workflow
    assert "trunk" not in workflow
    for file in (root / "deploy/argo/lab.yaml", top / "CODEOWNERS"):
        flags = parse_gitops_command_header(file.read_text()) or []
        assert set(flags[1::2]) <= {"--prefix", "--organisation"}  # which Git gives
    before = tree(top)
    assert gangplan("gitops", "check", "-C", root).out == "3 made by `gangplan gitops`, all fresh\n"
    assert gangplan("gitops", "write", "-C", root).code == Exit.CLEAN
    assert tree(top) == before


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("retries: 0", "retries: 3", "deploy/argo/lab.yaml is stale"),
        ("    codeowners: {}\n", "    jenkins: {}\n", "Jenkinsfile is missing"),
        (URL, "https://git.example.com/other/jobs.git", "CODEOWNERS is stale"),
    ],
)
def test_check_compares_files_with_the_current_settings(old: str, new: str, said: str, root: Path) -> None:
    write(root, {"gangplan.yaml": STATED})
    assert gangplan("gitops", "write", "-C", root).code == Exit.CLEAN
    write(root, {"gangplan.yaml": STATED.replace(old, new)})
    outcome = gangplan("gitops", "check", "-C", root)
    assert outcome.code == Exit.FINDINGS
    assert said in outcome.out


WRONG = {
    "an unknown engine": ("github: {branch: release}", "gitub: {}", "gangplan.yaml:8:5: error[spec-unknown"),
    "an unknown setting": ("{retries: 0", "{retrys: 0", "did you mean 'retries'?"),
    "a wrong type": ("retries: 0", "retries: many", "gangplan.yaml:7:23: error[spec-type]"),
    "a wrong value": (
        "retries: 0",
        "retries: -1",
        "gangplan.yaml:7:23: retries: -1: the least is 0",
    ),
    "a shared one": (f"repo: {URL}", "repo: nowhere", "gangplan.yaml:4:9: 'nowhere' is not the address"),
    "no address": (f"  repo: {URL}\n", "", "--repo is missing"),
    "an outer folder": ("deploy/argo", "../argo", "output ../argo is outside of the workspace"),
    "the top": ("deploy/argo", ".", "output . is a folder of the workspace itself"),
    "the specs": ("deploy/argo", "specs/nlp", "output specs/nlp is a folder of the workspace itself"),
    "the rendered tree": (
        "deploy/argo",
        "./rendered",
        "output ./rendered is a folder of the workspace",
    ),
    "one folder twice": (
        "    github: {branch: release}\n",
        "    flux: {output: deploy/argo/}\n",
        "argocd and flux have the same output, deploy/argo",
    ),
    "a stranger": ("lab: prod", "leb: prod", "there is no cluster 'leb'"),
    "no engines": ("  engines:", "  engine:", "gangplan.yaml:6:3: error[spec-unknown-field]"),
    "a list": (HEAD, "- a\n", "gangplan.yaml"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["write", "check"])
def test_invalid_settings_are_refused(command: str, name: str, root: Path) -> None:
    old, new, said = WRONG[name]
    write(root, {"gangplan.yaml": STATED.replace(old, new)})
    before = tree(root.parents[1])
    outcome = gangplan("gitops", command, "-C", root)
    assert outcome.code == Exit.INPUT
    assert command == "check" or outcome.out == ""
    assert said in outcome.err
    assert tree(root.parents[1]) == before


def test_a_refused_engine_does_not_hide_a_stale_one(root: Path) -> None:
    write(root, {"gangplan.yaml": STATED})
    assert gangplan("gitops", "write", "-C", root).code == Exit.CLEAN
    wrong = STATED.replace("retries: 0", "retries: -1").replace("branch: release", "branch: other")
    write(root, {"gangplan.yaml": wrong})
    outcome = gangplan("gitops", "check", "-C", root)
    assert outcome.code == Exit.INPUT
    assert "retries: -1" in outcome.err
    assert "workflows/gangplan.yaml is stale" in outcome.out


def test_all_wrong_values_are_reported_together(root: Path) -> None:
    wrong = STATED.replace("retries: 0", "retries: -1, namespace: A B").replace(URL, "x")
    write(root, {"gangplan.yaml": wrong})
    told = gangplan("gitops", "write", "-C", root).err
    for said in ("'x' is not the address", "retries: -1", "'A B' cannot be the name of a namespace"):
        assert said in told


def test_flags_override_the_file(root: Path) -> None:
    write(root, {"gangplan.yaml": STATED})
    text = gangplan("gitops", "argocd", "-C", root, "--revision", "v2").out
    assert "targetRevision: v2" in text
    assert "gitops argocd --revision v2 --prefix ml/jobs`" in text
    assert f"repoURL: {URL}" in text


def test_a_file_without_our_mark_is_left_alone(root: Path) -> None:
    write(root, {"gangplan.yaml": STATED})
    assert gangplan("gitops", "write", "-C", root).code == Exit.CLEAN
    file = root / "deploy/argo/lab.yaml"
    own = file.read_text().partition("\n")[2].replace("limit: 0", "limit: 9")
    file.write_text(own)
    for command in ("check", "write"):
        outcome = gangplan("gitops", command, "-C", root)
        assert outcome.code == Exit.CLEAN
        assert f"{file} is yours" in outcome.err
    assert file.read_text() == own


def test_a_file_in_the_way_of_the_last_engine_stops_all(root: Path) -> None:
    write(root, {"gangplan.yaml": STATED})
    (root.parents[1] / "CODEOWNERS").write_text("* @acme/all\n")
    before = tree(root.parents[1])
    outcome = gangplan("gitops", "write", "-C", root)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert "nothing was written: " in outcome.err
    assert tree(root.parents[1]) == before


def test_without_the_file_nothing_is_written(root: Path) -> None:
    outcome = gangplan("gitops", "write", "-C", root)
    assert (outcome.code, "no gangplan.yaml lists an engine" in outcome.err) == (Exit.INPUT, True)
    assert gangplan("gitops", "check", "-C", root).code == Exit.CLEAN


def test_every_setting_has_a_valid_example(root: Path) -> None:
    model = stated.build_delivery_settings_model()
    for one in engine.list_engines():
        settings = {option.name: stated.example_of(option) for option in one.options}
        document = {
            "apiVersion": "gangplan.dev/v1",
            "kind": "Workspace",
            "gitops": {"engines": {one.name: settings}},
        }
        assert model.model_validate_json(json.dumps(document))


# A made-up engine: one module with one row


def _files(given: EngineInput) -> dict[str, str]:
    return {"sync.txt": f"{given['where']} {' '.join(given.clusters)}\n"}


MADE_UP = GitopsEngine(
    "spindle",
    "Write what Spindle reads.",
    (EngineOption("where", "Where it looks.", "PLACE", "there", "here"),),
    _files,
    home="spindle",
    by_cluster=True,
)


@pytest.fixture
def spindle(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add the made-up engine to those that exist."""
    module = ModuleType("gangplan.delivery.spindle")
    module.ENGINE = MADE_UP  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gangplan.delivery.spindle", module)
    monkeypatch.setattr(engine, "NAMES", (*engine.NAMES, "spindle"))
    stated.build_delivery_settings_model.cache_clear()
    yield
    stated.build_delivery_settings_model.cache_clear()


@pytest.mark.usefixtures("spindle")
def test_an_engine_needs_only_one_module(root: Path) -> None:
    write(
        root,
        {"gangplan.yaml": f"{HEAD}gitops: {{engines: {{spindle: {{where: there}}, codeowners: {{}}}}}}\n"},
    )
    assert gangplan("gitops", "write", "-C", root).code == Exit.CLEAN
    file = root / "spindle/sync.txt"
    assert file.read_text() == "# Made by `gangplan gitops spindle`; see docs/gitops.md.\nthere lab\n"
    assert "/ml/jobs/spindle/" in (root.parents[1] / "CODEOWNERS").read_text()
    assert gangplan("gitops", "check", "-C", root).out.startswith("2 made by")
    file.write_text(file.read_text().replace("there", "nowhere"))
    assert "spindle/sync.txt is stale" in gangplan("gitops", "check", "-C", root).out
    assert "spindle" in gangplan("schema", "print", "workspace").out


def test_flux_reads_a_private_repository_through_a_proxy(root: Path) -> None:
    """What a source needs is stated, so that the file stays what gitops check expects."""
    more = "secret: bank-git, proxy: squid, provider: github, after: operators"
    write(root, {"gangplan.yaml": f"{HEAD}gitops:\n  repo: {URL}\n  engines:\n    flux: {{{more}}}\n"})
    assert gangplan("gitops", "write", "-C", root).code == Exit.CLEAN
    source, platform, tenants, *_ = load_objects((root / "flux/lab.yaml").read_text())
    assert source["spec"]["secretRef"] == {"name": "bank-git"}
    assert source["spec"]["proxySecretRef"] == {"name": "squid"}
    assert source["spec"]["provider"] == "github"
    assert platform["spec"]["dependsOn"] == [{"name": "operators"}]
    assert tenants["spec"]["dependsOn"] == [{"name": "lab-platform"}]
    assert gangplan("gitops", "check", "-C", root).code == Exit.CLEAN
    write(root, {"gangplan.yaml": f"{HEAD}gitops:\n  repo: {URL}\n  engines:\n    flux: {{ca: bank-ca}}\n"})
    refused = gangplan("gitops", "write", "-C", root)
    assert (refused.code, "Add the key ca.crt to that Secret" in refused.err) == (Exit.INPUT, True)


@pytest.mark.parametrize(
    ("versions", "is_warned"),
    [("", True), ('argocd: "3.5.1", ', False), ('argocd: "3.5.1", flux: "2.9.0", ', True)],
)
def test_a_cluster_that_two_engines_sync_is_warned_of(versions: str, is_warned: bool, root: Path) -> None:
    cluster = workspaces.CLUSTER.replace("versions: {", f"versions: {{{versions}")
    other = workspaces.CLUSTER.replace("versions: {", 'versions: {flux: "2.9.0", ')
    settings = f"{HEAD}gitops:\n  repo: {URL}\n  engines:\n    argocd: {{}}\n    flux: {{}}\n"
    write(
        root,
        {"gangplan.yaml": settings, "overlays/lab/cluster.yaml": cluster, "overlays/far/cluster.yaml": other},
    )
    workspaces.render(root)
    outcome = gangplan("gitops", "write", "-C", root)
    assert outcome.code == Exit.CLEAN
    assert ("argocd and flux both sync cluster lab" in outcome.err) == is_warned
    assert "cluster far" not in outcome.err
