"""Laws about commands and imported CRDs."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from pydantic_core import PydanticCustomError

from gangplan.errors import UserError
from gangplan.pipeline.crds import check_crd_file, read_crds_for_schema_import
from gangplan.plan.launchers import MPI_LAUNCHERS, UnreadableError, find_launchers
from gangplan.rules.commands import COMMAND_ONE_WORD, COMMAND_RENDEZVOUS
from gangplan.rules.model import Severity
from gangplan.rules.settings import GPUS_HIDDEN, GPUS_UNASKED, INTERFACE_UNKNOWN, RANK_CONSTANT
from gangplan.source import load_objects
from gangplan.spec.command import parse_spec_command
from tests import workspaces
from tests.fuzz.base import Texts
from tests.fuzz.texts import TESTS
from tests.launchers import HARMLESS, IMAGES
from tests.plan.asking import decided
from tests.plan.test_typed import proposed
from tests.policy.test_import import CRD


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="gangplan-fuzz-"))


@cache
def _root() -> Path:
    return workspaces.stock(_folder())


# Commands: an image, then the words, one per line, or one line.


def _command_corpus() -> list[bytes]:
    lines = (TESTS / "plan/typed.txt").read_text(encoding="utf-8").splitlines()
    typed = [line.split(" | ", 2) for line in lines if line.count(" | ") >= 2 and not line.startswith("#")]
    whole = [f"{image}\n{command}".encode() for image, _, command in typed]
    return whole + [f"{image}\n{chr(10).join(command.split())}".encode() for image, _, command in typed]


COMMAND_WORDS = [
    *(
        b"mpirun ",
        b"torchrun ",
        b"srun ",
        b"bash\n-c\n",
        b"env ",
        b"-np ",
        b"-np=",
        b"--",
        b":",
        b"$(",
        b"`",
        b"<<E\n",
    ),
    *(
        b"${",
        b"&&",
        b";",
        b"|",
        b"(",
        b")",
        b"case x in ",
        b"for ",
        b"do ",
        b"done",
        b"eval ",
        b"exec ",
        b"timeout ",
        b"\\",
    ),
    *(
        b"{ranks}",
        b"{{",
        b"$'",
        b"accelerate launch ",
        b"numactl ",
        b"conda run ",
        b"taskset ",
        b"-o\n",
        b"#",
        b"\n",
        b" ",
    ),
    *(" ".join(option).encode() + b" " for options in HARMLESS.values() for option in options),
]

SETTINGS = (COMMAND_RENDEZVOUS, GPUS_HIDDEN, GPUS_UNASKED, INTERFACE_UNKNOWN, RANK_CONSTANT)


def command_law(data: bytes) -> None:
    """Check that a command is refused with a message or decided, and that proposed commands are right.

    What is wrong with a proposed command must have been wrong with the command itself, and named. Only what
    one word with spaces sets is not known before it is split.
    """
    first, _, rest = data.decode("utf-8", "replace").partition("\n")
    image = first if first in [*IMAGES.values(), "pytorch", "deepspeed", "horovod"] else "openmpi"
    for value in (rest.split("\n"), rest):
        try:
            words = parse_spec_command(value)
        except PydanticCustomError:
            continue
        for family in (*MPI_LAUNCHERS, None):
            try:
                find_launchers(words, family)
            except UnreadableError as refused:
                assert str(refused)
        problems = decided(_root(), image, words[:128]).problems
        named = {(one.rule, one.message) for one in problems}
        for problem in problems:
            assert problem.message, problem
            right = proposed(problem.help)
            if right is not None:
                again = [
                    one for one in decided(_root(), image, right).problems if one.severity is Severity.ERROR
                ]
                if problem.rule is COMMAND_ONE_WORD:
                    again = [one for one in again if one.rule not in SETTINGS]
                assert {(one.rule, one.message) for one in again} <= named, (problem, again)


# CRDs

RULE = """\
        x-kubernetes-validations:
        - {rule: "!has(self.spec.size) || self.spec.size > 0", message: size}
"""
CRD_WORDS = [
    *(b"items:\n- ", b"kind: List\n", b"kind: CustomResourceDefinition\n", b"versions: ", b"schema: ", b"type: ", b"array"),
    *(b"properties: ", b"items: ", b"additionalProperties: ", b"x-kubernetes-int-or-string: true\n", b"default: ", b"enum: ["),
    *(b"x-kubernetes-list-type: map\n", b"rule: ", b"self", b"oldSelf", b"optionalOldSelf: true\n", b"pattern: '", b"null"),
    *(b"x-kubernetes-preserve-unknown-fields: true\n", b"maxLength: ", b"format: ", b"{}", b"[]", b"---\n", b"&a ", b"*a"),
]  # fmt: skip


def crd_law(data: bytes) -> None:
    """Check that a file with CRDs is accepted, or refused with a message."""
    file = _folder() / "crd.yaml"
    file.write_bytes(data)
    try:
        for crd in read_crds_for_schema_import(file):
            for minor in (31, 34):
                check_crd_file(file, crd, minor)
    except UserError as refused:
        assert refused.message
        assert refused.help
    else:
        assert load_objects(data)


COMMANDS = Texts(command_law, _command_corpus, COMMAND_WORDS)
CRDS = Texts(crd_law, lambda: [CRD.encode(), (CRD + RULE).encode()], CRD_WORDS)
