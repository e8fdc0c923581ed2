"""An unknown field or word in; what was probably meant out, as message and help in the user's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from gangplan.source.scalars import plain as plain_value
from gangplan.spec.convert import converted, model_in, resources, secret_refs
from gangplan.spec.flow import flow, listed
from gangplan.spec.lookalikes import in_latin
from gangplan.spec.near import closest
from gangplan.spec.phrases import dotted, show
from gangplan.spec.repair import is_one_slip
from gangplan.spec.shapes import MAIN, split_words, wrong_shape
from gangplan.spec.words import (
    ABSENT,
    ABSENT_INSIDE,
    IMPORTED,
    KINDS,
    MEANINGS,
    OTHER_MPI,
    PLACES,
    RESERVED,
    SYNONYMS,
    SYNONYMS_INSIDE,
    VALUES,
    bare,
)

# A kind of Kubernetes: a word in capitals, as PyTorchJob, Job, ConfigMap.
_KIND = re.compile(r"[A-Z][A-Za-z0-9]+")


class FieldProblem(NamedTuple):
    """A problem with a field: the message and its help."""

    message: str
    help: str


# What is wrong with a value in a field of a block: kinds of error, and helps.
Wrong = Callable[[str, Any], list[tuple[str, str]]]
# Letters of a value that a help repeats.
_LONGEST = 300


def unknown_field(
    kind: str,
    path: tuple[str | int, ...],
    fields: Mapping[str, Any],
    nested: Collection[str],
    value: Any,
    wrong: Wrong,
) -> FieldProblem:
    """A field that the block at `path` has not.

    `kind` is the kind of the file; `fields` are those of the block; `nested` the paths of fields in its blocks,
    and of the file's own fields where the block is not the file; `value` is what stands in the block; `wrong` tells
    what is wrong with a value in a field of the block.
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
    home = kind if len(path) == 1 else str(path[0])
    absent = ABSENT.get(bare(word), "") if is_job else ""
    near = closest(in_latin(word), known)
    if absent and not (is_one_slip(word.lower(), near) and not wrong(near, converted(word, near, given))):
        near = ""
    if guess := SYNONYMS_INSIDE.get((home, bare(word))) or _meant(word, known, nested) or near:
        latin = in_latin(word)
        message += f", which has letters that only look like those of {latin}" if latin != word else ""
        if guess in block:
            return FieldProblem(f"{message}; '{guess}' is set as well", _beside(word, guess, block, wrong))
        if "," in guess:
            if isinstance(given, str) and (machine := _machine(given, block)):
                return FieldProblem(f"{message}; {machine[0]}", machine[1])
            help = f"Write {resources(given) or guess} at the top level."
            return FieldProblem(f"{message}; did you mean {guess}?", help)
        help = _instead((*path[:-1], word), guess, given, wrong, fields)
        return FieldProblem(f"{message}; did you mean '{guess}'?", help)
    if absent:
        return FieldProblem(f"'{word}' is not a field of a job", absent)
    return FieldProblem(message, ABSENT_INSIDE.get((home, bare(word))) or _listed(kind, path, known, given))


def _machine(name: str, block: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a machine type of a cloud has, and how a worker asks for that; None for any other text."""
    from gangplan.spec.machines import INSTANCES  # a file of some hundred lines, for a word of few

    machine = INSTANCES.get(name.strip().lower())
    if machine is None:
        return None
    if not machine.gpus:
        asks = {"cpu": machine.cpu, "memory": f"{int(machine.memory)}Gi"}
        has = f"{machine.cpu} CPUs and {int(machine.memory)} GiB of memory"
    else:
        asks = {"gpus": machine.gpus}
        has = f"{machine.gpus} {'GPU' if machine.gpus == 1 else 'GPUs'} of model {machine.model}"
    missing = [f"{field}: {value}" for field, value in asks.items() if field not in block]
    help = f"Write {' and '.join(missing)}." if missing else "Remove it; what a worker asks for is set."
    return f"{name.strip()} has {has}", help


def _listed(kind: str, path: tuple[str | int, ...], known: list[str], given: Any) -> str:
    """The help for a word of nobody: what may stand there."""
    if not known:
        return ""
    if path[:-1] == ("secrets",) and isinstance(given, str):
        return f"Write secrets: {{env: {{{path[-1]}: {given}}}}}."
    if len(known) <= 8:
        return f"Known fields: {', '.join(known)}."
    return f"Remove it; gangplan explain {kind} lists the fields."


_AZURE_IMAGE = (
    "Write image: with a name from images/catalog.yaml; variables are written as env: {NAME: value}."
)


def _beside(word: str, guess: str, block: Mapping[str, Any], wrong: Wrong) -> str:
    """What to do about a field that stands there under both names. Arguments belong behind the program."""
    own, more = block[guess], block[word]
    if guess == "command" and bare(word) in ("args", "arguments") and isinstance(own, (str, list)):
        both = [*split_words(own), *split_words(more)]
        if both and not wrong(guess, both):
            return f"Write command: {listed(both)}, and remove {word}:."
    return f"Keep {guess}: and remove {word}:."


def _meant(word: str, known: Collection[str], nested: Collection[str]) -> str:
    """By spelling, by another tool's name, by the block that has it; in this order."""
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
    return ""


def _instead(
    path: tuple[str | int, ...], guess: str, given: Any, wrong: Wrong, fields: Mapping[str, Any]
) -> str:
    """What to write: the field with the value that was given, or what it comes to there, where that is known."""
    word = str(path[-1])
    if guess == "secrets.env" and (found := secret_refs(given)):
        return f"Write secrets: {{env: {flow(found)}}}."
    if "." not in guess:
        value = converted(word, guess, given)
        text, problems = flow(value), wrong(guess, value)
        if given is not None and len(text) <= _LONGEST and ("CLAIM" in text or not problems):
            model = model_in(given) if guess == "gpus" else ""
            return f"Write {guess}: {text}{f' and gpu: {{model: {model}}}' if model else ''}."
        for kind, help in problems:
            if said := _PROPOSED.fullmatch(help):
                return f"Write {guess}: {said[1]}."
            if help.startswith(f"Write {guess}: "):
                return help
            if shaped := wrong_shape((*path[:-1], guess), kind, given, None):
                return shaped
        if guess == "data":
            return wrong_shape(("data",), "dict_type", given, None)
        if guess == "image":
            return "Write image: with the name of its entry in images/catalog.yaml."
        examples = getattr(fields.get(guess), "examples", None)
        return f"Write {guess}: instead{f', such as {guess}: {flow(examples[0])}' if examples else ''}."
    value = "..." if isinstance(given, (dict, list)) or given is None else given
    outer, *inner = guess.split(".")
    if inner[-1] == "capacity" and isinstance(given, bool):
        value = "spot" if given else "on-demand"
    if inner[-1] in MAIN and isinstance(given, str):
        inner.append(MAIN[inner[-1]])
    text = ": {".join(inner) + f": {value if value == '...' else flow(value)}" + "}" * (len(inner) - 1)
    return f"Write {outer}: {{{text}}}."


_PROPOSED = re.compile(r"Did you mean (.*)\?")


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
    if wanted == "TrainingJob" and isinstance(given, str) and given in IMPORTED:
        help = f"gangplan import {given.lower()} FILE writes specs from it; a spec says kind: TrainingJob."
        return FieldProblem(f"{given} is a Kubernetes manifest, not a spec", help)
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
