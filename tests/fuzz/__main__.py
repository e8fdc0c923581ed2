"""`python -m tests.fuzz WHAT COUNT SEED`: run campaigns and print their counts; exit 1 if a law is broken."""

from __future__ import annotations

import sys
import time
from functools import partial

from tests.fuzz.base import run
from tests.fuzz.campaigns import CAMPAIGNS, SIZES


def main(arguments: list[str]) -> int:
    what, count, seed = arguments[0], int(arguments[1]), int(arguments[2])
    chosen = list(CAMPAIGNS) if what == "all" else what.split(",")
    unknown = [name for name in chosen if name not in CAMPAIGNS]
    if unknown:
        print(f"there is no campaign {unknown[0]}; there are all, {', '.join(CAMPAIGNS)}")
        return 2
    broken = 0
    for name in chosen:
        begin = time.monotonic()
        size = max(1, count // SIZES.get(name, 1))
        wrong = 0
        for text in run(CAMPAIGNS[name], size, seed, partial(_tell_tenths, name, size)):
            wrong += 1
            print(f"{name}: {text[:3000]}", flush=True)
        broken += wrong
        print(f"{name}: {size} cases, {wrong} broken, {time.monotonic() - begin:.0f} s", flush=True)
    return int(broken > 0)


def _tell_tenths(name: str, size: int, done: int) -> None:
    """Print to standard error how far a campaign is, ten times."""
    if done * 10 // size > (done - 1) * 10 // size >= 0:
        print(f"{name}: {done} of {size} cases", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
