"""The only connection of gangplan that may change a cluster; only `gangplan gitops sync` opens it.

It can apply server-side as Argo CD and Flux do, delete exactly the object that was looked at, and write the
ConfigMap of the inventory unless somebody else wrote it in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gangplan.live.access import APPLY_CONTENT_TYPE, FIELD_MANAGER, Access, ApiRefusedError

_JSON = {"Content-Type": "application/json"}


class ClusterWriter(Access):
    """A connection to one API server, as the user of one context, or as the account of the pod."""

    def apply(self, path: str, body: Mapping[str, Any]) -> bool:
        """Apply an object, taking over fields that others own, and return whether it is new. Raises as `read`
        does."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        return bool(
            self._send("PATCH", path, query, json.dumps(body), {"Content-Type": APPLY_CONTENT_TYPE}).status
            == 201
        )

    def remove(self, path: str, uid: str) -> None:
        """Delete the object that has this uid, with what it owns. Afterwards it is gone or is being deleted.

        Raises as `read` does.
        """
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            self._send("DELETE", path, None, json.dumps(options), _JSON)
        except ApiRefusedError as error:
            if error.status not in (404, 409):  # it is gone, or another object has its name by now
                raise

    def put(self, path: str, body: Mapping[str, Any], version: str) -> str:
        """Write an object that had this resourceVersion, or did not exist (empty), and return the new
        version.

        Raises RefusedError with status 409 if somebody else wrote it first, and as `read` does.
        """
        if version:
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
            response = self._send("PUT", path, {"fieldManager": FIELD_MANAGER}, json.dumps(body), _JSON)
        else:
            place = path.rpartition("/")[0]
            response = self._send("POST", place, {"fieldManager": FIELD_MANAGER}, json.dumps(body), _JSON)
        return str(self._json(response)["metadata"]["resourceVersion"])
