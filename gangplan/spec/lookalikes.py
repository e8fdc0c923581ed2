"""Characters that look like those of YAML and shells, from word processors and other alphabets."""

from __future__ import annotations

import unicodedata

# Cyrillic and Greek letters that look exactly like Latin ones (Unicode's confusables.txt, entries of one
# letter).
_LETTERS = dict(
    zip(
        "аеорсхуіјѕһԁԛԝкмтАВЕКМНОРСТХУІЈЅαορνικτΑΒΕΗΙΚΜΝΟΡΤΥΧΖ",
        "aeopcxyijshdqwkmtABEKMHOPCTXYIJSaopviktABEHIKMNOPTYXZ",
        strict=True,
    )
)
_LOOKALIKES = str.maketrans(_LETTERS)
_QUOTES = "\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u201a"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
_BLANKS = "\u00a0\u2007\u202f\u3000"


def convert_to_latin(word: str) -> str:
    """Return the word with lookalike letters replaced by Latin ones."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFKC", word).translate(_LOOKALIKES)


def strip_accents(word: str) -> str:
    """Return the word in lower case, with accented letters and ligatures as ASCII if possible (`größe`:
    `grosse`)."""
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


def describe_typesetting(word: str) -> str:
    """Return how a word processor changed a word, in words; empty for a word that may be intended.

    Quotes count at the ends of a word, or after a `=`; a dash where an option begins; a special blank if it
    joins an option or a script to another word.
    """
    if word.isascii() or not restore_typed_word(word):
        return ""
    if any(sign in word for sign in _BLANKS):
        parts = word.split()
        is_split = any(part.startswith("-") or part.endswith((".py", ".sh")) for part in parts)
        return "a blank that no shell splits at" if is_split and len(parts) > 1 else ""
    head = word.partition("=")[2] or word
    if {word[0], word[-1], head[0]} & set(_QUOTES):
        return "typographic quotes"
    if word[0] in _DASHES and word.strip(_DASHES):
        return "a typographic dash"
    return ""


def restore_typed_word(word: str) -> str:
    """Return the word as it was before a word processor changed it: without quotes around it, and with `--`
    for a dash."""
    word = word.translate({ord(sign): " " for sign in _BLANKS}).strip()
    if word[:1] and word[0] in _DASHES:
        bare = word.lstrip(_DASHES + "-")
        word = ("-" if len(bare.partition("=")[0]) == 1 else "--") + bare
    head, sign, value = word.partition("=")
    return head.strip(_QUOTES) + sign + value.strip(_QUOTES)


def restore_typed_line(line: str) -> str:
    """Return a whole line as it was typed, with straight quotes."""
    straight = {ord(sign): "'" if sign in "\u2018\u2019\u201a" else '"' for sign in _QUOTES}
    words = [
        restore_typed_word(word) if word[:1] and word[0] in _DASHES else word for word in line.split(" ")
    ]
    return " ".join(words).translate(straight)
