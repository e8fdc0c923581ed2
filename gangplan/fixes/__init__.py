"""Mechanical repairs of files that people write: bytes in, better bytes out, nothing else changed.

`mend` repairs one file in memory and proves that the result is no worse, `write` puts it in its place; which
files are meant is for the command to say.
"""

from gangplan.fixes.mend import Mended, mend
from gangplan.fixes.write import read, write

__all__ = ["Mended", "mend", "read", "write"]
