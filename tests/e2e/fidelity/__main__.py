"""Ask gangplan and a real control plane the same questions, and compare: `python -m tests.e2e.fidelity`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.e2e.fidelity import ask, report
from tests.lab import build, profiles
from tests.lab.lab import Lab


def main() -> int:
    """Ask, print, write; 1 when some disagreement is not known."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fidelity", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000, help="0: every value of values.yaml once")
    parser.add_argument("--profile", default=profiles.DEFAULT)
    parser.add_argument("--output", type=Path, help="where the counts and counterexamples are written (YAML)")
    parser.add_argument("--shrink", type=int, default=20, help="how many causes get a smaller spec")
    arguments = parser.parse_args()
    profile = profiles.find(arguments.profile)
    trouble = build.problem() if build.missing(profile.programs) else None
    if trouble:
        print(f"fidelity: the lab can't be built: {trouble}", file=sys.stderr)
        return 3
    began = time.monotonic()
    with Lab(profile) as lab:
        result = ask.run(lab.client, profile, arguments.seed, arguments.count, say=_progress)
        groups = result.disagreements
        small = {
            cause: ask.shrink(lab.client, profile, found[0])
            for cause, found in list(groups.items())[: arguments.shrink]
        }
    result.seconds["all"] = time.monotonic() - began
    print("\n".join(report.lines(result, small)))
    if arguments.output:
        found = [small.get(cause, group[0]) for cause, group in groups.items()]
        cases = [ask.as_case(one, f"disagreement-{number}", profile) for number, one in enumerate(found, 1)]
        report.write(arguments.output, result, cases)
        print(f"written to {arguments.output}")
    return 1 if groups else 0


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


sys.exit(main())
