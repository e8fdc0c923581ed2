"""Words after expansion: the parts that are known, and those that a shell has to expand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from gangplan.records import dataclass

# Where a shell calculates, so that names are variables without a dollar sign.
_NUMBERED = re.compile(r"(?<=\w\[)[^][$\"']*(?=\])|(?<=\(\()[^()$]*(?=\)\))")
_CALCULATED = re.compile(
    r"(?<=\(\()(?:[^()]|\([^()]*\))*(?=\)\))|(?:^|(?<=[\n;&|]))[ \t]*(?:let|(?:declare|typeset|local) -\w*i\w*)[ \t]([^\n;&|]*)"
)
_COMPUTED = re.compile(r"\$\((?!\()|`|\$\$|\b(?:S?RANDOM|SECONDS|EPOCH(?:SECONDS|REALTIME)|BASHPID)\b")
_DIFFERENT = re.compile(
    r"(?:\$\(|`)\s*(?:date|mktemp|uuidgen|shuf|openssl|od)\b|\$\$|\b(?:S?RANDOM|SECONDS|EPOCH(?:SECONDS|REALTIME)|BASHPID)\b"
)
_SUBMISSION = re.compile(r'\$\((?:basename|dirname|realpath|readlink -f) "\$PWD"\)|\$\{PWD(?:##?|%%?)')
# The default in `${A:-DEFAULT}`, which may name two more, one inside the other: `${A:-${B:-${C:-0}}}`.
_DEFAULT = r"(?:\$\{(?:\$\{[^{}]*\}|[^{}])*\}|[^}$]|\$(?!\{))*"


@dataclass(frozen=True, slots=True)
class WordPiece:
    """A part of a word: its text, whether the shell has to expand it, and whether it was quoted."""

    text: str
    is_open: bool = False
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class ExpandedWord:
    """A word after expansion, as its pieces."""

    pieces: tuple[WordPiece, ...]

    @property
    def text(self) -> str:
        """The word, with open parts as they are written."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def is_open(self) -> bool:
        """Whether a shell has to expand a part of it."""
        return any(piece.is_open for piece in self.pieces)

    def written(self) -> str:
        """Return the word for a shell: known parts are quoted, others as they were."""
        if not self.is_open:
            return shlex.quote(self.text)
        if all(piece.is_open and not piece.is_quoted for piece in self.pieces):
            return self.text
        if any(piece.is_open and not piece.is_quoted for piece in self.pieces):
            return "".join(
                (f'"{one.text}"' if one.is_quoted else one.text) if one.is_open else shlex.quote(one.text)
                for one in self.pieces
                if one.text
            )
        inner = "".join(
            one.text if one.is_open else re.sub(r'([$`"\\])', r"\\\1", one.text) for one in self.pieces
        )
        return f'"{inner}"'


@dataclass(frozen=True, slots=True)
class PartialText:
    """A text that is only partly known, as its pieces."""

    pieces: tuple[WordPiece, ...]


# A static text, a partly known text, the entries of an array, or None for what is only known when the script
# runs.
ShellValue = str | PartialText | tuple[ExpandedWord, ...] | None


def apply_shell_expansion(value: str, how: str, pattern: str) -> str | None:
    """Apply `%`, `#`, `/` or `:` of bash; None for patterns with more than texts and stars."""
    if how == ":":
        first, _, length = pattern.partition(":")
        if not re.fullmatch(r"\s*-?[0-9]+", first) or not re.fullmatch(r"[0-9]*", length):
            return None
        begin = int(first)
        return value[begin:][: int(length)] if length else value[begin:]
    what, slash, by = pattern.partition("/")
    if how in ("/", "//"):
        if any(mark in what for mark in "*?[\\") or not what or not slash:
            return None
        return value.replace(what, by, 1 if how == "/" else -1)
    if any(mark in pattern for mark in "?[\\") or len(value) > 4096:
        return None
    rule = re.compile("".join(".*" if one == "*" else re.escape(one) for one in pattern), re.DOTALL)
    cuts = range(len(value) + 1)
    if how in ("%", "%%"):
        fitting = [cut for cut in cuts if rule.fullmatch(value[cut:])]
        return value if not fitting else value[: max(fitting) if how == "%" else min(fitting)]
    fitting = [cut for cut in cuts if rule.fullmatch(value[:cut])]
    return value if not fitting else value[min(fitting) if how == "#" else max(fitting) :]


def fill_script_variables(text: str, values: Mapping[str, str]) -> str:
    """Fill in `$NAME` and `${NAME}` of these variables in a piece of script; other text stays.

    Bare names are filled in where a shell calculates: in subscripts and `((...))`. A variable whose dollar sign
    is escaped is for a shell inside, and stays so.
    """
    if not values:
        return text
    names = "|".join(sorted(map(re.escape, values), key=len, reverse=True))
    text = re.sub(
        rf"(?<!\\)(\\?)\$(?:\{{({names})(?::?-{_DEFAULT})?\}}|({names})(?![A-Za-z0-9_]))",
        lambda found: (found[1] if (value := values[found[2] or found[3]]).startswith("$") else "") + value,
        text,
    )
    bare = re.compile(rf"(?<![\w$])(?:{'|'.join(filter(str.isidentifier, values)) or '(?!)'})(?!\w)")
    return _NUMBERED.sub(lambda found: bare.sub(lambda name: values[name[0]], found[0]), text)


def find_variable_names(texts: Iterable[str]) -> set[str]:
    """Return the variables that pieces of script refer to; those that it calculates with have no dollar sign."""
    found = set[str]()
    for text in texts:
        found |= set(re.findall(r"\$\{?[#!]?([A-Za-z_]\w*)", text))
        for calculated in _CALCULATED.finditer(text):
            found |= set(re.findall(r"(?<![\w$])[A-Za-z_]\w*", calculated[1] or calculated[0]))
    return found


def build_text_of_submission_folder(raw: str) -> PartialText:
    """Return a piece of script about the folder from which a job was submitted, which only a shell can tell."""
    return PartialText((WordPiece(raw, True),))


def is_reading_submission_folder(text: str) -> bool:
    """Return whether a piece of script needs the path of the folder from which it was submitted."""
    return _SUBMISSION.search(text) is not None


def is_computed(text: str) -> bool:
    """Return whether a piece of script has another value each time that a shell reads it."""
    return _COMPUTED.search(text) is not None


def is_different_on_each_worker(text: str) -> bool:
    """Return whether a piece of script has another value on each machine, or each time that a shell reads it."""
    return _DIFFERENT.search(text) is not None


def append_to_shell_value(before: ShellValue, after: str | PartialText) -> ShellValue:
    """Return the value after `NAME+=VALUE`."""
    if isinstance(before, str) and isinstance(after, str):
        return before + after
    if not isinstance(before, str | PartialText):
        return None
    pieces = [
        (WordPiece(one, is_quoted=True),) if isinstance(one, str) else one.pieces for one in (before, after)
    ]
    return PartialText((*pieces[0], *pieces[1]))
