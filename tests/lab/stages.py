"""What simulated nodes and pods do: KWOK Stage objects.

By default, a pod becomes Ready at once and a Job's pod succeeds a second later, except MPI workers (pods
other than the launcher whose command names ``sshd``), which serve until they are deleted. A `Story`, or the
annotations ``lab.gangplan.dev/plot`` and ``lab.gangplan.dev/after`` on a pod, change that.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Object = dict[str, Any]
Expression = dict[str, Any]

PLOT = "lab.gangplan.dev/plot"
# An annotation of pods that stay once they are deleted, so that a test can look at them.
STAYS = "lab.gangplan.dev/stays"
AFTER = "lab.gangplan.dev/after"
MPI_ROLE = "training.kubeflow.org/job-role"
ROLE = "jobset.sigs.k8s.io/replicatedjob-name"

_FOREVER = 10**9
_ALIVE: Expression = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
_NEW: Expression = {"key": ".status.containerStatuses", "operator": "DoesNotExist"}
_RUNNING: Expression = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
_READY: Expression = {
    "key": '.status.conditions.[] | select( .type == "Ready" ) | .status',
    "operator": "In",
    "values": ["True"],
}
_OF_JOB: Expression = {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]}
_SERVES = '.spec.containers[] | [.command[]?, .args[]?] | join(" ") | select(test("sshd"))'
_ADDRESSES = """
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" )
  ( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
startTime: {{ Now | Quote }}
"""


class Plot(StrEnum):
    """What can happen to a pod."""

    FINISH = "finish"
    FAIL = "fail"
    EVICT = "evict"
    RUN = "run"
    NEVER_READY = "never-ready"
    PENDING = "pending"


@dataclass(frozen=True)
class Story:
    """A plot for some pods: those of a namespace, a run, a role, an attempt, an index.

    ``after`` counts seconds from when the pod became Ready.
    """

    plot: Plot
    after: float = 1.0
    namespace: str | None = None
    run: str | None = None
    role: str | None = None
    attempt: int | None = None
    index: int | None = None

    @property
    def name(self) -> str:
        """A unique name for the story's Stage."""
        parts = (self.plot, self.namespace, self.run, self.role, self.attempt, self.index)
        return "story-" + "-".join("any" if part is None else str(part) for part in parts)

    def labels(self) -> dict[str, str]:
        """Return the labels of the story's pods."""
        labels = {
            "jobset.sigs.k8s.io/jobset-name": self.run,
            ROLE: self.role,
            "jobset.sigs.k8s.io/restart-attempt": self.attempt,
            "batch.kubernetes.io/job-completion-index": self.index,
        }
        return {key: str(value) for key, value in labels.items() if value is not None}

    def selector(self) -> str:
        """Return a label selector for the story's pods."""
        return ",".join(f"{key}={value}" for key, value in self.labels().items())

    def stage(self) -> Object:
        """Return the story as a Stage, which outweighs the usual course."""
        where: Expression = {"key": ".metadata.namespace", "operator": "In", "values": [self.namespace]}
        selector: Object = {
            "matchLabels": self.labels(),
            "matchExpressions": [where] if self.namespace else [],
        }
        return _plot(self.name, self.plot, selector, weight=10, delay={"durationMilliseconds": self._delay()})

    def _delay(self) -> int:
        return _FOREVER if self.plot is Plot.RUN else int(self.after * 1000)


def usual() -> list[Object]:
    """Return the stages of every lab, including those for annotated pods."""
    role_is_launcher = {"key": f'.metadata.labels["{ROLE}"]', "operator": "In", "values": ["launcher"]}
    is_of_operator = {"key": f'.metadata.labels["{MPI_ROLE}"]', "operator": "In", "values": ["launcher"]}
    serves_not = {"key": _SERVES, "operator": "DoesNotExist"}
    second = {"durationMilliseconds": 1000}
    begin = [_ALIVE, _NEW]
    finish = [_ALIVE, _RUNNING, _READY, _OF_JOB]
    return [
        _stage("pod-start", {"matchExpressions": begin}, _status("Running", "running", ready=True)),
        _stage("pod-finish", {"matchExpressions": [*finish, serves_not]}, _ended(0), delay=second),
        _stage("launcher-finish", {"matchExpressions": [*finish, role_is_launcher]}, _ended(0), delay=second),
        _stage(
            "mpi-launcher-finish", {"matchExpressions": [*finish, is_of_operator]}, _ended(0), delay=second
        ),
        _deletion(),
        *(_annotated(plot) for plot in Plot),
    ]


def _annotated(plot: Plot) -> Object:
    """Return the stage for pods with a plot as an annotation."""
    after: Object = {"expressionFrom": f'.metadata.annotations["{AFTER}"]'}
    delay = {"durationMilliseconds": _FOREVER if plot is Plot.RUN else 1000, "durationFrom": after}
    return _plot(f"annotated-{plot}", plot, {"matchAnnotations": {PLOT: str(plot)}}, weight=100, delay=delay)


def _plot(name: str, plot: Plot, selector: Object, *, weight: int, delay: Object) -> Object:
    """Return the stage of a plot for the pods of a selector."""
    at_start = {Plot.NEVER_READY: _status("Running", "running", ready=False), Plot.PENDING: _waiting()}
    while_running = {
        Plot.FINISH: _ended(0),
        Plot.FAIL: _ended(1),
        Plot.RUN: _status("Running", "running", ready=True),
        Plot.EVICT: _evicted(),
    }
    expressions = [*selector.get("matchExpressions", ()), _ALIVE]
    if plot in at_start:
        chosen = {**selector, "matchExpressions": [*expressions, _NEW]}
        return _stage(name, chosen, at_start[plot], weight=weight)
    chosen = {**selector, "matchExpressions": [*expressions, _RUNNING, _READY]}
    return _stage(name, chosen, while_running[plot], weight=weight, delay=delay)


def _stage(
    name: str, selector: Object, status: str, *, weight: int = 0, delay: Object | None = None
) -> Object:
    """Return a Stage that writes a pod's status."""
    spec: Object = {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": selector,
        "weight": weight,
        "next": {"statusTemplate": status},
    }
    if delay:
        spec["delay"] = delay
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def _deletion() -> Object:
    """Return the stage that removes a deleted pod at once, with its finalizers."""
    gone = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
    may_go = {"key": f'.metadata.annotations["{STAYS}"]', "operator": "DoesNotExist"}
    stage = _stage("pod-delete", {"matchExpressions": [gone, may_go]}, "")
    stage["spec"]["next"] = {"finalizers": {"empty": True}, "delete": True}
    return stage


def _conditions(ready: bool, extra: str = "") -> str:
    """Return the pod conditions as a template."""
    states = (("Initialized", True), ("ContainersReady", ready), ("Ready", ready))
    lines = [_condition(kind, state) for kind, state in states]
    gates = [
        "{{ range .spec.readinessGates }}",
        _condition("{{ .conditionType | Quote }}", ready),
        "{{ end }}",
    ]
    return "\n".join(["conditions:", *lines, *gates, extra, ""])


def _condition(kind: str, state: bool) -> str:
    return f'- {{type: {kind}, status: "{state}", lastTransitionTime: {{{{ Now | Quote }}}}}}'


def _containers(state: str, ready: bool) -> str:
    """Return the container statuses as a template, every container in one state."""
    return f"""containerStatuses:
{{{{ range .spec.containers }}}}
- image: {{{{ .image | Quote }}}}
  name: {{{{ .name | Quote }}}}
  ready: {str(ready).lower()}
  started: {str(ready).lower()}
  restartCount: 0
  state:
    {state}
{{{{ end }}}}
initContainerStatuses:
{{{{ range .spec.initContainers }}}}
- image: {{{{ .image | Quote }}}}
  name: {{{{ .name | Quote }}}}
  ready: true
  restartCount: 0
  state:
    {{{{ if eq (or .restartPolicy "") "Always" }}}}
    running: {{startedAt: {{{{ Now | Quote }}}}}}
    {{{{ else }}}}
    {_terminated(0, "Completed")}
    {{{{ end }}}}
{{{{ end }}}}
"""


def _terminated(code: int, reason: str) -> str:
    now = "{{ Now | Quote }}"
    return f"terminated: {{exitCode: {code}, reason: {reason}, startedAt: {now}, finishedAt: {now}}}"


def _status(phase: str, state: str, *, ready: bool) -> str:
    """Return the status of a started pod."""
    containers = _containers(f"{state}: {{startedAt: {{{{ Now | Quote }}}}}}", ready)
    return f"phase: {phase}\n{_conditions(ready)}{containers}{_ADDRESSES}"


def _ended(code: int) -> str:
    """Return the status of a pod whose containers ended with an exit code."""
    phase, reason = ("Failed", "Error") if code else ("Succeeded", "Completed")
    return f"phase: {phase}\n{_conditions(False)}{_containers(_terminated(code, reason), False)}"


def _evicted() -> str:
    """Return the status of a pod that the node evicted."""
    target = """
- type: DisruptionTarget
  status: "True"
  reason: TerminationByKubelet
  message: The node was low on resource memory.
  lastTransitionTime: {{ Now | Quote }}"""
    message = 'reason: Evicted\nmessage: "The node was low on resource: memory."\n'
    containers = _containers(_terminated(137, "Error"), False)
    return f"phase: Failed\n{message}{_conditions(False, target)}{containers}"


def _waiting() -> str:
    """Return the status of a pod whose image can't be pulled."""
    return "phase: Pending\n" + _containers("waiting: {reason: ImagePullBackOff}", False)
