"""Converting a value as another tool writes it to the form of a gangplan field."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

from gangplan.model.duration import DurationError, format_duration, parse_duration_to_seconds
from gangplan.spec.phrases import convert_to_name
from gangplan.spec.words import DNS_LABEL, SYNONYMS, fold_name

# Field of gangplan -> unit of a number without one -> the other tools' fields that count in this unit.
_UNITS = {
    "memory": {"Gi": "memory_gb mem_gb memory_in_gb ram_gb memory_gib", "M": "memory_mb mem_mb memory_in_mb"},
    "disk": {"Gi": "disk_gb disk_size_gb volume_size_in_gb volume_size disk_size"},
    "timeout": {
        "s": "max_runtime_in_seconds max_run max_run_time timeout_seconds activeDeadlineSeconds max_runtime",
        "m": "timeout_minutes time time_limit walltime",
        "h": "timeout_hours",
    },
    "gracePeriod": {"s": "terminationGracePeriodSeconds grace_period_seconds termination_grace_period"},
}
_UNIT = {
    (field, fold_name(name)): unit
    for field, units in _UNITS.items()
    for unit, names in units.items()
    for name in names.split()
}
# Slurm counts --mem in megabytes; a small number cannot mean thousands of gigabytes.
_SLURM_LEAST_MB = 1024
# No field accepts more than 18 digits, and Python refuses 4300.
_GRES = re.compile(r"(?:gpu[:=])?(?:([A-Za-z][\w.-]*)[:=])?([0-9]{1,18})")
_NUMBERS = {
    word: number
    for number, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
    )
}


def convert_value(word: str, field: str, given: Any) -> Any:
    """Return the value for `field` of another tool's `word`; it is unchanged if no difference is known."""
    convert = _CONVERT.get(field)
    return convert(fold_name(word), given) if convert else given


def _convert_number_field(word: str, given: Any) -> Any:
    """Convert `"4"`, `4 nodes` and Slurm's `gpu:a100:4`."""
    number = convert_whole_number(given)
    return given if number is None else number


def _build_unit_converter_for_spec_field(field: str) -> Callable[[str, Any], Any]:
    def convert(word: str, given: Any) -> Any:
        text = str(given).strip()
        if isinstance(given, bool) or not re.fullmatch(r"[0-9]{1,18}(\.[0-9]+)?", text, re.ASCII):
            return _convert_to_spec_duration(given) if field in ("timeout", "gracePeriod") else given
        unit = _UNIT.get((field, word), "")
        if field == "memory" and not unit and word in ("mem", "mempernode"):
            unit = "M" if float(text) >= _SLURM_LEAST_MB else ""
        if unit and field in ("timeout", "gracePeriod") and text.isdecimal() and int(text):
            return format_duration(int(text) * parse_duration_to_seconds(f"1{unit}"))
        return f"{text}{unit}" if unit else given

    return convert


def _convert_to_spec_duration(given: Any) -> Any:
    """Convert Slurm's `1-12:00:00` and words such as `4 hours`."""
    try:
        parse_duration_to_seconds(given)
    except DurationError as error:
        return error.meant or given
    return given


def split_words(words: Any) -> list[str]:
    """Return the words of a command, from a list or one line; none if its quotes do not match."""
    if isinstance(words, str):
        try:
            return shlex.split(words)
        except ValueError:
            return []
    return [str(word) for word in words] if isinstance(words, list) else []


def _convert_to_spec_command(word: str, given: Any) -> Any:
    """Split a command into words; a Python file alone gets its interpreter."""
    words = split_words(given) or given
    if isinstance(words, (list, tuple)) and words and str(words[0]).endswith(".py"):
        return ["python", *map(str, words)]
    is_for_shell = isinstance(given, str) and set(given) & set("&|;<>$`\n")
    return words if isinstance(words, list) and words and not is_for_shell else given


def _convert_environment_variables(word: str, given: Any) -> Any:
    """Convert lists of variables as Kubernetes and docker write them."""
    if isinstance(given, (list, tuple)):
        return {name: str(value) for name, value in convert_env_entries_to_spec_variables(given)} or given
    return given


def _convert_checkpoint_folder(word: str, given: Any) -> Any:
    """Convert a folder to a mount for checkpoints; only the team knows the claim."""
    if isinstance(given, str) and given.startswith("/"):
        return {"to": "CLAIM", "path": given.rstrip("/") or "/checkpoints"}
    return given


def _convert_restart_to_spec_retries(word: str, given: Any) -> Any:
    """Convert docker's `restart: on-failure:3` and Kubernetes' restartPolicy."""
    if isinstance(given, bool):
        return int(given)
    number = re.search(r"(?<![0-9])[0-9]{1,18}$", str(given))
    never = str(given).lower() in ("never", "no", "false")
    return int(number[0]) if number else 0 if never else 1 if isinstance(given, str) else given


def _convert_job_name(word: str, given: Any) -> Any:
    return convert_to_name(DNS_LABEL, given) or given if isinstance(given, str) else given


def _convert_to_spec_elastic_range(word: str, given: Any) -> Any:
    """Convert Kubeflow's minReplicas and maxReplicas."""
    if not isinstance(given, dict):
        return given
    known = {fold_name(str(key)).removesuffix("replicas"): value for key, value in given.items()}
    return {key: known[key] for key in ("min", "max") if key in known}


_CONVERT: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("workers", "gpus", "slots"), _convert_number_field),
    **{field: _build_unit_converter_for_spec_field(field) for field in _UNITS},
    "cpu": _convert_number_field,
    "name": _convert_job_name,
    "elastic": _convert_to_spec_elastic_range,
    "command": _convert_to_spec_command,
    "env": _convert_environment_variables,
    "checkpoint": _convert_checkpoint_folder,
    "retries": _convert_restart_to_spec_retries,
}


def convert_env_entries_to_spec_variables(entries: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Yield names and values of entries as Kubernetes (`name`, `value`) and docker (`A=b`) write them, or
    with one key each."""
    for entry in entries:
        if isinstance(entry, str) and "=" in entry:
            name, _, value = entry.partition("=")
            yield name, value
        elif isinstance(entry, dict) and set(entry) == {"name", "value"}:
            yield str(entry["name"]), entry["value"]
        elif isinstance(entry, dict) and len(entry) == 1:
            yield from (
                (str(key), value) for key, value in entry.items() if not isinstance(value, (dict, list))
            )


def convert_mounts_to_spec_claims(given: Any) -> dict[str, str]:
    """Return claims and their folders as docker (`NAME:/PATH`), Kubernetes (name and mountPath) and other
    short forms write them.

    The result is empty if any of them has an invalid name or path.
    """
    found: dict[str, str] = {}
    for entry in (
        [given] if isinstance(given, (str, dict)) else given if isinstance(given, (list, tuple)) else []
    ):
        if isinstance(entry, dict):
            name = next((entry[key] for key in ("name", "claim", "claimName", "source") if key in entry), "")
            path = next((entry[key] for key in ("mountPath", "path", "target") if key in entry), "")
            if isinstance(
                claim := entry.get("persistentVolumeClaim"), dict
            ):  # a pod says elsewhere where it is
                name = claim.get("claimName", "")
                path = path or f"/data/{name}"
            elif not name and len(entry) == 1:
                name, path = next(iter(entry.items()))
        else:
            name, _, path = re.sub(r":(ro|rw|z|Z)$", "", str(entry)).partition(":")
            path = path or f"/data/{name}"
        if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", str(name)) or not re.match(r"/[^/]", str(path)):
            return {}
        found[str(name)] = str(path)
    return found


def convert_whole_number(given: Any) -> int | None:
    """Return the whole number in a text, a list or a block of another tool; None if it is not clear."""
    if isinstance(given, dict):
        given = next((given[key] for key in ("replicas", "count", "number", "value") if key in given), None)
    if isinstance(given, (list, tuple)):
        given = given[0] if len(given) == 1 else None
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    text = given.strip().lower() if isinstance(given, str) else ""
    if found := re.fullmatch(r"[0-9]+-([0-9]{1,18})", text) or re.fullmatch(
        r"([0-9]{1,3}(,[0-9]{3}){1,5})", text
    ):
        return int(found[1].replace(",", ""))
    if found := _GRES.fullmatch(text):
        return int(found[2])
    return _NUMBERS.get(text)


def parse_gpu_model(given: Any) -> str:
    """Return the GPU model in Slurm's `gpu:a100:4`."""
    found = _GRES.fullmatch(given) if isinstance(given, str) else None
    return found[1] or "" if found and found[1] != "gpu" else ""


def convert_secret_refs_to_spec_variables(given: Any) -> dict[str, str]:
    """Return variables from secrets as Kubernetes writes them, in env or envFrom; empty for anything else."""
    found = {}
    for entry in given if isinstance(given, (list, tuple)) else []:
        if not isinstance(entry, dict):
            continue
        ref = entry.get("valueFrom", {})
        ref = ref.get("secretKeyRef", {}) if isinstance(ref, dict) else {}
        if isinstance(ref, dict) and {"name", "key"} <= set(ref) and "name" in entry:
            found[str(entry["name"])] = f"{ref['name']}/{ref['key']}"
        whole = entry.get("secretRef", {})
        if isinstance(whole, dict) and "name" in whole:
            found["NAME"] = f"{whole['name']}/KEY"
    return found


def convert_resources_to_spec_fields(given: Any) -> dict[str, Any]:
    """Return fields for the amounts in a block of resources of any tool."""
    found: dict[str, Any] = {}
    for key, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, dict):
            found |= convert_resources_to_spec_fields(value)
            continue
        field = (
            "gpus" if fold_name(str(key)) in ("gpu", "gpus") else SYNONYMS.get(fold_name(str(key)), str(key))
        )
        if field in ("workers", "gpus", "cpu", "memory", "disk"):
            found[field] = convert_value(str(key), field, value)
    return found
