"""Find paths in the home of root, which the user of a run cannot enter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gangplan.findings import FieldPath, Problem
from gangplan.model.folders import ROOT_HOME
from gangplan.model.job import EnvVar
from gangplan.rules.pods import ROOT_HOME_NAMED

_PATH = re.compile(rf"(?:^|(?<=[\s=:,;'\"(<>])){ROOT_HOME}(?:/[^\s:,;'\"()&|<>]*)?(?=$|[\s:,;'\"()&|<>])")


def check_paths_in_home_of_root(
    words: Iterable[str], env: Iterable[EnvVar], place: FieldPath = ()
) -> Iterator[Problem]:
    """Yield a problem of the first such path of a command, and of each variable with one.

    `place` is the field of their container.
    """
    for at, word in enumerate(words):
        if ROOT_HOME in word and (found := _PATH.search(word)):
            yield _build_root_home_problem((*place, "command", at), f"the command names {found[0]}")
            break
    for one in env:
        if one.is_plain and ROOT_HOME in one.value and (found := _PATH.search(one.value)):
            yield _build_root_home_problem((*place, "env", one.name), f"{one.name} names {found[0]}")


def _build_root_home_problem(path: FieldPath, message: str) -> Problem:
    reason = f"in usual images only root may enter {ROOT_HOME}, and a run is never root"
    help = "Name a folder of the image that every user may use, such as /workspace or /tmp, or one of data."
    return Problem(path, f"{message}: {reason}", help, ROOT_HOME_NAMED)
