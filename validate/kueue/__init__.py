"""What Kueue will do with a run, computed only from the built objects (docs/admission.md)."""

from gangplan.validate.kueue.model import Outcome, PodSet, Shortage, Usage, Verdict
from gangplan.validate.kueue.solver import judge, verdict_of
from gangplan.validate.kueue.words import admission_words

__all__ = [
    "Outcome",
    "PodSet",
    "Shortage",
    "Usage",
    "Verdict",
    "admission_words",
    "judge",
    "verdict_of",
]
