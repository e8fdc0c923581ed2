"""Read the words of a launcher as the launcher does: its options, then the program and its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.plan.launchers.table import LauncherOption, LauncherProgram, OptionRole
from gangplan.records import dataclass

# An option that the launcher's table does not contain.
_UNKNOWN = LauncherOption("", 0)


@dataclass(frozen=True, slots=True)
class ParsedOption:
    """An option as written in the command.

    `at` is the index of its word, `spelled` the word without a value, `values` its values and `value_at` the
    index of the word that contains the first of them. `part` counts the programs of a command with several,
    from 0. An unknown option has no name; `is_short` marks one that lacks words.
    """

    option: LauncherOption
    at: int
    spelled: str
    values: tuple[str, ...] = ()
    value_at: int = 0
    part: int = 0
    is_short: bool = False

    @property
    def value(self) -> str:
        """The first value, or an empty text."""
        return self.values[0] if self.values else ""

    @property
    def end(self) -> int:
        """The index after its last word."""
        return max(self.at + 1, self.value_at + len(self.values) if self.value_at > self.at else 0)


@dataclass(frozen=True, slots=True)
class LauncherReading:
    """A launcher's words: its options, and where each program that it starts begins and ends.

    Indexes count words of the command that was read; the launcher itself is at `at`. `parts` is the number of
    programs that the colons separate.
    """

    launcher: LauncherProgram
    words: tuple[str, ...]
    at: int
    uses: tuple[ParsedOption, ...]
    programs: tuple[tuple[int, int], ...]
    parts: int = 1

    def of(self, *roles: OptionRole) -> Iterator[ParsedOption]:
        """Yield the options with one of these roles."""
        return (use for use in self.uses if use.option.role in roles)

    @property
    def unknown(self) -> tuple[ParsedOption, ...]:
        """Options that are not in the table."""
        return tuple(use for use in self.uses if not use.option.name)

    @property
    def program(self) -> tuple[str, ...]:
        """The words of the first program."""
        return self.words[slice(*self.programs[0])] if self.programs else ()


def read_launcher_words(launcher: LauncherProgram, words: Sequence[str], at: int) -> LauncherReading:
    """Read `words` from the launcher at index `at`. Never raises, for any words."""
    has_parts = launcher.kind == "mpi"
    uses: list[ParsedOption] = []
    programs: list[tuple[int, int]] = []
    index, part = at + 1, 0
    while True:
        index = _read_launcher_options(launcher, words, index, part, uses)
        end = _find_program_end(words, index) if has_parts else len(words)
        if index < end:
            programs.append((index, end))
        if end >= len(words):
            return LauncherReading(launcher, tuple(words), at, tuple(uses), tuple(programs), part + 1)
        index, part = end + 1, part + 1


def _find_program_end(words: Sequence[str], index: int) -> int:
    """Return the index where the current program ends: MPI launchers separate programs with a colon."""
    return next((place for place in range(index, len(words)) if words[place] == ":"), len(words))


def _read_launcher_options(
    launcher: LauncherProgram, words: Sequence[str], index: int, part: int, uses: list[ParsedOption]
) -> int:
    """Read options from `index` on; return the index of the first word that is not one."""
    while index < len(words):
        word = words[index]
        if word == "--" and launcher.style != "hydra":
            return index + 1
        if not word.startswith("-") or word == "-":
            return index
        use = _parse_launcher_option(launcher, words, index, part)
        uses.append(use)
        if not use.option.name:
            return len(words)  # the number of words it takes is unknown, and so is the program
        index = use.end
    return index


def _parse_launcher_option(
    launcher: LauncherProgram, words: Sequence[str], index: int, part: int
) -> ParsedOption:
    word = words[index]
    if launcher.style == "argparse":
        spelled, value, option = _parse_argparse_launcher_option(launcher, word)
    elif launcher.style == "hydra":
        spelled, value, option = _parse_hydra_option(launcher, word)
    else:
        spelled, value, option = _parse_open_mpi_option(launcher, word)
    if option is None:
        return ParsedOption(_UNKNOWN, index, spelled, part=part)
    if value is not None:
        return ParsedOption(option, index, spelled, (value,), index, part, is_short=option.words != 1)
    count = option.words
    if launcher.style == "hydra" and option.role == "env" and "=" in "".join(words[index + 1 : index + 2]):
        count = 1  # NAME=VALUE stands for both (tried: MPICH 5.0.2, Intel MPI 2021.18)
    following = tuple(words[index + 1 : index + 1 + count])
    return ParsedOption(option, index, spelled, following, index + 1, part, is_short=len(following) < count)


def _split_option_value(word: str) -> tuple[str, str | None]:
    spelled, equals, value = word.partition("=")
    return spelled, value if equals else None


def _parse_open_mpi_option(
    launcher: LauncherProgram, word: str
) -> tuple[str, str | None, LauncherOption | None]:
    """Parse an option of Open MPI: 4 has no equals sign, 5 takes one dash or two before long names."""
    spelled, value = _split_option_value(word)
    if launcher.style == "openmpi":
        spelled, value = word, None
    name = spelled.lstrip("-")
    dashes = len(spelled) - len(name)
    if dashes > 2 or (dashes == 2 and name in launcher.short and name not in ("n", "c", "N", "x")):
        return spelled, value, None
    if dashes == 1 and launcher.style == "prrte" and len(name) == 1 and value is not None:
        return spelled, value, None
    return spelled, value, launcher.option(name)


def _parse_hydra_option(
    launcher: LauncherProgram, word: str
) -> tuple[str, str | None, LauncherOption | None]:
    spelled, value = _split_option_value(word)
    return spelled, value, launcher.option(spelled.lstrip("-"))


def _parse_argparse_launcher_option(
    launcher: LauncherProgram, word: str
) -> tuple[str, str | None, LauncherOption | None]:
    """Parse an option: two dashes before a long name, one before a short one.

    horovodrun's -np and -hostfile are long names with one dash.
    """
    spelled, value = _split_option_value(word)
    name = spelled.lstrip("-")
    if word.startswith("--") and len(name) > 1:
        return spelled, value, launcher.option(name)
    exact = launcher.options.get(name)
    if exact is not None and not word.startswith("--"):
        return spelled, value, exact
    first = launcher.options.get(word[1:2])
    if first is not None and word[1:2] in launcher.joined and first.words == 1:
        return word[:2], word[2:], first
    return spelled, value, None
