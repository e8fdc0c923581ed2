"""Rules about roles of a run other than its workers."""

from __future__ import annotations

from gangplan.rules.model import ERROR, Rule

ROLE_UNUSABLE = Rule(
    "role-unusable",
    ERROR,
    "The run cannot have this role.",
    why=(
        "Programs of TensorFlow know chief, ps and evaluator, by TF_CONFIG; plain programs know any role, by "
        "the hosts in its variable. All other frameworks have workers alone. Trainer finds workers, launcher "
        "and initializers by their names."
    ),
    fix="Rename or remove the role.",
)
