"""Programs that only prepare the start of another one, such as env, time, timeout, nice and numactl.

Options and the words they take are those of GNU coreutils 9.4, util-linux 2.39, numactl 2.0.16, and of the
manuals of the others in 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gangplan.plan.launchers.programs import base
from gangplan.records import dataclass

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix's options that take a word, the number of words of its own after them, and its subcommands."""

    takes: frozenset[str] = frozenset()
    words: int = 0
    sub: frozenset[str] = frozenset()


def _prefix(takes: str = "", words: int = 0, sub: str = "") -> Prefix:
    return Prefix(frozenset(takes.split()), words, frozenset(sub.split()))


PREFIXES: Mapping[str, Prefix] = {
    "env": _prefix("-u --unset -C --chdir -S --split-string -a --argv0"),
    "time": _prefix("-f --format -o --output"),
    "timeout": _prefix("-k --kill-after -s --signal", 1),
    "nice": _prefix("-n --adjustment"),
    "ionice": _prefix("-c --class -n --classdata -P -u"),
    "numactl": _prefix(
        "-i --interleave -w --weighted-interleave -p --preferred -P --preferred-many -N --cpunodebind -m"
        " --membind -C --physcpubind --cpubind -b"
    ),
    "stdbuf": _prefix("-i --input -o --output -e --error"),
    "taskset": _prefix("", 1),
    "chrt": _prefix("-T --sched-runtime -P --sched-period -D --sched-deadline", 1),
    "nohup": _prefix(),
    "xargs": _prefix("-n -P -I -a -d -E -L -s --max-args --max-procs --arg-file --delimiter"),
    "parallel": _prefix("-j --jobs -N -n --joblog --timeout --retries -a -I"),
    "flock": _prefix("-w --timeout -E", 1),
    "watch": _prefix("-n --interval"),
    "busybox": _prefix(),
    "catatonit": _prefix(),
    "dbus-run-session": _prefix("--config-file --dbus-daemon"),
    # Wrappers of profilers and debuggers that look for the launcher themselves.
    "scalasca": _prefix("-e -t -f"),
    "scan": _prefix("-e -t -f"),
    "map": _prefix("-o --output"),
    "ddt": _prefix("-o --output"),
    "perf-report": _prefix("-o --output"),
    "su-exec": _prefix("", 1),
    "gosu": _prefix("", 1),
    "doas": _prefix("-u -C"),
    "runuser": _prefix("-u --user -g --group -G --supp-group -w -T"),
    "chroot": _prefix("", 1),
    "sudo": _prefix("-u --user -g --group -h --host -p --prompt -C -D --chdir"),
    "setsid": _prefix(),
    "unbuffer": _prefix(),
    "catchsegv": _prefix(),
    "tini": _prefix("-p -e"),
    "dumb-init": _prefix("-r --rewrite"),
    "prlimit": _prefix("-o --output"),
    "setarch": _prefix("", 1),
    "xvfb-run": _prefix("-e --error-file -f --auth-file -n --server-num -s --server-args -w --wait"),
    "nsys": _prefix(
        "-o --output -t --trace -s --sample -c --capture-range -y --delay -d --duration -f --force-overwrite"
        " -e --env-var -w --show-output -p --nvtx-capture -x --stop-on-exit -b --backtrace -n --inherit-environment"
        " --session-new -z --gpu-metrics-device -a -k --kill",
        sub="profile launch",
    ),
    "ncu": _prefix(
        "-o --export -k --kernel-name -c --launch-count -s --launch-skip --set --section --metrics"
    ),
    "valgrind": _prefix(),
    "compute-sanitizer": _prefix("--tool --log-file --save --target-processes --kernel-name"),
    "cuda-memcheck": _prefix("--tool --log-file --save"),
    "likwid-perfctr": _prefix("-C -c -g -t -S -T -O -o -V -s"),
    "likwid-pin": _prefix("-c -C -s"),
    "heaptrack": _prefix("-o --output"),
    "ltrace": _prefix("-e -o -s -p -u -l -n -x -a"),
    "vtune": _prefix("-c -collect --collect -r -result-dir --result-dir -k -knob --knob -d -q"),
    "py-spy": _prefix("-o --output -r --rate -d --duration -f --format", sub="record"),
    "strace": _prefix("-e -o -s -p -E -u -a -O -S -P -I -b -X"),
    "gdb": _prefix("-ex -x -ix -iex -eval-command"),
    "perf": _prefix("-o -e -F -g -c --call-graph -C -m -d -p", sub="record stat"),
    "conda": _prefix("-n --name -p --prefix --cwd", sub="run"),
    "mamba": _prefix("-n --name -p --prefix --cwd", sub="run"),
    "micromamba": _prefix("-n --name -p --prefix --cwd -r --root-prefix -a --attach", sub="run"),
    "poetry": _prefix("-C --directory -P --project", sub="run"),
    "uv": _prefix("--with --extra --group --python -p --project --directory --env-file --package", sub="run"),
    "pixi": _prefix("-e --environment --manifest-path", sub="run"),
    "pipenv": _prefix(sub="run"),
    "pdm": _prefix("-p --project -e --env-file", sub="run"),
    "rye": _prefix(sub="run"),
    "hatch": _prefix("-e --env -p --project", sub="run"),
    "ddtrace-run": _prefix(),
    "opentelemetry-instrument": _prefix(),
}


# Programs that change what happens to the program after them. A container may not gain rights (no_new_privs),
# so nothing in it can change its user or root; a profiler sees the launcher and the ranks on its own host,
# not other hosts.
BECOMES = frozenset({"sudo", "su", "doas", "runuser", "gosu", "su-exec", "pkexec", "chroot", "nsenter"})
CONTAINERS = frozenset(
    [
        "singularity",
        "apptainer",
        "docker",
        "podman",
        "nerdctl",
        "udocker",
        "shifter",
        "enroot",
        "ch-run",
        "sarus",
        "charliecloud",
    ]
)
ELSEWHERE = frozenset({"ssh", "rsh"})
SEES_ONE_HOST = frozenset(
    [
        "nsys",
        "ncu",
        "perf",
        "valgrind",
        "compute-sanitizer",
        "cuda-memcheck",
        "likwid-perfctr",
        "heaptrack",
        "vtune",
        "py-spy",
    ]
)


@dataclass(frozen=True, slots=True)
class Peeled:
    """The index of the program after all prefixes, the variables set before it, and what the prefixes break.

    `unset` are variables that are removed; `clears` is the index of the word that empties the environment,
    `forks` that of a prefix that ends before its program does. `via` are the indexes of the prefixes.
    """

    at: int
    sets: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()
    clears: int = -1
    forks: int = -1
    via: tuple[int, ...] = ()


def peel(words: Sequence[str], at: int = 0) -> Peeled:
    """Strip the prefixes from index `at` on."""
    found = Peeled(at)
    while found.at < len(words):
        name = base(words[found.at])
        prefix = PREFIXES.get(name)
        if prefix is None:
            return found
        step = _env(words, found) if name == "env" else _through(words, found, name, prefix)
        if step is None:
            return found
        found = replace(step, via=(*found.via, found.at))
    return found


def _option_end(words: Sequence[str], index: int, takes: frozenset[str]) -> int:
    """Return the index after the option at `index` and the word that it takes."""
    return index + 1 + (words[index] in takes)


def _through(words: Sequence[str], found: Peeled, name: str, prefix: Prefix) -> Peeled | None:
    index, forks = found.at + 1, found.forks
    if prefix.sub:
        while index < len(words) and words[index].startswith("-") and words[index] not in prefix.sub:
            index = _option_end(words, index, prefix.takes)
        if index >= len(words) or words[index] not in prefix.sub:
            return None
        index += 1
    waits = False
    while index < len(words) and words[index].startswith("-") and words[index] != "-":
        if words[index] == "--":
            index += 1
            break
        waits = waits or words[index] in ("-w", "--wait")
        index = _option_end(words, index, prefix.takes)
    if name == "nice" and index < len(words) and words[index].isdigit():
        index += 1
    index += prefix.words
    if name == "taskset" and index > len(words):
        return None
    if name == "setsid" and not waits:
        forks = found.at
    return Peeled(min(index, len(words)), found.sets, found.unset, found.clears, forks)


def _env(words: Sequence[str], found: Peeled) -> Peeled:
    index, sets, unset, clears = found.at + 1, list(found.sets), list(found.unset), found.clears
    while index < len(words):
        word = words[index]
        assigned = ASSIGNMENT.fullmatch(word)
        if assigned is not None:
            sets.append((assigned[1], assigned[2]))
            index += 1
        elif word in ("-i", "--ignore-environment", "-"):
            clears, index = index, index + 1
        elif word in ("-u", "--unset") and index + 1 < len(words):
            unset.append(words[index + 1])
            index += 2
        elif word.startswith("--unset="):
            unset.append(word.partition("=")[2])
            index += 1
        elif word.startswith("-") and not word.startswith(("-S", "--split-string")):
            index = _option_end(words, index, PREFIXES["env"].takes)
        else:
            break
    return Peeled(min(index, len(words)), tuple(sets), tuple(unset), clears, found.forks)
