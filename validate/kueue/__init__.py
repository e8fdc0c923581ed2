"""What Kueue will do with a run, computed only from the built objects (docs/admission.md)."""

from gangplan.validate.kueue.model import AdmissionOutcome, AdmissionVerdict, FlavorUsage, PodSet, Shortage
from gangplan.validate.kueue.solver import judge_admission, verdict_of
from gangplan.validate.kueue.words import format_admission

__all__ = [
    "AdmissionOutcome",
    "AdmissionVerdict",
    "FlavorUsage",
    "PodSet",
    "Shortage",
    "format_admission",
    "judge_admission",
    "verdict_of",
]
