"""What Kueue will do with a run, computed from the built objects alone (docs/admission.md)."""

from gangplan.validate.kueue.model import Outcome, PodSet, Shortage, Usage, Verdict
from gangplan.validate.kueue.solver import judge, verdict_of

__all__ = ["Outcome", "PodSet", "Shortage", "Usage", "Verdict", "judge", "verdict_of"]
