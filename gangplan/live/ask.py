"""Ask an API server about all rendered objects by dry run, and report refusals at their causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gangplan.findings import FieldPath, Finding, Location
from gangplan.live.access import Access, ApiRefusedError, ForbiddenError
from gangplan.live.refusals import NoVerdict, Refuser, ServerRefusal, parse_server_refusals
from gangplan.live.served import KindCatalog, ServedKind
from gangplan.objects import Body, ref_of
from gangplan.provenance.lines import RenderedFile
from gangplan.records import dataclass
from gangplan.rules.live import (
    SERVER_ADVICE,
    SERVER_POLICY,
    SERVER_QUOTA,
    SERVER_SCHEMA,
    SERVER_UNASKED,
    SERVER_WEBHOOK,
)
from gangplan.rules.model import WARNING, Rule
from gangplan.source import load_objects
from gangplan.validate.problems import format_path
from gangplan.workspace import ClusterFile

#: The number of requests at a time: as many as a browser opens to one server.
_AT_ONCE = 6
_RULES: dict[Refuser, Rule] = {
    Refuser.SCHEMA: SERVER_SCHEMA,
    Refuser.POLICY: SERVER_POLICY,
    Refuser.WEBHOOK: SERVER_WEBHOOK,
    Refuser.QUOTA: SERVER_QUOTA,
}
_HELPS = {
    Refuser.SCHEMA: "Correct the field, or the patch that writes it.",
    Refuser.POLICY: "Change what the policy objects to, or ask the owner of the policy.",
    Refuser.WEBHOOK: "Change what the webhook objects to, or ask whoever runs the webhook.",
    Refuser.QUOTA: "Retire runs that have ended, wait, or have the quota raised.",
}


@dataclass(frozen=True, slots=True)
class DryRunQuestion:
    """An object as it would be applied, its file, and its index in the file."""

    file: RenderedFile
    index: int
    body: Body


@dataclass(frozen=True, slots=True)
class DryRunVerdict:
    """The server's answer about an object: refusals, warnings, or neither if it accepts the object."""

    question: DryRunQuestion
    refusals: tuple[ServerRefusal, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: ForbiddenError | None = None

    @property
    def is_asked(self) -> bool:
        """Whether there was a verdict."""
        return not any(isinstance(one.by, NoVerdict) for one in self.refusals)


def build_dry_run_questions(files: Sequence[RenderedFile]) -> list[DryRunQuestion]:
    """Return every object of some files, under its real name."""
    return [
        DryRunQuestion(file, index, body)
        for file in files
        for index, body in enumerate(load_objects(file.text))
    ]


def ask_for_dry_run_verdicts(access: Access, asked: Sequence[DryRunQuestion]) -> list[DryRunVerdict]:
    """Return the server's verdict on each object, in the same order.

    Raises ToolError; ForbiddenError if no object may be asked about.
    """
    catalog = KindCatalog(access)
    served = [catalog.find(one.body) for one in asked]
    pairs = zip(asked, served, strict=True)
    rights = [right for one, how in pairs if how is not None for right in how.rights(one.body)]
    access.wanted = replace(access.wanted, needs=tuple(dict.fromkeys(rights)))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(
            pool.map(lambda pair: _request_dry_run_verdict(access, *pair), zip(asked, served, strict=True))
        )
    refused = [one.refusal for one in found if one.refusal is not None]
    if refused and len(refused) == len(found):
        raise refused[0]
    return found


def _request_dry_run_verdict(
    access: Access, question: DryRunQuestion, served: ServedKind | None
) -> DryRunVerdict:
    if served is None:
        kind = f"{question.body['kind']} ({question.body['apiVersion']})"
        return DryRunVerdict(question, (ServerRefusal(NoVerdict.KIND, "", kind),))
    try:
        return DryRunVerdict(question, (), tuple(access.ask(served.path(question.body), question.body)))
    except ApiRefusedError as error:
        if error.status in (429, 503, 504):
            raise
        given = error if isinstance(error, ForbiddenError) else None
        return DryRunVerdict(question, tuple(parse_server_refusals(error)), (), given)


def report_dry_run_verdicts(cluster: ClusterFile, verdicts: Sequence[DryRunVerdict]) -> list[Finding]:
    """Return refusals and warnings at the lines that cause them, and one finding per reason for objects
    without a verdict."""
    found = [finding for one in verdicts for finding in _check_dry_run_verdict(cluster.name, one)]
    return [*found, *_report_objects_without_dry_run(cluster, verdicts)]


def _check_dry_run_verdict(cluster: str, verdict: DryRunVerdict) -> Iterator[Finding]:
    question = verdict.question
    for one in verdict.refusals:
        if isinstance(one.by, Refuser):
            who = f"policy {one.name}" if one.by is Refuser.POLICY else f"webhook {one.name}"
            by = {Refuser.SCHEMA: "the API server", Refuser.QUOTA: "quota"}.get(one.by, who)
            message = f"{by} of {cluster} refuses it: {one.words}"
            yield _build_dry_run_finding(cluster, _RULES[one.by], question, one.path, message, _HELPS[one.by])
    for text in verdict.warnings:
        message = f"the API server of {cluster} warns: {' '.join(text.split())}"
        help = "Change what it warns of before a later version refuses it."
        yield _build_dry_run_finding(cluster, SERVER_ADVICE, question, (), message, help)


def _build_dry_run_finding(
    cluster: str, rule: Rule, question: DryRunQuestion, path: FieldPath, message: str, help: str
) -> Finding:
    ref = ref_of(question.body)
    where = question.file.tracer(question.index, path or ("metadata", "name")).where
    return Finding(rule, where, message, help, str(ref), format_path(path), clusters=(cluster,))


def _report_objects_without_dry_run(
    cluster: ClusterFile, verdicts: Sequence[DryRunVerdict]
) -> Iterator[Finding]:
    reasons: dict[tuple[NoVerdict, str], list[DryRunVerdict]] = {}
    for verdict in verdicts:
        for one in verdict.refusals:
            if isinstance(one.by, NoVerdict):
                name = one.name if one.by is not NoVerdict.RIGHTS else one.name.partition(" in namespace ")[0]
                reasons.setdefault((one.by, name), []).append(verdict)
    for (by, name), those in reasons.items():
        count = f"{len(those)} object{'' if len(those) == 1 else 's'}"
        words, help, is_bad = _explain_missing_dry_run_verdict(by, name)
        given = next((one.refusal.help for one in those if one.refusal is not None), None)
        message = (
            f"{cluster.name} was not asked about {count}: {words} (first {ref_of(those[0].question.body)})"
        )
        yield Finding(
            SERVER_UNASKED,
            _locate_missing_dry_run_verdict(cluster, by, those[0]),
            message,
            given or help,
            clusters=(cluster.name,),
            level=WARNING if is_bad else None,
        )


def _explain_missing_dry_run_verdict(by: NoVerdict, name: str) -> tuple[str, str, bool]:
    """Return words, help, and whether a sync would fail for the same reason."""
    if by is NoVerdict.NAMESPACE:
        return f"namespace {name} is not there yet", "Sync the team first, then ask again.", False
    if by is NoVerdict.KIND:
        return f"it does not serve {name or 'their kind'}", "Install what serves it.", True
    if by is NoVerdict.RIGHTS:
        return f"you may not {name}", "Ask for a role that allows it.", False
    if by is NoVerdict.UNREACHABLE:
        return f"webhook {name} does not answer", "Look at the pods behind it: a sync would fail, too.", True
    if by is NoVerdict.DRY_RUN:
        return f"webhook {name} does not support dry runs", "Its verdict comes with the sync.", False
    words = "their runtime is not there yet, so webhooks have not judged them; schemas and policies have"
    return words, "Its verdict comes with the sync, or once the runtime is on the cluster.", False


def _locate_missing_dry_run_verdict(cluster: ClusterFile, by: NoVerdict, verdict: DryRunVerdict) -> Location:
    if by is NoVerdict.NAMESPACE:
        team = (verdict.question.body["metadata"].get("labels") or {}).get("gangplan.dev/team", "")
        if team in cluster.spec.teams:
            return cluster.document.where(("teams", team), key=True)
    if by is NoVerdict.KIND:
        return cluster.document.where(("versions",), key=True)
    return cluster.document.where(("kind",), key=True)
