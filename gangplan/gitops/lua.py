"""Health checks for Argo CD, in its Lua: version 5.1 without the string library.

A script gets the object as `obj` and returns a table with `status` and `message` (argo-cd v3.5.1, util/lua).
"""

from __future__ import annotations

from gangplan.gitops.health import ConditionTest, FieldTest, HealthKind, HealthState, HealthTest, PresenceTest

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


def render_lua_script(kind: HealthKind) -> str:
    """Write the script for a kind: its rows as a chain of ifs."""
    return _HEAD + "".join(map(_write_lua_health_state_branch, kind.rows))


def _write_lua_health_state_branch(row: HealthState) -> str:
    words = [row.argocd, row.word, *([row.detail] if row.detail else [])]
    result = f"health({', '.join(map(_quote_lua_string, words))})"
    if not row.tests:
        return f"return {result}\n"
    return f"if {' and '.join(map(_write_lua_health_test, row.tests))} then\n  return {result}\nend\n"


def _write_lua_health_test(test: HealthTest) -> str:
    if isinstance(test, ConditionTest):
        reasons = ", ".join(f"[{_quote_lua_string(reason)}] = true" for reason in test.reasons)
        more = f", {{{reasons}}}" if reasons else ""
        return f"condition({_quote_lua_string(test.type)}, {_quote_lua_string(test.status)}{more}) ~= nil"
    if isinstance(test, FieldTest):
        value = str(test.value).lower() if isinstance(test.value, bool) else _quote_lua_string(test.value)
        return f"at(obj, {_write_lua_path_arguments(test.path)}) == {value}"
    if isinstance(test, PresenceTest):
        return f"at(obj, {_write_lua_path_arguments(test.path)}) ~= nil"
    return '(at(obj, "metadata", "generation") or 1) > 1'


def _write_lua_path_arguments(path: tuple[str, ...]) -> str:
    return ", ".join(map(_quote_lua_string, path))


def _quote_lua_string(value: str) -> str:
    """Quote a text of the table; none has a character that Lua would need escaped."""
    return f'"{value}"'
