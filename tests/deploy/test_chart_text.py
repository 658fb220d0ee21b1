"""The Helm chart's sources: checks that need no helm, unlike those of the long run."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from engines.helm import CHART

TEMPLATES = {path.name: path.read_text("utf-8") for path in (CHART / "templates").iterdir()}


@pytest.fixture
def values() -> Any:
    """Return the chart's default values."""
    return yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))


def test_admin_files_are_stored_in_a_secret() -> None:
    """Shows that footnote.toml, which may contain keys, is no ConfigMap, and that pods mount the Secret."""
    assert not [name for name, text in TEMPLATES.items() if re.search("configmap", text, re.IGNORECASE)]
    assert re.search(
        r"kind: Secret\n(.*\n)+?stringData:\n +\{\{- toYaml \.Values\.files", TEMPLATES["home.yaml"]
    )
    assert re.search(r"- name: files\n +secret:\n", TEMPLATES["_helpers.tpl"])


def test_no_secret_is_in_the_values(values: Any) -> None:
    """Shows that pods get tokens and keys from existing Secrets, by name."""
    assert values["secret"] == values["bot"]["secret"] == values["database"]["secret"] == ""
    pods = TEMPLATES["_helpers.tpl"]
    assert "- secretRef:" in pods
    assert "automountServiceAccountToken: false" in pods


def test_the_clusters_api_is_unreachable_by_default(values: Any) -> None:
    """Shows its ports, the private networks excluded for them, and that system pods are unreachable."""
    policy = TEMPLATES["network-policy.yaml"]
    assert "(list 443 6443)" in policy
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"):
        assert f'"{network}"' in policy
    assert "namespaceSelector: {}" not in policy
    assert "operator: NotIn, values: [kube-system]" in policy
    assert values["networkPolicy"]["privateCidrs"] == values["networkPolicy"]["deniedCidrs"] == []
