"""Every rule that gangplan itself reports, defined once, by topic.

To add a rule, define it in the file of its topic, with id, severity, summary (one line), `why` (what happens
otherwise, and the source of the fact) and `fix`, and write its example in examples/. An example changes one
text in the small workspace of tests/workspaces.py: to `before`, which must break this rule and no other
(except those listed in `rest`), or to `after`, which must break nothing; see `Example` in model.py.
Import the rule by name where it is raised. Then run make docs and pytest tests/rules.
"""
