"""Map what a source does before workers start: Trainer's initializers, and jobs that workers depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from gangplan.imports.account import SourceNode
from gangplan.imports.amounts import convert_imported_cores, convert_imported_memory
from gangplan.imports.containers import account_for_container_mounts, account_for_container_security
from gangplan.imports.draft import SpecDraft
from gangplan.imports.environment import convert_env_value_to_spec, suggest_team_reference
from gangplan.imports.images import find_catalog_name_of_image
from gangplan.imports.pods import read_imported_pod_template
from gangplan.imports.workload import SetupStep
from gangplan.resolve.roles import TAKEN_ROLE_NAMES
from gangplan.resolve.tenant import find_default_class
from gangplan.workspace import CATALOG

# Where Trainer's initializers write, and the volume that their pods share with the workers (Trainer v2.1 to
# v2.3, pkg/initializers/utils/utils.py, plugins/jobset/constants).
WORKSPACE, VOLUME = "/workspace", "initializer"
# The variable with their token of Hugging Face: all keys of the secret become variables.
TOKEN = "ACCESS_TOKEN"
_NAME, _MOST = r"[a-z]([-a-z0-9]{0,18}[a-z0-9])?", 4
_HUB = re.compile(r"hf://([A-Za-z0-9][-A-Za-z0-9_.]*/[A-Za-z0-9][-A-Za-z0-9_.]*)")
_OWN = "a run makes the pods of its steps"


def find_source_jobs_before_leads(jobs: Mapping[str, SourceNode], leads: tuple[str, ...]) -> list[str]:
    """Return the replicated jobs that must be complete before any of `leads` starts, in order."""
    found, left = set[str](), list(leads)
    while left:
        job = jobs.get(left.pop())
        for one in job["dependsOn"].items() if job is not None else ():
            name = one["name"].text()
            if one["status"].text() == "Complete" and name in jobs and name not in found:
                found.add(name)
                left.append(name)
    return [name for name in jobs if name in found]


def convert_replicated_job_to_step(job: SourceNode) -> SetupStep | None:
    """Return a replicated job of one pod as a step; None for several pods, or none."""
    template = job["template"]["spec"]
    pod = read_imported_pod_template(template["template"])
    counts = [job["replicas"], template["parallelism"], template["completions"]]
    if pod is None or any(one.number() not in (None, 1) for one in counts):
        return None
    return SetupStep(job["name"].text(), job, pod)


def map_imported_steps(draft: SpecDraft) -> None:
    """Set the steps of the spec, in the order of the source: fetches to a claim, and commands."""
    for step in draft.work.before:
        entry = (
            _convert_initializer_step(draft, step)
            if step.fetches
            else _convert_job_to_command_step(draft, step)
        )
        if entry is None:
            continue
        if len(draft.values.get("steps", ())) == _MOST:
            draft.ask(step.node, "a run has four steps at most", "Do several things in one.")
            continue
        draft.values.setdefault("steps", []).append(entry)
        draft.origins.setdefault("steps", step.node)
        for name in ("name", "replicas", "dependsOn", "groupName"):
            step.node[name].dropped("steps are done one after the other, before the workers")
        step.node.dropped(_OWN)


def _convert_initializer_step(draft: SpecDraft, step: SetupStep) -> dict[str, Any] | None:
    """Return the step for an initializer of Trainer: what it fetches to which folder, with which token."""
    settings = step.settings
    uri = (
        settings["storageUri"]
        if settings is not None and settings["storageUri"]
        else step.stated("STORAGE_URI")
    )
    where, text = (uri, uri.text()) if uri is not None else (step.node, "")
    folder = f"{_map_initializer_volume_to_claim(draft, step)}/{step.fetches}"
    entry: dict[str, Any] = {"name": step.fetches}
    if found := _HUB.match(text):
        entry |= {"fetch": f"hf://{'datasets/' if step.fetches == 'dataset' else ''}{found[1]}", "to": folder}
        _map_fetch_token_secret(draft, step, entry)
        _ask_about_huggingface_egress(draft, where)
    elif text.startswith("s3://"):
        entry |= {"fetch": _map_source_bucket_to_connection(draft, step, text, where), "to": folder}
    else:
        message = f"a step fetches from Hugging Face or S3, and not {text or 'what the initializer has in its image'}"
        draft.ask(where, message, "Write a step with a command that does it.")
        return None
    where.mapped("steps")
    entry |= _select_fetching_image(draft, "hf" if found else "s3", where)
    if settings is not None:
        for one in settings["env"].items():
            one.asked("a step fetches all files of its source, with the keys of the team's file")
    if step.fetches == "model" and found:
        why = "Trainer's initializer fetches *.json, *.safetensors, *.model and *.txt of a model; a step fetches all files"
        draft.wonder(where, why, "Check that the claim has room for them.")
    return entry


def _map_initializer_volume_to_claim(draft: SpecDraft, step: SetupStep) -> str:
    """Return the folder of the claim that replaces the source's volume."""
    data: dict[str, str] = draft.values.get("data", {})
    main = draft.work.workers.pod.main
    mount = next((one for one in main.mounts if one.name == VOLUME), None)
    path = mount.path.rstrip("/") if mount is not None else WORKSPACE
    if path not in data.values():
        size = draft.work.room or "100Gi"
        name = f"{draft.name.removeprefix('migrated-')[:50].rstrip('-')}-data"
        draft.put(f"data/{name}", path)
        entry: dict[str, Any] = {"accessModes": ["ReadWriteMany"]}
        if all(map(find_default_class, draft.home.clusters.values())):
            entry["size"] = size  # otherwise it must exist: a claim that gangplan creates needs a class
        why = "what is fetched before the workers start, for all runs that use the same"
        draft.suggest(draft.team_file, ("claims", name), entry, why, step.node)
        draft.wonder(
            step.node,
            f"the source fetches to a volume of the run's own; a run fetches to claim {name}, of {size}, once for all runs",
            f"Correct claims.{name} in {draft.team_file}, or use a claim that is there.",
        )
    if mount is not None:
        mount.node.account.remark(mount.node.path, "mapped", "data", "")
    return path


def _map_fetch_token_secret(draft: SpecDraft, step: SetupStep, entry: dict[str, Any]) -> None:
    secret = step.settings["secretRef"]["name"] if step.settings is not None else None
    if secret is not None and secret:
        entry["secret"] = f"{secret.text()}/{TOKEN}"
        suggest_team_reference(draft, "secrets", secret.text(), secret)
        secret.mapped("steps")


def _ask_about_huggingface_egress(draft: SpecDraft, node: SourceNode) -> None:
    """Ask about clusters without access to Hugging Face, whose addresses no source states."""
    for name, cluster in draft.home.clusters.items():
        if not {"huggingface", "internet"} & set(cluster.egress) and cluster.proxy is None:
            draft.wonder(
                node,
                f"cluster {name} offers no endpoint huggingface, through which the step fetches",
                f"State its addresses, or a mirror's, under egress in overlays/{name}/cluster.yaml.",
            )


def _map_source_bucket_to_connection(draft: SpecDraft, step: SetupStep, text: str, node: SourceNode) -> str:
    """Return the team's connection for a bucket, with the path in it; without one, suggest it."""
    parts = urlsplit(text)
    bucket, path = parts.netloc, parts.path.strip("/")
    for name, one in draft.home.of_team.connections.items():
        prefix = one.prefix.strip("/")
        if (
            one.type == "s3"
            and one.bucket == bucket
            and f"{path}/".startswith(f"{prefix}/" if prefix else "")
        ):
            return f"{name}/{path[len(prefix) :].strip('/')}".rstrip("/")
    name = re.sub(r"[^a-z0-9]+", "-", bucket.lower()).strip("-")
    entry: dict[str, Any] = {"bucket": bucket}
    secret = step.settings["secretRef"]["name"] if step.settings is not None else None
    if secret is not None and secret:
        entry["secret"] = secret.text()
        suggest_team_reference(draft, "secrets", secret.text(), secret)
        secret.mapped("connections")
    draft.suggest(draft.team_file, ("connections", name), entry, f"the run fetches from {bucket}", node)
    draft.wonder(
        node,
        f"where bucket {bucket} is, and the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of its secret, are not known here",
        f"Complete connections.{name} in {draft.team_file}: endpoint, region, secret.",
    )
    return f"{name}/{path}".rstrip("/")


def _select_fetching_image(draft: SpecDraft, kind: str, node: SourceNode) -> dict[str, str]:
    """Return an image of the catalog that can fetch; else the job's, whose entry must say that it can."""
    catalog = draft.home.workspace.catalog
    able = [name for name, one in (catalog.images if catalog else {}).items() if kind in one.fetches]
    own = str(draft.values.get("image", ""))
    if own in able:
        return {}
    if able:
        return {"image": able[0]}
    listed = next((one for one in draft.suggestions if one.path == ("images", own)), None)
    if listed is not None:
        listed.value["fetches"] = sorted({*listed.value.get("fetches", ()), kind})
    else:
        draft.suggest(CATALOG, ("images", own, "fetches"), (kind,), "the image fetches for a step", node)
    package = {"hf": "huggingface_hub", "s3": "boto3"}[kind]
    draft.wonder(
        node,
        f"Trainer's initializer has an image of its own; a run fetches by the Python of image {own}",
        f"Check that {package} is in it, or give the step an image that has it.",
    )
    return {}


def _convert_job_to_command_step(draft: SpecDraft, step: SetupStep) -> dict[str, Any] | None:
    """Return the step for another job before the workers: its command in a separate pod."""
    assert step.pod is not None  # only initializers come without a pod
    main = step.pod.main
    if main.has_entrypoint or not main.command:
        message = f"the command of step '{step.name}' is its image's own, which is not known here"
        draft.ask(step.node, message, "Add the step yourself, with its command.")
        return None
    entry: dict[str, Any] = {}
    name = step.name.removesuffix("-initializer") if step.name in TAKEN_ROLE_NAMES else step.name
    if re.fullmatch(_NAME, name) and name not in TAKEN_ROLE_NAMES:
        entry["name"] = name
    entry["command"] = list(main.command)
    if main.image and main.image != draft.work.workers.pod.main.image:
        entry["image"] = find_catalog_name_of_image(draft, main.image, main.node["image"])
    for name, value in (("cpu", convert_imported_cores), ("memory", convert_imported_memory)):
        if (amount := main.resources.get(name)) and (found := value(amount)) is not None:
            entry[name] = found
            for kind in ("limits", "requests"):
                main.resources_node[kind][name].mapped("steps")
    entry |= dict(_convert_step_variables(draft, step))
    seconds = step.node.at("template", "spec", "activeDeadlineSeconds")
    if seconds.number():
        entry["timeout"] = f"{seconds.number()}s"
        seconds.mapped("steps")
    for name in ("command", "args", "image"):
        main.node[name].mapped("steps")
    main.resources_node.asked("a step has CPU, memory and GPUs")
    account_for_container_mounts(draft, draft.work.workers, main)
    step.pod.node["initContainers"].asked("a step is one container")
    account_for_container_security(draft, main.node, "steps run as the program's user")
    return entry


def _convert_step_variables(draft: SpecDraft, step: SetupStep) -> Iterator[tuple[str, dict[str, Any]]]:
    assert step.pod is not None
    of_job, found = draft.values.get("env", {}), dict[str, Any]()
    for one in step.pod.main.env:
        value = convert_env_value_to_spec(draft, one)
        if value is None:
            one.node.asked("variables of a step have a value, or come from a ConfigMap or the pod")
            continue
        if of_job.get(one.name) != value:
            found[one.name] = value
        one.node.mapped("steps")
    if found:
        yield "env", found
