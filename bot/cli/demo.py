"""`kortex demo`. What it does is in `bot.cli.demo_server`, imported once signals are taken."""

from typing import Final

import click

from bot.cli.options import words
from bot.upkeep.signals import Signals, heeding

LAST_PORT: Final = 65535
CHANNELS: Final = ("incident-checkout", "incident-payments", "incident-quiet")
LISTENING: Final = ("127.0.0.1", "0.0.0.0")  # noqa: S104 - asked for


@click.command()
@click.option("--ask", type=words, metavar="QUESTION", help="Answer one question and exit.")
@click.option(
    "--channel",
    type=click.Choice(CHANNELS),
    help=f"With --ask: the recorded incident (default: {CHANNELS[0]}).",
)
@click.option("--json", "as_json", is_flag=True, help="With --ask: print JSON.")
@click.option(
    "--port",
    type=click.IntRange(0, LAST_PORT),
    metavar="N",
    help="The port of the page (default: 8420, or a free one). 0 is any free port.",
)
@click.option(
    "--host",
    type=click.Choice(LISTENING),
    help="The address of the page (default: 127.0.0.1). Use 0.0.0.0 in a container only, and "
    "publish its port to this machine alone. Every visitor of the page can act as any person in it.",
)
@click.option(
    "--workspace",
    is_flag=True,
    help="Serve the local workspace alone: a Slack on this machine for a kortex.toml of your own.",
)
def demo(
    ask: str | None,
    channel: str | None,
    as_json: bool,
    port: int | None,
    host: str | None,
    workspace: bool,
) -> int:
    """Start Kortex on recorded incidents in a local workspace, and print its URL.

    It needs no configuration, no account and no key.

    \b
    Examples:
      kortex demo
      kortex demo --ask "why is checkout slow?" --channel incident-checkout
    """
    if ask is not None:
        page = {"--port": port is not None, "--host": host is not None, "--workspace": workspace}
        _refuse(page, "is an option of the page and cannot be combined with --ask")
        from bot.cli.demo_server import demo_ask

        return demo_ask(ask, channel or CHANNELS[0], as_json=as_json)
    headless = {"--channel": channel is not None, "--json": as_json}
    _refuse(headless, "needs --ask. On the page, choose a channel there")

    def serve(signals: Signals) -> int:
        from bot.cli.demo_server import demo_page, demo_workspace

        return (demo_workspace if workspace else demo_page)(port, host, signals)

    return heeding(Signals(hangup_stops=True), serve)


def _refuse(given: dict[str, bool], why: str) -> None:
    for option, is_given in given.items():
        if is_given:
            raise click.UsageError(f"{option} {why}.", click.get_current_context())
