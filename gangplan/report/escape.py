"""Texts of users made safe for the readers of a report: terminals, XML, Markdown, workflow commands, URIs.

Messages repeat the contents of files, so any of them may hold a line end, an escape sequence of a terminal, a
tag, or a command of a CI runner. Each function takes any text and returns one that its reader shows as it is.
"""

from __future__ import annotations

import re
from urllib.parse import quote

# Control characters of ASCII and of Latin-1, characters that turn the writing direction or cannot be seen,
# the line ends of Unicode, and halves of a surrogate pair, which no encoding can write.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# What ASCII shows.
_SEEN = bytes(range(0x20, 0x7F))
_SURROGATE = re.compile("[\ud800-\udfff]")
# What `make_visible` leaves and XML 1.0 cannot hold, not even escaped (section 2.2, Char).
_NO_XML = re.compile("[\ufffe\uffff]")
# Old commands of GitHub's runner (`##[group]`) and of Azure's (`##vso[...]`) count anywhere in a line.
_LOG_COMMAND = re.compile(r"##(\w*)\[")
# Everything that Markdown or GitHub's additions to it may read: mentions, numbers of issues, formulas, links,
# emoji.
_MARKDOWN = re.compile(r"[\\`*_\[\]<>#|~@&$^]|:(?=//|(?:100|1234|[\w+-]*[A-Za-z+-][\w+-]*):)|(?<=[wW])\.")
# GitHub looks for mentions, issues and emoji after it resolves entities: only a zero-width space stops it.
_PARTED = frozenset("@#:")
_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")


# The most letters of a job's description in a table, or in a line of text.
MAX_DESCRIPTION_LENGTH = 120


def make_visible(text: str) -> str:
    r"""Return one line without control characters: `\n`, `\x1b` and `\u202e` replace what cannot be seen."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_format_character_escape, text)


def is_plain_log_line(text: str) -> bool:
    """Return whether `escape_log_line` leaves a text as it is, as nearly all are: decided in a tenth of its time."""
    return (
        text.isascii() and not text.encode().translate(None, _SEEN) and ("#" not in text or "##" not in text)
    )


def escape_log_line(text: str) -> str:
    """Return one line for a terminal or a CI job's log: `make_visible`, and without anything that a runner
    obeys."""
    return text if is_plain_log_line(text) else _LOG_COMMAND.sub(r"##\1\\[", make_visible(text))


def escape_own_line(text: str) -> str:
    """Return a whole line of a log that starts with a user's words: `escape_log_line`, but no workflow command
    (`::error::`)."""
    line = escape_log_line(text)
    return f"\\{line}" if line.lstrip().startswith("::") else line


def shorten_text(text: str, most: int) -> str:
    """Return the text in at most `most` characters, for readers that take no more."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def replace_surrogates(text: str) -> str:
    """Return the text as UTF-8 can hold it: JSON escapes everything else itself."""
    return _SURROGATE.sub(_format_character_escape, text)


def escape_xml(text: str) -> str:
    """Return one line that XML 1.0 can hold; the writer must escape `<`, `&` and quotes."""
    return _NO_XML.sub(_format_character_escape, make_visible(text))


def escape_markdown(text: str) -> str:
    """Return one line that Markdown shows as it is: everything that it could interpret becomes a numbered
    entity."""
    return _MARKDOWN.sub(_format_character_entity, make_visible(text))


def escape_command_data(text: str) -> str:
    """Return the message of a GitHub workflow command (actions/toolkit, core/src/command.ts: escapeData)."""
    shown = "\n".join(map(make_visible, text.split("\n")))
    return shown.replace("%", "%25").replace("\n", "%0A")


def escape_command_property(text: str) -> str:
    """Return a property of a GitHub workflow command (the same file: escapeProperty)."""
    return escape_command_data(make_visible(text)).replace(":", "%3A").replace(",", "%2C")


def format_path_as_uri(path: str) -> str:
    """Return a path with forward slashes as a relative URI reference (RFC 3986); bytes that are not UTF-8
    stay bytes."""
    try:
        return quote(path, safe="/-._~", errors="surrogateescape")
    except UnicodeEncodeError:
        return quote(replace_surrogates(path), safe="/-._~")


def escape_sarif_text(text: str) -> str:
    """Return a SARIF message with its lines kept: `[a](b)` would be a link (SARIF 2.1.0, 3.11.6)."""
    return _LINK.sub(r"\\[", "\n".join(map(make_visible, text.split("\n"))))


def _format_character_escape(found: re.Match[str]) -> str:
    char = found[0]
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    if short:
        return short
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _format_character_entity(found: re.Match[str]) -> str:
    char = found[0]
    return f"&#{ord(char)};" + ("&#8203;" if char in _PARTED else "")
