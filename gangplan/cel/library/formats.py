"""`kubernetes.NamedFormat`: the named formats of Kubernetes, and what is wrong with a text.

Sources: k8s.io/apiserver v0.34 `pkg/cel/library/format.go`, k8s.io/apimachinery v0.34 `pkg/util/validation`,
k8s.io/kube-openapi `pkg/validation/strfmt`. Lengths count bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from gangplan.cel import types
from gangplan.cel.clock import is_date
from gangplan.cel.library.base import Implementation, S
from gangplan.cel.library.url import problem_of
from gangplan.cel.values import NONE, NamedFormat, Optional

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

Problems = list[str]


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _wrong(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, most: int) -> Problems:
    size = len(text.encode(errors="surrogateescape"))
    return [f"must be no more than {most} characters"] if size > most else []


def label(text: str) -> Problems:
    """Check an RFC 1123 label."""
    problems = _too_long(text, 63)
    if not _matches(_LABEL, text):
        dotted = _matches(_SUBDOMAIN, text)
        wrong = _wrong(_LABEL_WRONG, _LABEL, "my-name", "123-abc")
        problems.append("must not contain dots" if dotted else wrong)
    return problems


def subdomain(text: str) -> Problems:
    """Check an RFC 1123 subdomain."""
    problems = _too_long(text, 253)
    if not _matches(_SUBDOMAIN, text):
        problems.append(_wrong(_SUBDOMAIN_WRONG, _SUBDOMAIN, "example.com"))
    return problems


def label_1035(text: str) -> Problems:
    """Check an RFC 1035 label, which begins with a letter."""
    problems = _too_long(text, 63)
    if not _matches(_LABEL_1035, text):
        problems.append(_wrong(_LABEL_1035_WRONG, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _prefix(check: Callable[[str], Problems], text: str) -> Problems:
    """Check the beginning of a name, which may end in a dash because more follows."""
    data = text.encode(errors="surrogatepass")
    if len(data) > 1 and text.endswith("-"):
        # Go replaces two bytes by one, so the text becomes one byte shorter.
        text = (data[:-2] + b"a").decode(errors="surrogateescape")
    return check(text)


def qualified_name(text: str) -> Problems:
    """Check a label key: a name, with or without a subdomain before it."""
    wrong = _wrong(_QUALIFIED_WRONG, _QUALIFIED, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {wrong}{optional}"]
    problems: Problems = []
    if len(parts) == 2:
        before = subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in before]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, 63)]
    if not _matches(_QUALIFIED, name):
        problems.append(f"name part {wrong}")
    return problems


def label_value(text: str) -> Problems:
    """Check the value of a label, which may be empty."""
    problems = _too_long(text, 63)
    pattern = f"({_QUALIFIED})?"
    if not _matches(pattern, text):
        wrong = f"a valid label must be an empty string or {_QUALIFIED_WRONG.removeprefix('must ')}"
        problems.append(_wrong(wrong, pattern, "MyValue", "my_value", "12345"))
    return problems


def uri(text: str) -> Problems:
    """Check an absolute URL or path."""
    problem = problem_of(text)
    return [problem] if problem else []


def _unless(holds: Callable[[str], bool], problem: str, text: str) -> Problems:
    return [] if holds(text) else [problem]


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text.encode()) < 4 or len(parts) < 2 or not is_date(parts[0]):
        return False
    match = re.fullmatch(_TIME, parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


_FORMATS: dict[str, tuple[str, int, Callable[[str], Problems]]] = {
    "dns1123Label": ("DNS1123Label", 30, label),
    "dns1123Subdomain": ("DNS1123Subdomain", 60, subdomain),
    "dns1035Label": ("DNS1035Label", 30, label_1035),
    "qualifiedName": ("QualifiedName", 60, qualified_name),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", 30, partial(_prefix, label)),
    "dns1123SubdomainPrefix": ("DNS1123SubdomainPrefix", 60, partial(_prefix, subdomain)),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", 30, partial(_prefix, label_1035)),
    "labelValue": ("LabelValue", 40, label_value),
    "uri": ("URI", 1103, uri),
    "uuid": ("uuid", 70, partial(_unless, partial(_matches, _UUID), "does not match the UUID format")),
    "byte": ("byte", 84, partial(_unless, partial(_matches, _BASE64), "invalid base64")),
    "date": ("date", 71, partial(_unless, is_date, "invalid date")),
    "datetime": ("datetime", 71, partial(_unless, _is_datetime, "invalid datetime")),
}
NAMED = {function: NamedFormat(*row) for function, row in _FORMATS.items()}


def named(name: str) -> Optional:
    """Evaluate `format.named(name)`."""
    return Optional(True, NAMED[name]) if name in NAMED else NONE


def validate(form: NamedFormat, text: str) -> Optional:
    """Evaluate `format.validate(text)`: what is wrong with the text, or none."""
    problems = form.problems(text)
    return Optional(True, problems) if problems else NONE


def _constant(form: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: form


TABLE = (
    *(
        Implementation(f"format.{name}", f"format.{name}", (), _constant(form))
        for name, form in NAMED.items()
    ),
    Implementation("format-named", "format.named", (S,), named),
    Implementation("format-validate", "validate", (types.NAMED_FORMAT, S), validate),
)
