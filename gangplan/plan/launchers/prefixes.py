"""Programs that only prepare the start of another one, such as env, time, timeout, nice and numactl.

Options and the words they take are those of GNU coreutils 9.4, util-linux 2.39, numactl 2.0.16, and of the
manuals of the others in 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gangplan.plan.launchers.programs import program_name_of
from gangplan.records import dataclass

ASSIGNMENT_PATTERN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix's options that take a word, the number of words of its own after them, and its subcommands."""

    takes: frozenset[str] = frozenset()
    words: int = 0
    sub: frozenset[str] = frozenset()


def _build_prefix_program(takes: str = "", words: int = 0, sub: str = "") -> Prefix:
    return Prefix(frozenset(takes.split()), words, frozenset(sub.split()))


PREFIXES: Mapping[str, Prefix] = {
    "env": _build_prefix_program("-u --unset -C --chdir -S --split-string -a --argv0"),
    "time": _build_prefix_program("-f --format -o --output"),
    "timeout": _build_prefix_program("-k --kill-after -s --signal", 1),
    "nice": _build_prefix_program("-n --adjustment"),
    "ionice": _build_prefix_program("-c --class -n --classdata -P -u"),
    "numactl": _build_prefix_program(
        "-i --interleave -w --weighted-interleave -p --preferred -P --preferred-many -N --cpunodebind -m"
        " --membind -C --physcpubind --cpubind -b"
    ),
    "stdbuf": _build_prefix_program("-i --input -o --output -e --error"),
    "taskset": _build_prefix_program("", 1),
    "chrt": _build_prefix_program("-T --sched-runtime -P --sched-period -D --sched-deadline", 1),
    "nohup": _build_prefix_program(),
    "xargs": _build_prefix_program("-n -P -I -a -d -E -L -s --max-args --max-procs --arg-file --delimiter"),
    "parallel": _build_prefix_program("-j --jobs -N -n --joblog --timeout --retries -a -I"),
    "flock": _build_prefix_program("-w --timeout -E", 1),
    "watch": _build_prefix_program("-n --interval"),
    "busybox": _build_prefix_program(),
    "catatonit": _build_prefix_program(),
    "dbus-run-session": _build_prefix_program("--config-file --dbus-daemon"),
    # Wrappers of profilers and debuggers that look for the launcher themselves.
    "scalasca": _build_prefix_program("-e -t -f"),
    "scan": _build_prefix_program("-e -t -f"),
    "map": _build_prefix_program("-o --output"),
    "ddt": _build_prefix_program("-o --output"),
    "perf-report": _build_prefix_program("-o --output"),
    "su-exec": _build_prefix_program("", 1),
    "gosu": _build_prefix_program("", 1),
    "doas": _build_prefix_program("-u -C"),
    "runuser": _build_prefix_program("-u --user -g --group -G --supp-group -w -T"),
    "chroot": _build_prefix_program("", 1),
    "sudo": _build_prefix_program("-u --user -g --group -h --host -p --prompt -C -D --chdir"),
    "setsid": _build_prefix_program(),
    "unbuffer": _build_prefix_program(),
    "catchsegv": _build_prefix_program(),
    "tini": _build_prefix_program("-p -e"),
    "dumb-init": _build_prefix_program("-r --rewrite"),
    "prlimit": _build_prefix_program("-o --output"),
    "setarch": _build_prefix_program("", 1),
    "xvfb-run": _build_prefix_program(
        "-e --error-file -f --auth-file -n --server-num -s --server-args -w --wait"
    ),
    "nsys": _build_prefix_program(
        "-o --output -t --trace -s --sample -c --capture-range -y --delay -d --duration -f --force-overwrite"
        " -e --env-var -w --show-output -p --nvtx-capture -x --stop-on-exit -b --backtrace -n --inherit-environment"
        " --session-new -z --gpu-metrics-device -a -k --kill",
        sub="profile launch",
    ),
    "ncu": _build_prefix_program(
        "-o --export -k --kernel-name -c --launch-count -s --launch-skip --set --section --metrics"
    ),
    "valgrind": _build_prefix_program(),
    "compute-sanitizer": _build_prefix_program("--tool --log-file --save --target-processes --kernel-name"),
    "cuda-memcheck": _build_prefix_program("--tool --log-file --save"),
    "likwid-perfctr": _build_prefix_program("-C -c -g -t -S -T -O -o -V -s"),
    "likwid-pin": _build_prefix_program("-c -C -s"),
    "heaptrack": _build_prefix_program("-o --output"),
    "ltrace": _build_prefix_program("-e -o -s -p -u -l -n -x -a"),
    "vtune": _build_prefix_program("-c -collect --collect -r -result-dir --result-dir -k -knob --knob -d -q"),
    "py-spy": _build_prefix_program("-o --output -r --rate -d --duration -f --format", sub="record"),
    "strace": _build_prefix_program("-e -o -s -p -E -u -a -O -S -P -I -b -X"),
    "gdb": _build_prefix_program("-ex -x -ix -iex -eval-command"),
    "perf": _build_prefix_program("-o -e -F -g -c --call-graph -C -m -d -p", sub="record stat"),
    "conda": _build_prefix_program("-n --name -p --prefix --cwd", sub="run"),
    "mamba": _build_prefix_program("-n --name -p --prefix --cwd", sub="run"),
    "micromamba": _build_prefix_program(
        "-n --name -p --prefix --cwd -r --root-prefix -a --attach", sub="run"
    ),
    "poetry": _build_prefix_program("-C --directory -P --project", sub="run"),
    "uv": _build_prefix_program(
        "--with --extra --group --python -p --project --directory --env-file --package", sub="run"
    ),
    "pixi": _build_prefix_program("-e --environment --manifest-path", sub="run"),
    "pipenv": _build_prefix_program(sub="run"),
    "pdm": _build_prefix_program("-p --project -e --env-file", sub="run"),
    "rye": _build_prefix_program(sub="run"),
    "hatch": _build_prefix_program("-e --env -p --project", sub="run"),
    "ddtrace-run": _build_prefix_program(),
    "opentelemetry-instrument": _build_prefix_program(),
}


# Programs that change what happens to the program after them. A container may not gain rights (no_new_privs),
# so nothing in it can change its user or root; a profiler sees the launcher and the ranks on its own host,
# not other hosts.
USER_CHANGING_PROGRAMS = frozenset(
    {"sudo", "su", "doas", "runuser", "gosu", "su-exec", "pkexec", "chroot", "nsenter"}
)
CONTAINER_PROGRAMS = frozenset(
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
REMOTE_SHELLS = frozenset({"ssh", "rsh"})
ONE_HOST_PROFILERS = frozenset(
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
class StrippedPrefixes:
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


def strip_prefixes(words: Sequence[str], at: int = 0) -> StrippedPrefixes:
    """Strip the prefixes from index `at` on."""
    found = StrippedPrefixes(at)
    while found.at < len(words):
        name = program_name_of(words[found.at])
        prefix = PREFIXES.get(name)
        if prefix is None:
            return found
        step = (
            _strip_env_before_launcher(words, found)
            if name == "env"
            else _strip_prefix_program(words, found, name, prefix)
        )
        if step is None:
            return found
        found = replace(step, via=(*found.via, found.at))
    return found


def _find_option_end(words: Sequence[str], index: int, takes: frozenset[str]) -> int:
    """Return the index after the option at `index` and the word that it takes."""
    return index + 1 + (words[index] in takes)


def _strip_prefix_program(
    words: Sequence[str], found: StrippedPrefixes, name: str, prefix: Prefix
) -> StrippedPrefixes | None:
    index, forks = found.at + 1, found.forks
    if prefix.sub:
        while index < len(words) and words[index].startswith("-") and words[index] not in prefix.sub:
            index = _find_option_end(words, index, prefix.takes)
        if index >= len(words) or words[index] not in prefix.sub:
            return None
        index += 1
    waits = False
    while index < len(words) and words[index].startswith("-") and words[index] != "-":
        if words[index] == "--":
            index += 1
            break
        waits = waits or words[index] in ("-w", "--wait")
        index = _find_option_end(words, index, prefix.takes)
    if name == "nice" and index < len(words) and words[index].isdigit():
        index += 1
    index += prefix.words
    if name == "taskset" and index > len(words):
        return None
    if name == "setsid" and not waits:
        forks = found.at
    return StrippedPrefixes(min(index, len(words)), found.sets, found.unset, found.clears, forks)


def _strip_env_before_launcher(words: Sequence[str], found: StrippedPrefixes) -> StrippedPrefixes:
    index, sets, unset, clears = found.at + 1, list(found.sets), list(found.unset), found.clears
    while index < len(words):
        word = words[index]
        assigned = ASSIGNMENT_PATTERN.fullmatch(word)
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
            index = _find_option_end(words, index, PREFIXES["env"].takes)
        else:
            break
    return StrippedPrefixes(min(index, len(words)), tuple(sets), tuple(unset), clears, found.forks)
