"""The Kubernetes manifests are valid by its own schemas, fit together, and keep what docs/deploy.md promises."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rlvitals_monitor.logs import LogSettings
from rlvitals_monitor.settings import Settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def kustomization() -> Document:
    found: Document = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    return found


@pytest.fixture(scope="module")
def documents(kustomization: Document) -> list[Document]:
    return [one for name in kustomization["resources"] for one in yaml.safe_load_all((FOLDER / name).read_text())]


@pytest.fixture(scope="module")
def workloads(documents: list[Document]) -> dict[str, Document]:
    return {one["metadata"]["name"]: one for one in documents if one["kind"] in ("Deployment", "StatefulSet")}


def of_kind(documents: list[Document], kind: str) -> list[Document]:
    return [one for one in documents if one["kind"] == kind]


def containers(workloads: dict[str, Document]) -> Iterator[tuple[str, Document]]:
    for name, one in workloads.items():
        for container in one["spec"]["template"]["spec"]["containers"]:
            yield name, container


@pytest.mark.parametrize("version", ["1.30", "latest"])
def test_every_document_is_valid_by_the_schemas_with_no_field_that_they_do_not_know(
    documents: list[Document], version: str
) -> None:
    wanted = kubernetes_validate.latest_version() if version == "latest" else version
    for one in documents:
        kubernetes_validate.validate(one, wanted, strict=True)


def test_the_schemas_would_have_found_a_fault(workloads: dict[str, Document]) -> None:
    wrong = yaml.safe_load(yaml.safe_dump(workloads["collector"]).replace("readinessProbe", "readynessProbe"))
    with pytest.raises(kubernetes_validate.ValidationError, match="readynessProbe"):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


def test_every_file_is_in_the_kustomization(kustomization: Document) -> None:
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(kustomization["resources"])


def test_two_collectors_a_worker_and_two_dashboards_each_in_its_role(workloads: dict[str, Document]) -> None:
    assert {name: one["spec"]["replicas"] for name, one in workloads.items()} == {
        "collector": 2,
        "worker": 1,
        "dashboard": 2,
    }
    for name, container in containers(workloads):
        assert container["args"] == ["rlvitals", "serve", "--role", name]


def test_every_process_is_probed_and_bounded_and_may_do_nothing_that_it_does_not_need(
    workloads: dict[str, Document],
) -> None:
    for name, container in containers(workloads):
        asked = {probe: container[probe]["httpGet"]["path"] for probe in ("readinessProbe", "livenessProbe")}
        assert asked == {"readinessProbe": "/readyz", "livenessProbe": "/healthz"}, name
        assert set(container["resources"]["limits"]) == {"cpu", "memory"}, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
    for name, one in workloads.items():
        pod = one["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert f"--uid {pod['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text(), name


def test_a_pod_has_time_to_drain(workloads: dict[str, Document]) -> None:
    drain_s = float(settings()["RLVITALS_DRAIN_S"])
    for name, one in workloads.items():
        pod = one["spec"]["template"]["spec"]
        probe = pod["containers"][0]["readinessProbe"]
        noticed_s = (probe["failureThreshold"] + 1) * probe["periodSeconds"]
        assert noticed_s <= drain_s < pod["terminationGracePeriodSeconds"] - 10, name


def test_secrets_are_files_and_never_variables(kustomization: Document, workloads: dict[str, Document]) -> None:
    for name, container in containers(workloads):
        assert "env" not in container, name
        assert container["envFrom"] == [{"configMapRef": {"name": "settings"}}], name
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert f"{mounted['database']}/password" == settings()["RLVITALS_DATABASE_PASSWORD_FILE"], name
    made = [each for one in kustomization["secretGenerator"] for each in one["files"]]
    assert all("=secrets/" in each for each in made)
    assert all("literals" not in one for one in kustomization["secretGenerator"])
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_every_setting_is_one_that_the_service_has() -> None:
    known = {f"RLVITALS_{name.upper()}" for kind in (Settings, LogSettings) for name in kind.model_fields}
    assert set(settings()) - {"FORWARDED_ALLOW_IPS"} <= known
    named = {name.removeprefix("RLVITALS_").lower(): value for name, value in settings().items()}
    made = Settings(**{name: value for name, value in named.items() if name in Settings.model_fields})
    assert not made.is_local
    assert "password" not in made.database_url


def test_every_selector_finds_pods_and_every_backend_is_a_service(
    documents: list[Document], workloads: dict[str, Document]
) -> None:
    pods = [one["spec"]["template"]["metadata"]["labels"] for one in workloads.values()]
    for one in workloads.values():
        assert one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]
    for one in of_kind(documents, "Service"):
        assert one["spec"]["selector"] in pods
    budgets = [one["spec"]["selector"]["matchLabels"] for one in of_kind(documents, "PodDisruptionBudget")]
    assert sorted(map(str, budgets)) == sorted(map(str, pods))
    services = {one["metadata"]["name"]: one["spec"]["ports"][0]["name"] for one in of_kind(documents, "Service")}
    for path, backend in paths(documents):
        assert services[backend["name"]] == backend["port"]["name"], path


def paths(documents: list[Document]) -> Iterator[tuple[str, Document]]:
    for one in of_kind(documents, "Ingress"):
        for path in one["spec"]["rules"][0]["http"]["paths"]:
            yield path["path"], path["backend"]["service"]


def test_reports_go_to_collectors_and_all_else_to_dashboards_by_tls_under_the_public_address(
    documents: list[Document],
) -> None:
    assert {path: backend["name"] for path, backend in paths(documents)} == {
        "/api/v1/reports": "collector",
        "/": "dashboard",
    }
    for one in of_kind(documents, "Ingress"):
        host = one["spec"]["rules"][0]["host"]
        assert f"https://{host}" == settings()["RLVITALS_PUBLIC_URL"]
        assert one["spec"]["tls"] == [{"hosts": [host], "secretName": "tls"}]


def test_nothing_is_reached_that_is_not_named(documents: list[Document]) -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind(documents, "NetworkPolicy")}
    closed = policies.pop("nothing-else")
    assert closed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    inward = [spec for spec in policies.values() if "Ingress" in spec["policyTypes"]]
    assert [[sorted(rule) for rule in spec["ingress"]] for spec in inward] == [[["from", "ports"]]]
    out = policies["messages"]
    assert out["podSelector"]["matchExpressions"][0]["values"] == ["worker", "dashboard"]
    assert "169.254.0.0/16" in out["egress"][0]["to"][0]["ipBlock"]["except"]


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kustomize is not run: there is no kubectl")
def test_kustomize_renders_it_and_a_changed_secret_is_a_new_name(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "secrets").mkdir(exist_ok=True)
    for name in ("database_password", "tls.crt", "tls.key"):
        (tmp_path / "secrets" / name).write_text("first")
    first = render(tmp_path)
    (tmp_path / "secrets" / "database_password").write_text("second")
    second = render(tmp_path)
    for rendered in (first, second):
        for one in rendered:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    secrets = [{volume_secret(one) for one in rendered if volume_secret(one)} for rendered in (first, second)]
    assert [len(names) for names in secrets] == [1, 1]
    assert secrets[0] != secrets[1]


def render(folder: Path) -> list[Document]:
    command = ["kubectl", "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def volume_secret(document: Document) -> str:
    template = document.get("spec", {}).get("template", {}) if document["kind"] != "Ingress" else {}
    volumes = template.get("spec", {}).get("volumes", ())
    return next((volume["secret"]["secretName"] for volume in volumes if "secret" in volume), "")


def settings() -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", (FOLDER / "settings.env").read_text(), re.MULTILINE))
