"""Trace any field of any rendered object back to its causes: a file, a patch, or gangplan itself.

A rendered field has one or more causes. Tables per kind (run.py, pod.py, tenant.py, platform.py) name them by
field; patched.py finds what an overlay changed. tests/trace/ checks the tables: changing a field of a file
must change the rendered fields that name it, and no others. standing.py traces the objects of a cluster that
exist before any run.
"""

from gangplan.trace.cause import Cause, Trace
from gangplan.trace.tracing import Tracer, trace_job_field, trace_object_field, tracer_of

__all__ = [
    "Cause",
    "Trace",
    "Tracer",
    "trace_job_field",
    "trace_object_field",
    "tracer_of",
]
