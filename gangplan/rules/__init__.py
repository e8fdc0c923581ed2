"""Every rule that gangplan itself reports, one definition each, by topic.

To add a rule, define it in the file of its topic: id, severity, summary (one line), `why` (what happens
otherwise, and the source of the fact) and `fix`; and in examples/ its example. That is a change of the small
workspace of tests/workspaces.py: in one file, a text becomes `before`, which must break this rule and only this
one (`rest` lists what else it must break), or `after`, which must break nothing; see `Example` in model.py.
Import the rule by name where it is raised. Then: make docs, and pytest tests/rules.
"""
