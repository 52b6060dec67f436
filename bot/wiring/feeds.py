"""From settings to the systems that are asked what they deployed."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from adapters.deploys.feed import DeployFeed
from bot.settings.deploys import DeployFeedSettings
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.wiring.backends import Cluster
from bot.wiring.routes import backend_client


def make_feeds(
    settings: Settings, cluster: Cluster | None, stack: AsyncExitStack
) -> Mapping[str, Mapping[str, DeployFeed]]:
    """By the name of its table: what it asks, each by its name. Reads certificates.

    One that is gone, or forbidden, is nothing to the others. Each kind is imported where one is
    configured, for most have none. Raises ConfigurationError.
    """
    return {
        name: _feeds(f"deploys.{name}", feed, settings, cluster, stack)
        for name, feed in settings.deploys.items()
    }


def _feeds(
    key: str,
    feed: DeployFeedSettings,
    settings: Settings,
    cluster: Cluster | None,
    stack: AsyncExitStack,
) -> Mapping[str, DeployFeed]:
    if feed.kind == "flux":
        if cluster is None:
            raise ConfigurationError(f"{key}.kind: Flux is read from a cluster; set [kubernetes]")
        from adapters.deploys.flux import FluxDeploys

        names = settings.kubernetes.namespaces or (cluster.api.namespace,)
        return {name: FluxDeploys(cluster.api, name) for name in names}
    client = backend_client(feed.address, feed, f"{key}.url", stack)
    match feed.kind:
        case "github":
            from adapters.deploys.github import GitHubDeploys

            return {name: GitHubDeploys(client, name) for name in feed.projects}
        case "gitlab":
            from adapters.deploys.gitlab import GitLabDeploys

            return {name: GitLabDeploys(client, name) for name in feed.projects}
        case "argocd":
            from adapters.deploys.argocd import ArgoDeploys

            return {"applications": ArgoDeploys(client, feed.projects)}
