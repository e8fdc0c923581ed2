"""Convert a script that was walked through to a workload: its launch, its surroundings, its resources."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from functools import partial

from gangplan.findings import Finding
from gangplan.imports.account import Account, SourceNode
from gangplan.imports.pods import read_imported_pod_template
from gangplan.imports.refused import RefusedSourceError
from gangplan.imports.scripted import variables
from gangplan.imports.scripted.arrays import (
    account_for_job_array,
    build_array_trials,
    build_task_name,
    map_job_array_variables,
)
from gangplan.imports.scripted.assemble import AssembledCommand, assemble_command, find_rank_framework
from gangplan.imports.scripted.captured import find_output_that_is_read
from gangplan.imports.scripted.deepspeed import find_ranks_of_deepspeed
from gangplan.imports.scripted.directives import BatchScript
from gangplan.imports.scripted.items import ScriptItem
from gangplan.imports.scripted.launch import ScriptLaunch, read_script_launch
from gangplan.imports.scripted.needs import list_needs_of_command
from gangplan.imports.scripted.pieces import ExpandedWord, WordPiece, find_variable_names
from gangplan.imports.scripted.podlike import build_pod_tree_of_script, list_mounted_folders
from gangplan.imports.scripted.steps import JobSteps
from gangplan.imports.scripted.surroundings import VISIBLE_GPUS, Surroundings
from gangplan.imports.scripted.walk import ScriptWalk
from gangplan.imports.scripted.wanted import WantedAllocation, format_spec_memory
from gangplan.imports.workload import Hint, PodRole, SourceJob, SourceSetting, StartMethod
from gangplan.plan.launchers import is_python, program_name_of
from gangplan.plan.launchers.shell import ShellWord
from gangplan.rules.imports import IMPORT_SCRIPT

_TORCH = re.compile(
    r"torch|lightning|deepspeed|accelerate|transformers|MASTER_ADDR|NCCL_|nemo|megatron", re.IGNORECASE
)
_SETS = re.compile(
    r"(?:^|[\s;&(])(?:export\s+)?([A-Za-z_]\w*)\+?=|\bfor\s+(\w+)|\bread\s+(?:-\w+\s+)*(\w+)", re.MULTILINE
)
_GIVEN = frozenset(
    set(
        str.split(
            "MASTER_ADDR MASTER_PORT HOME PATH RANDOM HOSTNAME PWD UID PIPESTATUS BASH_SOURCE CUDA_VISIBLE_DEVICES"
        )
    )
)
_HYDRA = frozenset(
    set(str.split("-ppn -genv -genvall -rr -perhost --ppn -envall --cpu-bind -bootstrap -genvlist"))
)
# Options of mpirun that say how many ranks it starts.
_COUNTS = frozenset({"-np", "-n", "--np", "--n", "-c", "-ppn", "-perhost", "--map-by"})


class ScriptJob:
    """A script on its way to a workload."""

    def __init__(
        self,
        label: str,
        script: BatchScript,
        account: Account,
        wanted: WantedAllocation,
        walk: ScriptWalk,
        numbers: list[int],
        name: str,
        known: Collection[str],
    ) -> None:
        self.label, self.script, self.account, self.wanted = label, script, account, wanted
        self.walk, self.numbers, self.name = walk, numbers, name
        self.launches: dict[int, ScriptLaunch] = {}
        self.env: dict[str, tuple[str, SourceNode]] = {}
        self.known = known
        self.own: dict[int, list[str]] = {}  # assignments before a launch that others must not see
        self.starts_ranks = False
        self.single: list[ScriptItem] = []  # launches of one rank, where others have several nodes
        self.of_start: list[tuple[SourceNode, str, str]] = []

    def workload(self) -> SourceJob:
        """Return the workload, with every line of the script in the account."""
        around = Surroundings(self.script, self.account, self.walk.scope)
        steps = JobSteps(self.wanted, len(self.numbers) > 1)
        single: list[ScriptItem] = []
        for number, item in enumerate(self.walk.items):
            if number in self.numbers:
                launch = ScriptLaunch(item.fields, item.words)
                self._sets(number, around)
                self._empty(item)
                steps.begin()
                read_script_launch(launch, self.script, self.account, self.wanted)
                self._sets_of_step(number)
                self.starts_ranks |= bool(launch.starter)
                if steps.end(number, bool(launch.starter)) == 1:
                    launch.starter = ""  # it starts one rank, which needs no launcher
                    single.append(item)
                item.tail = find_output_that_is_read(self.walk.items, number, self.script.text)
                around.behind(item)
                self.launches[number] = launch
            else:
                around.paths(item)
        if counts := steps.settle():
            raise RefusedSourceError([self._refused_counts(counts)])
        start, is_guess = self._start()
        around.start = start
        made = self._assembled(start, around)
        asking = [item for item in made.asks_hosts if item.is_function]
        if asking:
            raise RefusedSourceError([self._refused(item) for item in asking])
        around.account(self.walk.items, self.numbers, made, list_mounted_folders(self.wanted.mounts))
        self.single = single if steps.has_more_nodes_than_one else []
        self._numbers(made)
        self.env |= map_job_array_variables(self.script, self.wanted)
        work = SourceJob(
            self.label,
            build_task_name(self.script, self.name),
            start,
            self.account,
            self._roles(made, around),
            self._settings(start),
            "IntelMPI" if around.is_intel else "MPICH" if self._is_hydra() or around.is_mpich else "",
        )
        work.starts_ranks = self.starts_ranks
        if is_guess:
            work.again = partial(self._again, work, around)
        work.trials = build_array_trials(self.script, self.wanted)
        self._said(work, around, made)
        return work

    def _assembled(self, start: StartMethod, around: Surroundings) -> AssembledCommand:
        values = {
            name: one
            for name, one in self.walk.scope.values.items()
            if name in self.known and name.isidentifier() and isinstance(one, str)
        }
        values |= variables.build_rank_variables(self._kind(start))
        around.start = start
        forced = around.open_exports(self.walk.items)
        return assemble_command(
            self.walk.items, self.launches, self.script.text, start, values, forced, self.own
        )

    def _roles(self, made: AssembledCommand, around: Surroundings) -> tuple[PodRole, ...]:
        env = {**around.env, **self.env, **self.wanted.env}
        for name, (_, node) in [*around.env.items(), *self.env.items()]:
            if env[name][1] is not node:
                node.dropped("the launch sets it again")
        pod = read_imported_pod_template(
            build_pod_tree_of_script(
                self.account,
                self.wanted,
                made.words,
                env,
                around.workdir,
                self._place(self.walk.items[self.numbers[-1]]),
            )
        )
        assert pod is not None
        return (PodRole("worker", self.wanted.node_count, pod),)

    def _again(self, work: SourceJob, around: Surroundings, start: StartMethod) -> None:
        """Rebuild the workload for ranks that start in another way, if the script leaves that open."""
        work.start = start
        made = self._assembled(start, around)
        work.roles = self._roles(made, around)
        self._ask_about_start(work, around, made)
        work.settings = {**work.settings, **self._settings(start)}

    def _ask_about_start(self, work: SourceJob, around: Surroundings, made: AssembledCommand) -> None:
        """Ask about what depends on how the ranks start, in place of what was asked for another way."""
        work.questions = [one for one in work.questions if one not in self.of_start]
        count, place = len(around.questions), self._place(self.walk.items[self.numbers[-1]])
        around.ask_about_preparation(made.kept)
        around.ask_about_single_runs([(self._place(item), item) for item in self.single])
        if work.start != "mpi" and self.wanted.node_count > 1:
            around.ask_about_computed_values(made)
        self.of_start = [*around.questions[count:], *self._open(work, made, place)]
        del around.questions[count:]
        work.questions += self.of_start

    def _refused_counts(self, counts: dict[int, tuple[int, int]]) -> Finding:
        """Return the refusal of launches that start different numbers of ranks."""
        usual = counts[min(counts)]
        number = next(one for one, count in counts.items() if count != usual)
        (ranks, nodes), (others, elsewhere) = counts[number], usual
        message = f"ranks: this launch starts {ranks} on {nodes} node{'s' * (nodes > 1)}, and one before it {others} on {elsewhere}; all launches of a run start all of them"
        help = "Make a script of each number of ranks, and import these."
        return Finding(IMPORT_SCRIPT, self.script.where(self.walk.items[number].begin), message, help)

    def _refused(self, item: ScriptItem) -> Finding:
        message = (
            f"the function {' '.join(item.names)}, which the command calls, asks the scheduler for hosts"
        )
        help = "Take these lines out of it: the workers of a run know each other."
        return Finding(IMPORT_SCRIPT, self.script.where(item.begin), message, help)

    def _place(self, item: ScriptItem) -> SourceNode:
        """Return a launch, as the place of what nothing else states."""
        where = self.script.where(item.begin)
        path = next((path for path, (at, _) in self.script.leaves.items() if at.line >= where.line), ())
        return SourceNode(self.account, path, None)

    def _empty(self, item: ScriptItem) -> None:
        """Account for words of a launch that expand to nothing: variables that are empty."""
        begins = {word.begin for word in item.words}
        for word in (word for part in item.parts for word in part.words if word.begin not in begins):
            path = self.script.leaf("word", word.begin, word.end, word.text)
            SourceNode(self.account, path, word.text).dropped("it is empty")

    def _sets(self, number: int, around: Surroundings) -> None:
        """Set the variables before a launch: `OMP_NUM_THREADS=4 srun ...`; only this launch has them."""
        item = self.walk.items[number]
        words = [word for part in item.parts for word in part.sets]
        is_only = len(self.numbers) == 1 and not any(
            one.kind == "keep" and any(part.sets for part in one.parts) for one in self.walk.items
        )
        for word in words:
            name, _, _ = word.text.partition("=")
            path = self.script.leaf(name, word.begin, word.end, word.text)
            node = SourceNode(self.account, path, word.text)
            value = self.walk.scope.value(self.script.text[word.begin + len(name) + 1 : word.end])
            fate, why = around.decide_fate(name, value)
            if fate == "drop" and (is_only or name not in VISIBLE_GPUS):
                node.dropped(why)
            elif fate == "ask":
                node.asked(why)
                around.questions.append((node, f"{name}: {why}", around.suggest_answer(name, value)))
            elif fate == "env" and isinstance(value, str) and (is_only or self._is_common(word)):
                self.env[name] = (value, node)
            else:
                node.mapped("command")
                pieces = (WordPiece(value),) if isinstance(value, str) else value.pieces
                whole = ExpandedWord(tuple(WordPiece(one.text, one.is_open, True) for one in pieces))
                self.own.setdefault(number, []).append(f"{name}={whole.written()}")

    def _sets_of_step(self, number: int) -> None:
        """Set the variables of a launcher's options: `srun --export=A=1 ...`; only this launch has them."""
        for name, (value, node) in self.wanted.step_env.items():
            if len(self.numbers) == 1 and "$" not in value:
                self.wanted.variable(name, value, node)
            else:
                node.mapped("command")
                text = f'"{value}"' if "$" in value else shlex.quote(value)
                self.own.setdefault(number, []).append(f"{name}={text}")
        self.wanted.step_env.clear()

    def _is_common(self, word: ShellWord) -> bool:
        """Return whether all launches have a variable before them, with the same value."""
        items = [self.walk.items[number] for number in self.numbers]
        return len(items) > 1 and all(
            any(one.text == word.text for part in item.parts for one in part.sets) for item in items
        )

    def _start(self) -> tuple[StartMethod, bool]:
        """Return how ranks start, and whether that is a guess."""
        main = self.launches[self.numbers[-1]]
        texts = [one.text for one in main.program]
        for number in reversed(self.numbers):
            kind = find_rank_framework(_list_program_words(self.launches[number]))
            if kind in ("torch", "mpi"):
                return ("torch", False) if kind == "torch" else ("mpi", False)
        tasks = (self.wanted.tasks_on_node or 1) * self.wanted.node_count
        if not main.starter or tasks == 1:
            return "plain", True
        program = program_name_of(texts[0]) if texts else ""
        is_script = is_python(program) or program in ("bash", "sh") or program.endswith((".py", ".sh"))
        return ("torch" if is_script and _TORCH.search(self.script.text) else "mpi"), True

    def _kind(self, start: StartMethod) -> str:
        """Return what gives each rank its number."""
        if start == "torch" and self._starts_itself():
            return "torchrun"
        return "hydra" if start == "mpi" and self._is_hydra() else start

    def _takes_all_ranks(self) -> bool:
        """Return whether an mpirun leaves the number of ranks to the scheduler."""
        return any(not _COUNTS & set(_list_program_words(one)) for one in self.launches.values())

    def _starts_itself(self) -> bool:
        """Return whether the program that the scheduler's launcher starts is a launcher of torch."""
        return any(find_rank_framework(_list_program_words(one)) == "torch" for one in self.launches.values())

    def _is_hydra(self) -> bool:
        return any(
            {one.text.partition("=")[0] for one in launch.program} & _HYDRA
            for launch in self.launches.values()
        )

    def _settings(self, start: StartMethod) -> dict[str, SourceSetting]:
        wanted = self.wanted
        settings = {key: one for key, one in wanted.settings.items() if key in ("timeout", "priority")}
        place = next(
            (wanted.at[one] for one in ("nodes", "tasks", "tasks_per_node") if one in wanted.at), None
        )
        node = place or self._place(self.walk.items[self.numbers[-1]])
        settings["workers"] = SourceSetting(wanted.node_count, node)
        tasks = wanted.tasks_on_node
        has_starter = any(launch.starter for launch in self.launches.values())
        programs = [_list_program_words(launch) for launch in self.launches.values()]
        own = find_ranks_of_deepspeed(programs, self.script.text, wanted.gpus_on_node)
        if start != "torch" or not self._starts_itself():
            slots = own or (tasks if tasks and (has_starter or start == "mpi") else 1)
            settings["slots"] = SourceSetting(
                slots,
                wanted.at.get("tasks_per_node")
                or wanted.at.get("tasks")
                or wanted.at.get("tasks_per_gpu")
                or node,
            )
        return settings

    def _numbers(self, made: AssembledCommand) -> None:
        """Set variables that identify the run: the run's name replaces the job's number."""
        used = find_variable_names(self._texts(made)) & variables.JOB_ID_VARIABLES
        node = self._place(self.walk.items[self.numbers[-1]])
        for name in sorted(used):
            self.env[name] = ("@field", node)

    def _said(self, work: SourceJob, around: Surroundings, made: AssembledCommand) -> None:
        """Add hints, questions and notes."""
        wanted, place = self.wanted, self._place(self.walk.items[self.numbers[-1]])
        counts = self.starts_ranks or (work.start == "mpi" and self._takes_all_ranks())
        work.losses += [one for one in wanted.losses() if counts or one.area != "ranks"]
        work.hints += [Hint("pool", text, node) for text, node in wanted.pools]
        work.hints += [Hint("model", text, node) for text, node in wanted.models]
        work.hints += [Hint("node", name, node) for name, node in wanted.parts_of_whole_nodes().items()]
        if grace := wanted.settings.get("grace"):
            work.hints.append(Hint("grace", str(grace.value), grace.node))
        for launch in self.launches.values():
            work.notes += [f"{loss}: {why}" for loss, why in launch.losses]
        foreign = [
            launch
            for launch in self.launches.values()
            if find_rank_framework(_list_program_words(launch)) == "foreign"
        ]
        if foreign:
            work.questions.append(
                (
                    place,
                    f"{program_name_of(foreign[0].program[0].text)} starts ranks by means that a run does not have",
                    "Write the program that each rank runs.",
                )
            )
        open_amounts = wanted.list_open_amounts(self.script.text, place)
        work.questions += [*wanted.questions, *open_amounts, *around.questions]
        self._ask_about_start(work, around, made)
        if wanted.scratch or (
            "/scratch" in made.text
            and variables.TEMPORARY_FOLDER_VARIABLES & find_variable_names([self.script.text])
        ):
            work.values["scratch"] = memory(wanted.scratch)
        account_for_job_array(self.script, wanted, work.questions)

    def _open(
        self, work: SourceJob, made: AssembledCommand, place: SourceNode
    ) -> Iterator[tuple[SourceNode, str, str]]:
        """Yield questions about variables in the command that nothing sets."""
        given = {name for item in made.kept for name in item.names} | set(self.env) | self.walk.scope.exported
        given |= _GIVEN | {one.lstrip("$") for values in variables.RANK_VARIABLES for one in values.values()}
        given |= {name for found in _SETS.findall(made.text) for name in found if name}
        numbered = {
            piece.text.strip("${}")
            for launch in self.launches.values()
            for one in launch.program
            for piece in one.pieces
            if piece.is_open and re.fullmatch(r"\$\{?[1-9]\}?", piece.text)
        }
        for number in sorted(numbered) if "@" not in given else ():
            yield place, f"the script takes an argument, ${number}", f"Give its value: --set {number}=VALUE."
        texts, env = self._texts(made), set(self.env)
        for message, help in list_needs_of_command(
            made.text, texts, work.start, given, env, self.script.text
        ):
            yield place, message, help

    def _texts(self, made: AssembledCommand) -> list[str]:
        return [made.text, *(text for text, _ in self.env.values())]


def _list_program_words(launch: ScriptLaunch) -> list[str]:
    return [one.text for one in launch.program]


def memory(count: int | None) -> str:
    """Return the amount of scratch space for a spec; 100Gi if only its use is known."""
    return format_spec_memory(count) if count else "100Gi"
