"""From any field of any rendered object back to what caused it: a file, a patch, or gangplan itself.

A rendered field has one or more causes. Tables per kind (run.py, pod.py, tenant.py, platform.py) name them by
field; patched.py tells what an overlay changed. tests/trace/ holds the tables to the truth: a changed field
of a file changes the rendered fields that name it, and no others.
"""

from gangplan.trace.cause import Cause, Trace
from gangplan.trace.standing import StandingObjects, joined, standing_of, standing_tracer, trace_standing
from gangplan.trace.tracing import Tracer, trace, trace_field, tracer_of

__all__ = [
    "Cause",
    "StandingObjects",
    "Trace",
    "Tracer",
    "joined",
    "standing_of",
    "standing_tracer",
    "trace",
    "trace_field",
    "trace_standing",
    "tracer_of",
]
