"""What the kinds of Kubernetes itself are for, in the words that people search by."""

from collections.abc import Mapping
from typing import Final

USED_FOR: Final[Mapping[str, str]] = {
    "ConfigMap": "configuration that is no secret, for pods",
    "CronJob": "runs a job on a schedule",
    "DaemonSet": "one pod on every node: agents, log collectors",
    "Deployment": "runs and rolls out a stateless application, service, API or web server, scaled",
    "HorizontalPodAutoscaler": "autoscale replicas by CPU, memory or other metrics",
    "Ingress": "HTTP route from outside to a service, host names and TLS",
    "Job": "runs something once to its end: migration, batch",
    "NetworkPolicy": "firewall: who may connect to pods",
    "PersistentVolumeClaim": "storage, disk, volume for a pod",
    "PodDisruptionBudget": "how many pods may be down during node maintenance",
    "ResourceQuota": "limits of CPU, memory and objects of a namespace",
    "Secret": "passwords, keys and certificates for pods",
    "Service": "stable address and load balancing for pods",
    "ServiceAccount": "identity of pods",
    "StatefulSet": "runs a stateful application with its own storage: database, queue",
}
