"""docs/cli.md: every command with its flags, generated from the tree of commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
import typer.main

from gangplan.commands.new_flags import build_flag_parameters
from gangplan.commands.tree import COMMAND_MODULES, add_all_commands

_HEAD = """\
# Commands

Generated from the command line by `make docs`. `gangplan COMMAND --help` prints the same for one command; exit codes
are in [exit-codes.md](exit-codes.md).

```sh
gangplan init DIR                 # make a new workspace: questions, or --team NAME --cluster NAME, or --sample
gangplan new KIND NAME            # write a job, sweep, team, cluster, image or waiver from flags, or ask for it
gangplan clone FILE NEWNAME        # copy a spec with its comments; --set key=value changes fields of the copy
gangplan edit FILE --set key=value # set and remove fields of a file, nothing else in it changes
gangplan import KIND FILE...      # write specs from jobs of other systems, and say what became of each field
gangplan list WHAT                # specs, runs, images, claims, pools, queues, teams, ...; --team: what it may use
gangplan render [FILE...]         # write rendered/; --check, --cluster, --team, --output DIR|-
gangplan validate [FILE...]       # check everything, write nothing; --format sarif=FILE ..., --fail-on
gangplan plan [FILE...]           # pods, ranks, slots, totals, the final command
gangplan plan --base main         # what a pull request does: runs, GPU-hours, new findings; --format markdown
gangplan provenance -o DIR         # what rendered/ was made of, as in-toto statements; verify FILE...: compare
gangplan diff --base main         # which objects change, by meaning: image, resources, quota, network, ...
gangplan plan --network [FILE...] # who may talk to whom, and by which policy
gangplan plan --hostfile [FILE...] # the host file that the launcher of each run will find
gangplan simulate --cluster NAME  # simulate the queue: waits, preemptions, utilisation per team
gangplan run SPEC                 # try a small copy of the job on this machine: same command and launch, a few ranks
gangplan why SPEC                 # where each value comes from
gangplan why FILE:LINE            # what produced a line of rendered/, or what a line of a spec became
gangplan explain RULE             # why a rule exists and how to follow it, with an example; also FIELD, KIND, PACK
gangplan validate --fix [--diff]  # apply the safe automatic fixes and show them; --diff only shows them
gangplan status --team NAME       # runs on the clusters and in Git: state, place in the queue, why they wait; read-only
gangplan logs RUN|SPEC            # logs of a run's launcher or workers; --worker N, --follow, --previous
gangplan cost --by team           # what runs cost at most, and with --durations what they are expected to cost
gangplan images list|check         # what a team may use, and who uses it; the catalog against itself and the specs
gangplan images pin                # look up what tags mean now, and write the digests; --check shows what moved
gangplan images inspect IMAGE      # what is inside an image or OCI layout, and where the catalog says something else
gangplan images lint              # Containerfiles against what training images must have, and against the catalog
gangplan diagnose FILE...         # why a run failed or does not start, and what helps; --server --run RUN asks the cluster
gangplan repeat --write           # raise the run numbers of jobs whose schedule is due, where commits start runs
gangplan retire                   # what is over, and the change that ends it or removes its record
gangplan validate --server        # also ask the API servers, by dry run: policies, webhooks and quotas that are there
gangplan validate --base main     # what a sync from that revision to this one would reject or leave behind
gangplan cluster check            # versions per cluster; --as trainer=2.3,kueue=0.19: what an upgrade would change
gangplan cluster quota            # each team's quota per pool; --usage FILE: and how much of it is used
gangplan cluster snapshot NAME    # what the cluster has now, by your kubeconfig, and where its file differs; read-only
gangplan cluster kueue-config     # the configuration that Kueue's manager needs
gangplan validate --shard 3/8     # check a part on each of several machines; report merge FILE...: the whole
gangplan policy list|test|export  # policies per cluster; run their test cases; print them as objects
gangplan schema import FILE...    # check against the CRDs of your own clusters
gangplan schema print spec        # JSON Schema for editors (team, cluster, catalog, waiver too)
gangplan cache info|clear         # what earlier commands found out; --no-cache leaves it alone
gangplan gitops argocd|flux       # sync manifests; github, gitlab, tekton, jenkins, codeowners: recipes of CI, owners
gangplan gitops write|check       # all of those that gangplan.yaml lists; are they fresh?
gangplan gitops sync NAME         # apply rendered/ to a cluster, where no Argo CD and no Flux does
gangplan pipeline tekton|kfp|katib # jobs that come after others as pipelines, a sweep as an Experiment
gangplan report comment FILE      # one comment on the pull request, kept up to date
gangplan tools list|install       # kustomize and kubeconform
```
"""


def render_cli_page() -> str:
    """Build the page: commands in the order of the help, flags in tables."""
    tree: Any = typer.main.get_command(add_all_commands(typer.Typer(add_completion=False)))
    parts = [_HEAD]
    for name in COMMAND_MODULES:
        command = tree.commands[name]
        if not command.hidden:
            parts += _render_command_sections(command, f"gangplan {name}")
    return "\n".join(parts)


def _render_command_sections(command: Any, path: str) -> Iterator[str]:
    """Yield the section of a command, or those of all commands in a group."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        for name, one in inner.items():
            yield from _render_command_sections(one, f"{path} {name}")
        return
    is_of_fields = path.startswith("gangplan new ") and not command.params
    params = build_flag_parameters(str(command.name)) if is_of_fields else command.params
    shown = [one for one in params if not getattr(one, "hidden", False)]
    arguments = [one for one in shown if not one.opts[0].startswith("-")]
    usage = " ".join([path, *map(_format_usage_argument, arguments), "[FLAGS]"])
    yield f"## {path}\n\n{_format_markdown_line(command.help)}\n\n```sh\n{usage}\n```\n"
    rows = [
        f"| {_format_flag_spellings(one)} | {_format_markdown_line(one.help)} |\n"
        for one in shown
        if one.help
    ]
    if rows:
        yield f"| flag | meaning |\n|---|---|\n{''.join(rows)}"


def _format_usage_argument(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    name = f"{name}..." if param.nargs == -1 else name
    return name if param.required else f"[{name}]"


def _format_flag_spellings(param: Any) -> str:
    """Return all spellings of a flag with its value, or the placeholder of an argument."""
    if not param.opts[0].startswith("-"):
        return f"`{_escape_table_cell(str(param.metavar or param.name.upper()))}`"
    takes = f" {param.metavar}" if param.metavar and not getattr(param, "is_flag", False) else ""
    spellings = [*param.opts, *param.secondary_opts]
    return ", ".join(f"`{one}{_escape_table_cell(takes)}`" for one in spellings)


def _format_markdown_line(text: str) -> str:
    # A Markdown renderer would take <team> for an HTML tag.
    return _escape_table_cell(re.sub(r"\s+", " ", text or "").strip()).replace("<", "\\<")


def _escape_table_cell(text: str) -> str:
    """Escape text inside a table, where a bar would end the cell."""
    return text.replace("|", "\\|")
