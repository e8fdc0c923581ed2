"""Import every job of other repositories, and say how many are whole, in part, or not imported, and why."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.wild.corpus import Source, sources
from tests.wild.pairs import run_on_lab
from tests.wild.trial import Trial, tried

_STATES = ("whole", "part", "not")


def main() -> None:
    """Read the flags, try the sources and print the table."""
    flags = argparse.ArgumentParser(prog="python -m tests.wild", description=__doc__)
    flags.add_argument("folder", type=Path, help="repositories: a folder for each, work trees or Git folders")
    flags.add_argument(
        "--into", type=Path, help="where Git folders are unpacked (default: a temporary folder)"
    )
    flags.add_argument("--kind", action="append", help="only these kinds")
    flags.add_argument("--only", default="", help="only sources whose name has this text")
    flags.add_argument("--json", type=Path, help="write each source with its result")
    flags.add_argument("--jobs", type=int, default=2)
    flags.add_argument(
        "--lab",
        action="store_true",
        help="compare the pods of each job of an operator with those of its run",
    )
    options = flags.parse_args()
    with tempfile.TemporaryDirectory() as room:
        every = sources(options.folder.resolve(), (options.into or Path(room) / "trees").resolve())
        every = [
            one for one in every if options.only in one.name and one.kind in (options.kind or [one.kind])
        ]
        if options.lab:
            sys.exit(run_on_lab(every, room, options.json))
        with get_context("fork").Pool(options.jobs, maxtasksperchild=50) as pool:
            trials = []
            for trial in pool.imap(partial(tried, room=room), every):
                trials.append(trial)
                if trial.state != "whole":
                    rule, message = (*trial.errors, ("", ""))[0]
                    print(
                        f"{trial.state}: {trial.source.kind} {trial.source.name}: {rule}: {message}",
                        flush=True,
                    )
    print(table(trials))
    if options.json:
        options.json.write_text(json.dumps([_row(one) for one in trials], indent=1) + "\n", encoding="utf-8")


def table(trials: list[Trial]) -> str:
    """Return a table of each kind, with the number of files by result."""
    lines = ["| kind | files | whole | part | not | % |", "|---|---|---|---|---|---|"]
    for kind in [*dict.fromkeys(one.source.kind for one in trials), "all"]:
        some = [one for one in trials if kind in ("all", one.source.kind)]
        counts = Counter(one.state for one in some)
        share = 100 * counts["whole"] / max(1, len(some))
        lines.append(
            f"| {kind} | {len(some)} | "
            + " | ".join(str(counts[one]) for one in _STATES)
            + f" | {share:.1f} |"
        )
    return "\n".join(lines)


def _row(one: Trial) -> dict[str, object]:
    source: Source = one.source
    return {
        "kind": source.kind, "source": source.name, "state": one.state, "specs": one.specs,
        "flags": one.flags, "errors": one.errors, "fields": dict(one.states), "lost": one.lost,
    }  # fmt: skip


if __name__ == "__main__":
    main()
