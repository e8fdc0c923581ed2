"""Fix one file: apply every safe fix, repeat until none is left, and prove that the result is not worse."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic import BaseModel

from gangplan.findings import Finding, Fix
from gangplan.fixes.edits import apply_fixes, split_overlapping_fixes
from gangplan.fixes.spelling import find_spelling_fixes
from gangplan.records import dataclass
from gangplan.source import Document, load_document
from gangplan.spec.load import parse_spec_document

_BOM = b"\xef\xbb\xbf"
# One fix can reveal another: once a key is quoted the file loads, and its fields are checked. Three rounds do
# in practice; the bound only stops a bug of ours from looping forever.
_ROUNDS = 20

# What else can be fixed in a document that loads, such as images named in the catalog.
More = Callable[[Document], Iterable[Fix]]


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file before and after its fixes.

    `fixes` were applied, in the order of the rounds; `refused` were not, because they overlap or would leave
    the file worse. Lines and columns of a fix are those of the text to which it was applied.
    """

    file: str
    before: bytes
    after: bytes
    fixes: tuple[Fix, ...] = ()
    refused: tuple[Fix, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class _State:
    """A file as it was read: its findings by how far reading got, and its value when it is valid."""

    document: Document | None
    value: BaseModel | None
    findings: tuple[Finding, ...]

    @property
    def rank(self) -> tuple[int, int]:
        """How bad the file is: findings about YAML outweigh those about fields, which they hide."""
        return (len(self.findings), 0) if self.document is None else (0, len(self.findings))


def fix_file(file: str, data: bytes, model: type[BaseModel], more: More | None = None) -> FixedFile:
    """Fix one file of a format.

    Never raises on bad input: what cannot be read or fixed stays as it is.
    """
    done: list[Fix] = []
    refused: list[Fix] = []
    state, current = _read_file_state_before_fix(file, data, model), data
    for _ in range(_ROUNDS):
        wanted = [fix for fix in _collect_safe_fixes(state, more) if fix not in refused]
        text = current.removeprefix(_BOM).decode() if wanted else ""
        kept, clashing = split_overlapping_fixes(text, wanted)
        refused += clashing
        # Each alone first: of several applied together, one could hide what another breaks.
        harmful = [
            fix for fix in kept if _try_fixes_on_file(file, current, text, [fix], state, model) is None
        ]
        refused += harmful
        kept = [fix for fix in kept if fix not in harmful]
        step = _try_fixes_on_file(file, current, text, kept, state, model) if kept else None
        if step is None and kept:
            kept = kept[:1]
            step = _try_fixes_on_file(file, current, text, kept, state, model)
        if step is None:
            break
        state, current = step
        done += kept
    return FixedFile(file, data, current, tuple(done), tuple(refused))


def _try_fixes_on_file(
    file: str, data: bytes, text: str, fixes: list[Fix], before: _State, model: type[BaseModel]
) -> tuple[_State, bytes] | None:
    """Return the file with some fixes applied; None if it is worse, unchanged, or means something else."""
    after = (_BOM if data.startswith(_BOM) else b"") + apply_fixes(text, fixes).encode()
    state = _read_file_state_before_fix(file, after, model)
    if state.rank > before.rank or (before.value is not None and state.value != before.value):
        return None
    return (state, after) if after != data else None


def _read_file_state_before_fix(file: str, data: bytes, model: type[BaseModel]) -> _State:
    document, findings = load_document(data, file)
    if document is None:
        return _State(None, None, tuple(findings))
    value, findings = parse_spec_document(model, document)
    return _State(document, value, tuple(findings))


def _collect_safe_fixes(state: _State, more: More | None) -> list[Fix]:
    fixes = [finding.fix for finding in state.findings if finding.fix is not None]
    if state.document is not None and more is not None:
        fixes += more(state.document)
    if state.document is not None and state.value is not None:
        fixes += find_spelling_fixes(state.document, state.value)
    return fixes
