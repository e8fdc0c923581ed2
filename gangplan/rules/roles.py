"""Rules about roles of a run other than its workers."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

ROLE_UNUSABLE = Rule(
    "role-unusable",
    ERROR,
    "The run cannot have this role.",
    why=(
        "TensorFlow programs know chief, ps and evaluator from TF_CONFIG; plain programs know any role from "
        "the hosts in its variable. All other frameworks have only workers. Trainer finds workers, launcher "
        "and initializers by their names."
    ),
    fix="Rename or remove the role.",
)
