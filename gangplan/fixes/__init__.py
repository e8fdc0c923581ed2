"""Mechanical fixes of files that people write: bytes in, better bytes out, nothing else changed.

`fix_file` fixes one file in memory and proves that the result is not worse; `write_fixed` puts it in place.
The command decides which files are meant.
"""

from gangplan.fixes.file import FixedFile, fix_file
from gangplan.fixes.write import read_fixable, write_fixed

__all__ = ["FixedFile", "fix_file", "read_fixable", "write_fixed"]
