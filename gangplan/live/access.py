"""A connection to one API server, for reads and dry runs. No method could change anything.

The `kubernetes` package (32 and later) reads the kubeconfig, with its exec plugins, certificates and proxies;
requests use its urllib3 pool directly, because loading its 700 models would waste time.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from gangplan import __version__
from gangplan.errors import ToolError
from gangplan.live.contexts import ContextChoice, choose_kubeconfig_context
from gangplan.live.rights import Right, explain_missing_cluster_right, find_right_for_api_request

INSTALL = 'Install it next to gangplan: pip install "gangplan[cluster]"'
# The authoriser's message (Kubernetes, staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters).
_RBAC = re.compile(r'forbidden: User "[^"]*" cannot (?P<verb>\w+) ')
#: The field manager in dry runs and in the server's audit log.
FIELD_MANAGER = "gangplan"
_NO_FILE = "Set KUBECONFIG, or name the file with --kubeconfig FILE."
APPLY_CONTENT_TYPE = "application/apply-patch+yaml"
#: Seconds until a connection counts as failed; the user's timeout applies to the answer.
_CONNECT_S = 10.0
#: Connections that are kept open: one for each followed log.
MAX_CONNECTIONS = 64
#: Objects per page of a list, as kubectl asks for them.
PAGE = 500
_LETTERS = 300


class ApiRefusedError(ToolError):
    """A refusal by the API server, with its status code, reason, message and details."""

    def __init__(self, status: int, body: Mapping[str, Any], where: str) -> None:
        self.status = status
        self.reason = str(body.get("reason") or "")
        self.words = str(body.get("message") or "").strip()
        details = body.get("details")
        self.details: Mapping[str, Any] = details if isinstance(details, dict) else {}
        said = self.words[:_LETTERS] or "without a word"
        super().__init__(f"the API server of context '{where}' answered {status}: {said}")


class ForbiddenError(ApiRefusedError):
    """A refusal for a missing right, `right`; the help has a role with all rights needed."""

    def __init__(self, body: Mapping[str, Any], wanted: ContextChoice, context: str, right: Right) -> None:
        super().__init__(403, body, context)
        self.right = right
        self.message, self.help = explain_missing_cluster_right(right, wanted.needs, context, wanted.purpose)


class Access:
    """One API server, used as the user of one context."""

    def __init__(self, wanted: ContextChoice, context: str, configuration: Any) -> None:
        from kubernetes.client import rest

        self.wanted, self.context = wanted, context
        self.configuration = configuration
        self.pool: Any = rest.RESTClientObject(configuration).pool_manager

    def read(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Return the JSON at a path. Raises RefusedError, and ToolError if there is no answer."""
        return self._json(self._send("GET", path, query))

    def find(self, path: str, query: Mapping[str, str] | None = None) -> Any | None:
        """Return the JSON at a path, or None if nothing is there. Raises like `read`."""
        try:
            return self.read(path, query)
        except ApiRefusedError as error:
            if error.status == 404:
                return None
            raise

    def items(self, path: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Return all items of a collection, page by page; none if the kind is not served.

        Raises like `read`.
        """
        items: list[dict[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            page = self.find(path, {**(query or {}), "limit": str(PAGE), **more})
            if page is None:
                return items
            items += page.get("items") or ()
            rest = (page.get("metadata") or {}).get("continue")
            if not rest:
                return items
            more = {"continue": rest}

    def ask(self, path: str, body: Mapping[str, Any]) -> list[str]:
        """Return the server's warnings about applying an object, without applying it. Raises like `read`.

        This is a server-side apply with `dryRun=All`: all of admission but no write (Kubernetes, API
        concepts).
        """
        query = {
            "dryRun": "All",
            "fieldManager": FIELD_MANAGER,
            "force": "true",
            "fieldValidation": "Strict",
        }
        response = self._send("PATCH", path, query, json.dumps(body), {"Content-Type": APPLY_CONTENT_TYPE})
        self._json(response)
        given = response.headers.getlist("Warning") if "Warning" in response.headers else []
        return [one.partition('"')[2].rpartition('"')[0].replace('\\"', '"') for one in given]

    def lines(self, path: str, query: Mapping[str, str], is_endless: bool) -> Iterator[str]:
        """Yield the lines of a log as they arrive; one that is followed may be silent for any time.

        Raises like `read`.
        """
        response = self._send("GET", path, query, is_stream=True, is_patient=is_endless)
        rest = b""
        try:
            for part in response.stream(65536, decode_content=True):
                *whole, rest = (rest + part).split(b"\n")
                yield from (line.decode(errors="replace") for line in whole)
        finally:
            response.release_conn()
        if rest:
            yield rest.decode(errors="replace")

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        is_stream: bool = False,
        is_patient: bool = False,
    ) -> Any:
        import urllib3

        head = {"Accept": "application/json", "User-Agent": f"gangplan/{__version__}", **(headers or {})}
        if is_stream:
            head["Accept"] = "*/*"
        token = self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            head["Authorization"] = token
        url = f"{self.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        patience = None if is_patient else self.wanted.timeout_s
        timeout = urllib3.Timeout(connect=min(_CONNECT_S, self.wanted.timeout_s), read=patience)
        try:
            response = self.pool.request(
                method,
                url,
                body=body,
                headers=head,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=not is_stream,
            )
            return self._accepted(method, path, response)
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from None

    def _accepted(self, method: str, path: str, response: Any) -> Any:
        """Return the answer unless it is a refusal. Raises ToolError, RefusedError or ForbiddenError."""
        if response.status < 300:
            return response
        try:
            body = json.loads(response.data)
        except ValueError:
            body = {"message": response.data.decode(errors="replace")}
        said = body if isinstance(body, dict) else {}
        if response.status == 401:
            raise ToolError(
                f"the API server of context '{self.context}' does not accept your login (401): it has expired,"
                " or was never valid here",
                f"Log in again as for kubectl; kubectl --context {self.context} get namespaces tries it.",
            )
        words = str(said.get("message"))
        if response.status == 403 and (match := _RBAC.search(words)):
            right = find_right_for_api_request(method, path, match["verb"])
            raise ForbiddenError(said, self.wanted, self.context, right)
        raise ApiRefusedError(response.status, said, self.context)

    def _unreachable(self, error: Exception) -> ToolError:
        import urllib3

        where = f"the API server of context '{self.context}' ({self.configuration.host})"
        if isinstance(error, urllib3.exceptions.ReadTimeoutError):
            after = f"{self.wanted.timeout_s:g} s"
            return ToolError(f"{where} gave no answer in {after}", "--timeout SECONDS waits longer.")
        if isinstance(error, urllib3.exceptions.SSLError):
            return ToolError(
                f"the certificate of {where} is not trusted: {_shorten_error_text(error)}",
                "Correct certificate-authority in the kubeconfig.",
            )
        return ToolError(
            f"{where} cannot be reached: {_shorten_error_text(error)}", "Check the network or the VPN."
        )

    def _json(self, response: Any) -> Any:
        try:
            return json.loads(response.data)
        except ValueError:
            raise ToolError(
                f"{self.configuration.host} does not answer as an API server does",
                f"Check the server of context '{self.context}' in the kubeconfig.",
            ) from None


OpenAccess = TypeVar("OpenAccess", bound=Access)


def connect_to_cluster(wanted: ContextChoice, kind: type[OpenAccess] = Access) -> OpenAccess:  # type: ignore[assignment]
    """Read the kubeconfig and log in as its context or as this pod's account; no request is sent yet.

    Raises ToolError without the `kubernetes` package, a kubeconfig, a context or a login, and UserError if
    the user's context does not exist.
    """
    try:
        from kubernetes import client
        from kubernetes import config as package
    except ImportError:
        raise ToolError(
            "the package kubernetes, which talks to clusters, is not installed", INSTALL
        ) from None
    config: Any = package  # most of it is not typed
    if wanted.is_in_cluster:
        return _connect_in_cluster(wanted, kind, config, client.Configuration())
    try:  # not list_kube_config_contexts, which requires a current one
        files = wanted.kubeconfig or config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION
        merged = config.kube_config.KubeConfigMerger(files).config
        names = [str(one["name"]) for one in merged["contexts"]] if merged is not None else None
    except Exception as error:  # noqa: BLE001  the package raises what its parser happens to raise
        raise ToolError(f"the kubeconfig cannot be read: {_shorten_error_text(error)}", _NO_FILE) from None
    if names is None:
        raise ToolError(f"there is no kubeconfig: {files} does not exist", _NO_FILE)
    context = choose_kubeconfig_context(wanted, names)
    configuration: Any = client.Configuration()
    heard = _Heard()
    root = logging.getLogger()
    root.addHandler(heard)
    try:
        config.load_kube_config(
            config_file=wanted.kubeconfig,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except Exception as error:  # noqa: BLE001  as above
        raise ToolError(
            f"context '{context}' of the kubeconfig cannot be used: {_shorten_error_text(error)}",
            "Correct the kubeconfig.",
        ) from None
    finally:
        root.removeHandler(heard)
    if heard.words:  # an exec plugin that failed, which the package only logs
        raise ToolError(
            f"the login of context '{context}' failed: {heard.words[0]}", "Log in again as for kubectl."
        )
    configuration.connection_pool_maxsize = MAX_CONNECTIONS
    return kind(wanted, context, configuration)


def _connect_in_cluster(
    wanted: ContextChoice, kind: type[OpenAccess], config: Any, configuration: Any
) -> OpenAccess:
    """Connect with the account of the pod that this runs in."""
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException as error:
        raise ToolError(
            f"this does not run in a pod with an account: {_shorten_error_text(error)}",
            "Use a kubeconfig instead of --in-cluster, or mount the token of the account.",
        ) from None
    configuration.connection_pool_maxsize = MAX_CONNECTIONS
    return kind(wanted, "in-cluster", configuration)


class _Heard(logging.Handler):
    """A handler that records what the package logs during the login."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.words.append(_shorten_error_text(record.getMessage()))


def _shorten_error_text(said: object) -> str:
    return " ".join(str(said).split())[:_LETTERS]
