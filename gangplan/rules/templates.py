"""Rules about templates: jobs with parameters, from which specs are made."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

TEMPLATE_UNKNOWN = Rule(
    "template-unknown",
    ERROR,
    "A spec or a template names a template, or a version of one, that does not exist.",
    why="All that the template would say is missing, so there is no job.",
    fix="Correct the name, or add the template. gangplan list templates shows those that exist.",
)

TEMPLATE_EXTENDS = Rule(
    "template-extends",
    ERROR,
    "Templates extend each other in a cycle, or more than eight deep.",
    why="In a cycle no template is the first one. Nobody can read a job that is spread over eight files.",
    fix="Remove an extends:, or join some of the templates.",
)

TEMPLATE_UNUSABLE = Rule(
    "template-unusable",
    ERROR,
    "A template states what only a spec may, or its file and its name disagree.",
    why=(
        "Specs find a template by name and version, so each may exist only once, and the file must say the same. Name, "
        "state and earlier runs belong to one job alone: from a template, all would have the same."
    ),
    fix="Remove the field, or rename the file.",
)

TEMPLATE_PLACEHOLDER = Rule(
    "template-placeholder",
    ERROR,
    "A template asks for the value of a parameter that it does not have.",
    why="${{ parameters.NAME }} is filled in for every spec. Without a parameter of that name, there is no value for it.",
    fix="Correct the name, or add it under parameters:.",
)

TEMPLATE_PARAMETER_UNUSED = Rule(
    "template-parameter-unused",
    WARNING,
    "Nothing in a template uses one of its parameters.",
    why="A spec that gives a value for it expects the value to matter, but gets the same run with any other.",
    fix="Write ${{ parameters.NAME }} where it belongs, or remove the parameter.",
)

TEMPLATE_PARAMETER_UNKNOWN = Rule(
    "template-parameter-unknown",
    ERROR,
    "A spec gives a value for a parameter that its template does not have.",
    why="The value would be ignored, and the run would not be the one that was meant.",
    fix="Correct the name. gangplan explain template NAME lists the parameters.",
)

TEMPLATE_PARAMETER_MISSING = Rule(
    "template-parameter-missing",
    ERROR,
    "A spec gives no value for a parameter that has no default.",
    why="The template leaves the choice to the spec, because no value is right for all.",
    fix="Write parameters: {NAME: VALUE} into the spec, or give the parameter a default.",
)

TEMPLATE_PARAMETER_VALUE = Rule(
    "template-parameter-value",
    ERROR,
    "The value of a parameter has a different type from the template's, or is out of bounds.",
    why="The template's author knows the values for which the job works; others fail later, after waiting for GPUs.",
    fix="Write a value that the parameter takes. gangplan explain template NAME shows which.",
)
