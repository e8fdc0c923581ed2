"""Whether the pods of a run find nodes, by kube-scheduler's filters over node pools (docs/node-fit.md)."""

from gangplan.validate.scheduler.admitted import admitted_fit
from gangplan.validate.scheduler.fits import fit_pods, fits
from gangplan.validate.scheduler.model import Fit
from gangplan.validate.scheduler.pods import PodShape, plain_pods
from gangplan.validate.scheduler.proof import find_nodes

__all__ = ["Fit", "PodShape", "admitted_fit", "find_nodes", "fit_pods", "fits", "plain_pods"]
