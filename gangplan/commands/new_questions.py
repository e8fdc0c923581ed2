"""The questions of `gangplan new`: what is needed and was not given, with what the workspace knows as completion."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gangplan.commands.ask import ask
from gangplan.contents.files import Files, block
from gangplan.contents.tables import claims, images, pools
from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.model.frameworks import BY_MPI
from gangplan.report.escape import log_line
from gangplan.report.plan import run_line
from gangplan.report.text import text_report
from gangplan.rules.core import SPEC_MISSING_FIELD
from gangplan.source import load
from gangplan.spec.load import parse
from gangplan.starter.fields import NewField, fields_of
from gangplan.starter.new import New, check, judged
from gangplan.starter.text import file_text
from gangplan.starter.values import flow, nested
from gangplan.workspace import CATALOG, nearest

# The fields that are asked for, by kind, in this order; all others have flags, and defaults that suit most.
_ASKED = {
    "job": (
        "--image",
        "--command",
        "--clusters",
        "--workers",
        "--gpus",
        "--gpu-model",
        "--cpu",
        "--memory",
        "--data",
        "--timeout",
    ),
    "team": ("--contact", "--cost-centre", "--clusters", "--groups-data-scientists", "--claims"),
    "cluster": (
        "--environment",
        "--region",
        "--location",
        "--versions-kubernetes",
        "--versions-trainer",
        "--versions-kueue",
        "--node-pools",
        "--teams",
    ),
    "image": (
        "--repository",
        "--tag",
        "--digest",
        "--framework",
        "--mpi-implementation",
        "--mpi-version",
        "--cuda",
    ),
    "waiver": (
        "--rule",
        "--scope-team",
        "--scope-job",
        "--scope-cluster",
        "--reason",
        "--approver",
        "--expires",
    ),
}
# How data is usually named, by the kind of what holds it.
_PLACES = {"claim": "/data", "s3": "env"}
# From here on a job's totals and verdict are shown after each answer.
_LIVE = ("--command", "--clusters", "--workers", "--gpus", "--gpu-model", "--cpu", "--memory", "--data")


def asked(wanted: New) -> New:
    """The same, completed by answers, and agreed to. Raises KeyboardInterrupt where somebody gives up."""
    sys.stdout.write(
        f"A new {wanted.kind}. Enter leaves a field out or takes the answer in brackets, TAB completes,\n"
        "Ctrl-C writes nothing. All other fields have flags: gangplan new "
        f"{wanted.kind} --help.\n"
    )
    wanted = _named(wanted)
    fields = {field.flag: field for field in fields_of(wanted.kind)}
    shown = ""
    for flag in _ASKED[wanted.kind]:
        field = fields[flag]
        if wanted.given.get(flag) or not _applies(wanted, flag):
            continue
        wanted = _with_answer(wanted, field)
        if wanted.kind == "job" and flag in _LIVE:
            shown = _say_totals(wanted, shown)
    while True:
        sys.stdout.write("\n" + _preview(wanted) + "\n")
        errors = [one for one in judged(wanted, wanted.text())[1] if one.is_error]
        if not errors:
            break
        wanted = _corrected(wanted, errors, fields)
    if ask("Write it? (yes, no)", "yes", ("yes", "no"), _check_answer).startswith("n"):
        raise KeyboardInterrupt
    return wanted


def _corrected(wanted: New, errors: Sequence[Finding], fields: Mapping[str, NewField]) -> New:
    """The same with another answer to one of the questions: what was answered so far is not lost."""
    sys.stdout.write(text_report(errors) + "\n")
    known = {".".join(fields[flag].path): fields[flag] for flag in _ASKED[wanted.kind]}
    named = [name for name, field in known.items() if wanted.given.get(field.flag)]

    def is_field(answer: str) -> None:
        if answer not in known:
            raise UserError(f"there is no field '{answer}' to change", nearest(answer, known))

    changed = known[
        ask("Change which field? Ctrl-C gives up", named[0] if named else "", list(known), is_field)
    ]
    rest = {flag: value for flag, value in wanted.given.items() if flag != changed.flag}
    return _with_answer(replace(wanted, given=rest), changed)


def _named(wanted: New) -> New:
    """With its team, where it is a job, and a name that is free."""
    if wanted.kind == "job" and not wanted.team:
        known = Files(wanted.root).team_names

        def known_team(answer: str) -> None:
            if answer not in known:
                raise UserError(f"there is no team '{answer}'", nearest(answer, known))

        wanted = replace(wanted, team=ask(f"Team ({', '.join(known[:6])})", "", known, known_team))
    if not wanted.name:
        name = ask("Name", check=lambda answer: check(replace(wanted, name=answer)))
        wanted = replace(wanted, name=name)
    return wanted


def _applies(wanted: New, flag: str) -> bool:
    """Whether a question makes sense after the answers before it."""
    given = wanted.given
    if given.get("--template"):
        return False  # the template says it
    if flag == "--gpu-model":
        return str(given.get("--gpus") or "0") != "0"
    if flag == "--clusters" and wanted.kind == "job":
        return len(_clusters(wanted)) > 1
    if flag.startswith("--mpi-"):
        return given.get("--framework") in (None, "", *BY_MPI)
    return True


def _with_answer(wanted: New, field: NewField) -> New:
    def fits(answer: str) -> None:
        """Judge the field alone: what else is missing or wrong comes later."""
        found = _alone(_given(wanted, field, answer), field)
        if found:
            raise UserError(found[0].message.replace("images.new.", ""), found[0].help)

    known = _choices(wanted, field)
    hint = f"{', '.join(known[:8])}{', ...' if len(known) > 8 else ''}" if known else _hint(field)
    name = ".".join(field.path)
    answer = ask(name, _default(wanted, field), known, fits, not field.is_required, hint)
    return _given(wanted, field, answer) if answer else wanted


def _given(wanted: New, field: NewField, answer: str) -> New:
    value = answer if field.shape == "value" else _entries(field, answer)
    return replace(wanted, given={**wanted.given, field.flag: value})


def _entries(field: NewField, answer: str) -> list[str]:
    """Several entries of one answer: with commas, unless braces hold some."""
    return [answer] if field.shape in ("named", "blocks") else [one.strip() for one in answer.split(",")]


def _alone(wanted: New, field: NewField) -> list[Finding]:
    """What is wrong with the value of one field, whatever else the file will say."""
    values = nested([field], wanted.given)
    prefix = ("images", "new") if wanted.kind == "image" else ()
    kind = wanted.kind
    text = file_text(kind, {"images": {"new": values}} if prefix else values, wanted.root, wanted.file)
    document, findings = load(text.encode(), wanted.file)
    if document is None:
        return findings
    from gangplan.reference.schemas import models
    from gangplan.starter.fields import FORMATS

    _, findings = parse(models()[FORMATS[kind]], document)
    # What is missing elsewhere is for the other questions.
    own = f"'{'.'.join((*prefix, *field.path))}."
    return [
        one
        for one in findings
        if (one.rule != SPEC_MISSING_FIELD or one.message.startswith(own))
        and "covers every run" not in one.message
    ]


def _hint(field: NewField) -> str:
    """What an answer looks like, by the example of the format."""
    example = field.example
    if field.shape in ("named", "map"):
        name, value = next(iter(example.items()))
        return f"such as {name}={flow(value)}"
    if field.path == ("command",):
        return f"such as {' '.join(example)}"
    return f"such as {example}" if isinstance(example, str | int) else ""


def _default(wanted: New, field: NewField) -> str:
    """What Enter stands for where the field is needed; others are left out."""
    known = {"--environment": "dev", "--location": "on-prem"}
    if wanted.kind == "image" and field.flag == "--framework":
        return "mpi"
    return known.get(field.flag, "") if wanted.kind == "cluster" else ""


def _clusters(wanted: New) -> list[str]:
    files = Files(wanted.root)
    return [name for name, body in files.all_clusters.items() if wanted.team in block(body, "teams")]


def _choices(wanted: New, field: NewField) -> list[str]:
    """What TAB completes to: words of the format, names of the workspace."""
    if field.choices:
        return list(field.choices)
    files = Files(wanted.root, (wanted.team,) if wanted.team else ())
    known: dict[str, Callable[[], Sequence[object]]] = {
        "--image": lambda: [row["image"] for row in images(files)],
        "--clusters": lambda: _clusters(wanted) if wanted.kind == "job" else files.cluster_names,
        "--gpu-model": lambda: [row["model"] for row in pools(files) if row["model"]],
        "--data": lambda: [f"{row['name']}={_PLACES[row['kind']]}" for row in claims(files)],
        "--scope-team": lambda: files.team_names,
        "--scope-cluster": lambda: files.cluster_names,
        "--rule": _rules,
    }
    found = known.get(field.flag, tuple)()
    return list(dict.fromkeys(map(str, found)))


def _rules() -> list[str]:
    from gangplan.rulebook import built_in

    return sorted(built_in())


def _say_totals(wanted: New, shown: str) -> str:
    """What the job amounts to so far, where that changed; what is wrong so far, else."""
    try:
        result, findings = judged(wanted, wanted.text())
    except UserError as stop:
        sys.stdout.write(f"  {log_line(stop.message)}\n")
        return shown
    errors = [one for one in findings if one.is_error]
    lines = [f"  {log_line(one.message)}. {log_line(one.help)}" for one in errors[:2]]
    lines = lines or [f"  {log_line(run_line(run))}" for run in result.runs]
    text = "".join(f"{line}\n" for line in lines)
    if text != shown:
        sys.stdout.write(text)
    return text


def _preview(wanted: New) -> str:
    """The file as it would be written; of the catalog, the new entry."""
    if wanted.kind != "image":
        return wanted.text().decode()
    from gangplan.starter.text import block_text

    return f"{CATALOG}:\n{block_text({wanted.name: wanted.values}, '  ')}"


def _check_answer(answer: str) -> None:
    if not any(word.startswith(answer.lower()) for word in ("yes", "no")):
        raise UserError("answer yes or no")
