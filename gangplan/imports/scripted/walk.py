"""Walk through a script and decide what each statement sets, starts or prepares, or that it is irrelevant."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from contextlib import nullcontext

from gangplan.imports.scripted import idioms
from gangplan.imports.scripted.assign import (
    find_assigned_names,
    find_names_that_are_read,
    record_shell_assignment,
    record_shell_declaration,
)
from gangplan.imports.scripted.background import mark_background
from gangplan.imports.scripted.calculated import find_calculated_names, read_shell_arithmetic
from gangplan.imports.scripted.captured import is_launch_captured
from gangplan.imports.scripted.commands import (
    determine_command_kind,
    find_pipeline_lead,
    is_output_filter,
    is_writing_file,
    make_item_whole,
)
from gangplan.imports.scripted.conditions import (
    evaluate_shell_condition,
    find_open_condition_names,
    split_shell_words,
)
from gangplan.imports.scripted.decided import find_skipped_assignments
from gangplan.imports.scripted.directives import BatchScript
from gangplan.imports.scripted.evaluated import expand_command_words
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.guards import ask_about_trap, find_trap, is_guard_statement
from gangplan.imports.scripted.hosts import find_remote_start, set_round_numbers
from gangplan.imports.scripted.items import (
    ItemKind,
    ScriptItem,
    ScriptRefusal,
    refuse_launch_in_function,
    refuse_launch_in_shell_block,
    refuse_reader_of_launch,
    refuse_several_programs,
    refuse_start_on_host,
)
from gangplan.imports.scripted.launch import (
    is_batch_script_launch,
    skip_shell_command_prefixes,
    strip_scheduler_start,
)
from gangplan.imports.scripted.lists import (
    JOINS,
    ListStatus,
    ListUnit,
    find_item_status,
    has_here_document,
    split_shell_list,
)
from gangplan.imports.scripted.options import (
    find_options_of_first_line,
    is_shell_option_command,
    set_shell_options,
)
from gangplan.imports.scripted.parts import ScriptCommand, Statement, is_input_redirect
from gangplan.imports.scripted.pieces import ExpandedWord
from gangplan.imports.scripted.positional import (
    ARGUMENT_NAMES,
    may_change_script_arguments,
    record_script_arguments,
)
from gangplan.imports.scripted.statements import DECLARATION_COMMANDS, parse_shell_statements
from gangplan.imports.scripted.subshells import restore_scope_after_subshell

_DEFAULTED = re.compile(r"\$\{([A-Za-z_]\w*):?=")
# `mpirun -np 2 ./air : -np 6 ./sea`, `srun --multi-prog FILE`.
_SEVERAL = frozenset({":", "--multi-prog"})
_NEVER = "its condition does not hold"


class ScriptWalk:
    """A walk through a script; `items` are its results, `refusals` what only running it would show."""

    __slots__ = ("functions", "has_ended", "items", "refusals", "scope", "script", "subshells")

    def __init__(self, script: BatchScript, scope: ScriptScope) -> None:
        self.script, self.scope = script, scope
        self.items: list[ScriptItem] = []
        self.refusals: list[ScriptRefusal] = []
        self.functions: dict[str, bool] = {}
        self.has_ended = False
        self.subshells = 0  # how many are around what is being read

    def all(self, begin: int = 0, end: int | None = None, depth: int = 0) -> None:
        """Walk through everything between two places.

        Raises UnreadableError for what no shell would accept.
        """
        text = self.script.text
        if end is None and (options := find_options_of_first_line(text)) is not None:
            self.items.append(options)
        part = text if end is None and begin == 0 else " " * begin + text[begin:end]
        for one in parse_shell_statements(part):
            self._statement(one, depth)

    def _statement(self, one: Statement, depth: int) -> None:
        if self.has_ended:
            self.items.append(ScriptItem("drop", one.begin, one.end, [], idioms.SCRIPT_ENDED_REASON))
            return
        if one.form == "plain" or self._is_mixed(one):
            self._plain(one)
        elif (one.form == "if" and depth < 8 and self._branch(one, depth)) or (
            one.form == "loop" and depth < 8 and self._once(one, depth)
        ):
            return
        elif one.form == "group" and depth < 8 and len(one.marks) == 2 and self._starts(one.parts):
            self._grouped(one, depth)
        else:
            self._compound(one)

    def _grouped(self, one: Statement, depth: int) -> None:
        """Walk through a group or a subshell with a launch."""
        begin, end, count = one.marks[0].end, one.marks[1].begin, len(self.items)
        is_subshell = one.marks[0].text == "("
        if is_subshell and any(is_shell_option_command(part.texts) for part in one.parts):
            message = "a launch is in a subshell with options of its own"
            self.refusals.append(ScriptRefusal(one.begin, message, "Set them for the whole script."))
        if any(
            is_input_redirect(entry) for part in one.parts if part.begin >= end for entry in part.redirects
        ):
            message = "commands with a launch read from what the script gives them"
            self.refusals.append(ScriptRefusal(end, message, "Let each command open its file by itself."))
        self._gone(one, begin, end, "its commands run in order")
        self.subshells += is_subshell
        with restore_scope_after_subshell(self.scope) if is_subshell else nullcontext():
            self.all(begin, end, depth + 1)
        self.subshells -= is_subshell
        if one.is_background:
            mark_background(self.items[count:], is_grouped=True)
        if is_subshell:
            self.has_ended = False
            for item in self.items[count:]:
                item.shells = (begin, *item.shells)

    def _is_mixed(self, one: Statement) -> bool:
        """Return whether `&&` or `||` joins a compound command to others."""
        return one.form != "function" and len(split_shell_list(one, self.script.text)) > 1

    def _gone(self, one: Statement, begin: int, end: int, why: str) -> None:
        """Add the lines of a compound command around its relevant part."""
        for first, last in ((one.begin, begin), (end, one.end)):
            self.items.append(ScriptItem("drop", first, last, [], why))

    def _branch(self, one: Statement, depth: int) -> bool:
        """Walk through an `if` whose condition is known; return False if it is not."""
        words = [mark for mark in one.marks if mark.text in ("if", "then", "elif", "else", "fi")]
        index = 0
        while index < len(words) - 1:
            if words[index].text in ("if", "elif"):
                value = evaluate_shell_condition(
                    self.script.text[words[index].end : words[index + 1].begin], self.scope
                )
                if value is None or words[index + 1].text != "then":
                    return False
                index += 1 if value else 2
                if not value:
                    continue
            inside = words[index].end, words[index + 1].begin
            self._gone(one, *inside, "which branch runs is known already")
            self.all(*inside, depth + 1)
            return True
        self.items.append(ScriptItem("drop", one.begin, one.end, [], _NEVER))
        return True

    def _once(self, one: Statement, depth: int) -> bool:
        """Walk through a loop that is known to have no rounds or one; return False for any other."""
        if [mark.text for mark in one.marks] not in (["while", "do", "done"], ["for", "do", "done"]):
            return False
        head = self.script.text[one.marks[0].end : one.marks[1].begin].strip().rstrip(";")
        if one.marks[0].text == "while":
            if evaluate_shell_condition(head, self.scope) is not False:
                return False
            self.items.append(ScriptItem("drop", one.begin, one.end, [], _NEVER))
            return True
        name, is_list, rest = head.partition(" in ")
        words = split_shell_words(rest) if is_list else []
        fields = [field for word in words for field in self.scope.fields(word)]
        if len(fields) != 1 or fields[0].is_open or not name.strip().isidentifier():
            return False
        why, value = "the loop has one round", fields[0].text
        begin, end = one.marks[1].end, one.marks[2].begin
        after: dict[str, str | None] | None = {}
        if value == idioms.ALL_HOSTS:
            if not self._is_for_each_worker(one.parts):
                return False
            why, value = "each worker of a run starts it itself", idioms.THIS_HOST
            after = set_round_numbers(self.scope, rest, self.script.text[begin:end])
        if after is None:
            return False
        self.scope.values[name.strip()] = value
        self._gone(one, begin, end, why)
        self.all(begin, end, depth + 1)
        self.scope.values |= after
        return True

    def _starts(self, parts: Sequence[ScriptCommand]) -> list[ScriptCommand]:
        return [
            part
            for part in parts
            if (part.words and is_batch_script_launch(self._texts(part))) or self._captures(part)
        ]

    def _is_for_each_worker(self, parts: Sequence[ScriptCommand]) -> bool:
        """Return whether a loop over all hosts starts something on them, or only counts them."""
        words = [(part, self._texts(part)) for part in parts if part.words]
        kinds = {self._kind(part, one)[0] for part, one in words}
        is_start = "program" in kinds or any(find_remote_start(one) for _, one in words)
        return is_start or "keep" not in kinds or bool(self._starts(parts))

    def _captures(self, part: ScriptCommand) -> bool:
        return is_launch_captured(part, self.script.text, is_batch_script_launch, self.scope.output)

    def _texts(self, part: ScriptCommand) -> list[str]:
        text = self.script.text
        return [one.text for word in part.words for one in self.scope.fields(text[word.begin : word.end])]

    def _compound(self, one: Statement) -> None:
        begins = self._starts(one.parts)
        names = find_assigned_names(one.parts) | find_calculated_names(one.parts)
        names |= ARGUMENT_NAMES if may_change_script_arguments(one.parts) else set()
        if one.form == "function":
            self.functions[one.name] = bool(begins)
            self.items.append(ScriptItem("set", one.begin, one.end, [], names={one.name}, is_function=True))
            return
        if begins:
            self.refusals.append(
                refuse_launch_in_shell_block(
                    one.form, begins[0].begin, find_open_condition_names(one, self.script.text, self.scope)
                )
            )
        is_subshell = one.form == "group" and self.script.text.startswith("(", one.begin)
        with restore_scope_after_subshell(self.scope) if is_subshell else nullcontext():
            self.scope.set_open_values(names)
            self.scope.present -= names
            kinds = [self._kind(part, self._texts(part))[0] for part in one.parts if part.words]
        names = set() if is_subshell else names
        if one.form == "loop" and one.name:
            self.scope.values[one.name] = None
        is_idle = all(kind == "drop" for kind in kinds)
        kind: ItemKind = "set" if is_idle and names else "drop" if is_idle else "keep"
        item = ScriptItem(kind, one.begin, one.end, one.parts, "it only prints or looks", names)
        item.is_background = one.is_background
        item.is_guard = is_idle and not begins and is_guard_statement(one, self.script.text)
        item.has_background = any(part.operator == "&" for part in one.parts[:-1])
        elsewhere = any(find_remote_start(self._texts(part)) for part in one.parts if part.words)
        if "program" in kinds and not begins and not elsewhere:
            make_item_whole(item, self.script.text)
        self.items.append(item)

    def _plain(self, one: Statement) -> None:
        """Walk through a list of pipelines; each becomes an item."""
        units = split_shell_list(one, self.script.text)
        skipped = find_skipped_assignments(one.parts, self.script.text, self.scope)
        if skipped is None or (len(units) > 1 and has_here_document(one.parts)):
            self._compound(one)
            return
        status, was, first = ListStatus(), "", len(self.items)
        gone = {id(one.parts[number]) for number in skipped}
        for unit in units:
            count, runs = len(self.items), status.runs(was)
            if runs is False or id(unit.parts[-1]) in gone:
                self.items.append(ScriptItem("drop", unit.begin, unit.end, [], _NEVER, is_skipped=True))
            else:
                self._unit(unit, one.is_background and unit is units[-1], was)
            for item in self.items[count:]:
                item.joined = was if was in JOINS else ""
                if not item.is_skipped:
                    item.status = find_item_status(item, self.script.text, self.scope)
                    status.add(was, item.status)
            was = unit.operator
        if one.is_background:
            mark_background(self.items[first:])

    def _unit(self, unit: ListUnit, is_background: bool, was: str) -> None:
        """Walk through a pipeline of a list; it becomes one item."""
        if unit.form != "plain":
            self._compound(Statement(unit.form, unit.begin, unit.end, unit.parts))
            return
        for part in unit.parts:
            if self._captures(part):
                self.refusals.append(refuse_reader_of_launch(part.begin))
        self._pipeline(unit.parts, unit.end, is_background, was)

    def _pipeline(self, parts: list[ScriptCommand], end: int, is_background: bool, was: str) -> None:
        begin = parts[0].begin
        first = parts[0]
        is_listed = was in JOINS or parts[-1].operator in JOINS
        if len(parts) == 1 and (found := self._arithmetic(first, end, is_background or was in JOINS)):
            found.kind = "keep" if is_listed else "set"
            self.items.append(found)
            return
        if not first.words and len(parts) == 1:
            self._assigned(first, begin, end)
            return
        lead, is_whole = self._lead(parts) if len(parts) > 1 else (first, False)
        if first.texts[:1] and first.texts[0] in DECLARATION_COMMANDS:
            self.items.append(record_shell_declaration(self.script.text, self.scope, first, begin, end))
            return
        fields, words = expand_command_words(lead, self.script.text, self.scope)
        texts = [one.text for one in fields]
        kind, why = self._kind(lead, texts)
        names = find_names_that_are_read(texts) if len(parts) == 1 else set()
        self.scope.set_open_values(names)
        if texts[:1] == [":"]:
            names = set(_DEFAULTED.findall("".join(word.text for word in lead.words)))
        kind = "set" if names else kind
        is_sure = was not in JOINS and not is_background and kind != "option"
        if len(parts) == 1 and (given := record_script_arguments(fields, self.scope, is_sure)):
            kind, names = given, set(ARGUMENT_NAMES)
        own = [lead] if kind in ("launch", "program") else parts
        item = ScriptItem(kind, begin, end, own, why, names, fields=fields, words=words)
        item.is_background = is_background
        if is_whole:
            item.kind = "keep"
            make_item_whole(item, self.script.text)
        if kind == "keep" and len(parts) == 1 and len(strip_scheduler_start(texts)) < len(texts):
            item.text = " ".join(one.written() for one in fields[-len(strip_scheduler_start(texts)) :])
        if kind == "launch" and was == "||":
            item.kind, item.why = "drop", "it starts only where another command failed"
        if kind == "cd":
            self._folder(item, fields)
        if trap := find_trap(texts, lambda part, words: self._kind(part, words)[0] == "drop"):
            item.kind = "keep" if trap[0] else kind
            if not trap[0]:
                ask_about_trap(item, trap[1])
        self.has_ended |= texts[:1] == ["exit"] and was not in ("&&", "||") and len(parts) == 1
        if texts[:1] == ["unset"]:
            item.unsets = set(texts[1:]) & self.scope.exported
            for name in texts[1:]:
                self.scope.values.pop(name, None)
                self.scope.exported.discard(name)
        if texts and texts[0] in self.functions and self.functions[texts[0]]:
            self.refusals.append(refuse_launch_in_function(begin, texts[0]))
        if item.kind in ("launch", "program") and find_remote_start(
            texts[skip_shell_command_prefixes(texts) :]
        ):
            self.refusals.append(refuse_start_on_host(begin))
        if item.kind == "launch" and _SEVERAL.intersection(texts):
            self.refusals.append(refuse_several_programs(begin))
        self.items.append(item)

    def _lead(self, parts: list[ScriptCommand]) -> tuple[ScriptCommand, bool]:
        """Return the command that decides what becomes of a pipeline, and whether several belong together."""
        texts = [self._texts(part) for part in parts]
        starts = [number for number, one in enumerate(texts) if one and is_batch_script_launch(one)]
        kinds: list[tuple[ItemKind, str]] = [
            ("drop", "") if is_output_filter(part) and not is_writing_file(part) else self._kind(part, one)
            for part, one in zip(parts, texts, strict=True)
        ]
        if not starts:
            return find_pipeline_lead(parts, kinds)
        if any(kinds[one][0] in ("launch", "program") for one in range(starts[0] + 1, len(parts))):
            self.refusals.append(refuse_reader_of_launch(parts[starts[0] + 1].begin))
        return parts[starts[0]], False

    def _folder(self, item: ScriptItem, fields: list[ExpandedWord]) -> None:
        """Handle `cd`: the run's folder, or part of the command if it is relative, open or late."""
        item.folder = posixpath.normpath(fields[1].text) if len(fields) > 1 else "~"
        is_late = any(one.kind in ("launch", "keep", "program") for one in self.items)
        if item.folder not in (".", "~") and (
            fields[1].is_open or is_late or not item.folder.startswith("/")
        ):
            item.kind = "keep"
        elif self.subshells:
            item.kind, item.is_home = "keep", True
        else:
            self.scope.values["PWD"] = item.folder

    def _kind(self, part: ScriptCommand, texts: list[str]) -> tuple[ItemKind, str]:
        """Return the kind of a simple command, and why it is dropped."""
        if is_shell_option_command(texts):
            set_shell_options(texts, self.scope)
        return determine_command_kind(part, texts, self.functions)

    def _arithmetic(self, part: ScriptCommand, end: int, is_open: bool) -> ScriptItem | None:
        if not part.arithmetic and part.texts[:1] != ["let"]:
            return None
        return read_shell_arithmetic(part, self._texts(part), self.scope, end, not is_open)

    def _assigned(self, part: ScriptCommand, begin: int, end: int) -> None:
        item = ScriptItem("set", begin, end, [part])
        for number, word in enumerate(part.sets):
            record_shell_assignment(
                self.script.text, self.scope, word, part.arrays.get(number), item, self.scope.exports_all
            )
        if not part.sets:
            item.kind, item.why = "drop", idioms.DROPPED_COMMANDS["set"]
        self.items.append(item)
