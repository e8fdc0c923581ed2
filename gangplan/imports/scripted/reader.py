"""Read a batch script as a workload: options, the walk through statements, the launch and what is around."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gangplan.findings import Finding
from gangplan.imports.account import Account
from gangplan.imports.refused import RefusedError
from gangplan.imports.scripted import idioms, variables
from gangplan.imports.scripted.assemble import framework_of
from gangplan.imports.scripted.directives import Option, Script, option_lines
from gangplan.imports.scripted.expand import Scope
from gangplan.imports.scripted.items import Item, Refusal
from gangplan.imports.scripted.job import ScriptJob
from gangplan.imports.scripted.launch import behind_step
from gangplan.imports.scripted.pieces import Value, filled, names_in
from gangplan.imports.scripted.walk import Walk
from gangplan.imports.scripted.wanted import Wanted
from gangplan.imports.workload import Workload
from gangplan.plan.launchers.shell import UnreadableError
from gangplan.records import dataclass
from gangplan.rules.imports import IMPORT_SCRIPT

Words = Sequence[tuple[str, int, int]]
# Options of launchers that choose the hosts of a step.
_CHOSEN = re.compile(r"-w$|-r$|--?(?:nodelist|relative|hosts?|hostfile|machinefile|H)\b")
_ARGUMENT = re.compile(r"\$\{?([1-9])\b")


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler whose scripts can be imported: how to read its option lines.

    It has the mark of the lines, how their words become options, and what these request.
    """

    label: str
    mark: str
    options: Callable[[Words, Callable[[str, int, int, str], Option]], list[Option]]
    apply: Callable[[list[Option], Wanted, Account], None]


def read_script(scheduler: Scheduler, account: Account) -> Workload:
    """Return the workload of a script.

    Raises RefusedError if only running it would show what it does.
    """
    script: Script = account.root().value
    wanted = Wanted()
    walk, name, known = _walked(scheduler, script, account, wanted)
    numbers = _launches(walk)
    refusals = [_finding(script, one.begin, one.message, one.help) for one in walk.refusals]
    refusals += [Finding(IMPORT_SCRIPT, node.where, message, help) for node, message, help in wanted.refusals]
    if not numbers and not refusals:
        refusals = [_nothing(script, walk)]
    if refusals:
        raise RefusedError(refusals)
    return ScriptJob(scheduler.label, script, account, wanted, walk, numbers, name, known).workload()


def steps_of(scheduler: Scheduler, script: Script) -> int:
    """Return how many steps of a script run in parallel, each as a separate job; 0 for any other script.

    They start the same program, on hosts that the script does not choose.
    """
    account = Account(script.file, script.leaves, script)
    try:
        walk, _, _ = _walked(scheduler, script, account, Wanted())
    except RefusedError:
        return 0
    found = [item for item in walk.items if item.kind == "launch"]
    programs = {tuple(behind_step([one.text for one in item.fields])) for item in found}
    is_plain = len(programs) == 1 and not framework_of(next(iter(programs))) and not walk.refusals
    chooses = any(_CHOSEN.match(one.text) for item in found for one in item.fields)
    is_beside = len(found) > 1 and all(item.is_background for item in found)
    return len(found) if is_beside and is_plain and not chooses else 0


def _walked(
    scheduler: Scheduler, script: Script, account: Account, wanted: Wanted
) -> tuple[Walk, str, dict[str, Value]]:
    """Walk through a script; return the walk, its name, and the variables known before it runs."""
    _options(scheduler, script, account, wanted)
    name = str(wanted.settings["name"].value) if "name" in wanted.settings else _stem(script.file)
    counts = wanted.counts()
    scope = Scope(dict(script.filled))
    about = variables.About(name, script.task, len(wanted.array) or None)
    known = variables.known(counts, about)
    arguments = sum(name.isdigit() for name in script.filled)
    known |= {"#": str(arguments), **({"@": "", "*": ""} if not arguments else {})}
    scope.values = {**known, **scope.values}
    scope.values.setdefault("PWD", ".")
    scope.output = lambda command: _printed(command, scope, wanted)
    walk = Walk(script, scope)
    try:
        walk.all()
    except UnreadableError as error:
        raise RefusedError(
            [_finding(script, 0, f"the script cannot be read: {error} is not closed", "Close it.")]
        ) from None
    return walk, name, known


def _printed(command: str, scope: Scope, wanted: Wanted) -> Value:
    """Return what a command prints, with its known variables filled in."""
    if command.strip() == "pwd":
        return scope.values["PWD"]
    scope.used |= names_in([command])
    static = {name: one for name, one in scope.values.items() if isinstance(one, str) and name.isidentifier()}
    return idioms.printed(filled(command, static) if "$" in command else command, wanted.counts())


def _options(scheduler: Scheduler, script: Script, account: Account, wanted: Wanted) -> None:
    for _, words, counts in option_lines(script, scheduler.mark):

        def leaf(name: str, begin: int, end: int, value: str) -> Option:
            return Option(
                name, value, script.leaf(f"--{name}" if len(name) > 1 else f"-{name}", begin, end, value)
            )

        texts = [(filled(text, dict(script.filled)), begin, end) for text, begin, end in words]
        found = scheduler.options(texts, leaf)
        if counts:
            scheduler.apply(found, wanted, account)
        else:
            for option in found:
                option.node(account).dropped(f"{scheduler.label} reads no options behind the first command")


def _stem(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0] or "job"


def _nothing(script: Script, walk: Walk) -> Finding:
    """Return the finding for a script without a launch or program: it ends early, or they are elsewhere."""
    ended = next((one for one in walk.items if one.why == idioms.ENDED), None)
    numbers = sorted(set(_ARGUMENT.findall(script.text)))
    if ended is None:
        help = "Name the script that holds the launch; or leave the file out."
        return _finding(script, 0, "nothing in the script starts a program", help)
    help = "Give what its conditions look at: --set NAME=VALUE."
    if numbers:
        help = f"Give its arguments: {' '.join(f'--set {number}=VALUE' for number in numbers)}."
    return _finding(
        script, ended.begin, "the script ends before this, and nothing before starts a program", help
    )


def _finding(script: Script, begin: int, message: str, help: str) -> Finding:
    return Finding(IMPORT_SCRIPT, script.where(begin), message, help)


def _launches(walk: Walk) -> list[int]:
    """Return the indices of items that start the ranks; without any, of the last program of the script."""
    items = walk.items
    found = [number for number, item in enumerate(items) if item.kind == "launch"]
    if walk.script.step is not None:
        for number in found:
            if number != found[walk.script.step]:
                items[number].kind, items[number].why = "drop", "another step, which is a spec of its own"
        found = found[walk.script.step :][:1]
    beside = [number for number in found if items[number].is_background]
    if len(beside) > 1:
        walk.refusals += [_several(items[number]) for number in beside[1:2]]
    if not found:
        programs = [number for number, item in enumerate(items) if item.kind == "program"]
        found = programs[-1:]
    for number, item in enumerate(items):
        if item.kind == "program" and number not in found:
            item.kind = "keep"
    return found


def _several(item: Item) -> Refusal:
    return Refusal(
        item.begin,
        "several steps run at the same time, each on a part of the nodes",
        "Import each as a job of its own.",
    )
