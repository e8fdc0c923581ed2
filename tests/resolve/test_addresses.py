"""URLs in `env` compared with what the run's policies let it reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.resolve.test_workdir import SPEC, put
from tests.workspaces import gangplan

# egress of the spec | env | whether env-unreachable is reported
TABLE = """
     | MLFLOW_TRACKING_URI: 'https://mlflow.example.com'                  | yes
     | MLFLOW_TRACKING_URI: 'http://mlflow.mlops.svc.cluster.local:5000'  | yes
     | MLFLOW_TRACKING_URI: 'http://10.3.4.5:5000'                        | yes
     | MLFLOW_TRACKING_URI: 'http://user@mlflow.example.com/x?y=1'        | yes
     | MLFLOW_TRACKING_URI: ' https://mlflow.example.com '                | yes
     | MLFLOW_TRACKING_URI: 'file:///outputs/mlruns'                      |
     | MLFLOW_TRACKING_URI: /outputs/mlruns                               |
     | MLFLOW_TRACKING_URI: 'http://localhost:5000'                       |
     | MLFLOW_TRACKING_URI: 'http://127.0.0.1:5000'                       |
     | MLFLOW_TRACKING_URI: 'http://mlflow:5000'                          |
     | MLFLOW_TRACKING_URI: 'http://$(HOST).example.com'                  |
     | MLFLOW_TRACKING_URI: 'http://[::1]:5000'                           |
     | MLFLOW_TRACKING_URI: 'http://[2001:db8::1]:5000'                   | yes
     | MLFLOW_TRACKING_URI: 'http://[no'                                  |
     | MLFLOW_TRACKING_URI: 'https://'                                    |
     | WANDB_BASE_URL: 'https://wandb.example.com'                        | yes
     | WANDB_BASE_URL: 'https://wandb.example.com', WANDB_MODE: offline   |
     | HF_ENDPOINT: 'https://hub.example.com'                             | yes
     | HF_ENDPOINT: 'https://hub.example.com', HF_HUB_OFFLINE: 1          |
     | HF_ENDPOINT: 'https://hub.example.com', HF_HUB_OFFLINE: 0          | yes
     | OTEL_EXPORTER_OTLP_ENDPOINT: 'grpc://tempo.example.com:4317'       | yes
     | DATABASE_URL: 'postgresql://db.example.com/runs'                   | yes
     | HTTPS_PROXY: 'http://proxy.example.com:3128'                       |
     | https_proxy: 'http://proxy.example.com:3128', A_URL: 'https://a.b' |
     | DATASET: 's3://bucket.example/path'                                |
     | MODEL: 'hf://example/model.v1'                                     |
     | NOTE: 'see https://example.com'                                    |
     | VERSION: '1.2.3:4'                                                 |
     | HOST: {field: status.hostIP}                                       |
s3   | MLFLOW_TRACKING_URI: 'https://mlflow.example.com'                  |
s3   | MLFLOW_TRACKING_URI: 'http://10.40.8.7:5000'                       |
s3   | MLFLOW_TRACKING_URI: 'http://10.40.9.7:5000'                       | yes
s3   | MLFLOW_TRACKING_URI: 'http://[2001:db8::1]:5000'                   | yes
net  | MLFLOW_TRACKING_URI: 'https://mlflow.example.com'                  |
internet | MLFLOW_TRACKING_URI: 'https://mlflow.example.com'              |
"""
CASES = [tuple(part.strip() for part in line.split("|")) for line in TABLE.splitlines() if line]


@pytest.mark.parametrize(("egress", "env", "is_told"), CASES, ids=[" ".join(case[:2]) for case in CASES])
def test_urls_that_the_run_cannot_reach_are_reported(egress: str, env: str, is_told: str, root: Path) -> None:
    cluster = "overlays/lab/cluster.yaml"
    text = (root / cluster).read_text()
    s3 = "  s3: [{cidr: 10.40.8.0/24, ports: [443]}]\n"
    assert s3 in text
    wide = "  net: [{cidr: 0.0.0.0/0, ports: [443]}]\n  internet: [{cidr: 0.0.0.0/0, ports: [443]}]\n"
    workspaces.write(root, {cluster: text.replace(s3, s3 + wide)})
    asked = f"network: {{egress: [{egress}]}}\n" if egress else ""
    put(root, f"{asked}env: {{{env}}}\n")
    outcome = gangplan("validate", "-C", root)
    told = [one for one in outcome.findings if one.rule == "env-unreachable"]
    assert bool(told) is bool(is_told), outcome.err
    assert all(one.place.startswith(SPEC) for one in told)
    assert outcome.code == 0, outcome.err  # a warning


def test_the_help_names_what_the_cluster_offers(root: Path) -> None:
    put(root, "env: {MLFLOW_TRACKING_URI: 'https://mlflow.example.com'}\n")
    (one,) = gangplan("validate", "-C", root).findings
    assert one.message == (
        "MLFLOW_TRACKING_URI leads to mlflow.example.com, but the run reaches no address outside it: "
        "programs that ask there wait, and give up"
    )
    assert one.help == "Name the endpoint that leads there in network.egress; cluster lab offers s3."


def test_a_variable_of_the_team_is_not_reported(root: Path) -> None:
    """Some of the team's runs may reach the address, so the others get no finding each."""
    put(root, "")
    team = root / "specs/nlp/team.yaml"
    team.write_text(
        team.read_text() + "defaults: {env: {MLFLOW_TRACKING_URI: 'https://mlflow.example.com'}}\n"
    )
    assert gangplan("validate", "-C", root).findings == []
