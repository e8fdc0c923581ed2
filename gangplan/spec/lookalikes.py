"""Signs that only look like those of YAML and of shells: what word processors and other alphabets put in their place."""

from __future__ import annotations

import unicodedata

# Cyrillic and Greek letters that no reader tells from Latin ones (Unicode's confusables.txt, those of one letter).
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


def in_latin(word: str) -> str:
    """The word with Latin letters for those that only look like them."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFKC", word).translate(_LOOKALIKES)


def without_accents(word: str) -> str:
    """The word in small letters, those with accents and ligatures as ASCII where they have one (`größe`: `grosse`)."""
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


def typeset(word: str) -> str:
    """What of a word a word processor has changed, in words; empty for a word that may be meant as it is.

    Quotes count at the ends of a word, or behind a `=`; a dash where an option begins; a blank that is none where
    it keeps an option or a script from being a word.
    """
    if word.isascii() or not as_typed(word):
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


def as_typed(word: str) -> str:
    """The word as it was before a word processor changed it: without quotes around it, with `--` for a dash."""
    word = word.translate({ord(sign): " " for sign in _BLANKS}).strip()
    if word[:1] and word[0] in _DASHES:
        bare = word.lstrip(_DASHES + "-")
        word = ("-" if len(bare.partition("=")[0]) == 1 else "--") + bare
    head, sign, value = word.partition("=")
    return head.strip(_QUOTES) + sign + value.strip(_QUOTES)


def as_typed_line(line: str) -> str:
    """A whole line as it was, with the quotes of a keyboard."""
    straight = {ord(sign): "'" if sign in "\u2018\u2019\u201a" else '"' for sign in _QUOTES}
    words = [as_typed(word) if word[:1] and word[0] in _DASHES else word for word in line.split(" ")]
    return " ".join(words).translate(straight)
