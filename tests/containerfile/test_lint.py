"""`gangplan images lint`: findings, near misses without a finding, and the places of findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.containerfile.lint import lint_containerfile
from gangplan.errors import Exit
from gangplan.spec.catalog import Image
from tests.workspaces import gangplan, stock

DIGEST = "@sha256:" + "0" * 64
OPENMPI = Image.model_validate(
    {
        "repository": "r.example.com/a",
        "digest": "sha256:" + "0" * 64,
        "mpi": {"implementation": "OpenMPI", "version": "4.1.8"},
    }
)
# What people write to get mpirun going at any price: sshd as root, with keys and a password in the image.
ROOT_SSH = """\
FROM ubuntu:22.04
ENV OMPI_ALLOW_RUN_AS_ROOT=1
ARG HF_TOKEN=abcdefgh1234
RUN apt-get update && apt-get install -y openmpi-bin openssh-server openssh-client sudo
RUN mkdir /var/run/sshd && echo 'root:secret' | chpasswd
RUN sed -i 's/#PermitRootLogin prohibit-password/PermitRootLogin yes/' /etc/ssh/sshd_config
RUN ssh-keygen -t rsa -f /root/.ssh/id_rsa -N '' && cat /root/.ssh/id_rsa.pub >> /root/.ssh/authorized_keys
RUN chmod -R 777 /workspace
RUN curl -s https://example.com/install.sh | bash
EXPOSE 22
CMD /usr/sbin/sshd -D
"""


# Lets the client connect, so that only the server is checked.
SSH = "&& echo StrictHostKeyChecking no"


def found(text: str, image: Image | None = None, **files: str) -> list[tuple[str, int]]:
    """Return the rule (without its prefix) and line of each finding."""
    names = {name.replace("__", "."): body for name, body in files.items()}
    every = lint_containerfile("Containerfile", text, names.get, image, "openmpi")
    return [(str(one.rule).removeprefix("containerfile-"), one.where.line) for one in every]


def of(line: str, image: Image | None = None) -> list[str]:
    """Return the rules that one more line breaks in an image that is right without it."""
    return [rule for rule, _ in found(f"FROM debian{DIGEST}\n{line}\nUSER 1000\n", image)]


def test_sshd_as_root_has_one_finding_for_each_defect() -> None:
    assert sorted(found(ROOT_SSH)) == [
        ("base-open", 1),
        ("host-keys", 4),
        ("key", 4),
        ("key", 7),
        ("password", 5),
        ("privilege", 4),
        ("root", 1),
        ("root-login", 6),
        ("run-as-root", 2),
        ("secret", 3),
        ("shell-form", 11),
        ("ssh-port", 10),
        ("unchecked", 9),
        ("writable", 8),
    ]


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("USER root\nUSER mpiuser", []),
        ("USER 0:0", []),  # the last USER counts
        ("RUN ssh-keygen -A", ["key"]),
        (f"RUN apt-get install -y openssh-server {SSH}", ["key"]),
        (f"RUN apt install -y openssh-server && rm -f /etc/ssh/ssh_host_* {SSH}", []),
        (f"RUN apt install -y openssh-server && rm -f /etc/ssh/* {SSH}", []),
        (
            f"RUN apt-get install -y openssh-server {SSH}\nRUN rm /etc/ssh/ssh_host_*",
            ["key"],
        ),  # in a layer below
        (f"RUN dnf install -y openssh-server {SSH}", []),
        (f"RUN apt-get update; echo openssh-server {SSH}", []),
        ("COPY keys/id_ed25519 /home/mpiuser/.ssh/", ["key"]),
        ("COPY known_hosts /etc/ssh/", []),
        ("COPY --from=builder /opt/id_rsa /x", []),
        ("RUN useradd -m -u 1000 mpiuser", []),
        ("RUN useradd -p secret mpiuser", ["password"]),
        ("RUN passwd -d mpiuser", []),
        ("RUN passwd -l root", []),
        ("RUN echo 'PasswordAuthentication no' >> /etc/ssh/sshd_config", []),
        ("RUN echo 'PermitEmptyPasswords yes' >> /etc/ssh/sshd_config", ["password"]),
        ("RUN echo 'Port 22' >> /etc/ssh/sshd_config", ["ssh-port"]),
        ("RUN echo 'Port 2222' >> /etc/ssh/sshd_config", []),
        ("EXPOSE 2222", []),
        ("EXPOSE 8022", []),
        ('CMD ["/usr/sbin/sshd", "-D"]', []),
        ("ENTRYPOINT exec python train.py", ["shell-form"]),
        ("ENTRYPOINT python a.py\nENTRYPOINT []", []),
        ("ENV PASSWORD_FILE=/run/secrets/x", []),
        ("ENV TOKENIZERS_PARALLELISM=false", []),
        ("ENV WANDB_API_KEY=0123456789abcdef", ["secret"]),
        ("ARG HF_TOKEN", []),
        ("RUN git clone https://ann:hunter22@git.example.com/x", ["secret"]),
        ("RUN git clone https://git.example.com/x", []),
        ("RUN chmod 755 /opt/x && chmod +x /opt/y", []),
        ("RUN chmod a+w /opt", ["writable"]),
        ("RUN chmod 4755 /opt/x", ["privilege"]),
        ("RUN echo 'pseudo sudoku'", []),
        ("RUN curl -fsSL https://example.com/a.tgz -o a.tgz && sha256sum -c a.sum", []),
        ('RUN bash -c "$(curl -fsSL https://example.com/i.sh)"', ["unchecked"]),
        ("ADD https://example.com/a.tgz /opt/", ["unchecked"]),
        ("ADD --checksum=sha256:00 https://example.com/a.tgz /opt/", []),
        ("RUN mpirun --allow-run-as-root true", ["run-as-root"]),
        ("RUN <<EOF\nssh-keygen -A\nEOF", ["key"]),
        (
            "RUN apt-get install -y \\\n  # the server\n  mpich libmpich-dev openssh-server \\\n  openssh-client && rm /etc/ssh/ssh_host_* && echo StrictHostKeyChecking no",
            [],
        ),
        ("RUN true \\\n\n && true", []),
        ("RUN true \\\n  \n# x\n\n && ssh-keygen -A", ["key"]),
        ("RUN true \\\n\nUSER 0", []),  # the builder reads USER as a part of RUN
        ("RUN apt-get install -y openmpi-bin", ["no-ssh"]),
        ("RNU true", ["unreadable"]),
        ("RUN <<EOF\ntrue", ["unreadable"]),
        ("RUN <<EOF\ntrue\n  EOF\nssh-keygen -A\nEOF", ["key"]),  # only <<- takes tabs before the end
        ("RUN <<-EOF\n\ttrue\n\tEOF\nUSER 1000", []),
        ("RUN <<1st cat && 3<<'end-2' cat\na\n1st\nend-2", []),
        ("RUN 3<<'end-2' cat\nssh-keygen -A\nend-2", ["key"]),
        ("RUN grep x <<<word", []),
        ("RUN echo $((1<<N)) 'a <<EOF b' \"say <<EOF \" it\\'s <<EOF\nEOF", []),
        ("LABEL how=<<EOF", []),
        ("RUN echo \\\\\nRUN ssh-keygen -A", ["key"]),  # two backslashes do not continue a line
        (
            r"RUN apt install openmpi-bin openssh-client openssh-server && rm /etc/ssh/ssh_host_* && sed -i 's/#\(.*StrictHostKeyChecking \).*/ \1no/' f",
            [],
        ),
    ],
)
def test_each_line_breaks_the_listed_rules(line: str, rules: list[str]) -> None:
    assert of(line) == rules


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("ARG OMPI_VERSION=5.0.6\nRUN curl -LO https://example.com/openmpi-${OMPI_VERSION}.tar.gz && apt-get install openssh-server openssh-client openmpi-bin; rm /etc/ssh/ssh_host_*; echo StrictHostKeyChecking no", ["mpi-version"]),
        ("RUN tar xf openmpi-4.1.6.tar.gz; yum install openssh-server openssh-clients; echo StrictHostKeyChecking no", []),
        ("RUN tar xf openmpi-5.0.1.tar.gz; yum install openssh-server openssh-clients; echo StrictHostKeyChecking no", ["mpi-version"]),
        ("RUN useradd --uid 1001 mpiuser", ["uid", "no-mpi"]),
        ("RUN useradd --uid 1000 mpiuser", ["no-mpi"]),
        ("RUN ./configure --prefix=/opt/ompi && make install", []),
        ("COPY --from=builder /opt/x /opt/x", []),
    ],
)  # fmt: skip
def test_each_line_that_contradicts_the_catalog_is_reported(line: str, rules: list[str]) -> None:
    assert of(line, OPENMPI) == rules


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("sed -i 's/#PermitRootLogin prohibit-password/PermitRootLogin no/' /etc/ssh/sshd_config", []),
        (
            "sed -i 's/#PermitRootLogin prohibit-password/PermitRootLogin yes/' /etc/ssh/sshd_config",
            ["root-login"],
        ),
        ('sed -i "s|^PasswordAuthentication yes|PasswordAuthentication no|g" /etc/ssh/sshd_config', []),
        ("sed -i 's#^PermitRootLogin no#PermitRootLogin yes#' /etc/ssh/sshd_config", ["root-login"]),
        (
            "sed -i -e s,a,b, -e 's,PermitEmptyPasswords yes,PermitEmptyPasswords no,' /etc/ssh/sshd_config",
            [],
        ),
        (
            "sed -i -e 's/PermitRootLogin yes/x/' \\\n  -e 's/PermitEmptyPasswords no/PermitEmptyPasswords yes/' f",
            ["password"],
        ),
        ("sed -i -e 's/a/b/' \\\n  --expression='s/PermitRootLogin yes/PermitRootLogin no/' f", []),
        ("sed -i '/PermitRootLogin yes/d; s/x/y/' /etc/ssh/sshd_config", []),
        ("sed -i '/PermitRootLogin/c\\PermitRootLogin yes' /etc/ssh/sshd_config", ["root-login"]),
        ("sed -i '$a PermitRootLogin yes' /etc/ssh/sshd_config", ["root-login"]),
        ('sed -i "\\$a PermitRootLogin yes" /etc/ssh/sshd_config', ["root-login"]),
        ("sed -i 's/^PermitRootLogin yes/#PermitRootLogin yes/' /etc/ssh/sshd_config", []),
        ("sed -i 's/Port 22/Port 2222/' /etc/ssh/sshd_config", []),
        ("sed -i 's/Port 2222/Port 22/' /etc/ssh/sshd_config", ["ssh-port"]),
        ("perl -pi -e 's/PermitRootLogin yes/PermitRootLogin no/' /etc/ssh/sshd_config", []),
        ("bash -c \"sed -i 's/PermitRootLogin yes/PermitRootLogin no/' /etc/ssh/sshd_config\"", []),
        (
            "bash -c \"sed -i 's/PermitRootLogin no/PermitRootLogin yes/' /etc/ssh/sshd_config\"",
            ["root-login"],
        ),
        ('["sed", "-i", "s/PermitRootLogin yes/PermitRootLogin no/", "/etc/ssh/sshd_config"]', []),
        (
            '["sed", "-i", "s/PermitRootLogin no/PermitRootLogin yes/", "/etc/ssh/sshd_config"]',
            ["root-login"],
        ),
        ("echo '# PermitRootLogin yes would be bad' >> /etc/ssh/sshd_config", []),
        ("printf '# open\\nPermitRootLogin yes\\n' >> /etc/ssh/sshd_config", ["root-login"]),
        ("true # PermitRootLogin yes", []),
        ("! grep -q 'PermitRootLogin yes' /etc/ssh/sshd_config", []),
        ("grep -q 'PermitRootLogin yes' f || echo 'PermitRootLogin yes' >> f", ["root-login"]),
        ("sshd -T | grep -i 'permitrootlogin yes' && exit 1", []),
        ("sshd -t -o PermitRootLogin=yes", []),
        ("if grep -q x f; then echo PasswordAuthentication yes >> f; fi", ["password"]),
        ("<<EOF\ngrep -q 'PermitRootLogin yes' f\necho PermitRootLogin yes >> f\nEOF", ["root-login"]),
        ("cat <<EOF >/etc/ssh/sshd_config\n# don't PermitRootLogin yes\nPermitRootLogin no\nEOF", []),
        ("cat <<EOF >/etc/ssh/sshd_config\n# don't\nPermitRootLogin yes\nEOF", ["root-login"]),
    ],
)
def test_only_what_a_command_writes_into_a_configuration_of_ssh_counts(line: str, rules: list[str]) -> None:
    assert of(f"RUN {line}") == rules


TOKEN = "abcdefghijklmnopqrstuvwx1"


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("RUN echo '-----BEGIN OPENSSH PRIVATE KEY-----' > /home/m/.ssh/id", ["key"]),
        ("COPY <<EOF /etc/tls/x\n-----BEGIN PRIVATE KEY-----\nEOF", ["key"]),
        ("RUN ! grep -r 'BEGIN OPENSSH PRIVATE KEY-----' /opt", []),
        ("RUN ! grep -r -- '-----BEGIN PRIVATE KEY-----' /opt", []),
        ("COPY .ssh/ /home/m/.ssh/", ["key"]),
        ("COPY --chown=1000:0 home/.ssh /home/m/", ["key"]),
        ("COPY keys /home/m/.ssh", ["key"]),
        ("COPY keys/ /home/m/.ssh/", ["key"]),
        ("COPY deploy /home/m/.ssh/deploy", ["key"]),
        ("COPY ssh_config /home/m/.ssh/config", []),
        ("COPY known_hosts config mpi.pub /home/m/.ssh/", []),
        ("RUN openssl genpkey -algorithm ed25519 -out /home/m/key", ["key"]),
        ("RUN openssl genrsa -out /x 4096", ["key"]),
        ("RUN openssl req -x509 -newkey rsa:4096 -nodes -keyout /x", ["key"]),
        ("RUN openssl req -in /x -noout && openssl x509 -in /y", []),
        (f"ENV X=hf_{TOKEN}", ["secret"]),
        (f"ENV HF_TOKEN=hf_{TOKEN}", ["secret"]),
        (f"ARG X=glpat-{TOKEN}", ["secret"]),
        (f"LABEL x=hf_{TOKEN}", ["secret"]),
        (f"RUN train --key sk-{TOKEN}", ["secret"]),
        ("ENV X=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2ln", ["secret"]),
        ("ENV PIP_INDEX_URL=https://ann:hunter22@pip.example.com/simple", ["secret"]),
        ("ENV PIP_INDEX_URL=https://pip.example.com/simple HF_HOME=/hf_home", []),
    ],
)
def test_keys_and_tokens_are_found_wherever_they_are_written(line: str, rules: list[str]) -> None:
    assert of(line) == rules


@pytest.mark.parametrize(
    ("line", "is_root"),
    [
        ("USER +0", True),
        ("USER 00:1000", True),
        ('USER "0"', True),
        ("USER :1000", True),
        ("USER 1000:0", False),
        ("USER 10", False),
        ("RUN useradd -u 0 -o toor\nUSER toor", True),
        ("RUN useradd -mou0 toor\nUSER toor:mpi", True),
        ("RUN useradd --create-home \\\n  --non-unique --uid=0 -g mpi toor\nUSER toor", True),
        ("RUN useradd --create-home \\\n  --non-unique --uid=0 -g mpi toor\nUSER mpi", False),
        ("RUN id mpi || sudo usermod -o -u 0 mpi\nUSER mpi", True),
        ("RUN echo 'toor:x:0:0::/root:/bin/sh' >> /etc/passwd\nUSER toor", True),
        ("RUN echo 'mpi:x:1000:0::/home/mpi:/bin/sh' >> /etc/passwd\nUSER mpi", False),
        ("RUN useradd -u 0 -o toor; useradd -u 1000 mpi\nUSER mpi", False),
        ("RUN useradd -g 0 -u 1000 mpi\nUSER mpi", False),
    ],
)
def test_root_is_found_under_any_name_and_number(line: str, is_root: bool) -> None:
    rules = [rule for rule, _ in found(f"FROM debian{DIGEST}\n{line}\n")]
    assert ("root" in rules) == is_root


def test_a_finding_quotes_what_sed_writes_at_its_place() -> None:
    line = "RUN sed -i 's/#PermitRootLogin prohibit-password/PermitRootLogin yes/' /etc/ssh/sshd_config"
    text = f"FROM debian{DIGEST}\n{line}\nUSER 1000\n"
    (one,) = lint_containerfile("Containerfile", text, lambda _: None, None, "openmpi")
    assert one.message == "PermitRootLogin yes is written into a configuration"
    assert one.where.column == line.index("PermitRootLogin yes") + 1


@pytest.mark.parametrize(
    ("base", "is_bare"),
    [
        ("registry.access.example.com/ubi9/ubi-minimal:9.6", True),
        ("registry.example.com/ubi9", True),
        ("nvidia/cuda:12.6.0-runtime-ubuntu22.04", True),
        ("python:3.12-slim", True),
        ("registry.example.com/training/openmpi:1", False),
        ("nvcr.example.com/nvidia/pytorch:25.01-py3", False),
        ("mambaorg/micromamba:2", False),
    ],
)
def test_an_image_without_the_mpi_of_the_catalog_is_reported(base: str, is_bare: bool) -> None:
    """Only a base that is known to have none is judged: others are somebody's own, and may have one."""
    rules = [rule for rule, _ in found(f"FROM {base}{DIGEST}\nUSER 1000\n", OPENMPI)]
    assert rules == (["no-mpi"] if is_bare else [])
    assert found(f"FROM {base}{DIGEST}\nUSER 1000\n") == []


@pytest.mark.parametrize(
    ("base", "is_fit"),
    [
        ("debian", False),
        ("registry.example.com:5000/mirror/ubuntu:24.04", False),
        ("python:3.12-slim", False),
        ("nvidia/cuda:12.6.0-runtime-ubuntu22.04", False),
        ("nvidia/cuda:12.6.0-runtime-ubi9", True),
        ("registry.access.example.com/ubi9/ubi-minimal:9.6", True),
        ("registry.example.com/base/debian-fips:13", True),
        ("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", False),
        ("registry.example.com/mirror/mpioperator/openmpi:v0.6.0", False),
        ("registry.example.com/training/pytorch:2.9", True),
    ],
)
def test_an_image_for_fips_needs_a_base_for_it(base: str, is_fit: bool) -> None:
    fit = OPENMPI.model_copy(update={"fips": True, "mpi": None})
    text = f"FROM {base}{DIGEST} AS base\nFROM base\nUSER 1000\n"
    assert found(text, fit) == ([] if is_fit else [("not-fips", 2)])
    assert found(text) == []
    assert found(f"ARG BASE\n{text.replace(base + DIGEST, '$BASE')}", fit) == []


@pytest.mark.parametrize(
    ("arguments", "base", "says"),
    [
        ("ARG BASE=debian:12", "$BASE", "debian:12 has no digest"),
        ("ARG OS=debian TAG='12'\nARG BASE=$OS:${TAG}", "${BASE}", "debian:12 has no digest"),
        ("ARG BASE", "${BASE:-debian:12}", "debian:12 has no digest"),
        ("ARG BASE", "${BASE}", ""),
        (f"ARG BASE=debian:12{DIGEST}", "${BASE}", ""),
        ("ARG TAG", "debian:${TAG}", ""),
    ],
)
def test_a_base_from_variables_is_judged_by_their_defaults(arguments: str, base: str, says: str) -> None:
    text = f"{arguments}\nFROM {base}\nUSER 1000\n"
    every = lint_containerfile("Containerfile", text, lambda _: None, None, "")
    assert [one.message for one in every] == ([says] if says else [])


def test_an_instruction_before_the_first_base_is_unreadable() -> None:
    assert found("ARG A=1\nRUN true\nFROM debian\nUSER 1000\n") == [("unreadable", 2)]


def test_only_the_stages_of_the_final_image_count() -> None:
    """A stage may build on another."""
    text = f"FROM golang{DIGEST} AS build\nRUN ssh-keygen -A\nFROM debian{DIGEST} AS base\nUSER 1000\nFROM base\nRUN true\n"
    assert found(text) == []
    assert found(text.replace("FROM base", "FROM build")) == [("root", 5), ("key", 2)]
    assert found("ARG BASE\nFROM ${BASE}\nRUN true\n") == []
    assert found(f"ARG BASE=debian{DIGEST}\nFROM ${{BASE}}\n") == [("root", 2)]


def test_findings_in_copied_configurations_are_at_their_lines(tmp_path: Path) -> None:
    root = stock(tmp_path / "workspace")
    folder = root / "images/openmpi"
    folder.mkdir(parents=True)
    (folder / "Containerfile").write_text(f"FROM debian{DIGEST}\nCOPY sshd_config /etc/ssh/\nUSER 1000\n")
    (folder / "sshd_config").write_text("# Port 22\nPort 22\nPermitRootLogin prohibit-password\nUsePAM yes\n")
    outcome = gangplan("images", "lint", "-C", root)
    assert outcome.code == Exit.FINDINGS
    for place in ("sshd_config:2:1", "sshd_config:3:1", "sshd_config:4:1", "sshd_config:1:1"):
        assert f"images/openmpi/{place}: error" in outcome.err
    outcome = gangplan("images", "lint", "-C", root, "--format", "sarif")
    assert json.loads(outcome.out)["runs"][0]["results"]


def test_a_configuration_that_is_written_as_a_here_document_is_read() -> None:
    begin = f"FROM debian{DIGEST}\nUSER 1000\n"
    text = 'COPY <<-"END" /etc/ssh/sshd_config\n\tPort 22\n\n\tPermitRootLogin yes\n\tEND\n'
    assert sorted(found(begin + text)) == [("root-login", 6), ("ssh-port", 4), ("sshd", 3)]
    both = "COPY <<sshd_config <<notes.txt /etc/ssh/\nPort 2222\nStrictModes no\nsshd_config\n# Port 22\nnotes.txt\n"
    assert found(begin + both) == []


def test_files_to_check_are_found_or_the_command_fails(tmp_path: Path) -> None:
    root = stock(tmp_path / "workspace")
    assert gangplan("images", "lint", "-C", root).code == Exit.INPUT, "nothing checked is not a success"
    assert gangplan("images", "lint", root / "no", "-C", root).code == Exit.INPUT
    path = tmp_path / "Dockerfile.gpu"
    path.write_text(f"FROM debian{DIGEST}\nUSER 1000\n")
    assert gangplan("images", "lint", path, "-C", root).code == Exit.CLEAN
    assert gangplan("images", "lint", path, "-C", root, "--image", "opnmpi").code == Exit.INPUT
    path.write_text("FROM debian\nUSER 1000\n")
    assert gangplan("images", "lint", path, "-C", root).code == Exit.CLEAN
    assert gangplan("images", "lint", path, "-C", root, "--fail-on", "warning").code == Exit.FINDINGS
    path.write_bytes(b"\0" * 3_000_000)
    assert gangplan("images", "lint", path, "-C", root).code == Exit.INPUT


def test_the_images_of_this_project_pass() -> None:
    folder = Path(__file__).parents[2] / "images"
    outcome = gangplan("images", "lint", folder, "--fail-on", "warning")
    assert outcome.code == Exit.CLEAN, outcome.err


def test_a_base_that_is_an_option_is_unreadable() -> None:
    assert found("FROM --platform=linux/amd64\nUSER 1000\n") == [("unreadable", 1)]


WORDS = st.sampled_from(
    ["FROM a", "FROM $X AS b", "RUN <<EOF", "EOF", "\\", "USER", "USER 0", "ENV A=", "ENV A", 'CMD ["x"', "COPY a", "COPY", "# x", "ARG", "EXPOSE 22/", "RUN \\", "é\u2028", "ONBUILD USER 0"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.lists(WORDS, max_size=12).map("\n".join), st.text(max_size=200)))
def test_any_text_has_findings_with_places(text: str) -> None:
    for one in lint_containerfile("Containerfile", text, lambda _: text, OPENMPI, "openmpi"):
        assert one.where.line >= 1
        assert one.where.column >= 1


# A line of requirements.in, and whether it names the installed version.
REQUIREMENTS = {
    "numpy==2.2.6": True,
    "numpy == 2.2.6 ; python_version < '3.12'": True,
    "torch[cuda]==2.7.0+cu128 --hash=sha256:" + "0" * 64: True,
    "a===1": True,
    "numpy": False,
    "numpy>=2": False,
    "numpy~=2.2": False,
    "numpy==2.*": False,
    "numpy==2.2,!=2.2.3": False,
    "numpy==$VERSION": False,
    "a @ https://example.com/a-1-py3-none-any.whl#sha256=" + "0" * 64: True,
    "a @ https://example.com/a-1-py3-none-any.whl": False,
    "a @ git+https://example.com/a.git@" + "0" * 40: True,
    "git+https://example.com/a.git@main": False,
    "-e .": False,
    "--index-url https://example.com/simple": True,
    "-r base.txt": True,
    "# numpy": True,
}


@pytest.mark.parametrize("line", REQUIREMENTS)
def test_requirements_without_a_version_are_reported(line: str) -> None:
    text = f"FROM debian{DIGEST}\nCOPY requirements.txt /tmp/\nUSER 1000\n"
    said = found(text, requirements__txt=f"mpi4py==4.0.3\n\n{line}\n")
    assert said == ([] if REQUIREMENTS[line] else [("requirement-open", 3)])


def test_the_source_of_compiled_requirements_is_read_too() -> None:
    text = f"FROM debian{DIGEST}\nCOPY lists/requirements-gpu.txt /tmp/\nUSER 1000\n"
    files = {
        "lists/requirements-gpu__in": "torch  # newest\n",
        "lists/requirements-gpu__txt": "torch==2.7.0 \\\n    --hash=sha256:1\n",
    }
    assert found(text, **files) == [("requirement-open", 1)]
    assert found(text) == []
