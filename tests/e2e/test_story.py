"""What gangplan renders is accepted without a warning, admitted, runs as planned, and does not drift."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.model.quantity import Quantity, parse_quantity
from gangplan.report.hostfile import format_hostfiles_of_run
from gangplan.report.plan import sum_pod_requests_of_run
from tests.e2e.drift import drift
from tests.e2e.story import ROLE, Chapter, Seen, emitted
from tests.lab.client import ApiError

pytestmark = pytest.mark.e2e
Object = dict[str, Any]


def test_every_object_is_accepted_without_a_warning(chapter: Chapter) -> None:
    warned = [
        (body["kind"], body["metadata"]["name"], answer.warnings)
        for body, answer in chapter.answers
        if answer.warnings
    ]

    assert not warned
    assert len(chapter.answers) == 2 * len(list(emitted(chapter)))


def test_every_run_was_admitted_and_completed(chapter: Chapter) -> None:
    assert [seen.run.name for seen in chapter.seen] == [run.name for run, _ in chapter.runs]
    assert chapter.seen


def test_pods_have_the_planned_counts_and_valid_names(chapter: Chapter) -> None:
    for seen in chapter.seen:
        layout = seen.run.unit.layout
        roles = [pod["metadata"]["labels"][ROLE] for pod in seen.pods]
        assert (roles.count("node"), roles.count("launcher")) == (layout.node_pods, layout.launcher_pods)
        assert all(len(pod["metadata"]["name"]) <= 63 for pod in seen.pods)


def test_the_hostfile_names_each_worker_with_its_slots(chapter: Chapter) -> None:
    for seen in chapter.seen:
        unit = seen.run.unit
        if not unit.job.uses_mpi:
            continue
        lines = [line.split() for line in seen.hostfile.splitlines() if line]
        workers = [
            pod
            for pod in seen.pods
            if unit.job.launcher_runs_ranks or pod["metadata"]["labels"][ROLE] == "node"
        ]
        names = {f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in workers}
        assert {host for host, _ in lines} == names
        assert [slots for _, slots in lines] == [f"slots={unit.layout.slots}"] * unit.layout.workers


def test_plan_hostfile_shows_what_trainer_writes(chapter: Chapter) -> None:
    with_mpi = [seen for seen in chapter.seen if seen.run.unit.job.uses_mpi]
    assert with_mpi
    for seen in with_mpi:
        assert format_hostfiles_of_run(seen.run)[0].lines == tuple(seen.hostfile.splitlines())


def test_pods_have_every_field_of_their_template(chapter: Chapter) -> None:
    for seen in chapter.seen:
        templates = _templates(seen)
        for pod in seen.pods:
            template = templates[pod["metadata"]["labels"][ROLE]]
            missing = _missing(template["spec"], pod["spec"], "spec") + _missing(
                template["metadata"], pod["metadata"], "metadata"
            )
            assert not missing, (pod["metadata"]["name"], missing)


def test_pods_run_the_planned_command_in_the_planned_environment(chapter: Chapter) -> None:
    for seen in chapter.seen:
        unit = seen.run.unit
        for pod in seen.pods:
            container = pod["spec"]["containers"][0]
            is_launcher = pod["metadata"]["labels"][ROLE] == "launcher"
            runs_command = is_launcher or not unit.job.uses_mpi
            if runs_command:
                assert tuple(container["args"]) == unit.launch.argv
            planned = unit.launch.launcher_env if is_launcher else unit.launch.worker_env
            present = {variable["name"]: variable.get("value") for variable in container.get("env", ())}
            assert {variable.name for variable in planned} <= set(present)
            assert all(
                present[variable.name] == variable.value for variable in planned if not variable.secret
            )


def test_each_pod_is_selected_by_exactly_its_policies(chapter: Chapter) -> None:
    everywhere = {"default-deny", "allow-dns"}
    for seen in chapter.seen:
        own = {body["metadata"]["name"] for body in seen.bodies if body["kind"] == "NetworkPolicy"}
        for pod in seen.pods:
            labels = pod["metadata"]["labels"]
            role = labels[ROLE]
            selecting = {policy["metadata"]["name"] for policy in seen.policies if _selects(policy, labels)}
            other_role = {name for name in own if name.endswith("-ssh") and f"-{role}-ssh" not in name}
            assert selecting == everywhere | (own - other_role)


def test_workloads_request_what_the_plan_says(chapter: Chapter) -> None:
    for seen in chapter.seen:
        layout = seen.run.unit.layout
        pod_sets = {item["name"]: item["count"] for item in seen.workload["spec"]["podSets"]}
        planned = {"node": layout.node_pods, "launcher": layout.launcher_pods}
        assert pod_sets == {name: count for name, count in planned.items() if count}
        used: dict[str, Quantity] = {}
        for assignment in seen.workload["status"]["admission"]["podSetAssignments"]:
            for resource, amount in assignment["resourceUsage"].items():
                used[resource] = used.get(resource, Quantity.of(0)) + parse_quantity(amount)
        assert {name: amount for name, amount in used.items() if amount} == sum_pod_requests_of_run(seen.run)


def test_pods_run_on_nodes_of_the_planned_pools(chapter: Chapter) -> None:
    for seen in chapter.seen:
        job = seen.run.unit.job
        for pod in seen.pods:
            pool = job.launcher_pool if pod["metadata"]["labels"][ROLE] == "launcher" else job.worker_pool
            assert pod["spec"]["nodeName"].startswith(f"pool-{pool.name}-")


def test_namespaces_refuse_pods_that_are_not_restricted(chapter: Chapter) -> None:
    # A plain container: it may run as root and keeps its capabilities.
    container = {"name": "c", "image": "registry.example.com/x"}
    for body in chapter.standing:
        if body["kind"] != "Namespace":
            continue
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "bad", "namespace": body["metadata"]["name"]},
            "spec": {"containers": [container]},
        }
        with pytest.raises(ApiError, match="violates PodSecurity"):
            chapter.lab.client.create(pod, dry_run=True)


def test_no_rendered_object_drifts(chapter: Chapter) -> None:
    found = {}
    for body, live in chapter.left:
        lines = drift(body, live)
        if lines:
            found[f"{body['kind']}/{body['metadata']['name']}"] = lines
    assert chapter.left
    assert not found


def _templates(seen: Seen) -> dict[str, Object]:
    runtime = next(body for body in seen.bodies if body["kind"] == "TrainingRuntime")
    return {
        job["name"]: job["template"]["spec"]["template"]
        for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]
    }


def _missing(template: Any, live: Any, path: str) -> list[str]:
    """Return the fields of the template that the pod lacks or changed. Lists of named entries may have
    grown."""
    if isinstance(template, dict):
        return [
            line
            for name, value in template.items()
            for line in (
                _missing(value, live[name], f"{path}.{name}") if name in (live or {}) else [f"{path}.{name}"]
            )
        ]
    if isinstance(template, list) and template and isinstance(template[0], dict):
        key = next(name for name in ("name", "mountPath", "key", "weight", "maxSkew") if name in template[0])
        if key == "name" and "mountPath" in template[0]:
            key = "mountPath"
        present = {item.get(key): item for item in live}
        return [
            line
            for item in template
            for line in _missing(item, present.get(item[key]), f"{path}[{item[key]}]")
        ]
    return [] if template == live else [f"{path}: {template!r} became {live!r}"]


def _selects(policy: Object, labels: dict[str, str]) -> bool:
    wanted = policy["spec"]["podSelector"].get("matchLabels", {})
    return all(labels.get(name) == value for name, value in wanted.items())
