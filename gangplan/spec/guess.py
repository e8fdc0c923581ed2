"""An unknown field or word in; what was probably meant out, as message and help in the user's words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from gangplan.source.scalars import plain as plain_value
from gangplan.spec.near import closest
from gangplan.spec.phrases import dotted, show
from gangplan.spec.words import (
    ABSENT,
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


Fields = Callable[[tuple[str | int, ...]], Mapping[str, Any]]


def unknown_field(
    kind: str, path: tuple[str | int, ...], fields: Mapping[str, Any], nested: Collection[str], value: Any
) -> FieldProblem:
    """A field that the block at `path` has not.

    `kind` is the kind of the file; `fields` are those of the block; `nested` the paths of fields in its blocks,
    and of the file's own fields where the block is not the file; `value` is what stands in the block.
    """
    word, known = str(path[-1]), sorted(fields)
    place = f" in {dotted(path[:-1])}" if len(path) > 1 else ""
    message = f"unknown field '{word}'{place}"
    given = value.get(word) if isinstance(value, dict) else None
    is_job = kind == "TrainingJob" and len(path) == 1
    if is_job and word in RESERVED:
        return FieldProblem(f"'{word}' cannot be used: {RESERVED[word]}", "Remove it.")
    if guess := _meant(word, known, nested):
        if guess in (value if isinstance(value, dict) else ()):
            return FieldProblem(f"{message}; '{guess}' is set as well", f"Keep {guess}: and remove {word}:.")
        if "," in guess:
            return FieldProblem(
                f"{message}; did you mean {guess}?", f"Write {guess} at the top level, each as a field."
            )
        return FieldProblem(f"{message}; did you mean '{guess}'?", _instead(guess, given))
    if is_job and bare(word) in ABSENT:
        return FieldProblem(f"'{word}' is not a field of a job", ABSENT[bare(word)])
    if not known:
        return FieldProblem(message, "")
    if path[:-1] == ("secrets",) and isinstance(given, str):
        return FieldProblem(message, f"Write secrets: {{env: {{{word}: {given}}}}}.")
    if len(known) <= 8:
        return FieldProblem(message, f"Known fields: {', '.join(known)}.")
    return FieldProblem(message, f"Remove it; gangplan explain {kind} lists the fields.")


def _meant(word: str, known: Collection[str], nested: Collection[str]) -> str:
    """By spelling, by another tool's name, by the block that has it, by a slip; in this order."""
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


def _instead(guess: str, given: Any) -> str:
    """What to write: a field in a block with the value that was given, if it is a plain one."""
    if "." not in guess:
        return f"Write {guess}: instead."
    value = "..." if isinstance(given, (dict, list)) or given is None else _flow(given)
    outer, *inner = guess.split(".")
    if inner[-1] == "capacity" and isinstance(given, bool):
        value = "spot" if given else "on-demand"
    if inner[-1] in _MAIN and isinstance(given, str):
        inner.append(_MAIN[inner[-1]])
    text = ": {".join(inner) + f": {value}" + "}" * (len(inner) - 1)
    return f"Write {outer}: {{{text}}}."


def _flow(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


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
    if expected == "dict_type" and field == "data" and isinstance(given, (str, list, tuple)):
        names = [given] if isinstance(given, str) else given
        if all(isinstance(name, str) and "=" not in name for name in names) and names:
            return f"Write data: {{{', '.join(f'{name}: /data/{name}' for name in names)}}}."
    if expected == "dict_type" and isinstance(given, (list, tuple)):
        pairs = dict(_pairs(given))
        return (
            f"Write {field}: {{{', '.join(f'{key}: {_flow(item)}' for key, item in pairs.items())}}}."
            if pairs
            else ""
        )
    if expected.startswith("model") and isinstance(given, (str, int)) and not isinstance(given, bool):
        if field == "gpu" and isinstance(given, int):
            return f"Write gpus: {given} for the GPUs of each worker; gpu: {{model: ...}} only chooses the model."
        if field in _MAIN and isinstance(given, str):
            value = f'"{given}"' if field == "schedule" else as_written or given  # '*' and '@' want quotes
            return f"Write {field}: {{{_MAIN[str(field)]}: {value}}}."
    return ""


def _pairs(entries: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Entries as Kubernetes (`name`, `value`) and docker (`A=b`) write them, or of one key each."""
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
