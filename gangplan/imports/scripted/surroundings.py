"""Account for what a script does around its launch: variables, folders, software, preparation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.interfaces import is_node_interface_setting
from gangplan.imports.scripted.assemble import AssembledCommand
from gangplan.imports.scripted.directives import BatchScript
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.idioms import ALL_HOSTS, FIRST_HOST, SOFTWARE_COMMANDS, THIS_HOST
from gangplan.imports.scripted.items import ScriptItem, find_last_script_action
from gangplan.imports.scripted.parts import is_input_redirect
from gangplan.imports.scripted.pieces import PartialText, ShellValue, is_different_on_each_worker
from gangplan.imports.variables import SET_BY_TORCHRUN

_PATHS = re.compile(
    r"(?:.*_)?(?:PATH|LIBRARY_PATH|INCLUDE|CUDA_HOME|CONDA_\w+|PYTHONHOME|MODULEPATH|CPATH|VIRTUAL_ENV|LD_PRELOAD|CC|CXX|CUDA_ROOT)"
)
_SECRET = re.compile(
    r"(?:.*_)?(?:API_?KEY|TOKEN|PASSWORD|PASSWD|SECRET(?:_ACCESS_KEY)?|ACCESS_KEY(?:_ID)?)", re.IGNORECASE
)
VISIBLE_GPUS = (
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
)  # fmt: skip
_MEETING = SET_BY_TORCHRUN | {
    "MASTER_NODE", "HEAD_NODE", "HEAD_NODE_IP", "GPUS_PER_NODE", "HOSTNAMES", "COUNT_NODE", "NODELIST", "HOSTFILE", "WORLD_RANK",
    "NPROCS", "MASTER_IP", "MASTER", "JAX_COORDINATOR_IP", "JAX_COORDINATOR_PORT",
}  # fmt: skip
_INTEL = re.compile(r"\b(?:impi|intel-?mpi|intel/|oneapi|intel-oneapi)", re.IGNORECASE)
_MPICH = re.compile(r"mpich|mvapich", re.IGNORECASE)
_SYSTEM = (
    "/opt",
    "/usr",
    "/bin",
    "/dev",
    "/tmp",
    "/etc",
    "/workspace",
    "/app",
    "/root",
    "/proc",
    "/sys",
    "/var",
)
_SCRATCH = "/scratch"  # of a run; the old cluster may have a folder of that name
_FOLDER = re.compile(r"(?<![\w.$}):/-])/(?:[\w.-]+)(?:/[\w.-]+)?")


def _list_open_texts(value: ShellValue) -> list[str]:
    return [piece.text for piece in value.pieces if piece.is_open] if isinstance(value, PartialText) else []


class Surroundings:
    """The surroundings of one script's launch."""

    def __init__(self, script: BatchScript, account: Account, scope: ScriptScope) -> None:
        self.script, self.source, self.scope = script, account, scope
        self.env: dict[str, tuple[str, SourceNode]] = {}
        self.workdir: tuple[str, SourceNode] | None = None
        self.questions: list[tuple[SourceNode, str, str]] = []
        self.is_intel = self.is_mpich = False
        self.start = "plain"
        self.extended = set[str]()

    def paths(self, item: ScriptItem) -> None:
        """Add a leaf for every line of an item that is not a launch."""
        text = self.script.text[item.begin : item.end].strip()
        name = re.match(r"(?:export\s+|declare\s+(?:-\w+\s+)?)?[\w./-]+", text)
        item.paths = self.script.lines(name[0] if name else "line", item.begin, item.end)

    def behind(self, item: ScriptItem) -> None:
        """Account for the rest of a launch's pipeline: redirections, tee, what is piped into it."""
        words = item.words
        last = max((word.end for word in words), default=item.begin)
        first = min(
            (word.begin for part in item.parts for word in (*part.sets, *part.words)), default=item.begin
        )
        for path in self.script.lines("output", last, item.end):
            node = SourceNode(self.source, path, None)
            node.mapped("command") if item.tail else node.dropped(
                "the log of a run is what its pods print (gangplan logs)"
            )
        for path in self.script.lines("input", item.begin, first):
            node = SourceNode(self.source, path, None)
            node.asked("what is piped into the program is not there in a run")
            help = "Let it read a file: files: or data: brings one."
            self.questions.append((node, "what is piped into the program is not there in a run", help))
        for redirect in (one for part in item.parts for one in part.redirects):
            if is_input_redirect(redirect):
                where = SourceNode(self.source, self._path(item), None)
                self.questions.append(
                    (
                        where,
                        "the program reads its input from the script",
                        "Let it read a file: files: or data: brings one.",
                    )
                )

    def _path(self, item: ScriptItem):  # type: ignore[no-untyped-def]
        line = self.script.where(item.begin).line
        return next((path for path, (at, _) in self.script.leaves.items() if at.line >= line), ())

    def open_exports(self, items: Sequence[ScriptItem]) -> set[int]:
        """Return the items that stay in the command for what they do to the variables of programs.

        They export what only a shell can determine, extend what the image has, or come behind a launch, which
        must not see them.
        """
        acting = items[: find_last_script_action(items)]
        exported = self.scope.exported.union(*(item.exports for item in items))
        self.extended = {name for item in acting for name in item.extends & exported}
        begun, found, again = False, set[int](), set[str]()
        for number, item in enumerate(acting):
            fates = {self.decide_fate(name, value)[0] for name, value in item.exports.items()}
            is_base = any(
                self.decide_fate(name, self.scope.values.get(name))[0] == "keep"
                for name in item.extends & self.extended
            )
            is_later = begun or bool(item.shells)
            if "keep" in fates or is_base or (is_later and ("env" in fates or item.unsets)):
                found.add(number)
                again |= {*item.exports, *item.unsets} if is_later else set()
            begun |= item.kind == "launch"
        # The lines before set what a later line sets again: the command would win over env: for all launches.
        found |= {
            number for number, item in enumerate(acting) if item.kind == "set" and again & item.exports.keys()
        }
        return found

    def decide_fate(self, name: str, value: ShellValue) -> tuple[str, str]:
        """Return what becomes of an exported variable (env, keep, filled, drop or ask), and why."""
        texts = _list_open_texts(value)
        whole = (
            value
            if isinstance(value, str)
            else "".join(piece.text for piece in value.pieces)
            if isinstance(value, PartialText)
            else ""
        )
        if (name in _MEETING and self.start != "mpi") or name in (
            "MASTER_ADDR",
            "MASTER_PORT",
            "WORLD_SIZE",
            "RANK",
            "LOCAL_RANK",
        ):
            return "drop", "the run's workers know each other by themselves"
        if any(host in whole for host in (FIRST_HOST, ALL_HOSTS, THIS_HOST)):
            return "drop", "which hosts a run has is known when it starts, to what starts its ranks"
        if name.startswith(("SLURM_", "PBS_")):
            return "drop", "a run has no scheduler other than Kueue"
        if name in VISIBLE_GPUS:
            return "drop", "the GPUs of a worker are its own"
        if _PATHS.fullmatch(name) and (texts or name in ("PATH", "LD_LIBRARY_PATH") or value is None):
            return "drop", "the image brings its software"
        if isinstance(value, str) and is_node_interface_setting(name, value):
            return "drop", "the pods of a run have other interfaces than the nodes of the old cluster"
        if _SECRET.fullmatch(name) and value not in ("", "0", "false"):
            return "ask", "it looks like a secret, which belongs into a Secret of the cluster (secrets.env)"
        if name.startswith(("APPTAINERENV_", "SINGULARITYENV_")):
            return "ask", "Apptainer gives it to its container by the rest of the name; write that under env:"
        if name in self.extended and not self._names_outside(texts, name):
            return "keep", ""
        if isinstance(value, str):
            return "env", ""
        if isinstance(value, tuple):
            return "drop", "arrays are not exported"
        outside = self._names_outside(texts, name)
        if outside and name in self.scope.used and name not in self.extended:
            return "filled", ""
        if outside:
            return "ask", f"{', '.join(outside)} comes from the old cluster"
        return "keep", ""

    def suggest_answer(self, name: str, value: ShellValue) -> str:
        """Return the help for an exported variable that is asked about."""
        if _SECRET.fullmatch(name):
            return f"Revoke it, put a new one into a Secret, and name that: secrets: {{env: {{{name}: SECRET/KEY}}}}."
        if outside := self._names_outside(_list_open_texts(value), name):
            return f"Give its value: {' '.join(f'--set {one}=VALUE' for one in outside)}."
        return f"Write env: {{{name.partition('_')[2]}: VALUE}}."

    def _names_outside(self, texts: Sequence[str], own: str) -> list[str]:
        """Return the variables in a value that only the old cluster sets, but for the one that is set."""
        names = [text.strip("${}") for text in texts if re.fullmatch(r"\$\{?[A-Za-z_]\w*\}?", text)]
        known = self.scope.values.keys() | self.scope.set_inside
        return [name for name in dict.fromkeys(names) if name != own and name not in known]

    def account(
        self,
        items: Sequence[ScriptItem],
        numbers: Sequence[int],
        made: AssembledCommand,
        mounted: Sequence[str],
    ) -> None:
        """Account for every line around the launch; `mounted` are the folders that its container sees."""
        software: list[str] = []
        place: SourceNode | None = None
        last = find_last_script_action(items)
        for number, item in enumerate(items):
            if number in numbers:
                continue
            nodes = [SourceNode(self.source, path, None) for path in item.paths]
            text = self.script.text[item.begin : item.end]
            if (
                item.kind == "drop"
                and item.parts
                and item.parts[0].texts[:1]
                and item.parts[0].texts[0] in SOFTWARE_COMMANDS
            ):
                software.append(text.strip().splitlines()[0])
                place = place or (nodes[0] if nodes else None)
            if number > last and (item.kind == "set" or item.unsets):
                self._each(nodes, "dropped", "the script starts nothing behind it")
            else:
                self._one(item, nodes, made)
        loaded = " ".join(software)
        self.is_intel, self.is_mpich = bool(_INTEL.search(loaded)), bool(_MPICH.search(loaded))
        wanted = [one for one in software if re.search(r"\bload\b|\badd\b|activate|\buse\b", one)]
        if place is not None and wanted:
            shown = "; ".join(dict.fromkeys(wanted[:4]))
            self.questions.append(
                (
                    place,
                    f"the script takes its software from the old cluster ({shown})",
                    "The image has to have it.",
                )
            )
        self._folders(made, numbers, items, mounted)

    def _one(self, item: ScriptItem, nodes: list[SourceNode], made: AssembledCommand) -> None:
        if item in made.kept:
            self._each(nodes, "mapped", "command")
        elif item in made.asks_hosts:
            self._each(nodes, "asked", "it asks the scheduler for hosts, and a run knows its own")
            self._question(
                nodes,
                "it asks the scheduler for hosts, and a run knows its own",
                "Check that the program does not need it.",
            )
        elif item.kind == "cd":
            self._folder(item, nodes)
        elif item.kind == "file":
            self._each(nodes, "asked", item.why)
            self._question(
                nodes, item.why, "Write what the run needs of it into env:, or put it into the image."
            )
        elif item.help:
            self._each(nodes, "asked", item.why)
            self._question(nodes, item.why, item.help)
        elif item.kind == "set":
            self._set(item, nodes)
        else:
            for name in item.unsets & self.env.keys():
                self.env.pop(name)[1].dropped("a later line unsets it")
            self._each(nodes, "dropped", item.why or "it is not needed")

    def ask_about_preparation(self, items: Sequence[ScriptItem]) -> None:
        """Ask about what ran once, on the first node, before ranks that each worker starts itself."""
        self.ask_about_single_runs(
            [
                (SourceNode(self.source, item.paths[0], None), item)
                for item in items
                if item.kind == "keep" and item.paths
            ]
        )

    def ask_about_single_runs(self, found: Sequence[tuple[SourceNode, ScriptItem]]) -> None:
        """Ask about each item that ran once, unless the launcher of a run does that."""
        for node, item in found if self.start != "mpi" else ():
            text = self.script.text[item.begin : item.end].strip().splitlines()[0]
            if not text.startswith(("mkdir", "cd ", "set ")):
                shown = text if len(text) < 60 else f"{text[:57]}..."
                self._question(
                    [node],
                    f"what ran once, on the first node, runs on each worker of a run: {shown}",
                    "Put it into the image or into setup:, or let the first worker alone do it.",
                )

    def ask_about_computed_values(self, made: AssembledCommand) -> None:
        """Ask about each variable that the script computed once, and that each worker computes by itself."""
        for item in made.kept:
            found = re.search(r"([A-Za-z_]\w*)=(.*)", self.script.text[item.begin : item.end])
            if found and item.kind == "set" and item.paths and is_different_on_each_worker(found[2]):
                self._question(
                    [SourceNode(self.source, item.paths[0], None)],
                    f"each worker of a run computes {found[1]} by itself, and may get another value",
                    f"Give it a value: --set {found[1]}=VALUE.",
                )

    def _folder(self, item: ScriptItem, nodes: list[SourceNode]) -> None:
        if item.folder in (".", "", "~"):
            self._each(nodes, "same", "a run starts in the folder of its image, or in workdir")
        elif item.folder.startswith("/"):
            self.workdir = (item.folder, nodes[0]) if nodes else None
            self._each(nodes, "mapped", "workdir")
        else:
            self._each(
                nodes,
                "dropped",
                "the folder from which a job was submitted is the image's own in a run; workdir: names another",
            )

    def _set(self, item: ScriptItem, nodes: list[SourceNode]) -> None:
        reasons = []
        for name, value in item.exports.items():
            fate, why = self.decide_fate(name, value)
            if fate == "env" and isinstance(value, str) and nodes:
                if name in self.env:
                    self.env[name][1].dropped("a later line sets it again")
                self.env[name] = (value, nodes[0])
            elif fate == "ask":
                self._each(nodes, "asked", why)
                self._question(nodes, f"{name}: {why}", self.suggest_answer(name, value))
            elif fate == "filled":
                self._each(nodes, "mapped", "command")
            elif fate == "drop":
                if name in self.env:
                    self.env.pop(name)[1].dropped("a later line sets it again")
                reasons.append(why)
        if item.exports:
            if any(name in self.env for name in item.exports):
                self._each(nodes[1:], "mapped", "env")
            else:
                self._each(nodes, "dropped", "; ".join(dict.fromkeys(reasons)))
        elif item.names & self.scope.used:
            self._each(nodes, "mapped", "command")
        else:
            self._each(nodes, "dropped", "nothing uses it")

    def _folders(
        self,
        made: AssembledCommand,
        numbers: Sequence[int],
        items: Sequence[ScriptItem],
        mounted: Sequence[str],
    ) -> None:
        """Ask about folders of the old cluster in the command, which a run has to mount."""
        texts = [*made.words, *(value for value, _ in self.env.values())]
        texts += [self.workdir[0]] if self.workdir else []
        own = re.compile("|".join(rf"{re.escape(one)}(?![\w.-])" for one in mounted) or r"(?!)")
        found = [
            one[0]
            for text in texts
            for one in _FOLDER.finditer(text)
            if not one[0].startswith(_SYSTEM) and not own.match(text, one.start())
            if not one[0].startswith(_SCRATCH) or one[0] in self.script.text
        ]
        if found:
            shown = ", ".join(dict.fromkeys(found[:6]))
            path = self._path(items[max(numbers)])
            self.questions.append(
                (
                    SourceNode(self.source, path, None),
                    f"the program uses folders of the old cluster: {shown}",
                    "Put the files on a claim of the team, and mount it there: data: {CLAIM: FOLDER}.",
                )
            )

    def _question(self, nodes: list[SourceNode], message: str, help: str) -> None:
        if nodes:
            self.questions.append((nodes[0], message, help))

    @staticmethod
    def _each(nodes: list[SourceNode], how: str, why: str) -> None:
        for node in nodes:
            getattr(node, how)(why)
