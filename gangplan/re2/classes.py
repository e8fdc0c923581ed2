"""Character classes of RE2 as ranges of code points (Go 1.24 `regexp/syntax`)."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

Ranges = list[tuple[int, int]]
ClassItem = tuple[Ranges, bool]  # of a class: code points, and whether it is all others that are meant

LAST = sys.maxunicode

_DIGIT: Ranges = [(0x30, 0x39)]
_SPACE: Ranges = [(0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)]
_WORD: Ranges = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_UPPER, _LOWER = (0x41, 0x5A), (0x61, 0x7A)

# `\d` and similar classes; the capital letters are their complements.
PERL_CLASSES: dict[str, Ranges] = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
POSIX_CLASSES: dict[str, Ranges] = {
    "alnum": [(0x30, 0x39), _UPPER, _LOWER],
    "alpha": [_UPPER, _LOWER],
    "ascii": [(0, 0x7F)],
    "blank": [(0x09, 0x09), (0x20, 0x20)],
    "cntrl": [(0, 0x1F), (0x7F, 0x7F)],
    "digit": _DIGIT,
    "graph": [(0x21, 0x7E)],
    "lower": [_LOWER],
    "print": [(0x20, 0x7E)],
    "punct": [(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)],
    "space": [(0x09, 0x0D), (0x20, 0x20)],
    "upper": [_UPPER],
    "word": _WORD,
    "xdigit": [(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)],
}
_CATEGORIES = """
C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
"""
# The scripts of Unicode 15. Python has no table of them, so such a pattern is valid but cannot be evaluated.
_SCRIPTS = """
Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki
Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee
Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra
Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati
Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited
Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi
Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian
Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui
Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari
Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic
Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage
Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan
Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri
Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan
Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""


def is_unicode_category(name: str) -> bool:
    """Return whether `list_category_ranges` knows a name."""
    return name in _CATEGORIES.split() or name == "Any"


def is_unicode_script(name: str) -> bool:
    """Return whether a name is a Unicode script."""
    return name in _SCRIPTS.split()


@lru_cache(maxsize=32)
def list_category_ranges(name: str) -> tuple[tuple[int, int], ...]:
    """Return the code points of a general category such as `Lu` or `L`."""
    if name == "Any":
        return ((0, LAST),)
    found: Ranges = []
    start = -1
    for code in range(LAST + 2):
        inside = code <= LAST and unicodedata.category(chr(code)).startswith(name)
        # In Go, unassigned code points belong to no category.
        inside = inside and unicodedata.category(chr(code)) != "Cn"
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            found.append((start, code - 1))
            start = -1
    return tuple(found)


def format_re2_character_class(items: Sequence[ClassItem], negated: bool = False) -> str:
    """Return a class in the syntax of Python's `re`: what is in one of the items, or in none of them.

    A negated item stays one, because a flag `i` folds its code points before it is negated, as in Go.
    """
    ranges = [each for one, is_negated in items if not is_negated for each in one]
    rest = [one for one, is_negated in items if is_negated]
    if not rest:
        return _format_re2_character_set(ranges, negated)
    sets = "|".join(
        [_format_re2_character_set(ranges, False), *(_format_re2_character_set(one, True) for one in rest)]
    )
    return f"(?!{sets}){_format_re2_character_set([], True)}" if negated else f"(?:{sets})"


def _format_re2_character_set(ranges: Ranges, negated: bool) -> str:
    """Return a set in brackets; an empty one, which Python has not, is all characters the other way round."""
    parts = [
        _format_code_point(low) if low == high else f"{_format_code_point(low)}-{_format_code_point(high)}"
        for low, high in ranges
    ]
    whole = f"{_format_code_point(0)}-{_format_code_point(LAST)}"
    return f"[{'^' * (negated != (not parts))}{''.join(parts) or whole}]"


def _format_code_point(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code < 0x80 else f"\\U{code:08x}"
