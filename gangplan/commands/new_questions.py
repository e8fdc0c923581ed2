"""The questions of `gangplan new`: what is needed and was not given, with completion from the workspace."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from gangplan.api.checks import resolve_day
from gangplan.commands.ask import ask_user_on_terminal
from gangplan.commands.new_choices import (
    BOOLEAN_WORDS,
    ask_for_entry_on_terminal,
    find_terminal_prompt_default,
    find_terminal_prompt_hint,
    is_bare_name,
    list_team_clusters,
    list_terminal_prompt_choices,
)
from gangplan.contents.files import WorkspaceFiles
from gangplan.errors import UserError
from gangplan.findings import Finding, reword_finding
from gangplan.model.frameworks import MPI_FRAMEWORKS
from gangplan.report.escape import escape_log_line
from gangplan.report.plan import format_run_plan_line
from gangplan.report.text import text_report
from gangplan.rules.core import SPEC_MISSING_FIELD
from gangplan.source import load_document
from gangplan.spec.load import parse_spec_document
from gangplan.spec.phrases import format_dotted_path
from gangplan.starter.fields import NewField, fields_of
from gangplan.starter.new import NewFile, check_new_file, judge_new_file
from gangplan.starter.text import render_file_text
from gangplan.starter.values import FlagText, build_new_file_values, has_commas
from gangplan.workspace import CATALOG, suggest_nearest

# The fields that are always asked for, by kind, in this order. All others have defaults that suit most users,
# and are asked for by name.
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
# Kinds of errors in a block that lacks fields which are asked for later.
_OTHERS_NEEDED = ("scope", "versions_controller")
# After an answer to one of these, a job's totals and verdict are shown.
_LIVE = ("--command", "--clusters", "--workers", "--gpus", "--gpu-model", "--cpu", "--memory", "--data")


def run_question_prompts_on_terminal(wanted: NewFile) -> NewFile:
    """Return the file, completed by answers and confirmed.

    Raises KeyboardInterrupt if the user gives up.
    """
    sys.stdout.write(
        f"A new {wanted.kind}. Enter leaves a field out or takes the answer in brackets, TAB completes,\n"
        "Ctrl-C writes nothing.\n"
    )
    wanted = _ask_for_team_and_name(wanted)
    fields = {field.flag: field for field in fields_of(wanted.kind)}
    shown = ""
    for flag in _ASKED[wanted.kind]:
        field = fields[flag]
        if wanted.given.get(flag) or not _should_ask_for_flag_on_terminal(wanted, flag):
            continue
        wanted = ask_for_field_on_terminal(wanted, field)
        if wanted.kind == "job" and flag in _LIVE:
            shown = _print_job_totals_between_prompts(wanted, shown)
    while True:
        sys.stdout.write("\n" + _render_new_file_preview(wanted) + "\n")
        errors = [one for one in judge_new_file(wanted, wanted.text(), resolve_day(None))[1] if one.is_error]
        chosen = _ask_which_field_to_change(wanted, errors)
        if chosen is None:
            return wanted
        wanted = _ask_again_for_field_on_terminal(wanted, chosen)


def _ask_again_for_field_on_terminal(wanted: NewFile, field: NewField) -> NewFile:
    """Return the file with another answer for one field."""
    now = wanted.given.get(field.flag)
    told = "" if not now else f" Now: {now if isinstance(now, str | bool) else ', '.join(now)}"
    sys.stdout.write(f"  {escape_log_line(field.description + told)}\n")
    rest = {flag: value for flag, value in wanted.given.items() if flag != field.flag}
    return ask_for_field_on_terminal(replace(wanted, given=rest), field)


def _ask_which_field_to_change(wanted: NewFile, errors: Sequence[Finding]) -> NewField | None:
    """Return the field to add or change next; None once the file may be written as it is.

    With errors a field must be chosen, so that the other answers are not lost. Raises KeyboardInterrupt for a
    no.
    """
    fields = {".".join(field.path): field for field in fields_of(wanted.kind)}
    words = ("no",) if errors else ("yes", "no")

    def is_known(answer: str) -> None:
        if answer not in fields and not any(word.startswith(answer.lower()) for word in words):
            raise UserError(f"there is no field '{answer}'", suggest_nearest(answer, fields))

    if errors:
        sys.stdout.write(text_report(errors) + "\n")
        fault = find_answer_at_fault(wanted, errors)
        question = (
            "Change which field?" if fault else "Nothing that was asked is wrong here. Change which field?"
        )
        hint = "a field, which TAB completes, or no to write nothing"
        answer = ask_user_on_terminal(question, fault or "no", [*words, *fields], is_known, hint=hint)
    else:
        hint = "yes, no, or a field to add or change, which TAB completes"
        answer = ask_user_on_terminal("Write it?", "yes", [*words, *fields], is_known, hint=hint)
    if answer not in fields and answer.lower().startswith("n"):
        raise KeyboardInterrupt
    return fields.get(answer)


def find_answer_at_fault(wanted: NewFile, errors: Sequence[Finding]) -> str:
    """Return the given field that contains the first error; empty if the error is elsewhere."""
    document, _ = load_document(wanted.text(), wanted.file)
    if document is None:
        return ""
    prefix = ("images", wanted.name) if wanted.kind == "image" else ()
    places = {}
    for field in fields_of(wanted.kind):
        if wanted.given.get(field.flag) is not None:
            where = document.where((*prefix, *field.path), key=True)
            places[where.line, where.column] = ".".join(field.path)
    for one in errors:
        before = [at for at in places if at <= (one.where.line, one.where.column)]
        if one.where.file == wanted.file and before:
            return places[max(before)]
    return ""


def _ask_for_team_and_name(wanted: NewFile) -> NewFile:
    """Return the file with its team, if it is a job, and a name that is free.

    Raises UserError without any team.
    """
    if wanted.kind == "job" and not wanted.team:
        known = WorkspaceFiles(wanted.root).team_names
        if not known:
            raise UserError("there is no team yet", "Make one: gangplan new team NAME.")

        def known_team(answer: str) -> None:
            if answer not in known:
                raise UserError(f"there is no team '{answer}'", suggest_nearest(answer, known))

        wanted = replace(
            wanted, team=ask_user_on_terminal(f"Team ({', '.join(known[:6])})", "", known, known_team)
        )
    if not wanted.name:
        name = ask_user_on_terminal("Name", check=lambda answer: check_new_file(replace(wanted, name=answer)))
        wanted = replace(wanted, name=name)
    return wanted


def _should_ask_for_flag_on_terminal(wanted: NewFile, flag: str) -> bool:
    """Return whether a question makes sense after the earlier answers."""
    given = wanted.given
    if given.get("--template"):
        return False  # the template has it
    if flag == "--gpu-model":
        return str(given.get("--gpus") or "0") != "0"
    if flag == "--clusters" and wanted.kind == "job":
        return len(list_team_clusters(wanted)) > 1
    if flag.startswith("--mpi-"):
        return given.get("--framework") in (None, "", *MPI_FRAMEWORKS)
    return True


def ask_for_field_on_terminal(wanted: NewFile, field: NewField) -> NewFile:
    """Return the file with an answer for one field; without an answer, the field is omitted.

    Blocks are asked for one by one, until the answer is empty.
    """
    known = list_terminal_prompt_choices(wanted, field)
    hint = (
        f"{', '.join(known[:8])}{', ...' if len(known) > 8 else ''}"
        if known
        else find_terminal_prompt_hint(field)
    )
    name, given = ".".join(field.path), wanted

    def fits(answer: str) -> None:
        """Check only this field: what else is missing or wrong comes later."""
        found = _check_answer_typed_on_terminal(_add_answer_to_new_file(given, field, answer), field)
        if wanted.kind == "job" and field.flag == "--image" and not found and known and answer not in known:
            raise UserError(f"there is no image '{answer}'", suggest_nearest(answer, known))
        if found:
            first = reword_finding(found[0], lambda text: text.replace("images.new.", ""))
            raise UserError(first.message, first.help)

    def may_be_name(answer: str) -> None:
        """Accept a name alone: its fields are asked for next."""
        if not (field.parts and is_bare_name(answer)):
            fits(answer)

    while answer := ask_user_on_terminal(
        name,
        find_terminal_prompt_default(given, field),
        known,
        may_be_name,
        not field.is_required or given is not wanted,
        hint,
    ):
        if field.parts and is_bare_name(answer):
            answer = ask_for_entry_on_terminal(answer, field, fits)
        given = _add_answer_to_new_file(given, field, answer)
        if not _is_one_by_one(field):
            break
        name, hint = f"another of {'.'.join(field.path)}", ""
    return given


def _is_one_by_one(field: NewField) -> bool:
    """Return whether each entry is an answer of its own: blocks, and texts that may contain commas."""
    return field.shape in ("named", "blocks") or (field.shape == "list" and has_commas(field))


def _add_answer_to_new_file(wanted: NewFile, field: NewField, answer: str) -> NewFile:
    """Return the file with one answer: one more entry if they are asked for one by one, else the whole
    field."""
    value: FlagText = answer
    if field.shape == "truth":
        if answer not in BOOLEAN_WORDS:
            raise UserError(f"{'.'.join(field.path)} is '{answer}'; expected true or false")
        value = answer == BOOLEAN_WORDS[0]
    elif _is_one_by_one(field):
        before = wanted.given.get(field.flag) or ()
        value = [*(() if isinstance(before, str | bool) else before), answer]
    elif field.shape in ("map", "list"):
        value = [answer]
    return replace(wanted, given={**wanted.given, field.flag: value})


def _check_answer_typed_on_terminal(wanted: NewFile, field: NewField) -> list[Finding]:
    """Return what is wrong with the value of one field, ignoring the rest of the file."""
    values = build_new_file_values([field], wanted.given)
    prefix = ("images", "new") if wanted.kind == "image" else ()
    kind = wanted.kind
    text = render_file_text(kind, {"images": {"new": values}} if prefix else values, wanted.root, wanted.file)
    document, findings = load_document(text.encode(), wanted.file)
    if document is None:
        return findings
    from gangplan.reference.schemas import list_format_models
    from gangplan.starter.fields import NEW_FILE_FORMATS

    _, findings = parse_spec_document(list_format_models()[NEW_FILE_FORMATS[kind]], document)
    # Other questions ask for what is missing elsewhere.
    own = f"{format_dotted_path((*prefix, *field.path))}."
    return [
        one
        for one in findings
        if (one.rule != SPEC_MISSING_FIELD or format_dotted_path(one.clue.path).startswith(own))
        and one.clue.kind not in _OTHERS_NEEDED
    ]


def _print_job_totals_between_prompts(wanted: NewFile, shown: str) -> str:
    """Print what is wrong with the job so far, or else its totals, if that has changed; return the text."""
    try:
        result, findings = judge_new_file(wanted, wanted.text())
    except UserError as stop:
        sys.stdout.write(f"  {escape_log_line(stop.message)}\n")
        return shown
    errors = [one for one in findings if one.is_error]
    lines = [f"  {escape_log_line(one.message)}. {escape_log_line(one.help)}" for one in errors[:2]]
    lines = lines or [f"  {escape_log_line(format_run_plan_line(run))}" for run in result.runs]
    text = "".join(f"{line}\n" for line in lines)
    if text != shown:
        sys.stdout.write(text)
    return text


def _render_new_file_preview(wanted: NewFile) -> str:
    """Return the file as it would be written; for the catalog, the new entry."""
    if wanted.kind != "image":
        return wanted.text().decode()
    from gangplan.starter.text import render_block_text

    return f"{CATALOG}:\n{render_block_text({wanted.name: wanted.values}, '  ')}"
