"""Questions on a terminal: with a default, completion by TAB, and the check of a flag."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gangplan.errors import UserError
from gangplan.report.escape import escape_log_line


def is_watched() -> bool:
    """Return whether somebody can be asked: standard input and standard output are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def ask_user_on_terminal(
    question: str,
    default: str = "",
    choices: Sequence[str] = (),
    check: Callable[[str], object] | None = None,
    is_optional: bool = False,
    hint: str = "",
) -> str:
    """Ask until `check` raises no UserError, and return the answer; an empty one is the default.

    A `hint` is on a line of its own, because readline scrolls a question that is wider than the terminal.
    Raises KeyboardInterrupt if the input ends (Ctrl-D).
    """
    if hint:
        print_below_question(hint)
    shown = f" [{default}]" if default else " (Enter: leave it out)" if is_optional else ""
    while True:
        answer = _read_prompt_line_from_terminal(f"{question}{shown}: ", choices) or default
        if not answer:
            if is_optional:
                return ""
            print_below_question("an answer is needed")
            continue
        try:
            if check is not None:
                check(answer)
        except UserError as stop:
            print_below_question(f"{stop.message}. {stop.help or ''}".rstrip())
            continue
        return answer


def print_below_question(text: str) -> None:
    """Write a line under a question."""
    sys.stdout.write(f"  {escape_log_line(text)}\n")
    sys.stdout.flush()


def _read_prompt_line_from_terminal(prompt: str, choices: Sequence[str]) -> str:
    sys.stdout.flush()
    with _complete_choices_on_tab(choices):
        try:
            return input(prompt).strip()
        except EOFError:
            sys.stdout.write("\n")
            raise KeyboardInterrupt from None


@contextmanager
def _complete_choices_on_tab(choices: Sequence[str]) -> Iterator[None]:
    """Let TAB complete to one of the choices, if Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return

    def matching(text: str, number: int) -> str | None:
        found = [one for one in choices if one.startswith(text)]
        return found[number] if number < len(found) else None

    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(matching)
    readline.set_completer_delims(" \t\n,")
    # The libedit of macOS has its own syntax for the same.
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)
