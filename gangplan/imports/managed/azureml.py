"""Read jobs of Azure ML: command jobs of the CLI (v2) and steps of pipelines.

Command jobs are YAML, or what `az ml job show` prints.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.made import OriginValue
from gangplan.imports.managed.azureml_sweep import SweptAccount, read_azureml_search_trials
from gangplan.imports.managed.azureml_tables import (
    AZUREML_ASKED,
    AZUREML_ASKED_BELOW,
    AZUREML_DROPPED,
    AZUREML_DROPPED_BELOW,
)
from gangplan.imports.managed.pod import ManagedPod, build_claim_name
from gangplan.imports.managed.rest import (
    EXPRESSION_PATTERN,
    count_managed_job_processes,
    find_managed_job_data_store,
    map_managed_job_tag,
    mark_managed_job_fields_at_path,
)
from gangplan.imports.sources import OtherObject
from gangplan.imports.trials import build_parameter_mark as mark_of
from gangplan.imports.workload import Hint, PodRole, SourceError, SourceJob, SourceSetting, StartMethod

_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
_STARTS: dict[str, StartMethod] = {"mpi": "mpi", "pytorch": "torch", "tensorflow": "plain"}
# Images of Microsoft's curated environments (learn.microsoft.com/azure/machine-learning/resource-curated-environments).
_CURATED = re.compile(
    r"azureml://registries/azureml/environments/(?P<name>[^/]+)/(?:versions|labels)/(?P<version>[^/]+)"
    r"|azureml:(?P<older>AzureML-[\w.-]+)[:@](?P<label>[\w.-]+)"
)
_DATA_TYPES = frozenset(
    {"uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model", "path"}
)


def is_azureml_command_job(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a command job."""
    if not isinstance(value.get("command"), str) or value.get("kind") is not None:
        return False
    schema = str(value.get("$schema", ""))
    return (
        "commandJob" in schema
        or value.get("type") == "command"
        or ("environment" in value and "$schema" not in value)
    )


def read_azureml(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a command job.

    Raises SourceError for what is not a single run: Ray, or a step of a search.
    """
    return _Job(account).workload()


class _Job:
    def __init__(self, account: Account) -> None:
        self.account, self.root = account, account.root()
        self.managed = ManagedPod(account)
        self.values: dict[str, str] = {}

    def workload(self) -> SourceJob:
        """Return the workload, with every field in its account."""
        root = self.root
        kind = root["distribution"]["type"].text().lower().replace("_", "")
        if kind and kind not in _STARTS:
            raise SourceError(
                f"its distribution is {kind}, which a run does not have",
                "Start the cluster's programs as a spec of your own.",
            )
        name = root["name"].text() or root["display_name"].text() or root["experiment_name"].text()
        start = _STARTS.get(kind, "plain")
        work = SourceJob("AzureML", name or "job", start, self.account, ())
        work.others, work.framework = (
            getattr(self.account, "others", ()),
            kind if kind == "tensorflow" else "",
        )
        if isinstance(self.account, SweptAccount):
            work.trials = read_azureml_search_trials(self.account.search, work.questions)
        count = root["resources"]["instance_count"]
        workers = max(1, count.count() or 1)
        work.settings["workers"] = SourceSetting(workers, count.mapped("workers") if count else root)
        self._machine(work)
        self._ranks(work, kind)
        self._image(work)
        self._data(work)
        self._command(work)
        for key, node in root["environment_variables"].fields():
            self.managed.env.append((key, self._filled(node.text(), work, node), node))
        work.roles = (PodRole("worker", workers, self.managed.pod()),)
        self._policies(work)
        for tables, how in (
            ((AZUREML_DROPPED_BELOW, AZUREML_DROPPED), "dropped"),
            ((AZUREML_ASKED_BELOW, AZUREML_ASKED), "asked"),
        ):
            for table in tables:
                for path, why in table.items():
                    mark_managed_job_fields_at_path(root, path.split("."), how, why)
        if not kind:
            work.again = partial(_set_start_method, work)
        return work

    def _machine(self, work: SourceJob) -> None:
        root = self.root
        machine, compute = root["resources"]["instance_type"], root["compute"]
        if machine:
            self.managed.machine, self.managed.machine_node = machine.text(), machine
            work.hints.append(Hint("machine", machine.text(), machine))
        if compute:
            bare = re.sub(r"^azureml:", "", compute.text()).rpartition("/")[2].partition("@")[0]
            work.hints.append(Hint("pool", bare, compute))

    def _ranks(self, work: SourceJob, kind: str) -> None:
        """Map processes per machine; without a machine type, a machine is assumed to have as many GPUs."""
        distribution = self.root["distribution"]
        distribution["type"].mapped("framework")
        per = distribution["process_count_per_instance"]
        count = per.count()
        work.starts_ranks = kind == "mpi"
        if kind == "pytorch" and not self.managed.machine:
            gpus = max(
                count or 1, count_managed_job_processes(self.root, int(work.settings["workers"].value))
            )
            self.managed.gpus, self.managed.machine_node = gpus, per if per else distribution
            work.questions.append(
                (
                    per or distribution,
                    f"nothing says how many GPUs a machine of the compute target has; {gpus} are assumed, one for each process",
                    "Correct gpus.",
                )
            )
        if kind in ("mpi", "pytorch"):
            usual = self.managed.gpu_count if kind == "pytorch" else 1
            work.settings["slots"] = SourceSetting(
                count or usual or 1, per.mapped("slots") if per else distribution
            )
        for name in ("parameter_server_count", "worker_count"):
            node = distribution[name]
            if node.number() in (0, work.settings["workers"].value) or (name == "worker_count" and node):
                node.mapped("workers")
            elif node:
                node.asked("a run has workers alone; MultiWorkerMirroredStrategy needs no parameter servers")

    def _image(self, work: SourceJob) -> None:
        environment = self.root["environment"]
        if environment["image"]:
            self.managed.image = OriginValue(environment["image"].text(), environment["image"])
            return
        found = _CURATED.search(environment.text())
        if found:
            name = (found["name"] or found["older"]).lower()
            version = found["version"] or found["label"]
            self.managed.image = OriginValue(
                f"mcr.microsoft.com/azureml/curated/{name}:{version}", environment
            )
        elif environment and not isinstance(environment.value, dict):
            environment.asked(
                "the environment is kept by the workspace; --image names its image in the catalog"
            )
        if environment["conda_file"]:
            why = "packages of the conda file have to be in the image"
            work.questions.append(
                (environment["conda_file"], why, "Build an image with them, and list it in the catalog.")
            )

    def _data(self, work: SourceJob) -> None:
        """Map inputs and outputs: data become claims of the team, everything else a value."""
        for name, node in self.root["inputs"].fields():
            self._input(name, node, work)
        for name, node in self.root["outputs"].fields():
            folder = f"/outputs/{name}"
            place = node["path"] if node["path"] else node["type"] if node["type"] else node
            self._claim(
                find_managed_job_data_store(node["path"].text()) or self.root["name"].text() or "outputs",
                name,
                folder,
                False,
                place,
                work,
            )
            self.values[f"outputs.{name}"] = folder
            if not isinstance(node.value, dict):
                node.mapped(f"data.{build_claim_name('outputs', name)}")

    def _input(self, name: str, node: SourceNode, work: SourceJob) -> None:
        path, kind = node["path"], node["type"].text()
        handed = EXPRESSION_PATTERN.fullmatch((path or node).text())
        if handed is not None:
            self._handed(name, handed[1], path or node, work)
            return
        if _has_no_value(node):
            node.mapped("command")  # its part of the command is left out; a required one is asked about
            return
        if isinstance(node.value, dict) and (path or kind in _DATA_TYPES):
            folder = f"/inputs/{name}"
            is_file = kind == "uri_file"
            self.values[f"inputs.{name}"] = (
                f"{folder}/{posixpath.basename(path.text())}" if is_file and path else folder
            )
            self._claim(
                find_managed_job_data_store(path.text()),
                name,
                folder,
                node["mode"].text() not in ("rw_mount", "upload"),
                path or node,
                work,
            )
        elif node.text().startswith(("azureml:", "wasbs://", "abfss://")):
            folder = f"/inputs/{name}"
            self.values[f"inputs.{name}"] = folder
            self._claim(find_managed_job_data_store(node.text()), name, folder, True, node, work)
        elif isinstance(node.value, dict):
            value = node["value"] if node["value"] else node["default"]
            self.values[f"inputs.{name}"] = value.text()
            node.mapped("command")
        else:
            self.values[f"inputs.{name}"] = node.text()
            node.mapped("command")

    def _handed(self, name: str, what: str, node: SourceNode, work: SourceJob) -> None:
        """Map an input that the pipeline passes: another step's output is on its claim, else ask."""
        found = re.fullmatch(r"parent\.jobs\.([\w-]+)\.outputs\.([\w-]+)", what)
        self.values[f"inputs.{name}"] = f"/inputs/{name}" if found else node.text()
        if found:
            claim = build_claim_name(*found.groups())
            self.managed.mounts.append((claim, f"/inputs/{name}", False, node))
            work.claims = {**work.claims, claim: ("ReadWriteMany",)}
            node.mapped(f"data.{claim}")
        else:
            node.asked("the pipeline gives its value")
            work.questions.append(
                (node, f"the pipeline gives the value of {name}", "Write it into the command.")
            )

    def _claim(
        self, store: str, name: str, folder: str, reads: bool, node: SourceNode, work: SourceJob
    ) -> None:
        claim = build_claim_name(store, name)
        self.managed.mounts.append((claim, folder, reads, node))
        node.mapped(f"data.{claim}")
        work.claims = {**work.claims, claim: ("ReadOnlyMany",) if reads else ("ReadWriteMany",)}
        what = node.text() if ":" in node.text() or "/" in node.text() else "the workspace's store"
        message = (
            f"{folder} holds what is at {what}" if reads else f"what is written to {folder} went to {what}"
        )
        work.questions.append(
            (
                node,
                message,
                f"Put the files on the claim {claim}, or let a CSI driver show the container as a claim."
                if reads
                else f"A run writes to the claim {claim}; copy it from there.",
            )
        )

    def _filled(self, text: str, work: SourceJob, node: SourceNode) -> str:
        """Return a text with its placeholders filled in; ask about those without a value."""
        text = _OPTIONAL.sub(
            lambda found: (
                found[1] if all(one in self.values for one in EXPRESSION_PATTERN.findall(found[1])) else ""
            ),
            text,
        )

        def value(found: re.Match[str]) -> str:
            name = found[1].replace("['", ".").replace("']", "")
            if name.startswith("search_space.") and work.trials is not None:
                return mark_of(name.removeprefix("search_space."))
            if name.startswith("search_space."):
                raise SourceError(
                    f"{found[0]} is a value of a search, and a run is one trial",
                    "Write the value of one trial.",
                )
            if name in self.values:
                return self.values[name]
            work.questions.append(
                (node, f"nothing says what {found[0]} is", "Write its value into the command.")
            )
            return found[0]

        return EXPRESSION_PATTERN.sub(value, text)

    def _command(self, work: SourceJob) -> None:
        command = self.root["command"]
        text = self._filled(command.text().strip(), work, command)
        self.managed.command, self.managed.command_node = ("bash", "-c", text), command
        code = self.root["code"]
        if code:
            why = f"the code of {code.text() or 'the job'} is uploaded with the job, and the program starts in it"
            code.asked(why)
            work.questions.append((code, why, "Put it into the image, and name its folder: workdir."))

    def _policies(self, work: SourceJob) -> None:
        root = self.root
        limit = root["limits"]["timeout"]
        if (seconds := limit.number()) is not None:
            work.settings["timeout"] = SourceSetting(seconds, limit)
        priority = root["queue_settings"]["priority"]
        if priority:
            level = {"low": "low", "medium": "normal", "high": "high"}.get(
                priority.text().lower(), priority.text()
            )
            work.settings["priority"] = SourceSetting(level, priority)
        for name in ("name", "display_name"):
            root[name].mapped("name")
        if root["description"]:
            text = " ".join(root["description"].text().split())
            work.settings["description"] = SourceSetting(
                text[:2000], root["description"].mapped("description")
            )
        for key, node in root["tags"].fields():
            map_managed_job_tag(key, node, work)


def _has_no_value(node: SourceNode) -> bool:
    """Return whether an input has neither a value nor a default; data have one unless they are optional."""
    if not isinstance(node.value, dict):
        return not node
    if any(node[name] for name in ("path", "value", "default")):
        return False
    return node["type"].text() not in _DATA_TYPES or node["optional"].value is True


def _set_start_method(work: SourceJob, start: StartMethod) -> None:
    work.start = start
