"""Checks of the files of a run: their ConfigMap comes with it and holds the planned bytes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from gangplan.objects import Body
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]
KIND = "ConfigMap"


def check_promised_files(laid: ExpandedRun) -> Found:
    """Check that every file is in the ConfigMap, with its bytes, and that the ConfigMap is immutable."""
    planned = laid.unit.job.files
    if not planned:
        return
    name = next(one.config_map for one in laid.unit.job.mounts if one.file)
    maps = {
        body["metadata"]["name"]: (at, body)
        for at, body in enumerate(laid.run.bodies)
        if body["kind"] == KIND
    }
    if name not in maps:
        message = f"ConfigMap {name} would not come with the run, and its pods would wait for it"
        at = (laid.runtime, ())
        yield at[0], report_broken_promise(at[1], message, "Keep its name.", "files")
        return
    index, body = maps[name]
    for one in planned:
        data = _read_config_map_file(body, one.key)
        if data != one.data:
            how = "not have" if data is None else "have another"
            message = f"pods would {how} {one.source}"
            place = "binaryData" if one.key in (body.get("binaryData") or {}) else "data"
            yield (
                index,
                report_broken_promise((place, one.key), message, f"Change {one.source} itself.", "files"),
            )
    if body.get("immutable") is not True:
        message = "the files of the run could change while it runs"
        yield index, report_weakened_plan(("immutable",), message, "Keep immutable: true.")


def _read_config_map_file(body: Body, key: str) -> bytes | None:
    if key in (body.get("data") or {}):
        return str(body["data"][key]).encode()
    if key in (body.get("binaryData") or {}):
        try:
            return base64.b64decode(str(body["binaryData"][key]), validate=True)
        except binascii.Error:
            return b""
    return None
