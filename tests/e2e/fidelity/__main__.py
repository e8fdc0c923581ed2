"""Ask gangplan and a real control plane the same questions, and compare: `python -m tests.e2e.fidelity`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.e2e.admission import ask as asked
from tests.e2e.admission import recording, stories, story
from tests.e2e.admission import report as compare
from tests.e2e.fidelity import ask, features, kept, replay, report
from tests.e2e.policies import harness as policies
from tests.lab import build, profiles
from tests.lab.lab import Lab

#: One question about admission, or one story, takes as long as so many questions about objects.
OF_OBJECTS, OF_STORIES = 20, 100


def main() -> int:
    """Ask, print and write; return 1 if there is an unknown disagreement."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.fidelity", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000, help="0: every value of values.yaml once")
    parser.add_argument("--profile", default=profiles.DEFAULT)
    parser.add_argument(
        "--what",
        choices=("objects", "admission", "stories", "policies", "all"),
        default="all",
        help="objects: is it accepted; admission: does the run get in, and do its pods find nodes;"
        " stories: who is admitted and preempted when many share; policies: what policies and CRDs say",
    )
    parser.add_argument(
        "--each", type=int, default=asked.RUNS, help="questions about admission in one world, at most"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first story")
    parser.add_argument(
        "--record",
        type=Path,
        help="where the answers are kept; stories are added as they are told, and those that are there are"
        " not told again",
    )
    parser.add_argument(
        "--replay", type=Path, nargs="+", help="kept answers, held against gangplan as it is now: no lab"
    )
    parser.add_argument("--kind", default="", help="ask about objects of one kind alone, such as MPIJob")
    parser.add_argument("--output", type=Path, help="where the counts and counterexamples are written (YAML)")
    parser.add_argument("--shrink", type=int, default=20, help="how many causes get a smaller spec")
    arguments = parser.parse_args()
    if arguments.replay:
        return _replay(arguments.replay)
    profile = profiles.find(arguments.profile)
    trouble = build.problem() if build.missing(profile.programs) else None
    if trouble:
        print(f"fidelity: the lab can't be built: {trouble}", file=sys.stderr)
        return 3
    failures = 0
    if arguments.what in ("objects", "all"):
        failures += _objects(arguments, profile)
    if arguments.what in ("admission", "all"):
        count = arguments.count if arguments.what == "admission" else max(1, arguments.count // OF_OBJECTS)
        which = asked.Which(arguments.seed, count, arguments.each)
        failures += _admission(profile, which, arguments.record)
    if arguments.what in ("stories", "all"):
        count = arguments.count if arguments.what == "stories" else max(1, arguments.count // OF_STORIES)
        failures += _stories(profile, stories.Which(arguments.seed, count, arguments.first, arguments.record))
    if arguments.what in ("policies", "all"):
        failures += _policies(profile, arguments.seed, arguments.count)
    return 1 if failures else 0


def _replay(files: list[Path]) -> int:
    """Compare recorded answers with gangplan offline."""
    wrong = 0
    for file in files:
        number, said = replay.replay(file)
        wrong += number
        print("\n".join(said))
    return 1 if wrong else 0


def _policies(profile: profiles.Profile, seed: int, count: int) -> int:
    """Compare what policies say about random objects, which broken policies are refused, and the rules of
    CRDs."""
    began = time.monotonic()
    with Lab(profile) as lab:
        wrong, said = policies.run(lab.client, profile, seed, count, _progress)
    title = f"{profile.name} ({profile.versions()}), seed {seed}, {time.monotonic() - began:.0f} s"
    print(title, *said, sep="\n")
    return wrong


def _objects(arguments: argparse.Namespace, profile: profiles.Profile) -> int:
    """Compare which objects are accepted."""
    began = time.monotonic()
    with Lab(profile) as lab:
        features.prefer_kind(arguments.kind)
        result = ask.run(
            lab.client, profile, arguments.seed, arguments.count, say=_progress, kind=arguments.kind
        )
        groups = result.disagreements
        small = {
            cause: ask.shrink(lab.client, profile, found[0])
            for cause, found in list(groups.items())[: arguments.shrink]
        }
    result.seconds["all"] = time.monotonic() - began
    print("\n".join(report.lines(result, small)))
    if arguments.record:
        kept.write(arguments.record, profile, result.answered)
    if arguments.output:
        found = [small.get(cause, group[0]) for cause, group in groups.items()]
        cases = [ask.as_case(one, f"disagreement-{number}", profile) for number, one in enumerate(found, 1)]
        report.write(arguments.output, result, cases)
        print(f"written to {arguments.output}")
    return len(groups)


def _admission(profile: profiles.Profile, which: asked.Which, record: Path | None) -> int:
    """Compare which runs are admitted, with which flavors, and whether their pods find nodes."""
    began = time.monotonic()
    with asked.plane(profile) as plane:
        answers, troubles = asked.ask(plane, profile, which, say=_progress)
    result = compare.compared(answers)
    title = f"{profile.name} ({profile.versions()}), seed {which.seed}, {time.monotonic() - began:.0f} s"
    print("\n".join(compare.lines(result, title, troubles)))
    if record:
        recording.write(record, answers)
    return len(result.open) + len(troubles)


def _stories(profile: profiles.Profile, which: stories.Which) -> int:
    """Compare which runs are admitted and preempted when several share the queues of a cohort."""
    began = time.monotonic()
    told = stories.tell(profile, which, say=_progress)
    title = f"{profile.name}, seed {which.seed}, {time.monotonic() - began:.0f} s"
    print("\n".join(story.lines(told, title)))
    return sum(one.is_open for one in told)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


sys.exit(main())
