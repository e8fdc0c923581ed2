"""`gangplan images lint` of huge lines and numbers."""

from __future__ import annotations

import pytest

from tests.containerfile.test_lint import DIGEST, OPENMPI, found, of

# Texts, repeated, that made a pattern start over at each of them and search up to the end.
REPEATED = (
    "useradd ", "useradd -u ", "passwd -passwd ", "chmod -chmod ", "curl ", "curl | ", "sshd ", "apt-get ", "apt install ",
    "rm ", "a", "A=", "A=\"", "eyJ-", "eyJhbGciOiJ.eyJ-", "sk-", "hf_", "-----BEGIN ", "-----BEGIN A ", "https://", "https://a:", "Authorization: ", "openssl req ",
    "${a:-", "mpi", "requirements", "<<a", "s/", "sed s/", "'", '"', "\\", "# ", "sed -e ", "a:", "mpich=", "openmpi-1.", "1", "Port 2", "[", "--a ", "sh -c ", "$(", ".ssh/", "a.pem/",
)  # fmt: skip


@pytest.mark.parametrize("text", REPEATED)
def test_a_huge_line_is_read_in_linear_time(text: str) -> None:
    """No time is measured: with the square of the text, most of these would take many seconds."""
    body = text * (60_000 // len(text))
    of(
        f"RUN {body}\nENV X={body}\nCOPY {body}\nCMD {body}\nRUN echo /etc/passwd /etc/ssh\nUSER {body}",
        OPENMPI,
    )
    found(
        f"FROM debian{DIGEST}\nCOPY requirements.txt sshd_config /x/",
        requirements__txt=body,
        sshd_config=body,
    )
    found(f"FROM {body} x y")


def test_numbers_of_any_length_are_read() -> None:
    """Python refuses to convert more than 4300 digits."""
    number = "1" * 5000
    assert of(f"RUN useradd -u {number} mpi", OPENMPI) == ["no-mpi"]
    assert of(f"RUN echo Port {number} >> sshd_config; sshd -p {number}\nEXPOSE {number}") == []
