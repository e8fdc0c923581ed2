"""A connection that may change a cluster: the only one of gangplan, and only `gangplan gitops sync` makes it.

Server-side apply as Argo CD and Flux use it, deletions of exactly the object that was looked at, and the
ConfigMap of the inventory, which nobody else may have written in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gangplan.live.access import APPLY, MANAGER, Access, RefusedError

_JSON = {"Content-Type": "application/json"}


class Writer(Access):
    """One API server, as the user of one context, or as the account of the pod."""

    def apply(self, path: str, body: Mapping[str, Any]) -> bool:
        """Apply an object, and take over fields that others own; whether it is new. Raises as `read` does."""
        query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
        return bool(self._send("PATCH", path, query, json.dumps(body), {"Content-Type": APPLY}).status == 201)

    def remove(self, path: str, uid: str) -> None:
        """Delete the object that has this uid, with what it owns; none is there afterwards or it is going.

        Raises as `read` does.
        """
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            self._send("DELETE", path, None, json.dumps(options), _JSON)
        except RefusedError as error:
            if error.status not in (404, 409):  # it is gone, or another one has its name by now
                raise

    def put(self, path: str, body: Mapping[str, Any], version: str) -> str:
        """Write an object that had this resourceVersion, or that was not there (empty); the new one.

        Raises RefusedError with status 409 where somebody was faster, and as `read` does.
        """
        if version:
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
            response = self._send("PUT", path, {"fieldManager": MANAGER}, json.dumps(body), _JSON)
        else:
            place = path.rpartition("/")[0]
            response = self._send("POST", place, {"fieldManager": MANAGER}, json.dumps(body), _JSON)
        return str(self._json(response)["metadata"]["resourceVersion"])
