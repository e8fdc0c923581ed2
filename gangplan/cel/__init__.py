"""CEL as the API server's admission policies use it: compile with types, evaluate, count the cost.

Nothing outside this package sees how expressions are represented; `environment.Environment` and
`environment.CelProgram` are the whole interface (docs/decisions/0008-cel-engine.md).
"""
