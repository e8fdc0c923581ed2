"""From any field of any rendered object back to what caused it: a file, a patch, or gangplan itself.

A rendered field has one or more causes. Tables per kind (run.py, pod.py, tenant.py, platform.py) name them by
field; patched.py tells what an overlay changed. tests/trace/ holds the tables to the truth: a changed field
of a file changes the rendered fields that name it, and no others. What stands on a cluster is in standing.py.
"""

from gangplan.trace.cause import Cause, Trace
from gangplan.trace.tracing import Tracer, trace, trace_field, tracer_of

__all__ = [
    "Cause",
    "Trace",
    "Tracer",
    "trace",
    "trace_field",
    "tracer_of",
]
