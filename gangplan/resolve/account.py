"""The service account of the pods of a run."""

from __future__ import annotations

from gangplan.model.identity import TRAINING_ACCOUNT
from gangplan.resolve.context import JobResolution
from gangplan.rules.specs import SERVICE_ACCOUNT_UNKNOWN, TOKEN_MOUNTED
from gangplan.spec.declare import suggest_known_or_new


def resolve_service_account(context: JobResolution) -> tuple[str, bool]:
    """Return the account that the spec names, if the team may use it, and whether its token is mounted.

    Otherwise return gangplan's own account.
    """
    wanted = context.spec.spec.service_account
    if wanted is None or wanted == TRAINING_ACCOUNT:
        return TRAINING_ACCOUNT, False
    where, offered = (
        context.where("serviceAccount"),
        context.cluster.spec.teams[context.team.name].service_accounts,
    )
    if wanted not in offered:
        known = (
            suggest_known_or_new("service account", wanted, offered, context.cluster.document.file)
            if offered
            else "Ask its owner to list it in serviceAccounts of the team."
        )
        context.report(
            SERVICE_ACCOUNT_UNKNOWN,
            where,
            f"cluster {context.cluster.name} lets team {context.team.name} use no service account '{wanted}'",
            known,
        )
        return TRAINING_ACCOUNT, False
    if offered[wanted].token:
        context.report(
            TOKEN_MOUNTED,
            where,
            f"anyone who gets into a pod of this run has the rights of service account '{wanted}':"
            f" {' '.join(offered[wanted].reason.split()).rstrip('.')}",
            "Name it only in runs that call the Kubernetes API.",
        )
    return wanted, offered[wanted].token
