"""From settings to the systems that are asked what they deployed."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from adapters.deploys.feed import DeployFeed
from bot.settings.deploys import DeployFeedSettings
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.wiring.backends import Cluster
from bot.wiring.ways import backend_client


def make_feeds(
    settings: Settings, cluster: Cluster | None, stack: AsyncExitStack
) -> Mapping[str, DeployFeed]:
    """By the name of its table. Reads certificates. Raises ConfigurationError.

    Each kind is imported where one is configured, for most have none.
    """
    return {
        name: _feed(f"deploys.{name}", feed, settings, cluster, stack)
        for name, feed in settings.deploys.items()
    }


def _feed(
    key: str,
    feed: DeployFeedSettings,
    settings: Settings,
    cluster: Cluster | None,
    stack: AsyncExitStack,
) -> DeployFeed:
    if feed.kind == "flux":
        if cluster is None:
            raise ConfigurationError(f"{key}.kind: Flux is read from a cluster; set [kubernetes]")
        from adapters.deploys.flux import FluxDeploys

        return FluxDeploys(cluster.api, settings.kubernetes.namespaces)
    client = backend_client(feed.address, feed, f"{key}.url", stack)
    match feed.kind:
        case "github":
            from adapters.deploys.github import GitHubDeploys

            return GitHubDeploys(client, feed.projects)
        case "gitlab":
            from adapters.deploys.gitlab import GitLabDeploys

            return GitLabDeploys(client, feed.projects)
        case "argocd":
            from adapters.deploys.argocd import ArgoDeploys

            return ArgoDeploys(client, feed.projects)
