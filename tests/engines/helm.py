"""helm renders the chart, kubeconform validates it against Kubernetes' schemas; both built with Go."""

from __future__ import annotations

import json
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

from sources import ROOT

from engines import cache
from engines.support.go_modules import GoModule, build
from engines.support.kubernetes_schemas import LOCATION, write_custom_schema, write_schemas

NAME = "helm"
REMEDY = ".venv/bin/python tests/fetch.py helm (needs Go)"
BINDS_EVERYWHERE = False

HELM_VERSION, KUBECONFORM_VERSION = "v3.16.4", "v0.6.7"
HELM_CHECKSUM = "h1:rBn/h9MACw+QlhxQTjpl8Ifx+VTWaYsw3rguGBYBzr0="
KUBECONFORM_CHECKSUM = "h1:kIvjeiMSU0+/GY48+U9GmJZdGmoej4dArYvv3BfvlyA="
HELM = cache() / f"helm-{HELM_VERSION}"
KUBECONFORM = cache() / f"kubeconform-{KUBECONFORM_VERSION}"
KUBERNETES = GoModule(
    "k8s.io/kubernetes",
    "v1.32.0",
    "h1:4BDBWSolqPrv8GC3YfZw0CJvh5kA1TPnoX0FxDVd+qc=",
    "api/openapi-spec/swagger.json",
)
OPERATOR = GoModule(
    "github.com/prometheus-operator/prometheus-operator",
    "v0.79.2",
    "h1:H/HCiMS4dXQyiFHw28PFlWMh15YUraL3MFe8u7k7dGA=",
    "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
)
CHART = ROOT / "deploy" / "helm" / "footnote"
# Kinds of objects in the chart, except the ServiceMonitor.
KINDS = (
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "CronJob"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
)
SCHEMAS = cache() / f"kubernetes-schemas-{KUBERNETES.version}-{sha256(repr(KINDS).encode()).hexdigest()[:12]}"


def missing() -> str | None:
    """Return why they cannot run here, or None."""
    is_there = all(path.exists() for path in (HELM, KUBECONFORM, SCHEMAS))
    return None if is_there else "helm and kubeconform were not built"


def fetch() -> None:
    """Build both, and generate the schemas.

    Raises:
        FetchError: Go is missing, or a module is unavailable.
    """
    build(f"helm.sh/helm/v3@{HELM_VERSION}", HELM_CHECKSUM, "./cmd/helm", HELM)
    module = f"github.com/yannh/kubeconform@{KUBECONFORM_VERSION}"
    build(module, KUBECONFORM_CHECKSUM, "./cmd/kubeconform", KUBECONFORM)
    KUBERNETES.fetch()
    OPERATOR.fetch()
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        draft = Path(scratch) / "schemas"
        draft.mkdir()
        write_schemas(json.loads((KUBERNETES.folder / "swagger.json").read_bytes()), KINDS, draft)
        write_custom_schema(OPERATOR.folder / Path(OPERATOR.part).name, draft)
        if not SCHEMAS.exists():
            draft.rename(SCHEMAS)


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm without the user's own settings and repositories."""
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run(
            [HELM, *arguments], env={"HOME": home}, capture_output=True, text=True, check=False
        )


def kubeconform(manifests: str) -> subprocess.CompletedProcess[str]:
    """Validate rendered objects strictly: unknown fields and kinds are errors."""
    options = ["-strict", "-summary", "-schema-location", f"{SCHEMAS}/{LOCATION}"]
    return subprocess.run(
        [KUBECONFORM, *options], input=manifests, capture_output=True, text=True, check=False
    )
