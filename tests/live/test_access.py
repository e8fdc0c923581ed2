"""Reasons that stop a command on its way to a cluster: each with its message, its exit code, and no
traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest import mock

import grimp
import pytest

from gangplan.errors import Exit, ToolError, UserError
from gangplan.live.access import connect_to_cluster
from gangplan.live.contexts import ContextChoice, choose_kubeconfig_context
from gangplan.live.rights import Right, build_kubectl_role, find_right_for_api_request
from tests import workspaces
from tests.live.answers import CLUSTER
from tests.live.server import TOKEN, Server, refusal, serving
from tests.workspaces import Outcome, gangplan


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace."""
    return workspaces.stock(tmp_path / "workspace")


def snapshot(root: Path, kubeconfig: Path, *more: str | Path) -> Outcome:
    """Run the command that reads most."""
    return gangplan("cluster", "snapshot", "lab", "-C", root, "--kubeconfig", kubeconfig, *more)


def asked(root: Path, tmp_path: Path, server: Server, *more: str) -> Outcome:
    """Run the command with a kubeconfig for the server."""
    return snapshot(root, server.kubeconfig(tmp_path, "lab"), *more)


def test_without_the_package_the_extra_is_named(root: Path, tmp_path: Path) -> None:
    with mock.patch.dict(sys.modules, {"kubernetes": None}):
        outcome = snapshot(root, tmp_path / "none")
    assert outcome.code == Exit.ENVIRONMENT
    assert 'pip install "gangplan[cluster]"' in outcome.err


def test_without_a_kubeconfig_the_flag_is_named(root: Path, tmp_path: Path) -> None:
    outcome = snapshot(root, tmp_path / "none")
    assert outcome.code == Exit.ENVIRONMENT
    assert "there is no kubeconfig: " in outcome.err
    assert "--kubeconfig FILE" in outcome.err


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: [", "kind: Config\n", "contexts: 1\n"])
def test_a_broken_kubeconfig_is_reported(root: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    outcome = snapshot(root, path)
    assert outcome.code == Exit.ENVIRONMENT
    assert outcome.err.startswith("fatal: ")
    assert "bug" not in outcome.err


@pytest.mark.parametrize(
    ("flag", "stated", "names", "found"),
    [
        ("b", "c", ["lab", "b", "c"], "b"),
        (None, "c", ["lab", "b", "c"], "c"),
        (None, None, ["lab", "b"], "lab"),
        (None, None, ["b"], "b"),
        ("x", None, ["lab"], UserError),
        (None, "x", ["lab"], ToolError),
        (None, None, ["b", "c"], ToolError),
        (None, None, [], ToolError),
    ],
)
def test_the_context_is_chosen_and_never_guessed(
    flag: str | None, stated: str | None, names: list[str], found: object
) -> None:
    """The context is the flag's, the file's, that of the cluster's name, or the only one; never the current
    one of several."""
    wanted = ContextChoice("lab", flag, stated)
    if isinstance(found, str):
        assert choose_kubeconfig_context(wanted, names) == found
    else:
        assert isinstance(found, type)
        with pytest.raises((UserError, ToolError)) as stop:
            choose_kubeconfig_context(wanted, names)
        assert type(stop.value) is found


def test_the_context_of_the_cluster_file_is_used(root: Path, tmp_path: Path) -> None:
    path = root / "overlays/lab/cluster.yaml"
    path.write_text(f"{path.read_text()}context: lab-prod\n")
    with serving(CLUSTER) as server:
        outcome = snapshot(root, server.kubeconfig(tmp_path, "other", "lab-prod"), "-o", "-")
        assert outcome.code == Exit.CLEAN, outcome.err
        outcome = snapshot(root, server.kubeconfig(tmp_path, "other"), "-o", "-")
    assert outcome.code == Exit.ENVIRONMENT
    assert "no context 'lab-prod', which overlays/lab/cluster.yaml names" in outcome.err
    assert snapshot(root, tmp_path / "kubeconfig", "--context", "othr").code == Exit.INPUT


def test_an_expired_login_is_reported(root: Path, tmp_path: Path) -> None:
    with serving({"/version": refusal(401, "Unauthorized", "Unauthorized")}) as server:
        outcome = asked(root, tmp_path, server)
    assert outcome.code == Exit.ENVIRONMENT
    assert "does not accept your login (401)" in outcome.err
    assert TOKEN not in outcome.err


def test_an_exec_plugin_logs_in_or_its_failure_is_reported(root: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": "made"}}\'\n'
    )
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "args": []}}
    with serving(CLUSTER) as server:
        path = server.kubeconfig(tmp_path, "lab", user=user)
        before = path.read_bytes()
        access = connect_to_cluster(ContextChoice("lab", kubeconfig=str(path)))
        assert access.configuration.get_api_key_with_prefix("BearerToken") == "Bearer made"
        assert access.read("/version")
        assert path.read_bytes() == before, "the kubeconfig is never written"
        plugin.write_text("#!/bin/sh\necho token has expired, log in >&2\nexit 1\n")
        outcome = snapshot(root, path)
        assert outcome.code == Exit.ENVIRONMENT
        assert "the login of context 'lab' failed: exec: process returned 1. token has expired" in outcome.err
        plugin.unlink()
        outcome = snapshot(root, path)
        assert outcome.code == Exit.ENVIRONMENT
        assert "the login of context 'lab' failed" in outcome.err
        assert "Traceback" not in outcome.err


def test_an_unreachable_server_is_reported(root: Path, tmp_path: Path) -> None:
    with serving() as server:
        path = server.kubeconfig(tmp_path, "lab")
    outcome = snapshot(root, path)
    assert outcome.code == Exit.ENVIRONMENT
    assert "cannot be reached" in outcome.err


def test_a_server_that_is_too_slow_is_reported(root: Path, tmp_path: Path) -> None:
    with serving(CLUSTER) as server:
        server.delay_s = 1.0
        outcome = asked(root, tmp_path, server, "--timeout", "0.2")
    assert outcome.code == Exit.ENVIRONMENT
    assert "gave no answer in 0.2 s" in outcome.err


@pytest.mark.parametrize("answer", [(200, "<html>"), (302, "<html>"), (502, "<html>"), (503, "{}")])
def test_an_answer_of_another_server_is_reported(root: Path, tmp_path: Path, answer: tuple[int, str]) -> None:
    with serving({"/version": answer}) as server:
        outcome = asked(root, tmp_path, server)
        assert len(server.asked) == 1, "a redirection is not followed: it would get the token"
    assert outcome.code == Exit.ENVIRONMENT
    assert "bug" not in outcome.err


def test_forbidden_names_the_right_and_the_role(root: Path, tmp_path: Path) -> None:
    """If some of it is forbidden, the rest is written and what could not be seen is named; if all is, the
    exit code is 3."""
    words = 'nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster scope'
    denied = refusal(403, "Forbidden", words)
    with serving({**CLUSTER, "/api/v1/nodes": denied}) as server:
        outcome = asked(root, tmp_path, server)
        assert outcome.code == Exit.CLEAN, outcome.err
        assert "not seen: you may not list nodes cluster-wide" in outcome.err
        assert '"kind":"ClusterRole"' in outcome.err
        assert "observed-nodes" not in outcome.err, "what was not seen is not judged"
        server.answers.update({path: denied for path, body in CLUSTER.items() if isinstance(body, list)})
        outcome = asked(root, tmp_path, server)
    assert outcome.code == Exit.ENVIRONMENT
    assert "you may not list" in outcome.err


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("GET", "/api/v1/nodes", Right("", "nodes", "list")),
        ("GET", "/api/v1/namespaces/nlp", Right("", "namespaces", "get")),
        ("GET", "/api/v1/namespaces/nlp/pods/a/log", Right("", "pods/log", "get", "nlp")),
        ("PATCH", "/apis/apps/v1/namespaces/nlp/deployments/a", Right("apps", "deployments", "patch", "nlp")),
    ],
)
def test_a_path_shows_the_right_that_it_needs(method: str, path: str, right: Right) -> None:
    assert find_right_for_api_request(method, path) == right


def test_a_role_is_printed_on_one_line() -> None:
    rights = [Right("", "pods", "list", "nlp"), Right("", "pods", "get", "nlp")]
    assert build_kubectl_role(rights, "gangplan-logs") == (
        '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"gangplan-logs",'
        '"namespace":"nlp"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]}'
    )


# No other code connects to clusters


def test_one_module_imports_the_kubernetes_package() -> None:
    """Only modules that look at clusters import that one, when they connect, and those that sync a
    cluster."""
    graph = grimp.build_graph("gangplan", include_external_packages=True)
    assert graph.find_modules_that_directly_import("kubernetes") == {"gangplan.live.access"}
    near = graph.find_modules_that_directly_import("gangplan.live.access")
    syncing = {"gangplan.commands.gitops_sync", *(name for name in near if name.startswith("gangplan.sync."))}
    assert {name for name in near if not name.startswith("gangplan.live.")} == {
        "gangplan.commands.connecting",
        *syncing,
    }
    assert graph.find_modules_that_directly_import("gangplan.sync.writer") <= syncing


@pytest.mark.parametrize(
    "arguments",
    [
        "validate --no-cache",
        "plan",
        "render",
        "list runs",
        "cluster check",
        "cluster quota",
        "retire",
        "gitops argocd --repo-url https://git.example.com/ml/jobs.git",
        "policy list",
        "simulate --cluster lab",
        "why specs/nlp/filings.yaml",
    ],
)
def test_no_other_command_imports_the_kubernetes_package(arguments: str, root: Path) -> None:
    code = "import sys; from gangplan.entry import main; main(); print('kubernetes' in sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments.split()],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == "False", done.stderr
