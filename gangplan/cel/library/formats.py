"""`kubernetes.NamedFormat`: the named formats of Kubernetes, and what is wrong with a text.

Sources: k8s.io/apiserver v0.34 `pkg/cel/library/format.go`, k8s.io/apimachinery v0.34 `pkg/util/validation`,
k8s.io/kube-openapi `pkg/validation/strfmt`. Lengths count bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from gangplan.cel import types
from gangplan.cel.clock import is_rfc3339_date
from gangplan.cel.library.base import Implementation, S
from gangplan.cel.library.url import find_cel_request_uri_problem
from gangplan.cel.values import OPTIONAL_NONE, NamedFormat, Optional

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ALPHANUMERIC = "and must start and end with an alphanumeric character"
_LABEL_WRONG = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC}"
)
_SUBDOMAIN_WRONG = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"{_ALPHANUMERIC}"
)
_LABEL_1035_WRONG = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
_QUALIFIED_WRONG = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_UUID = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_TIME = "([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"

FormatProblems = list[str]


def _matches_whole_pattern(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _describe_regex_violation(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _find_length_problem(text: str, most: int) -> FormatProblems:
    size = len(text.encode(errors="surrogateescape"))
    return [f"must be no more than {most} characters"] if size > most else []


def label(text: str) -> FormatProblems:
    """Check an RFC 1123 label."""
    problems = _find_length_problem(text, 63)
    if not _matches_whole_pattern(_LABEL, text):
        dotted = _matches_whole_pattern(_SUBDOMAIN, text)
        wrong = _describe_regex_violation(_LABEL_WRONG, _LABEL, "my-name", "123-abc")
        problems.append("must not contain dots" if dotted else wrong)
    return problems


def subdomain(text: str) -> FormatProblems:
    """Check an RFC 1123 subdomain."""
    problems = _find_length_problem(text, 253)
    if not _matches_whole_pattern(_SUBDOMAIN, text):
        problems.append(_describe_regex_violation(_SUBDOMAIN_WRONG, _SUBDOMAIN, "example.com"))
    return problems


def label_1035(text: str) -> FormatProblems:
    """Check an RFC 1035 label, which begins with a letter."""
    problems = _find_length_problem(text, 63)
    if not _matches_whole_pattern(_LABEL_1035, text):
        problems.append(_describe_regex_violation(_LABEL_1035_WRONG, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _find_cel_name_prefix_problems(check: Callable[[str], FormatProblems], text: str) -> FormatProblems:
    """Check the beginning of a name, which may end in a dash because more follows."""
    data = text.encode(errors="surrogatepass")
    if len(data) > 1 and text.endswith("-"):
        # Go replaces two bytes by one, so the text becomes one byte shorter.
        text = (data[:-2] + b"a").decode(errors="surrogateescape")
    return check(text)


def qualified_name(text: str) -> FormatProblems:
    """Check a label key: a name, with or without a subdomain before it."""
    wrong = _describe_regex_violation(_QUALIFIED_WRONG, _QUALIFIED, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {wrong}{optional}"]
    problems: FormatProblems = []
    if len(parts) == 2:
        before = subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in before]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _find_length_problem(name, 63)]
    if not _matches_whole_pattern(_QUALIFIED, name):
        problems.append(f"name part {wrong}")
    return problems


def label_value(text: str) -> FormatProblems:
    """Check the value of a label, which may be empty."""
    problems = _find_length_problem(text, 63)
    pattern = f"({_QUALIFIED})?"
    if not _matches_whole_pattern(pattern, text):
        wrong = f"a valid label must be an empty string or {_QUALIFIED_WRONG.removeprefix('must ')}"
        problems.append(_describe_regex_violation(wrong, pattern, "MyValue", "my_value", "12345"))
    return problems


def uri(text: str) -> FormatProblems:
    """Check an absolute URL or path."""
    problem = find_cel_request_uri_problem(text)
    return [problem] if problem else []


def _find_format_problem(holds: Callable[[str], bool], problem: str, text: str) -> FormatProblems:
    return [] if holds(text) else [problem]


def _matches_cel_datetime_format(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text.encode()) < 4 or len(parts) < 2 or not is_rfc3339_date(parts[0]):
        return False
    match = re.fullmatch(_TIME, parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


_FORMATS: dict[str, tuple[str, int, Callable[[str], FormatProblems]]] = {
    "dns1123Label": ("DNS1123Label", 30, label),
    "dns1123Subdomain": ("DNS1123Subdomain", 60, subdomain),
    "dns1035Label": ("DNS1035Label", 30, label_1035),
    "qualifiedName": ("QualifiedName", 60, qualified_name),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", 30, partial(_find_cel_name_prefix_problems, label)),
    "dns1123SubdomainPrefix": (
        "DNS1123SubdomainPrefix",
        60,
        partial(_find_cel_name_prefix_problems, subdomain),
    ),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", 30, partial(_find_cel_name_prefix_problems, label_1035)),
    "labelValue": ("LabelValue", 40, label_value),
    "uri": ("URI", 1103, uri),
    "uuid": (
        "uuid",
        70,
        partial(
            _find_format_problem, partial(_matches_whole_pattern, _UUID), "does not match the UUID format"
        ),
    ),
    "byte": (
        "byte",
        84,
        partial(_find_format_problem, partial(_matches_whole_pattern, _BASE64), "invalid base64"),
    ),
    "date": ("date", 71, partial(_find_format_problem, is_rfc3339_date, "invalid date")),
    "datetime": (
        "datetime",
        71,
        partial(_find_format_problem, _matches_cel_datetime_format, "invalid datetime"),
    ),
}
NAMED_FORMATS = {function: NamedFormat(*row) for function, row in _FORMATS.items()}


def named(name: str) -> Optional:
    """Evaluate `format.named(name)`."""
    return Optional(True, NAMED_FORMATS[name]) if name in NAMED_FORMATS else OPTIONAL_NONE


def validate(form: NamedFormat, text: str) -> Optional:
    """Evaluate `format.validate(text)`: what is wrong with the text, or none."""
    problems = form.problems(text)
    return Optional(True, problems) if problems else OPTIONAL_NONE


def _build_format_getter(form: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: form


TABLE = (
    *(
        Implementation(f"format.{name}", f"format.{name}", (), _build_format_getter(form))
        for name, form in NAMED_FORMATS.items()
    ),
    Implementation("format-named", "format.named", (S,), named),
    Implementation("format-validate", "validate", (types.NAMED_FORMAT, S), validate),
)
