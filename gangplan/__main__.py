"""`python -m gangplan`. The guard at the end must stay: MPI workers import this module again."""

from __future__ import annotations

import sys

from gangplan.entry import main

if __name__ == "__main__":
    sys.exit(main())
