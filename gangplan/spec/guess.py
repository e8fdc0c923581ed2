"""Guessing what an unknown field or word was meant to be, as message and help in the user's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from gangplan.findings import UNKNOWN_FIELD, Clue, FieldPath, Problem
from gangplan.rules.core import SPEC_UNKNOWN_FIELD, SPEC_VALUE
from gangplan.source.scalars import parse_plain_yaml_scalar as plain_value
from gangplan.spec.base import Hints
from gangplan.spec.convert import (
    convert_resources_to_spec_fields,
    convert_secret_refs_to_spec_variables,
    convert_value,
    parse_gpu_model,
    split_words,
)
from gangplan.spec.flow import format_flow_list, format_flow_style
from gangplan.spec.lookalikes import convert_to_latin
from gangplan.spec.near import find_closest, list_closest
from gangplan.spec.phrases import (
    format_dotted_path,
    quote_spec_value,
    split_image_reference,
    suggest_catalog_fields_for_image,
)
from gangplan.spec.repair import is_one_slip
from gangplan.spec.shapes import MAIN_FIELDS, describe_wrong_spec_value_shape
from gangplan.spec.words import (
    ABSENT_FIELDS,
    ABSENT_INSIDE,
    FIELD_ALTERNATIVES,
    FIELD_MEANINGS,
    IMPORTABLE_KINDS,
    OTHER_MPI,
    OTHER_MPI_HELP,
    PATH_OF_KIND,
    RESERVED_FIELDS,
    SYNONYMS,
    SYNONYMS_INSIDE,
    VALUE_SYNONYMS,
    fold_name,
)

# A kind of Kubernetes: a capitalised word, such as PyTorchJob, Job, ConfigMap.
_KIND = re.compile(r"[A-Z][A-Za-z0-9]+")


# What is wrong with a value of a field in a block: error types, helps, and hints.
Wrong = Callable[[str, Any], list[tuple[str, str, Hints]]]
# How many characters of a value a help repeats.
_LONGEST = 300


def explain_unknown_spec_field(
    kind: str,
    path: FieldPath,
    fields: Mapping[str, Any],
    nested: Collection[str],
    value: Any,
    wrong: Wrong,
) -> Problem:
    """Return the problem of a field that the block at `path` does not have.

    `kind` is the kind of the file; `fields` are those of the block; `nested` the paths of fields in its
    blocks, and of the file's own fields if the block is not the file; `value` is the content of the block;
    `wrong` returns what is wrong with a value of a field in the block.
    """
    word, known = str(path[-1]), sorted(fields)
    place = f" in {format_dotted_path(path[:-1])}" if len(path) > 1 else ""
    message = f"unknown field '{word}'{place}"
    block = value if isinstance(value, dict) else {}
    given = block.get(word)
    is_job = kind == "TrainingJob" and len(path) == 1
    if is_job and word in RESERVED_FIELDS:
        return _build_unknown_spec_field_problem(
            path, f"'{word}' cannot be used: {RESERVED_FIELDS[word]}", "Remove it."
        )
    if is_job and fold_name(word) == "environment" and isinstance(given, str):
        help = "Keep image: and remove environment:." if "image" in block else _AZURE_IMAGE
        message += f"; '{given}' is an environment of Azure ML, here an image"
        return _build_unknown_spec_field_problem(path, message, help, follows="image")
    home = kind if len(path) == 1 else str(path[0])
    if inside := ABSENT_INSIDE.get((home, fold_name(word))):
        return _build_unknown_spec_field_problem(path, message, inside[0], follows=inside[1])
    absent = ABSENT_FIELDS.get(fold_name(word), "") if is_job else ""
    close = list_closest(convert_to_latin(word), known)
    fitting = (one for one in close if not wrong(one, convert_value(word, one, given)))
    near = next(fitting, next(iter(close), ""))  # of two that are equally close, the one that takes the value
    if absent and not (is_one_slip(word.lower(), near) and not wrong(near, convert_value(word, near, given))):
        near = ""
    # A word that means no field is none of a block's either, such as the version of a compose file.
    outer = () if absent else nested
    if (
        guess := SYNONYMS_INSIDE.get((home, fold_name(word)))
        or _guess_meant_spec_field(word, known, outer)
        or near
    ):
        latin = convert_to_latin(word)
        message += f", which has letters that only look like those of {latin}" if latin != word else ""
        if guess in block:
            help = _describe_duplicate_spec_field(word, guess, block, wrong)
            return _build_unknown_spec_field_problem(path, f"{message}; '{guess}' is set as well", help)
        if "," in guess:
            return _explain_combined_spec_resources(path, message, guess, given, block)
        message = f"{message}; did you mean '{guess}'?"
        if guess == "repository" and (parts := split_image_reference(given)):
            help = suggest_catalog_fields_for_image(parts)
            return _build_unknown_spec_field_problem(path, message, help, guess, " ".join(parts))
        help, gpu = _suggest_replacement_spec_field((*path[:-1], word), guess, given, wrong, fields)
        return _build_unknown_spec_field_problem(path, message, help, guess, guess, gpu=gpu)
    if absent:
        return _build_unknown_spec_field_problem(path, f"'{word}' is not a field of a job", absent)
    return _build_known_fields_problem(kind, path, message, known, given)


def _build_unknown_spec_field_problem(
    path: FieldPath,
    message: str,
    help: str,
    meant: str = "",
    follows: str = "",
    known: tuple[str, ...] = (),
    gpu: tuple[str, str] = ("", ""),
) -> Problem:
    """Return the problem of an unknown field; `follows` are fields of its block that the help adds."""
    beside = tuple(format_dotted_path((*path[:-1], field)) for field in follows.split())
    clue = Clue(path, UNKNOWN_FIELD, None, meant, known, beside, gpu)
    return Problem(path, message, help, SPEC_UNKNOWN_FIELD, clue=clue)


def _explain_combined_spec_resources(
    path: FieldPath, message: str, guess: str, given: Any, block: Mapping[str, Any]
) -> Problem:
    """Return the problem of a field that corresponds to several fields of gangplan: the amounts of a
    worker."""
    if isinstance(given, str) and (machine := _describe_machine_type(given)):
        said, asks = machine
        missing = [f"{field}: {value}" for field, value in asks.items() if field not in block]
        help = f"Write {' and '.join(missing)}." if missing else "Remove it; what a worker asks for is set."
        return _build_unknown_spec_field_problem(path, f"{message}; {said}", help, follows=next(iter(asks)))
    asks = convert_resources_to_spec_fields(given)
    text = " and ".join(f"{field}: {value}" for field, value in asks.items())
    help = f"Write {text or guess} at the top level."
    return _build_unknown_spec_field_problem(
        path, f"{message}; did you mean {guess}?", help, guess, next(iter(asks), "")
    )


def _describe_machine_type(name: str) -> tuple[str, dict[str, Any]] | None:
    """Return what a cloud's machine type has, and what a worker then requests; None for any other text."""
    from gangplan.spec.machines import INSTANCES  # a file of some hundred lines, which few words need

    machine = INSTANCES.get(name.strip().lower())
    if machine is None:
        return None
    if not machine.gpus:
        asks = {"cpu": machine.cpu, "memory": f"{int(machine.memory)}Gi"}
        has = f"{machine.cpu} CPUs and {int(machine.memory)} GiB of memory"
    else:
        asks = {"gpus": machine.gpus}
        has = f"{machine.gpus} {'GPU' if machine.gpus == 1 else 'GPUs'} of model {machine.model}"
    return f"{name.strip()} has {has}", asks


def _build_known_fields_problem(
    kind: str, path: FieldPath, message: str, known: list[str], given: Any
) -> Problem:
    """Return the problem of a word that nothing explains; the help lists what is allowed there."""
    if not known:
        return _build_unknown_spec_field_problem(path, message, "")
    if path[:-1] == ("secrets",) and isinstance(given, str):
        return _build_unknown_spec_field_problem(
            path, message, f"Write secrets: {{env: {{{path[-1]}: {given}}}}}."
        )
    if len(known) <= 8:
        return _build_unknown_spec_field_problem(
            path, message, f"Known fields: {', '.join(known)}.", known=tuple(known)
        )
    return _build_unknown_spec_field_problem(
        path, message, f"Remove it; gangplan explain {kind} lists the fields."
    )


_AZURE_IMAGE = (
    "Write image: with a name from images/catalog.yaml; variables are written as env: {NAME: value}."
)


def _describe_duplicate_spec_field(word: str, guess: str, block: Mapping[str, Any], wrong: Wrong) -> str:
    """Return what to do about a field that is set under both names. Arguments belong after the program."""
    own, more = block[guess], block[word]
    if guess == "command" and fold_name(word) in ("args", "arguments") and isinstance(own, (str, list)):
        first, rest = split_words(own), split_words(more)
        if isinstance(more, list) and any(isinstance(one, (bool, float)) for one in more):
            return (
                f"Add its words to command: as they are written, and remove {word}:."  # 1.10 was read as 1.1
            )
        if first and rest and not wrong(guess, [*first, *rest]):
            return f"Write command: {format_flow_list([*first, *rest])}, and remove {word}:."
    return f"Keep {guess}: and remove {word}:."


def _guess_meant_spec_field(word: str, known: Collection[str], nested: Collection[str]) -> str:
    """Return the field that is meant: by spelling, by another tool's name, by the block that has it, in this
    order."""
    word = convert_to_latin(word)
    same = [name for name in known if fold_name(name) == fold_name(word)]
    if same:
        return same[0]
    foreign = SYNONYMS.get(fold_name(word), "")
    if foreign and (foreign.split(",")[0] in known or foreign in nested):
        return foreign
    inside = [path for path in nested if fold_name(path.rpartition(".")[2]) == fold_name(word)]
    if len(inside) == 1:
        return inside[0]
    return ""


def _suggest_replacement_spec_field(
    path: FieldPath, guess: str, given: Any, wrong: Wrong, fields: Mapping[str, Any]
) -> tuple[str, tuple[str, str]]:
    """Return what to write: the field with the value that was given, or with its equivalent there, if it is
    known.

    If the help ends with a GPU model, return also how it begins, and that model.
    """
    gpu = ("Write ", given) if guess in ("gpu", "gpu.model") and isinstance(given, str) else ("", "")
    if "." in guess:
        return _suggest_nested_spec_field(guess, given), gpu
    value = convert_value(str(path[-1]), guess, given)
    text, problems = format_flow_style(value), wrong(guess, value)
    if given is not None and len(text) <= _LONGEST and ("CLAIM" in text or not problems):
        model = parse_gpu_model(given) if guess == "gpus" else ""
        begin = f"Write {guess}: {text}"
        return f"{begin}{f' and gpu: {{model: {model}}}' if model else ''}.", (f"{begin} and ", model)
    if guess in MAIN_FIELDS and isinstance(given, str) and wrong(guess, {MAIN_FIELDS[guess]: given}):
        problems = []  # the block's main field does not take the value either
    for kind, help, hints in problems:
        if hints.proposed:
            return f"Write {guess}: {hints.proposed}.", gpu
        if hints.writes == guess:
            return help, gpu
        if shaped := describe_wrong_spec_value_shape((*path[:-1], guess), kind, given, None):
            return shaped, gpu
    if guess == "data":
        return describe_wrong_spec_value_shape(("data",), "dict_type", given, None), gpu
    if guess == "image":
        return "Write image: with the name of its entry in images/catalog.yaml.", gpu
    examples = getattr(fields.get(guess), "examples", None)
    return (
        f"Write {guess}: instead{f', such as {guess}: {format_flow_style(examples[0])}' if examples else ''}.",
        gpu,
    )


def _suggest_nested_spec_field(guess: str, given: Any) -> str:
    """Return what to write for a field of a block."""
    if guess == "secrets.env" and (found := convert_secret_refs_to_spec_variables(given)):
        return f"Write secrets: {{env: {format_flow_style(found)}}}."
    is_plain = not isinstance(given, dict) and not any(
        isinstance(one, dict | list) for one in (given if isinstance(given, list) else ())
    )
    value = given if is_plain and given is not None and len(str(given)) <= _LONGEST else "..."
    outer, *inner = guess.split(".")
    if inner[-1] == "capacity" and isinstance(given, bool):
        value = "spot" if given else "on-demand"
    if inner[-1] in MAIN_FIELDS and isinstance(given, str):
        inner.append(MAIN_FIELDS[inner[-1]])
    text = (
        ": {".join(inner)
        + f": {value if value == '...' else format_flow_style(value)}"
        + "}" * (len(inner) - 1)
    )
    return f"Write {outer}: {{{text}}}."


def explain_wrong_spec_word(kind: str, path: FieldPath, allowed: list[str], given: Any) -> Problem:
    """Return the problem of a word that is not in a fixed set."""
    if path == ("kind",):
        message, help = _explain_wrong_spec_kind(allowed[0], given)
    else:
        message, help = _explain_disallowed_spec_word(kind, path, allowed, given)
    return Problem(path, message, help, SPEC_VALUE, clue=Clue(path, "literal_error", given))


def _explain_disallowed_spec_word(
    kind: str, path: FieldPath, allowed: list[str], given: Any
) -> tuple[str, str]:
    field = next((str(step) for step in reversed(path) if isinstance(step, str)), "")
    name = format_dotted_path(path)
    if field == "implementation" and fold_name(str(given)) in OTHER_MPI:
        return (
            f"{name} is {quote_spec_value(given)}, and gangplan cannot start it: it can start only {_join_words_with_or(allowed)}",
            OTHER_MPI_HELP.get(
                fold_name(str(given)),
                "Choose an image with one of them, or ask the owner of images/catalog.yaml for one.",
            ),
        )
    guess = _guess_meant_spec_words(field, allowed, given)
    is_choice = guess and len(allowed) > 1
    hint = f"; did you mean {_join_words_with_or([repr(word) for word in guess])}?" if is_choice else ""
    one_of = allowed[0] if len(allowed) == 1 else f"one of {', '.join(allowed)}"
    begin = "Write " if isinstance(path[-1], int) else f"Write {path[-1]}: "
    words = _join_words_with_or([_format_word_for_yaml(word) for word in guess or allowed])
    help = f"{begin}{words}."
    meaning = FIELD_MEANINGS.get(field) or (None if guess else FIELD_ALTERNATIVES.get(field))
    if meaning and kind == "TrainingJob":
        help += f" {meaning[0].upper()}{meaning[1:]}."
    return (f"{name} is {quote_spec_value(given)}, but must be {one_of}{hint}", help)


def _guess_meant_spec_words(field: str, allowed: list[str], given: Any) -> list[str]:
    text = str(given).lower()
    same = [word for word in allowed if fold_name(word) == fold_name(text)]
    if same:
        return same
    for words, names in VALUE_SYNONYMS.get(field, {}).items():
        meant = words.split(" or ")
        if set(meant) <= set(allowed) and fold_name(text) in map(fold_name, names.split()):
            return meant
    near = find_closest(text, allowed)
    return [near] if near else []


def _explain_wrong_spec_kind(wanted: str, given: Any) -> tuple[str, str]:
    shown = quote_spec_value(given)
    if isinstance(given, str) and given in PATH_OF_KIND:
        return (f"kind is {shown}, but this file is read as a {wanted}", f"Move it to {PATH_OF_KIND[given]}.")
    meant = next((kind for kind in PATH_OF_KIND if fold_name(kind) == fold_name(str(given))), wanted)
    if meant != wanted:
        return (f"kind is {shown}; did you mean {meant}?", f"Write kind: {meant}.")
    near = find_closest(str(given), [wanted])
    if wanted == "TrainingJob" and isinstance(given, str) and given in IMPORTABLE_KINDS:
        help = f"gangplan import {given.lower()} FILE writes specs from it; a spec says kind: TrainingJob."
        return (f"{given} is a Kubernetes manifest, not a spec", help)
    if near or not isinstance(given, str) or not _KIND.fullmatch(given):
        return (f"kind is {shown}, but must be {wanted}", f"Write kind: {wanted}.")
    message = f"{given} is a Kubernetes manifest, not a file of gangplan"
    if wanted != "TrainingJob":
        return (message, f"Write kind: {wanted}; gangplan explain {wanted} lists its fields.")
    help = (
        "Write kind: TrainingJob with image, command and workers; gangplan renders the Kubernetes objects."
        " gangplan explain TrainingJob lists the fields."
    )
    return (f"{given} is a Kubernetes manifest, not a spec", help)


def _join_words_with_or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _format_word_for_yaml(word: str) -> str:
    """Return a word as YAML reads it as text: "off" needs quotes."""
    return word if isinstance(plain_value(word), str) else f'"{word}"'
