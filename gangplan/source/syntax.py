"""Rewording errors of the YAML parser for somebody who wants to train a model.

Each error of libyaml (and of PyYAML's own parser, which words some differently) has an entry in `_ENTRIES`;
the first entry whose pattern matches "context: problem" and that has an explanation is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain

import yaml

from gangplan.findings import Finding, Location
from gangplan.rules.core import YAML_MANY_DOCUMENTS, YAML_SYNTAX
from gangplan.source.complaint import INDENT_PATTERN, Complaint, Explanation, TextPlace

_CONFLICT = re.compile(r"(<{7}|>{7}|\|{7}) ")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
# Spaces that YAML does not treat as such; they come with text copied from a web page or a chat.
_ODD_SPACE = re.compile("[\xa0\u2000-\u200d\u202f\u205f\u2060\u3000]")
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\"")


def reword_yaml_error(problem: yaml.YAMLError, text: str, file: str) -> Finding:
    """Return the finding for a parser's error in `text`."""
    mark = getattr(problem, "problem_mark", None)
    if mark is None:
        return Finding(YAML_SYNTAX, Location(file), str(problem), "check the characters in the file")
    begin = getattr(problem, "context_mark", None) or mark
    wording = f"{getattr(problem, 'context', None) or ''}: {getattr(problem, 'problem', None) or ''}"
    case = Complaint(
        wording,
        _LINE_BREAK.split(text),
        TextPlace(mark.line, mark.column),
        TextPlace(begin.line, begin.column),
    )
    answer = (
        _explain_merge_conflict_in_yaml(case)
        or _explain_yaml_tab_or_odd_space(case)
        or next(
            answer
            for pattern, explain in _ENTRIES
            if re.search(pattern, wording) and (answer := explain(case)) is not None
        )
    )
    word = re.compile(r"\S+").match(case.line(answer.spot), answer.spot.column)
    column = answer.spot.column + 1
    where = Location(file, answer.spot.line + 1, column, word.end() + 1 if word else 0)
    return Finding(answer.rule, where, answer.message, answer.help)


def _quote_yaml_text(text: str) -> str:
    """Return the text as a YAML string that can be pasted."""
    bare = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
    return f"'{bare}'" if "'" not in bare else '"' + bare.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _explain_merge_conflict_in_yaml(case: Complaint) -> Explanation | None:
    """Explain the markers that Git writes into a file with conflicting changes."""
    numbers = (number for number, line in enumerate(case.lines) if _CONFLICT.match(line))
    rest = (spot.line for spot in (case.begin, case.at) if case.line(spot).rstrip() == "=" * 7)
    found = next(chain(numbers, rest), None)
    if found is None:
        return None
    return Explanation(
        TextPlace(found, 0),
        "an unresolved merge conflict",
        "Keep one side, or both joined, and delete the lines that begin with <<<<<<<, ======= and >>>>>>>.",
    )


def _explain_yaml_tab_or_odd_space(case: Complaint) -> Explanation | None:
    """Explain a tab or an odd space, which is the cause regardless of the parser's error."""
    line = case.line(case.at)
    indent = INDENT_PATTERN.match(line)
    if indent and "\t" in indent[0] and "quoted scalar" not in case.problem:
        spot = TextPlace(case.at.line, line.index("\t"))
        return Explanation(
            spot, "a tab indents this line; YAML allows only spaces", "replace the tab with spaces"
        )
    for number in sorted({case.at.line, case.begin.line, case.above() or 0}):
        if odd := _ODD_SPACE.search(case.lines[number] if number < len(case.lines) else ""):
            message = f"the line holds an odd, invisible space (U+{ord(odd[0]):04X})"
            return Explanation(
                TextPlace(number, odd.start()), message, "delete it and type an ordinary space"
            )
    return None


def _explain_template_braces_in_yaml(case: Complaint) -> Explanation | None:
    line = case.line(case.at)
    if "${{" in line:
        spot = TextPlace(case.at.line, line.index("${{") + 1)
        message = "between brackets, the '{' of a placeholder begins a mapping"
        return Explanation(spot, message, 'quote the whole text: "--lr=${{ parameters.lr }}"')
    if "{%" in line or "{{" in line:
        spot = TextPlace(case.at.line, line.index("{"))
        return Explanation(
            spot, "specs are not templates; '{' begins a mapping", "quote text that contains braces"
        )
    return None


def _explain_bad_first_character(case: Complaint) -> Explanation:
    character = case.line(case.at)[case.at.column : case.at.column + 1]
    help = f"quote it: {_quote_yaml_text(case.rest(case.at))}"
    return Explanation(case.at, f"a value cannot begin with {character!r}", help)


def _open_quote(case: Complaint) -> Explanation:
    quote = case.line(case.begin)[case.begin.column : case.begin.column + 1]
    help = "Close it. A quote inside is written '' between single quotes, and \\\" between double quotes."
    return Explanation(case.begin, f"the quote {quote} that opens here is never closed", help)


def _explain_unknown_yaml_escape(case: Complaint) -> Explanation:
    if "Unicode character" in case.problem:
        return Explanation(case.at, "this escape does not name a character", "write the character itself")
    escape = case.line(case.at)[case.at.column :][:2]
    help = "put the value in single quotes, where a backslash is only a backslash"
    return Explanation(case.at, f"'{escape}' is not an escape in double quotes", help)


def _explain_misplaced_yaml_colon(case: Complaint) -> Explanation:
    """Explain a `: ` in a wrong place: twice on a line, or below a value that is already complete."""
    line = case.line(case.at)
    before = line[: case.at.column]
    if first := re.match(r"[^:]*?:\s+", _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), before)):
        value = line[first.end() :].strip()
        spot = TextPlace(case.at.line, case.at.column)
        help = f"quote the value: {_quote_yaml_text(value)}"
        if two := re.fullmatch(r"[\w.-]+ +([A-Za-z]\w*: .+)", value):  # two fields without a line break
            help = f"put {two[1]} on a line of its own, or {help}"
        return Explanation(spot, "there is a second ': ' on this line", help)
    above = case.above()
    if above is None:
        return Explanation(case.at, "there is no key before this ':'", "write the key before the ':'")
    if re.search(r":(\s|$)|^\s*- ", case.lines[above]):
        spot = TextPlace(case.at.line, case.depth(case.at.line))
        message = f"this line is indented deeper than line {above + 1}, whose value is already complete"
        return Explanation(spot, message, f"align it with line {above + 1}, or empty the value there")
    return _explain_missing_yaml_colon(case, TextPlace(above, case.depth(above)))


def _explain_missing_yaml_colon(case: Complaint, spot: TextPlace) -> Explanation:
    written = case.rest(spot)
    if glued := re.match(r"([\w.-]+):(\S.*)", written):
        message = f"a space is missing after '{glued[1]}:'"
        return Explanation(spot, message, f"write {glued[1]}: {glued[2]}")
    if pair := re.fullmatch(r"([A-Za-z][\w-]*)(?:\s*=\s*|\s+)(\S+)", written):
        return Explanation(spot, f"{written!r} has no ': ' after its key", f"Write {pair[1]}: {pair[2]}.")
    message = f"{written!r} is neither 'key: value' nor a list entry '- value'"
    return Explanation(spot, message, "write ': ' after the key, or join it to the line it belongs to")


def _explain_missing_yaml_mapping_key(case: Complaint) -> Explanation:
    """Explain a block mapping that continues with something other than a key."""
    line = case.line(case.at)
    before = line[: case.at.column].rstrip()
    if before.endswith(("'", '"')):
        message = "text follows the closing quote"
        return Explanation(
            case.at,
            message,
            "put the whole value into one pair of quotes, of the kind that it does not contain",
        )
    if before.strip(" -"):
        message = f"{case.rest(case.at)!r} does not belong to the value before it"
        return Explanation(case.at, message, "remove it, or quote the whole value")
    if line.lstrip().startswith("- ") and case.at.column == case.begin.column:
        message = "there is a list entry where a key is expected"
        return Explanation(
            case.at, message, "give the list a key of its own on the line above, or remove the '- '"
        )
    if case.at.column == case.begin.column:
        return Explanation(case.at, f"{case.rest(case.at)!r} is not 'key: value'", "remove it, or quote it")
    return _explain_wrong_yaml_indentation(case)


def _explain_missing_list_entry(case: Complaint) -> Explanation:
    if case.at.column == case.begin.column:
        message = f"the list that begins at line {case.begin.line + 1} goes on with something else"
        return Explanation(case.at, message, "begin the line with '- ', or indent it into the entry above")
    return _explain_wrong_yaml_indentation(case)


def _explain_wrong_yaml_indentation(case: Complaint) -> Explanation:
    column, above = case.at.column, case.above()
    message = f"this line is indented by {column} space{'s' * (column != 1)}, which matches no line above"
    help = f"align it with line {case.begin.line + 1}"
    if above is not None and case.depth(above) != case.depth(case.begin.line):
        help += f", or with line {above + 1}"
    return Explanation(case.at, message, help)


def _explain_unclosed_yaml_bracket(case: Complaint) -> Explanation:
    opened = case.line(case.begin)[case.begin.column : case.begin.column + 1]
    close = {"[": "]", "{": "}"}.get(opened, "]")
    if case.at.line == case.begin.line and case.rest(case.at):
        message = f"expected ',' or '{close}' before {case.rest(case.at)!r}"
        return Explanation(
            case.at, message, f"separate the entries by ', ', close with '{close}', or quote the text"
        )
    message = f"the '{opened}' that opens here is not closed"
    return Explanation(case.begin, message, f"close it with '{close}'")


def _build_yaml_indicator_explainer(what: str) -> Callable[[Complaint], Explanation]:
    def explain(case: Complaint) -> Explanation:
        help = f"quote it: {_quote_yaml_text(case.rest(case.begin))}"
        return Explanation(case.begin, f"an unquoted {what}", help)

    return explain


def _explain_missing_yaml_value(case: Complaint) -> Explanation:
    found = case.rest(case.at)[:1]
    if not found:
        return Explanation(case.at, "a value is missing here", "write it")
    return Explanation(
        case.at, f"a value is missing before {found!r}", f"write it, or quote {_quote_yaml_text(found)}"
    )


def _explain_yaml_list_on_key_line(case: Complaint) -> Explanation:
    return Explanation(
        case.at,
        "a list cannot begin on the line of its key",
        f"write it below the key, or as [..]; quote a text: {_quote_yaml_text(case.rest(case.at))}",
    )


def _explain_text_after_block_sign(case: Complaint) -> Explanation:
    sign = case.line(case.begin)[case.begin.column : case.begin.column + 1]
    help = f"begin the text on the next line, or quote it: {_quote_yaml_text(case.rest(case.begin))}"
    return Explanation(case.at, f"text follows '{sign}' on its line", help)


def _explain_text_after_yaml_document(case: Complaint) -> Explanation:
    first = next((line for line in case.lines if line.strip() and not line.lstrip().startswith("#")), "")
    depth = len(first) - len(first.lstrip())
    if depth > case.at.column:
        message = f"this line is indented less than the first one ({depth} spaces)"
        return Explanation(case.at, message, "begin every top-level key in the first column")
    if any(line.startswith("...") for line in case.lines[: case.at.line]):
        return Explanation(
            case.at, "the document has ended above this line", "remove '...', or what follows it"
        )
    return Explanation(
        case.at, "this does not belong to the text before it", "write 'key: value' on every line"
    )


def _explain_second_yaml_document(case: Complaint) -> Explanation:
    following = case.lines[case.at.line + 1 :]
    if all(not line.strip() or line.lstrip().startswith("#") for line in following):
        help = "remove the '---'"
    else:
        help = "give it a file of its own"
    message = "a second document begins here; a file may contain only one"
    return Explanation(case.at, message, help, YAML_MANY_DOCUMENTS)


def _explain_duplicate_anchor(case: Complaint) -> Explanation:
    message = f"this anchor is defined twice; first at line {case.begin.line + 1}"
    return Explanation(case.at, message, "rename one of them")


def _explain_other_yaml_error(case: Complaint) -> Explanation:
    message = f"this is not YAML ({case.problem.strip(': ')})"
    return Explanation(case.at, message, "check the quotes, brackets and indentation here and above")


_ENTRIES: tuple[tuple[str, Callable[[Complaint], Explanation | None]], ...] = (
    ("another document", _explain_second_yaml_document),
    ("duplicate anchor", _explain_duplicate_anchor),
    ("directive|incompatible YAML", _build_yaml_indicator_explainer("'%' begins a YAML directive")),
    ("quoted scalar: .*(end of stream|document (indicator|separator))", _open_quote),
    ("(unknown escape|hexdecimal|hexadecimal|Unicode character escape)", _explain_unknown_yaml_escape),
    ("alias", _build_yaml_indicator_explainer("'*' begins an alias")),
    ("anchor", _build_yaml_indicator_explainer("'&' begins an anchor")),
    (r"\btag\b", _build_yaml_indicator_explainer("'!' begins a tag")),
    ("", _explain_template_braces_in_yaml),
    ("cannot start any token", _explain_bad_first_character),
    ("unexpected ':'", _build_yaml_indicator_explainer("':' inside brackets")),
    ("mapping keys are not allowed", _build_yaml_indicator_explainer("'?' begins a complex key")),
    ("mapping values are not allowed", _explain_misplaced_yaml_colon),
    ("sequence entries are not allowed", _explain_yaml_list_on_key_line),
    ("could not find expected ':'", lambda case: _explain_missing_yaml_colon(case, case.begin)),
    ("flow (sequence|mapping): (did not find expected|expected) ',' or", _explain_unclosed_yaml_bracket),
    ("block mapping: (did not find expected key|expected <block end>)", _explain_missing_yaml_mapping_key),
    ("block collection: (did not find expected '-'|expected <block end>)", _explain_missing_list_entry),
    ("block scalar: .*(comment or|indentation indicator)", _explain_text_after_block_sign),
    ("node content", _explain_missing_yaml_value),
    ("document start", _explain_text_after_yaml_document),
    ("", _explain_other_yaml_error),
)
