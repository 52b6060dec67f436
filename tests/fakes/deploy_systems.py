"""The events of one deploy of shop/checkout from GitHub, GitLab, Argo CD and Flux, by webhook and
polled.

After the examples of their documentation, with the addresses in `adapters/deploys/`.
"""

from collections.abc import Mapping
from typing import Any

COMMIT = "a84d88e7554fc1fa21bcbc4efae3c782a70d2b9d"

GITHUB_DEPLOYMENT: Mapping[str, Any] = {
    "url": "https://api.github.com/repos/shop/checkout/deployments/145988746",
    "id": 145988746,
    "task": "deploy",
    "original_environment": "production",
    "environment": "production",
    "description": None,
    "created_at": "2026-04-07T14:30:00Z",
    "updated_at": "2026-04-07T14:32:00Z",
    "creator": {"login": "jonas", "id": 21031067, "type": "User"},
    "sha": COMMIT,
    "ref": "v2.4.0",
    "payload": {},
    "transient_environment": False,
}
GITHUB_STATUSES = [
    {"id": 2, "state": "success", "created_at": "2026-04-07T14:32:00Z", "description": ""},
    {"id": 1, "state": "in_progress", "created_at": "2026-04-07T14:30:30Z", "description": ""},
]
GITHUB_WEBHOOK = {
    "action": "created",
    "deployment_status": GITHUB_STATUSES[0],
    "deployment": GITHUB_DEPLOYMENT,
    "repository": {"id": 1, "name": "checkout", "full_name": "shop/checkout"},
}

GITLAB_DEPLOYMENT: Mapping[str, Any] = {
    "id": 42,
    "iid": 2,
    "ref": "main",
    "sha": COMMIT,
    "status": "success",
    "created_at": "2026-04-07T14:30:00.222Z",
    "updated_at": "2026-04-07T14:32:00.414Z",
    "user": {"id": 1, "name": "Jonas", "username": "jonas"},
    "environment": {"id": 9, "name": "production", "external_url": "https://shop.example.com"},
    "deployable": {"id": 664, "status": "success", "finished_at": "2026-04-07T14:32:00.110Z"},
}
GITLAB_PROJECT = {"id": 37, "name": "Checkout Service", "path_with_namespace": "shop/checkout"}
GITLAB_WEBHOOK: Mapping[str, Any] = {
    "object_kind": "deployment",
    "status": "success",
    "status_changed_at": "2026-04-07 16:32:00 +0200",
    "deployment_id": 42,
    "deployable_id": 664,
    "environment": "production",
    "environment_tier": "production",
    "project": {**GITLAB_PROJECT, "web_url": "https://gitlab.example.com/shop/checkout"},
    "ref": "main",
    "short_sha": COMMIT[:8],
    "user": {"id": 1, "name": "Jonas", "username": "jonas"},
    "commit_title": "Release 2.4",
}

ARGO_APPLICATION: Mapping[str, Any] = {
    "metadata": {"name": "checkout", "namespace": "argocd"},
    "status": {
        "history": [
            {
                "id": 7,
                "revision": COMMIT,
                "deployStartedAt": "2026-04-07T14:31:30Z",
                "deployedAt": "2026-04-07T14:32:00Z",
                "initiatedBy": {"username": "jonas"},
                "source": {"repoURL": "https://git.example.com/shop.git"},
            }
        ],
        "operationState": {"phase": "Succeeded"},
        "summary": {"images": ["shop/checkout:v2.4.0"]},
    },
}

FLUX_KUSTOMIZATION: Mapping[str, Any] = {
    "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
    "kind": "Kustomization",
    "metadata": {"name": "checkout", "namespace": "shop"},
    "spec": {"interval": "10m", "path": "./apps"},
    "status": {
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "ReconciliationSucceeded",
                "message": f"Applied revision: main@sha1:{COMMIT}",
                "lastTransitionTime": "2026-04-07T14:32:00Z",
            }
        ],
        "lastAppliedRevision": f"main@sha1:{COMMIT}",
        "lastAttemptedRevision": f"main@sha1:{COMMIT}",
    },
}
FLUX_RELEASE: Mapping[str, Any] = {
    "apiVersion": "helm.toolkit.fluxcd.io/v2",
    "kind": "HelmRelease",
    "metadata": {"name": "cart", "namespace": "shop"},
    "status": {
        "history": [
            {
                "chartName": "cart",
                "chartVersion": "1.2.0",
                "status": "failed",
                "version": 3,
                "firstDeployed": "2026-04-01T10:00:00Z",
                "lastDeployed": "2026-04-07T14:32:00Z",
            },
            {
                "chartName": "cart",
                "chartVersion": "1.1.0",
                "status": "superseded",
                "version": 2,
                "lastDeployed": "2026-04-06T10:00:00Z",
            },
        ]
    },
}
FLUX_WEBHOOK: Mapping[str, Any] = {
    "involvedObject": {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "name": "checkout",
        "namespace": "shop",
        "uid": "7d0cdc51-ddcf-4743-b223-83ca5c699632",
    },
    "metadata": {"kustomize.toolkit.fluxcd.io/revision": f"main@sha1:{COMMIT}"},
    "severity": "info",
    "reason": "ReconciliationSucceeded",
    "message": "Reconciliation finished in 4.5s, next run in 10m0s",
    "reportingController": "kustomize-controller",
    "timestamp": "2026-04-07T14:32:03Z",
}
FLUX_RELEASE_WEBHOOK: Mapping[str, Any] = {
    "involvedObject": {"kind": "HelmRelease", "name": "cart", "namespace": "shop"},
    "metadata": {"revision": "1.2.0"},
    "severity": "error",
    "reason": "UpgradeFailed",
    "message": "Helm upgrade failed for release shop/cart.v3 with chart cart@1.2.0: timed out",
    "timestamp": "2026-04-07T14:32:01Z",
}
