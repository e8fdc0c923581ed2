"""Helps for values of the wrong shape: what to write instead, if this follows from the value."""

from __future__ import annotations

import re
from typing import Any

from gangplan.spec.convert import (
    convert_env_entries_to_spec_variables,
    convert_mounts_to_spec_claims,
    convert_secret_refs_to_spec_variables,
    convert_whole_number,
    parse_gpu_model,
    split_words,
)
from gangplan.spec.flow import format_flow_list, format_flow_style
from gangplan.spec.words import VALUE_SYNONYMS, fold_name

# For a plain value in place of a block: the block's name -> the field that the value is for.
MAIN_FIELDS = {
    "gpu": "model",
    "checkpoint": "to",
    "schedule": "cron",
    "mpi": "implementation",
    "network": "posture",
    "placement": "nodePool",
    "topology": "required",
}


# Lists of blocks -> the field that a plain text there is meant for, and what else an entry needs.
_ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "egress": ("cidr", {"ports": [443]}),
    "taints": ("key", {"effect": "NoSchedule"}),
}
# Lists of names; other lists contain blocks.
_NAMES = frozenset({"secrets", "configMaps", "clusters", "packs", "pullSecrets"})
# Blocks by name -> the least that each must contain.
_NAMED: dict[str, dict[str, Any]] = {
    "claims": {"accessModes": ["ReadWriteMany"]},
    "teams": {"queue": "training"},
}


def _suggest_list_form(path: tuple[str | int, ...], given: Any) -> str:
    """Return the help for a single text or block in place of a list of blocks or names."""
    field = path[-1]
    if field == "setup" and isinstance(given, str) and (words := split_words(given)):
        return f"Write setup: [{{command: {format_flow_list(words)}}}]."
    entry = _ENTRIES.get("egress" if path[0] == "egress" and len(path) == 2 else str(field))
    if isinstance(given, str) and entry and "." in given:
        return f"Write {field}: {format_flow_style([{entry[0]: given, **entry[1]}])}."
    if isinstance(given, dict) and given and field in _NAMES:
        return f"Write {field}: {format_flow_style(list(given))}."
    if isinstance(given, dict) and entry and entry[0] in given:
        return f"Write {field}: {format_flow_style([given])}."
    return ""


def describe_wrong_spec_value_shape(
    path: tuple[str | int, ...], expected: str, given: Any, as_written: str | None
) -> str:
    """Return the help for a value of the wrong shape, derived from the value; empty if none is certain.

    `expected` is pydantic's type of error; `as_written` the scalar as in the file.
    """
    field = path[-1] if path else ""
    if expected == "int_type" and field == "run" and isinstance(given, str):
        words = split_words(given) or ["WORD", "WORD"]
        return f"Write command: {format_flow_list(words)}, and remove run:. It counts repetitions of a job."
    if expected in ("int_type", "int_from_float") and (number := convert_whole_number(given)) is not None:
        model = "; gpu: {model: ...} chooses the model" if field == "gpus" and parse_gpu_model(given) else ""
        return f"Write {field}: {number}{model}."
    if expected in ("tuple_type", "list_type") and (shown := _suggest_list_form(path, given)):
        return shown
    if (
        expected in ("tuple_type", "list_type")
        and isinstance(given, (str, int))
        and not isinstance(given, bool)
    ):
        text = as_written or str(given)
        words = split_words(text) if field in ("flags", "command") else [text]
        if not words:
            return f"Write {field}: [WORD, WORD]; the quotes of this line do not match."
        return f"Write {field}: [{', '.join(words)}]."
    names = [name for name in given if isinstance(name, str)] if isinstance(given, (list, tuple)) else []
    if expected == "dict_type" and field in _NAMED and names:
        return f"Write {field}: {format_flow_style(dict.fromkeys(names, _NAMED[str(field)]))}."
    if expected == "dict_type" and field == "data":
        return _suggest_data_field_for_mounts(given)
    if field == "env" and (secrets := convert_secret_refs_to_spec_variables(given)):
        plain = dict(convert_env_entries_to_spec_variables(given)) if isinstance(given, (list, tuple)) else {}
        env = f"env: {format_flow_style(plain)} and " if plain else ""
        return f"Write {env}secrets: {{env: {format_flow_style(secrets)}}}."
    if expected == "dict_type" and isinstance(given, (list, tuple)):
        found = dict(convert_env_entries_to_spec_variables(given))
        return (
            f"Write {field}: {format_flow_style(found)}."
            if found
            else _suggest_data_field_for_mounts(given)
            if field == "volumes"
            else ""
        )
    if expected.startswith("model") and isinstance(given, (str, int)) and not isinstance(given, bool):
        if field == "gpu" and path[0] == "nodePools":
            model, count = (given, 8) if isinstance(given, str) else ("MODEL", given)
            return f"Write gpu: {{model: {model}, count: {count}}}."
        if field == "gpu" and isinstance(given, int):
            return f"Write gpus: {given}; gpu: {{model: ...}} only chooses the model."
        if field in MAIN_FIELDS and isinstance(given, str):
            inner = MAIN_FIELDS[str(field)]
            return f"Write {field}: {format_flow_style({inner: _convert_to_word_of_field(inner, given)})}."
    return ""


def _convert_to_word_of_field(field: str, given: str) -> str:
    """Return what a field calls a word of other tools, such as OpenMPI for ompi; else the word itself."""
    for words, names in VALUE_SYNONYMS.get(field, {}).items():
        if " or " not in words and fold_name(given) in map(fold_name, (words, *names.split())):
            return words
    return given


def _suggest_data_field_for_mounts(given: Any) -> str:
    """Return the help for data written as other tools mount folders."""
    if found := convert_mounts_to_spec_claims(given):
        return f"Write data: {format_flow_style(found)}."
    if re.search(r"(s3|gs|azureml|wasbs|abfss)://", str(given)):
        return (
            "Write data: {NAME: env}, with NAME a connection to that bucket in team.yaml; gangplan list claims has"
            " them."
        )
    return "Write data: {CLAIM: /data}, with a claim from team.yaml: pods see no folders of their node."
