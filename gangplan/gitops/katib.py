"""Katib: a sweep as an Experiment, whose controller chooses the values and creates a TrainJob for each trial.

An Experiment holds one object per trial, so the trials share everything else: the runtime, the files and the
network policies of one run, which here know pods by a label of the runtime instead of the JobSet's name.

Source: kubeflow/katib v0.19.0 (pkg/apis/controller/experiments/v1beta1, pkg/webhook/v1beta1/pod,
pkg/webhook/v1beta1/experiment/validator, pkg/controller.v1beta1/experiment/manifest).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gangplan.errors import UserError
from gangplan.gitops.katib_search import (
    KatibSearch,
    Space,
    build_katib_algorithm,
    build_katib_parameter,
)
from gangplan.model.backend import ANCESTOR_LABEL, DATED_TRAINJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.pods import RUN_NAME_VARIABLE
from gangplan.model.syncing import SCRIPTS, is_engine_annotation
from gangplan.objects import Body, dump_all
from gangplan.plan.names import HASH_LENGTH, HASH_PLACEHOLDER
from gangplan.spec.sweep import Sweep

# The variable with the trial's name, for katib.report_metrics (Python SDK). Trial, TrainJob and JobSet have
# one name, so it does not need the label that Katib's webhook gives to pods of some namespaces.
TRIAL_VARIABLE = "KATIB_TRIAL_NAME"
# No parameter has a dot in its name.
_TRIAL_NAME = "trial.name"
_SPEC_HASH = "gangplan.dev/spec-hash"  # of the placeholders, in the run that is rendered with them
_RUN_NAME, _RUN_NAME_FIELD = f"$({RUN_NAME_VARIABLE})", f"metadata.labels['{TRAINJOB.run_label}']"
IN_COMMAND = "Use parameters in the command and env of ranks only, or keep the sweep."
_OF_RUNS = ("kueue.", "gangplan.dev/run", "gangplan.dev/job")
WORKERS = "node"  # the part of the runtime, for MPI next to the launcher
RANKS = "node"  # the container whose arguments and variables a TrainJob may state (Trainer v2.1 to v2.3)
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# Where report_metrics sends to, and who asks the pod that chooses values (manifests/v1beta1/components); both
# listen on one port number.
_NAMESPACE, _PORT = {"kubernetes.io/metadata.name": "kubeflow"}, 6789
_COMPONENT, _SUGGESTION = "katib.kubeflow.org/component", "katib.kubeflow.org/suggestion"
# The file from which report_metrics reads the namespace (sdk/python/v1beta1/kubeflow/katib/utils/utils.py).
_ACCOUNT_FOLDER, _NAMESPACE_VOLUME = "/var/run/secrets/kubernetes.io/serviceaccount", "katib-namespace"


class PlaceholderRun(NamedTuple):
    """The objects of a run whose parameters have placeholders as values, and the ConfigMap with its launch
    scripts; the names of the run, the sweep and the trial; and the LocalQueue in which trials wait."""

    bodies: Sequence[Body]
    run: str
    sweep: str
    trial: str
    queue: str

    @property
    def job(self) -> str:
        """The name of the trial's job."""
        return f"{self.sweep}-{self.trial}"

    @property
    def scripts(self) -> str | None:
        """The name of the ConfigMap with the launch scripts, if the run has any."""
        labelled = (one["metadata"] for one in self.bodies if SCRIPTS in one["metadata"].get("labels", {}))
        return next((str(one["name"]) for one in labelled), None)


def format_trial_placeholder(name: str) -> str:
    """Return what Katib replaces by a value: `${trialParameters.lr}`."""
    return f"${{trialParameters.{name}}}"


def build_katib_objects(sweep: Sweep, search: KatibSearch, draft: PlaceholderRun) -> list[Body]:
    """Return the objects that trials share, and the Experiment after them.

    Names of pods keep names of sweeps below the 40 characters that Katib accepts. Raises UserError for a
    parameter that changes anything but the command and the variables of ranks.
    """
    shared = f"{draft.sweep}-{HASH_PLACEHOLDER}"
    bodies = [_convert_object_for_katib_trials(body, draft, shared) for body in draft.bodies]
    job = next(body for body in bodies if body["kind"] == TRAINJOB.kind)
    others = [body for body in bodies if body["kind"] != TRAINJOB.kind]
    ranks = _take_katib_rank_settings(others, draft)
    _refuse_stray_values(others, draft)
    if {"args", "env"} & {*job["spec"]["trainer"]}:
        help = "Remove the patch of trainer.args and trainer.env, or keep the sweep."
        raise UserError("a patch of the overlay states what trials state themselves", help)
    _add_katib_namespace_file(others)
    others += _build_katib_network_policies(others, shared)
    metadata = job["metadata"]
    trial = _build_katib_trial_spec(job, ranks, draft)
    # Pods of Katib inherit them, and must not be taken for pods of a run.
    labels = {key: text for key, text in metadata["labels"].items() if not key.startswith(_OF_RUNS)}
    sync = {key: text for key, text in metadata["annotations"].items() if is_engine_annotation(key)}
    experiment: Body = {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {
            "name": shared,
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": sync,
        },
        "spec": {
            "objective": {"type": search.goal, "objectiveMetricName": search.metric},
            "algorithm": build_katib_algorithm(sweep, search),
            "parallelTrialCount": min(sweep.max_concurrent, search.trials),
            "maxTrialCount": search.trials,
            # As in a sweep, a trial that fails ends no other.
            "maxFailedTrialCount": search.trials,
            # Other collectors put the command into a shell, without quotes (wrapWorkerContainer).
            "metricsCollectorSpec": {"collector": {"kind": "Push"}},
            "parameters": [build_katib_parameter(key, of) for key, of in search.space.items()],
            "trialTemplate": {
                "primaryContainerName": RANKS,
                "primaryPodLabels": _find_primary_pod_labels(others),
                "retain": True,  # else a trial's pods and logs go when it ends
                "successCondition": _write_condition(TRAINJOB.ends[0]),
                "failureCondition": _write_condition(TRAINJOB.ends[1]),
                "trialParameters": _list_katib_trial_parameters(trial, search.space),
                "trialSpec": trial,
            },
        },
    }
    return _name_katib_objects_by_content([*others, experiment])


def _name_katib_objects_by_content(bodies: Sequence[Body]) -> list[Body]:
    """Put the hash of the objects into their names.

    Katib refuses changes of an Experiment, except of its number of trials.
    """
    *others, experiment = bodies
    lasting = {key: one for key, one in experiment["spec"].items() if key != "parallelTrialCount"}
    digest = hashlib.sha256(dump_all([*others, {**experiment, "spec": lasting}]).encode()).hexdigest()
    return [_replace_katib_object_texts(body, {HASH_PLACEHOLDER: digest[:HASH_LENGTH]}) for body in bodies]


def _replace_katib_object_texts(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _replace_katib_object_texts(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_replace_katib_object_texts(one, names) for one in value]
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(old, new)
    return value


def _convert_object_for_katib_trials(value: Any, draft: PlaceholderRun, shared: str) -> Any:
    """Return an object of a run as one that all trials share.

    Pods are known by the label of the runtime, which exists before any run. Variables read the run's name
    from the label that JobSet gives to pods (v0.10 to v0.12). The launch scripts get a name of their own, as
    rendered/ may drop its ConfigMap.
    """
    if isinstance(value, Mapping):
        found = {key: _convert_object_for_katib_trials(one, draft, shared) for key, one in value.items()}
        if value.get(TRAINJOB.run_label) == draft.run:
            found[DATED_TRAINJOB.run_label] = found.pop(TRAINJOB.run_label)
        if "topologyKey" in value and found != value:  # near or far from pods of the same trial
            found["matchLabelKeys"] = [TRAINJOB.run_label]
        if isinstance(value.get("env"), list):
            found["env"] = _read_katib_run_name_from_label(value["env"], draft)
        return found
    if isinstance(value, list):
        return [_convert_object_for_katib_trials(one, draft, shared) for one in value]
    if isinstance(value, str):
        if value == draft.job:
            return draft.sweep
        if value == draft.scripts:
            return f"{shared}-launch"
        if value.startswith(draft.run):
            return shared + value.removeprefix(draft.run)
    return value


def _read_katib_run_name_from_label(env: Sequence[Body], draft: PlaceholderRun) -> list[Body]:
    own = {"name": RUN_NAME_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": _RUN_NAME_FIELD}}}
    found = [
        {**one, "value": one["value"].replace(draft.run, _RUN_NAME).replace(draft.job, _RUN_NAME)}
        if isinstance(one.get("value"), str)
        else dict(one)
        for one in env
    ]
    is_read = any(_RUN_NAME in str(one.get("value")) for one in found)
    # A variable may use only those before it.
    return [own, *found] if is_read and own not in found else found


def _iterate_jobs(bodies: Sequence[Body]) -> Iterator[Body]:
    """Yield the parts of the runtime that become Jobs."""
    for body in bodies:
        if body["kind"] == RUNTIME_KIND:
            yield from body["spec"]["template"]["spec"]["replicatedJobs"]


def _is_of_ranks(job: Body) -> bool:
    """Return whether Trainer gives the arguments and variables of a TrainJob to a part of the runtime."""
    labels = job["template"].get("metadata", {}).get("labels", {})
    return bool(labels.get(ANCESTOR_LABEL) == "trainer")


def _take_katib_rank_settings(bodies: Sequence[Body], draft: PlaceholderRun) -> Body:
    """Take the arguments of ranks, and their variables with placeholders, out of the runtime: each trial
    states its own.

    Workers of MPI lose these variables, too: their ranks get them from the launcher.
    """
    found: Body = {}
    for job in _iterate_rank_jobs(bodies):
        container = _find_rank_container(job)
        env = container.get("env", [])
        varied = [one for one in env if _has_placeholder(one, draft)]
        if varied:
            container["env"] = [one for one in env if one not in varied]
        if _is_of_ranks(job):
            found = {"args": container.pop("args"), **({"env": varied} if varied else {})}
    return found


def _iterate_rank_jobs(bodies: Sequence[Body]) -> Iterator[Body]:
    """Yield the part of the runtime that starts the program, and for MPI the workers."""
    return (job for job in _iterate_jobs(bodies) if _is_of_ranks(job) or job["name"] == WORKERS)


def _find_rank_container(job: Body) -> Body:
    pods: Body = job["template"]["spec"]["template"]["spec"]
    container: Body = next(one for one in pods["containers"] if one["name"] == RANKS)
    return container


def _add_katib_namespace_file(bodies: Sequence[Body]) -> None:
    """Give programs the file from which report_metrics reads the namespace, where no account does."""
    for job in _iterate_rank_jobs(bodies):
        pods = job["template"]["spec"]["template"]["spec"]
        if pods.get("automountServiceAccountToken") is not False:
            continue
        items = [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
        mount = {"name": _NAMESPACE_VOLUME, "mountPath": _ACCOUNT_FOLDER, "readOnly": True}
        container = _find_rank_container(job)
        container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
        volume = {"name": _NAMESPACE_VOLUME, "downwardAPI": {"items": items}}
        pods["volumes"] = [*pods.get("volumes", []), volume]


def _has_placeholder(value: Any, draft: PlaceholderRun) -> bool:
    return any(
        "${trialParameters." in text or draft.trial in text for text in _iterate_katib_object_texts(value)
    )


def _iterate_katib_object_texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _iterate_katib_object_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _iterate_katib_object_texts(one)
    elif isinstance(value, str):
        yield value


def _build_katib_network_policies(bodies: Sequence[Body], shared: str) -> list[Body]:
    """Return the policies that let ranks send metrics, and Katib ask the pod that chooses values."""
    policy = next((body for body in bodies if body["kind"] == "NetworkPolicy"), None)
    if policy is None:
        return []

    def build(suffix: str, pods: Body, direction: str, peer: str, component: str) -> Body:
        other = {
            "podSelector": {"matchLabels": {_COMPONENT: component}},
            "namespaceSelector": {"matchLabels": _NAMESPACE},
        }
        rule = {peer: [other], "ports": [{"protocol": "TCP", "port": _PORT}]}
        return {
            **policy,
            "metadata": {**policy["metadata"], "name": f"{shared}-{suffix}"},
            "spec": {
                "podSelector": {"matchLabels": pods},
                "policyTypes": [direction],
                direction.lower(): [rule],
            },
        }

    ranks = {DATED_TRAINJOB.run_label: shared}
    return [
        build("metrics", ranks, "Egress", "to", "db-manager"),
        build("suggestion", {_SUGGESTION: shared}, "Ingress", "from", "controller"),
    ]


def _refuse_stray_values(bodies: Sequence[Body], draft: PlaceholderRun) -> None:
    """Refuse parameters in what trials share. Raises UserError."""
    for place, value in _iterate_katib_shared_parts(bodies):
        if _has_placeholder(value, draft):
            raise UserError(f"trials of an Experiment share what a parameter changes: {place}", IN_COMMAND)


def _iterate_katib_shared_parts(bodies: Sequence[Body]) -> Iterator[tuple[str, Any]]:
    """Yield the containers of the runtime, then all objects, each with words that name it."""
    for job in _iterate_jobs(bodies):
        pods = job["template"]["spec"]["template"]["spec"]
        for one in (*pods.get("initContainers", []), *pods["containers"]):
            for field, value in one.items():
                yield f"{field} of container '{one['name']}' in pods '{job['name']}'", value
    for body in bodies:
        yield f"the {body['kind']}", body


def _build_katib_trial_spec(job: Body, ranks: Body, draft: PlaceholderRun) -> Body:
    """Return the TrainJob that Katib creates for each trial and gives its name to."""
    metadata = job["metadata"]
    annotations = {
        key: text
        for key, text in metadata["annotations"].items()
        if not is_engine_annotation(key) and key != _SPEC_HASH
    }
    labels = {**metadata["labels"]}
    if QUEUE_LABEL in labels:
        labels[QUEUE_LABEL] = draft.queue
    spec = {**job["spec"], "trainer": {**job["spec"]["trainer"], **ranks}}
    trial = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": spec,
    }
    name = format_trial_placeholder(_TRIAL_NAME)
    found: Body = _replace_katib_object_texts(trial, dict.fromkeys((draft.run, draft.job, draft.trial), name))
    return found


def _list_katib_trial_parameters(trial: Body, space: Space) -> list[Body]:
    """Return the placeholders of the trial and what fills them. Katib refuses those that are not used."""
    found = [{"name": name, "reference": name} for name in space]
    name = format_trial_placeholder(_TRIAL_NAME)
    if any(name in text for text in _iterate_katib_object_texts(trial)):
        found.append({"name": _TRIAL_NAME, "reference": "${trialSpec.Name}"})
    return found


def _find_primary_pod_labels(bodies: Sequence[Body]) -> Body:
    """Return the labels of the pod with the program that reports: the launcher, or the first worker."""
    name = next(job["name"] for job in _iterate_jobs(bodies) if _is_of_ranks(job))
    return {TRAINJOB.role_label: name, TRAINJOB.index_label: "0"}


def _write_condition(kind: str) -> str:
    """Return the query for a condition that is true (GJSON, as in experiments/v1beta1/constants.go)."""
    return f'status.conditions.#(type=="{kind}")#|#(status=="True")#'
