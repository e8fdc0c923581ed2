"""Checks of variables that read a label that their pod does not have; the kubelet gives an empty string.

Source: Kubernetes v1.34 (pkg/fieldpath, ExtractFieldPathAsString), the labels of Job and JobSet controllers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.rules.pods import ENV_FIELD_EMPTY
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRun

_LABEL = re.compile(r"metadata\.labels\['([^']+)'\]")
# Labels that controllers, admission and kubelets add, so that no template has them.
_ADDED = re.compile(r"(.*\.)?(k8s|kubernetes)\.io/.*|trainer\.kubeflow\.org/.*|job-name|controller-uid")


def check_promised_variables_are_set(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Report each variable that would be empty in the pods of a role."""
    for role in laid.present:
        labels = (role.template.get("metadata") or {}).get("labels") or {}
        index, path = role.place("env")
        for at, one in enumerate((role.container or {}).get("env") or ()):
            asked = ((one.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
            found = _LABEL.fullmatch(str(asked)) if asked else None
            if found is None or found[1] in labels or _ADDED.fullmatch(found[1]):
                continue
            message = f"{one['name']} would be empty in {role.title}: their pods have no label '{found[1]}'"
            known = ", ".join(sorted(labels)[:4])
            help = f"Write a label that they have ({known}), or add it by a patch of the cluster's overlay."
            place = (*path, at) if "env" not in role.own else path
            yield index, Problem(place, message, help, ENV_FIELD_EMPTY)
