"""Health checks for Argo CD, in its Lua: version 5.1 without the string library.

A script gets the object as `obj` and returns a table with `status` and `message` (argo-cd v3.5.1, util/lua).
"""

from __future__ import annotations

from gangplan.gitops.health import Condition, Field, Kind, Present, Row, Test

_HEAD = """\
local function at(value, ...)
  for _, name in ipairs({...}) do
    if type(value) ~= "table" then return nil end
    value = value[name]
  end
  return value
end
local function condition(kind, status, reasons)
  for _, one in ipairs(at(obj, "status", "conditions") or {}) do
    if one.type == kind and one.status == status then
      if reasons == nil or reasons[one.reason or ""] then return one end
    end
  end
  return nil
end
local function health(status, word, kind)
  for _, one in ipairs(at(obj, "status", "conditions") or {}) do
    if one.type == kind and one.message ~= nil and one.message ~= "" then
      word = word .. ": " .. one.message
    end
  end
  return {status = status, message = word}
end
"""


def lua_of(kind: Kind) -> str:
    """Write the script for a kind: its rows as a chain of ifs."""
    return _HEAD + "".join(map(_row, kind.rows))


def _row(row: Row) -> str:
    words = [row.argocd, row.word, *([row.detail] if row.detail else [])]
    result = f"health({', '.join(map(_text, words))})"
    if not row.tests:
        return f"return {result}\n"
    return f"if {' and '.join(map(_test, row.tests))} then\n  return {result}\nend\n"


def _test(test: Test) -> str:
    if isinstance(test, Condition):
        reasons = ", ".join(f"[{_text(reason)}] = true" for reason in test.reasons)
        more = f", {{{reasons}}}" if reasons else ""
        return f"condition({_text(test.type)}, {_text(test.status)}{more}) ~= nil"
    if isinstance(test, Field):
        value = str(test.value).lower() if isinstance(test.value, bool) else _text(test.value)
        return f"at(obj, {_path(test.path)}) == {value}"
    if isinstance(test, Present):
        return f"at(obj, {_path(test.path)}) ~= nil"
    return '(at(obj, "metadata", "generation") or 1) > 1'


def _path(path: tuple[str, ...]) -> str:
    return ", ".join(map(_text, path))


def _text(value: str) -> str:
    """Quote a text of the table; none has a character that Lua would need escaped."""
    return f'"{value}"'
