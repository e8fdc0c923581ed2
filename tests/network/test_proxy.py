"""The proxy of a cluster: which runs know of it, what is opened for it, and what is reached without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.workspaces import gangplan, rendered, write

SPEC, CLUSTER = "specs/nlp/filings.yaml", "overlays/lab/cluster.yaml"
PROXY = 'proxy: {http: "http://proxy.example.com:3128", https: "http://proxy.example.com:3129", %s}\n'
LITERAL = 'proxy: {http: "http://10.1.2.3:3128", https: "http://10.1.2.3:3128"}\n'
KNOWN = PROXY % "noProxy: [.example.org], addresses: [10.1.2.3/32]"
INTERNET = "network: {egress: [internet]}\n"


def run(root: Path, spec: str, cluster: str = KNOWN) -> tuple[dict[str, str], list[Any]]:
    """Return the proxy variables of the run's containers, and the egress rules of its policy to addresses."""
    write(root, {SPEC: workspaces.SPEC + spec, CLUSTER: workspaces.CLUSTER + cluster})
    assert gangplan("render", "-C", root).code == 0, gangplan("render", "-C", root).err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    bodies = load_objects(text)
    (runtime,) = (body for body in bodies if body["kind"] == "TrainingRuntime")
    (policy,) = (body for body in bodies if body["kind"] == "NetworkPolicy")
    found = [
        {one["name"]: one.get("value", "") for one in container.get("env", ())}
        for entry in runtime["spec"]["template"]["spec"]["replicatedJobs"]
        for container in entry["template"]["spec"]["template"]["spec"]["containers"]
    ]
    proxies = [{name: value for name, value in one.items() if "PROXY" in name.upper()} for one in found]
    assert proxies[0] == proxies[1], "launcher and workers are told the same"
    opened = [
        (peer["ipBlock"]["cidr"], [port["port"] for port in rule["ports"]])
        for rule in policy["spec"]["egress"]
        for peer in rule["to"]
        if "ipBlock" in peer
    ]
    return proxies[0], opened


def rules(root: Path, spec: str = "", cluster: str = KNOWN) -> list[str]:
    """Return the rules of the findings of a validation."""
    write(root, {SPEC: workspaces.SPEC + spec, CLUSTER: workspaces.CLUSTER + cluster})
    return [one.rule for one in gangplan("validate", "-C", root).findings]


def test_a_run_with_internet_access_reaches_the_proxy(root: Path) -> None:
    env, opened = run(root, INTERNET)
    assert opened == [("10.1.2.3/32", [3128, 3129])]
    assert env["HTTPS_PROXY"] == env["https_proxy"] == "http://proxy.example.com:3129"
    direct = env["NO_PROXY"].split(",")
    assert {".svc", ".cluster.local", "localhost", "127.0.0.1", ".example.org"} <= set(direct)
    (name,) = (path.rpartition("/")[2][: -len(".yaml")] for path in rendered(root) if is_run_file(path))
    assert f".{name}" in direct, "the run's own pods have names below the run's"
    assert rules(root, INTERNET) == []


@pytest.mark.parametrize("addresses", ["addresses: [10.1.2.3/32]", ""])
def test_the_network_pack_allows_the_proxy(addresses: str, root: Path) -> None:
    """Its policy `network-endpoints` used to refuse the rule that a run gets for the proxy."""
    known = PROXY % addresses if addresses else LITERAL
    found = rules(root, INTERNET, known + "policies: {packs: [network]}\n")
    assert "network-endpoints" not in found
    assert found == rules(root, INTERNET, known)


def test_a_run_without_internet_access_has_no_proxy_variables(root: Path) -> None:
    # It used to have them, but its own policy denied the proxy: each request hung until it timed out.
    assert run(root, "") == ({}, [])


def test_a_store_that_is_reached_directly_bypasses_the_proxy(root: Path) -> None:
    data = "data: {lidar: env}\n"
    assert run(root, data) == ({}, [("10.40.8.0/24", [443])])
    env, opened = run(root, data + "network: {egress: [internet]}\n")
    assert opened == [("10.1.2.3/32", [3128, 3129]), ("10.40.8.0/24", [443])]
    assert {"s3.example.com", "10.40.8.0/24"} <= set(env["NO_PROXY"].split(","))


def test_a_store_behind_the_proxy_uses_it(root: Path) -> None:
    behind = ("s3: [{cidr: 10.40.8.0/24, ports: [443]}]", "s3: [{cidr: 10.1.2.0/24, ports: [3128, 3129]}]")
    changed = workspaces.CLUSTER.replace(*behind)
    write(root, {SPEC: workspaces.SPEC + "data: {lidar: env}\n", CLUSTER: changed + KNOWN})
    assert gangplan("render", "-C", root).code == 0
    (text,) = (text.decode() for path, text in rendered(root).items() if is_run_file(path))
    assert "HTTPS_PROXY" in text
    assert "s3.example.com" not in next(line for line in text.splitlines() if ".svc," in line)


@pytest.mark.parametrize(
    ("proxy", "expected"),
    [
        ('proxy: {http: "http://10.1.2.3:3128", https: "http://10.1.2.3:3128"}\n', [("10.1.2.3/32", [3128])]),
        (
            'proxy: {http: "http://10.1.2.3:3128", https: "http://10.1.2.4:8080"}\n',
            [("10.1.2.3/32", [3128]), ("10.1.2.4/32", [8080])],
        ),
        (
            'proxy: {http: "http://[fd00::3]:3128", https: "http://[fd00::3]:3128"}\n',
            [("fd00::3/128", [3128])],
        ),
        ('proxy: {http: "http://10.1.2.3", https: "http://10.1.2.3"}\n', [("10.1.2.3/32", [80])]),
    ],
)
def test_addresses_in_the_proxy_urls_are_enough(proxy: str, expected: list[Any], root: Path) -> None:
    assert run(root, INTERNET, proxy)[1] == expected


def test_a_proxy_name_without_addresses_is_reported(root: Path) -> None:
    named = PROXY % "noProxy: []"
    assert rules(root, "", named) == ["proxy-address-unknown"]
    assert sorted(rules(root, INTERNET, named)) == ["egress-unknown", "proxy-address-unknown"]


def test_sealed_runs_do_not_get_internet_access(root: Path) -> None:
    assert rules(root, "network: {posture: isolated, egress: [internet]}\n") == ["egress-internet"]
    assert rules(root, INTERNET, KNOWN + "airGapped: true\n") == ["egress-internet"]
    assert rules(root, INTERNET, "") == ["egress-unknown"]


def test_a_proxy_variable_of_the_spec_overrides(root: Path) -> None:
    env, _ = run(root, INTERNET + "env: {NO_PROXY: mine}\n")
    assert env["NO_PROXY"] == "mine"


OWN = {
    "denied": ('env: {HTTPS_PROXY: "http://10.1.2.3:3128"}\n', ["proxy-closed"]),
    "another port": (
        'env: {https_proxy: "http://10.40.8.9:3128"}\nnetwork: {egress: [s3]}\n',
        ["proxy-closed"],
    ),
    "without a scheme": ("env: {ALL_PROXY: 10.1.2.3:3128}\n", ["proxy-closed"]),
    "open": ('env: {HTTPS_PROXY: "http://10.40.8.9:443"}\nnetwork: {egress: [s3]}\n', []),
    "by name": ('env: {HTTPS_PROXY: "http://proxy:3128"}\n', []),
    "another variable": ('env: {MY_PROXY: "http://10.1.2.3:3128"}\n', ["env-unreachable"]),
    "no address": ("env: {HTTPS_PROXY: none}\n", []),
}


@pytest.mark.parametrize("name", OWN)
def test_a_proxy_of_the_spec_must_be_reachable(name: str, root: Path) -> None:
    spec, expected = OWN[name]
    assert rules(root, spec, "") == expected


def test_an_unreachable_proxy_is_reported_at_the_variable(root: Path) -> None:
    write(root, {SPEC: workspaces.SPEC + OWN["denied"][0]})
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.place, found.severity) == (f"{SPEC}:9:20", "warning")
    assert "10.1.2.3/32 on TCP 3128" in found.message


def test_a_proxy_with_an_unreadable_port_is_refused(root: Path) -> None:
    assert rules(root, "", (PROXY % "").replace("3128", "3128-x")) == ["spec-value"]
