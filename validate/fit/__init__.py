"""Whether the pods of a run find nodes: kube-scheduler's filters over node pools (docs/node-fit.md)."""

from gangplan.validate.fit.admitted import admitted_fit
from gangplan.validate.fit.fits import fit_pods, fits
from gangplan.validate.fit.model import Fit
from gangplan.validate.fit.pods import Pods, plain_pods
from gangplan.validate.fit.proof import find_nodes

__all__ = ["Fit", "Pods", "admitted_fit", "find_nodes", "fit_pods", "fits", "plain_pods"]
