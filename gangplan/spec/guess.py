"""An unknown field or word in; what was probably meant out, as message and help in the user's words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from gangplan.source.scalars import plain as plain_value
from gangplan.spec.convert import converted, mounts, pairs
from gangplan.spec.flow import flow, listed
from gangplan.spec.lookalikes import in_latin
from gangplan.spec.near import closest
from gangplan.spec.phrases import dotted, show
from gangplan.spec.words import (
    ABSENT,
    ABSENT_INSIDE,
    KINDS,
    MEANINGS,
    OTHER_MPI,
    PLACES,
    RESERVED,
    SYNONYMS,
    VALUES,
    bare,
)

# A kind of Kubernetes: a word in capitals, as PyTorchJob, Job, ConfigMap.
_KIND = re.compile(r"[A-Z][A-Za-z0-9]+")


class FieldProblem(NamedTuple):
    """A problem with a field: the message and its help."""

    message: str
    help: str


# Whether a field of a block may have a value.
Fits = Callable[[str, Any], bool]
# Letters of a value that a help repeats.
_LONGEST = 300


def unknown_field(
    kind: str,
    path: tuple[str | int, ...],
    fields: Mapping[str, Any],
    nested: Collection[str],
    value: Any,
    fits: Fits,
) -> FieldProblem:
    """A field that the block at `path` has not.

    `kind` is the kind of the file; `fields` are those of the block; `nested` the paths of fields in its blocks,
    and of the file's own fields where the block is not the file; `value` is what stands in the block; `fits` tells
    whether a field of the block may have a value.
    """
    word, known = str(path[-1]), sorted(fields)
    place = f" in {dotted(path[:-1])}" if len(path) > 1 else ""
    message = f"unknown field '{word}'{place}"
    block = value if isinstance(value, dict) else {}
    given = block.get(word)
    is_job = kind == "TrainingJob" and len(path) == 1
    if is_job and word in RESERVED:
        return FieldProblem(f"'{word}' cannot be used: {RESERVED[word]}", "Remove it.")
    if is_job and bare(word) == "environment" and isinstance(given, str):
        help = "Keep image: and remove environment:." if "image" in block else _AZURE_IMAGE
        return FieldProblem(f"{message}; '{given}' is an environment of Azure ML, here an image", help)
    if guess := _meant(word, known, nested):
        latin = in_latin(word)
        message += f", which has letters that only look like those of {latin}" if latin != word else ""
        if guess in block:
            return FieldProblem(f"{message}; '{guess}' is set as well", _beside(word, guess, block, fits))
        if "," in guess:
            return FieldProblem(
                f"{message}; did you mean {guess}?", f"Write {guess} at the top level, each as a field."
            )
        return FieldProblem(f"{message}; did you mean '{guess}'?", _instead(word, guess, given, fits))
    if is_job and bare(word) in ABSENT:
        return FieldProblem(f"'{word}' is not a field of a job", ABSENT[bare(word)])
    if elsewhere := ABSENT_INSIDE.get((str(path[0]), bare(word))):
        return FieldProblem(message, elsewhere)
    if not known:
        return FieldProblem(message, "")
    if path[:-1] == ("secrets",) and isinstance(given, str):
        return FieldProblem(message, f"Write secrets: {{env: {{{word}: {given}}}}}.")
    if len(known) <= 8:
        return FieldProblem(message, f"Known fields: {', '.join(known)}.")
    return FieldProblem(message, f"Remove it; gangplan explain {kind} lists the fields.")


_AZURE_IMAGE = (
    "Write image: with a name from images/catalog.yaml; variables are written as env: {NAME: value}."
)


def _beside(word: str, guess: str, block: Mapping[str, Any], fits: Fits) -> str:
    """What to do about a field that stands there under both names. Arguments belong behind the program."""
    own, more = block[guess], block[word]
    if guess == "command" and bare(word) in ("args", "arguments") and isinstance(own, (str, list)):
        both = [*_split(own), *_split(more)]
        if both and fits(guess, both):
            return f"Write command: {listed(both)}, and remove {word}:."
    return f"Keep {guess}: and remove {word}:."


def _split(words: Any) -> list[str]:
    if isinstance(words, str):
        return shlex.split(words) if words.count("'") % 2 == words.count('"') % 2 == 0 else []
    return [str(word) for word in words] if isinstance(words, list) else []


def _meant(word: str, known: Collection[str], nested: Collection[str]) -> str:
    """By spelling, by another tool's name, by the block that has it, by a slip; in this order."""
    word = in_latin(word)
    same = [name for name in known if bare(name) == bare(word)]
    if same:
        return same[0]
    foreign = SYNONYMS.get(bare(word), "")
    if foreign and (foreign.split(",")[0] in known or foreign in nested):
        return foreign
    inside = [path for path in nested if bare(path.rpartition(".")[2]) == bare(word)]
    if len(inside) == 1:
        return inside[0]
    return closest(word, known)


def _instead(word: str, guess: str, given: Any, fits: Fits) -> str:
    """What to write: the field with the value that was given, or what it comes to there, where that is known."""
    if "." not in guess:
        value = converted(word, guess, given)
        text = flow(value)
        if given is not None and len(text) <= _LONGEST and ("CLAIM" in text or fits(guess, value)):
            return f"Write {guess}: {text}."
        kinds = ("dict_type", "model_type", "tuple_type")
        shaped = (wrong_shape((guess,), kind, given, None) for kind in kinds if not fits(guess, given))
        return next(filter(None, shaped), f"Write {guess}: instead.")
    value = "..." if isinstance(given, (dict, list)) or given is None else given
    outer, *inner = guess.split(".")
    if inner[-1] == "capacity" and isinstance(given, bool):
        value = "spot" if given else "on-demand"
    if inner[-1] in _MAIN and isinstance(given, str):
        inner.append(_MAIN[inner[-1]])
    text = ": {".join(inner) + f": {value if value == '...' else flow(value)}" + "}" * (len(inner) - 1)
    return f"Write {outer}: {{{text}}}."


def wrong_word(kind: str, path: tuple[str | int, ...], allowed: list[str], given: Any) -> FieldProblem:
    """A word outside a fixed set."""
    if path == ("kind",):
        return _wrong_kind(allowed[0], given)
    field = next((str(step) for step in reversed(path) if isinstance(step, str)), "")
    name = dotted(path)
    if field == "implementation" and bare(str(given)) in OTHER_MPI:
        return FieldProblem(
            f"{name} is {show(given)}, and gangplan cannot start it: it can start only {_or(allowed)}",
            "Choose an image with one of them, or ask the owner of images/catalog.yaml for one.",
        )
    guess = _meant_word(field, allowed, given)
    is_choice = guess and len(allowed) > 1
    hint = f"; did you mean {_or([repr(word) for word in guess])}?" if is_choice else ""
    one_of = allowed[0] if len(allowed) == 1 else f"one of {', '.join(allowed)}"
    begin = "Write " if isinstance(path[-1], int) else f"Write {path[-1]}: "
    words = _or([_written(word) for word in guess or allowed])
    help = f"{begin}{words}."
    if field in MEANINGS and kind == "TrainingJob":
        help += f" {MEANINGS[field][0].upper()}{MEANINGS[field][1:]}."
    return FieldProblem(f"{name} is {show(given)}, but must be {one_of}{hint}", help)


def _meant_word(field: str, allowed: list[str], given: Any) -> list[str]:
    text = str(given).lower()
    same = [word for word in allowed if bare(word) == bare(text)]
    if same:
        return same
    for words, names in VALUES.get(field, {}).items():
        meant = words.split(" or ")
        if set(meant) <= set(allowed) and bare(text) in map(bare, names.split()):
            return meant
    near = closest(text, allowed)
    return [near] if near else []


def _wrong_kind(wanted: str, given: Any) -> FieldProblem:
    shown = show(given)
    if isinstance(given, str) and given in KINDS:
        return FieldProblem(f"kind is {shown}: {KINDS[given]}", f"Write kind: {wanted}.")
    if isinstance(given, str) and given in PLACES:
        return FieldProblem(
            f"kind is {shown}, but this file is read as a {wanted}", f"Move it to {PLACES[given]}."
        )
    near = closest(str(given), [wanted])
    if near or not isinstance(given, str) or not _KIND.fullmatch(given):
        return FieldProblem(f"kind is {shown}, but must be {wanted}", f"Write kind: {wanted}.")
    message = f"{given} is a Kubernetes manifest, not a file of gangplan"
    if wanted != "TrainingJob":
        return FieldProblem(message, f"Write kind: {wanted}; gangplan explain {wanted} lists its fields.")
    help = (
        "Write kind: TrainingJob with image, command and workers; gangplan renders the Kubernetes objects."
        " gangplan explain TrainingJob lists the fields."
    )
    return FieldProblem(f"{given} is a Kubernetes manifest, not a spec", help)


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _written(word: str) -> str:
    """A word as YAML reads it as a text: "off" needs quotes."""
    return word if isinstance(plain_value(word), str) else f'"{word}"'


# A plain value where a block is wanted -> the field of the block that it stands for.
_MAIN = {
    "gpu": "model",
    "checkpoint": "to",
    "schedule": "cron",
    "mpi": "implementation",
    "network": "posture",
    "placement": "nodePool",
    "topology": "required",
}


def wrong_shape(path: tuple[str | int, ...], expected: str, given: Any, as_written: str | None) -> str:
    """The help for a value of another shape than wanted, from the value itself; empty where nothing is sure.

    `expected` is pydantic's kind of error; `as_written` the scalar as the file has it.
    """
    field = path[-1] if path else ""
    if (
        expected in ("tuple_type", "list_type")
        and isinstance(given, (str, int))
        and not isinstance(given, bool)
    ):
        text = as_written or str(given)
        words = shlex.split(text) if field in ("flags", "command") and text.count("'") % 2 == 0 else [text]
        return f"Write {field}: [{', '.join(words)}]."
    if expected == "dict_type" and field == "data":
        return _folders(given)
    if expected == "dict_type" and isinstance(given, (list, tuple)):
        found = dict(pairs(given))
        return f"Write {field}: {flow(found)}." if found else _folders(given) if field == "volumes" else ""
    if expected.startswith("model") and isinstance(given, (str, int)) and not isinstance(given, bool):
        if field == "gpu" and isinstance(given, int):
            return f"Write gpus: {given} for the GPUs of each worker; gpu: {{model: ...}} only chooses the model."
        if field in _MAIN and isinstance(given, str):
            return f"Write {field}: {flow({_MAIN[str(field)]: given})}."
    return ""


def _folders(given: Any) -> str:
    """The help for data written as other tools mount folders."""
    if found := mounts(given):
        return f"Write data: {flow(found)}."
    if re.search(r"(s3|gs|azureml|wasbs|abfss)://", str(given)):
        return (
            "Write data: {NAME: env}, with NAME a connection to that bucket in team.yaml; gangplan list connections has"
            " them."
        )
    return "Write data: {CLAIM: /data}, with a claim from team.yaml: pods see no folders of their node."


def paths_of(block: type[BaseModel], inner: Callable[[Any], type[BaseModel] | None]) -> list[str]:
    """The paths of the fields in the blocks of a block, two levels down; `inner` gives the block of a field."""
    found = []
    for name, field in block.model_fields.items():
        below = inner(field.annotation)
        if below is None:
            continue
        for other, deep in below.model_fields.items():
            path = f"{field.alias or name}.{deep.alias or other}"
            found.append(path)
            if lower := inner(deep.annotation):
                found += [f"{path}.{one.alias or last}" for last, one in lower.model_fields.items()]
    return found
