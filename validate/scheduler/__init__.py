"""Whether the pods of a run find nodes, by kube-scheduler's filters over node pools (docs/node-fit.md)."""

from gangplan.validate.scheduler.admitted import fit_admitted_run
from gangplan.validate.scheduler.fits import fit_pods, fit_run_pods_onto_nodes
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.pods import PodShape, build_plain_pods_for_scheduler
from gangplan.validate.scheduler.proof import check_node_fit

__all__ = [
    "Fit",
    "PodShape",
    "build_plain_pods_for_scheduler",
    "check_node_fit",
    "fit_admitted_run",
    "fit_pods",
    "fit_run_pods_onto_nodes",
]
