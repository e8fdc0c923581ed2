"""Convert `accelerate launch`: torchrun replaces it, or a shell passes it the facts of the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gangplan.plan.launchers import FoundLauncher, ParsedOption
from gangplan.plan.program import extract_launched_program


def convert_accelerate_launch(
    command: tuple[str, ...], one: FoundLauncher, options: Sequence[ParsedOption]
) -> tuple[str, ...]:
    """Return the command of an `accelerate launch`: a shell passes it the counts and address of the run.

    The shell takes them from variables that Trainer sets. If the options are only hosts and counts, the
    program is left to torchrun, whose variables its library reads (Accelerate 1.15, commands/launch.py).
    """
    left = [
        use for use in options if use.option.name not in ("multi-gpu", "same-network", "main-process-port")
    ]
    program = extract_launched_program(one)
    if not left and program and one.script is None:
        return program
    words = list(_list_accelerate_option_words(left, one)) + list(one.reading.program)
    told = (
        'accelerate launch --num_machines {workers} --num_processes {ranks} --machine_rank "$PET_NODE_RANK"'
        ' --main_process_ip "$PET_MASTER_ADDR" --main_process_port "$PET_MASTER_PORT"'
    )
    if one.script is None:
        return ("bash", "-c", f"{told} {shlex.join(words)}")
    text, places = one.script.text, one.script.words
    begin, end = places[one.start.begin].begin, places[-1].end
    kept = " ".join(
        text[places[index].begin : places[index].end]
        for index in range(one.start.at + 1, len(places))
        if not any(use.at <= index < use.end for use in one.reading.uses if use not in left)
    )
    return (
        *command[: one.script.at],
        f"{text[:begin]}{told} {kept}{text[end:]}",
        *command[one.script.at + 1 :],
    )


def _list_accelerate_option_words(left: Sequence[ParsedOption], one: FoundLauncher) -> Iterator[str]:
    for use in left:
        yield from one.reading.words[use.at : use.end]
