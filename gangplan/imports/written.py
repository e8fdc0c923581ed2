"""Write the command into the spec: check what is still open in it, and how long it is."""

from __future__ import annotations

import re
import shlex

from gangplan.imports.account import SourceNode
from gangplan.imports.command import ConvertedCommand
from gangplan.imports.draft import SpecDraft
from gangplan.plan.reserved import is_launcher_variable, is_reserved_variable
from gangplan.plan.words import find_unexpanded_command_variables
from gangplan.rules.imports import IMPORT_TEMPLATE

_MOST_WORDS = 128  # the most words of a command (spec/job.py); a script may have any number

# A line that only sets one variable.
_SETS = re.compile(
    r"^[ \t]*export[ \t]+([A-Za-z_]\w*)=(?:[^\s\"'\\;&|$`]*|\"[^\"$`\\]*\"|'[^']*')[ \t]*\n", re.MULTILINE
)


def set_converted_command_in_spec(draft: SpecDraft, found: ConvertedCommand, node: SourceNode) -> None:
    """Put the command into the spec.

    Variables in words that no shell reads belong to a template, or are a mistake.
    """
    work = draft.work
    if not draft.given_command:
        refuse_unfilled_command_words(draft, found.command, node)
    if work.told:
        message = f"what tells the pods of each other is different: {work.told}"
        draft.wonder(node, message, "Check what the program reads.")
    if not found.command:
        return
    found.command = _remove_launch_variable_lines(draft, found.command)
    draft.put("command", shorten_imported_command(found.command))
    lead = work.lead.pod.main
    for one in (lead.node["command"], lead.node["args"]):
        one.mapped("command")
    draft.origins["command"] = node


def refuse_unfilled_command_words(draft: SpecDraft, words: tuple[str, ...], node: SourceNode) -> None:
    """Refuse a command with variables in words that no shell reads."""
    if left := find_unexpanded_command_variables(words):
        names = " and ".join(f"${name}" for name in left)
        draft.refuse(
            IMPORT_TEMPLATE,
            node,
            f"{node.name}: nothing has filled in {names}, and no shell reads the command",
            f"Give its value: {' '.join(f'--set {name}=VALUE' for name in left)}.",
        )


def shorten_imported_command(words: tuple[str, ...]) -> list[str]:
    """Return a command with no more words than a spec may have: a script may have any number."""
    if len(words) > _MOST_WORDS:
        return ["bash", "-c", f"exec {shlex.join(words)}"]
    return list(words)


def ask_about_entrypoint_with_program(draft: SpecDraft, node: SourceNode, program: str) -> None:
    """Ask about arguments without a command whose first word is taken for the program."""
    draft.wonder(
        node,
        f"there is no command: the image's own entrypoint is given {program}; the run starts {program} itself",
        "Look the entrypoint up (skopeo inspect --config docker://IMAGE); if it does more, give it: --command 'PROGRAM ...'.",
    )


def _remove_launch_variable_lines(draft: SpecDraft, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a script without lines for how ranks start, such as I_MPI_HYDRA_BOOTSTRAP: the run sets that."""
    if len(words) < 3 or "\n" not in words[-1]:
        return words

    def line(found: re.Match[str]) -> str:
        if not (is_reserved_variable(found[1]) and is_launcher_variable(found[1])):
            return found[0]
        draft.work.notes.append(f"{found[0].strip()}: the run sets it, for its own hosts")
        return ""

    return (*words[:-1], _SETS.sub(line, words[-1]))
