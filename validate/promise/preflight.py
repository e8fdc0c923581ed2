"""Checks that the launch script starts the preflight before the program, with the planned numbers."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.plan.preflight import build_preflight_words
from gangplan.validate.jobset import LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.launch import unescape_kubelet_word
from gangplan.validate.promise.roles import ExpandedRun
from gangplan.validate.promise.words import report_broken_promise


def check_promised_preflight_call(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Check that the launcher's command starts the preflight with the planned arguments."""
    job, role = laid.unit.job, laid.roles.get(LAUNCHER)
    if role is None or role.container is None:
        return
    words = build_preflight_words(job)
    planned = list(words[words.index(job.image.preflight) :])
    command = [unescape_kubelet_word(str(word)) for word in role.container.get("command") or ()]
    if command[-len(planned) :] == planned:
        return
    help = "Keep the launcher's command; or remove preflight from the spec."
    if job.image.preflight in command:
        message = "the preflight would compare the workers with another plan than the run's"
    else:
        message = "the program would start without the preflight that the spec asks for"
    index, path = role.place("command")
    yield index, report_broken_promise(path, message, help, "preflight")
