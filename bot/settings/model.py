"""The shape of kortex.toml. Unknown keys are refused; reading and error positions live in `reading`."""

from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bot.settings.access import AccessSettings, RouteSettings, SinkAccessSettings
from bot.settings.actions import ActionSettings
from bot.settings.alerts import AlertSettings
from bot.settings.database import DatabaseSettings
from bot.settings.deploys import DeployFeedSettings
from bot.settings.http import HttpSettings, OidcSettings
from bot.settings.masked import secret_values
from bot.settings.mcp import McpSettings
from bot.settings.named_backends import Choice, ChosenBackends
from bot.settings.observe import ObserveSettings
from bot.settings.otel import OtelSettings
from bot.settings.page import PageSettings
from bot.settings.policy import PolicySettings, RoleSettings
from bot.settings.section import (
    Duration,
    HostName,
    LocalHost,
    NotEmpty,
    Section,
    Token,
    absent_table,
)
from bot.settings.slack_ids import ChannelIdOrNone, ChannelNames, PersonIdOrAll
from bot.settings.workspaces import AnyWorkspace, InstallSettings, TeamId, WorkspaceSettings
from tools.products import Reading

MOST_TOKENS = 100_000_000  # of one request; no model takes a tenth
MOST_USD = 1_000_000.0  # as micro-dollars and summed up, within 64 bits
FEWEST_EDITS = 20  # below, the reserve for final edits leaves none for growing text
SHORTEST_AUDIT_KEY = 32  # characters; as hexadecimal digits that is 128 bits


def _none_or_enough(value: int) -> int:
    if 0 < value < FEWEST_EDITS:
        raise ValueError(f"must be 0 (not paced) or at least {FEWEST_EDITS}")
    return value


EditsPerMinute = Annotated[int, Field(ge=0, le=10_000), AfterValidator(_none_or_enough)]


class SlackSettings(InstallSettings):
    """`[slack]`."""

    mode: Literal["socket", "http"] = "socket"
    bot_token: Token = SecretStr("")
    app_token: Token = SecretStr("")
    signing_secret: SecretStr = SecretStr("")
    api_base_url: str = "https://slack.com/api/"
    stream: Literal["auto", "native", "edit"] = "auto"
    edits_per_minute: EditsPerMinute = 50
    follow_up: Literal["thread", "mention"] = "thread"
    external_channels: Literal["tell", "refuse"] = "tell"
    link_hosts: tuple[HostName, ...] = ()


class TurnSettings(Section):
    """`[turns]`. `max_live` answers grow at once in one process, later asks wait; 0: 50 on SQLite, else 512."""

    max_live: int = Field(default=0, ge=0, le=2000)


class ProviderSettings(Section):
    """`[llm.providers.NAME]`; what a provider does not know it ignores.

    `region`, `profile` and the three AWS keys are Bedrock's, `api` is OpenAI's, `num_ctx` is Ollama's,
    `tools_enabled` is Nirmata's (what NIRMATA_TOOLS_ENABLED says; empty: the backend is asked).
    """

    api_key: SecretStr = SecretStr("")
    region: str = Field(default="", pattern=r"^[a-z0-9-]*$")  # part of an address
    access_key_id: str = ""
    secret_access_key: SecretStr = SecretStr("")
    session_token: SecretStr = SecretStr("")
    profile: str = ""
    base_url: str = ""
    endpoint: str = ""
    model: str = ""
    fast_model: str = ""
    max_tokens: int = Field(default=4096, ge=1, le=MOST_TOKENS)
    timeout: Duration = timedelta(seconds=60)
    num_ctx: int | None = Field(default=None, ge=1024, le=MOST_TOKENS)
    stream_options: bool = True
    prompt_cache_key: bool = False
    streaming: bool = True
    tools_enabled: Literal["", "true", "false"] = ""
    api: Literal["", "chat", "responses"] = ""
    effort: Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"] = ""
    local: bool | None = (
        None  # whether its server is inside the network; only Ollama's is assumed to
    )


class PriceSettings(Section):
    """US dollars per million tokens; a cache price left out is the input price."""

    input: float = Field(ge=0, le=MOST_USD)
    output: float = Field(ge=0, le=MOST_USD)
    cache_read: float | None = Field(default=None, ge=0, le=MOST_USD)
    cache_write: float | None = Field(default=None, ge=0, le=MOST_USD)


class ModelSettings(Section):
    """`[llm.models."ID"]`: what the shipped table says wrong of a model, or not at all."""

    display_name: str = ""
    tier: Literal["fast", "balanced", "deep"] | None = None
    context_tokens: int | None = Field(default=None, ge=1024, le=MOST_TOKENS)
    api: Literal["", "chat", "responses"] = ""
    images: bool | None = None
    usd_per_mtok: PriceSettings | None = None


class BudgetSettings(Section):
    """`[llm.budget]`; 0 is no limit. `per_user_hourly_limit` counts questions."""

    daily_usd_limit: float = Field(default=0.0, ge=0, le=MOST_USD)
    per_user_hourly_limit: int = Field(default=0, ge=0, le=1_000_000)
    per_session_token_cap: int = Field(default=0, ge=0, le=1_000_000_000_000)
    alert_at_pct: int = Field(default=80, ge=1, le=100)


class PrivacySettings(Section):
    """`[llm.privacy]`. Redaction of secrets is always on; personal data may be let through.

    `send_images` false shows no attached image to a model: what an image holds cannot be masked.
    `local_hosts` are names, globs, addresses and networks that `local_only` lets be reached.
    `audit_every_call` false leaves model and tool calls out of the audit log. With
    `do_not_retain_default` nothing that was said or read outlives its turn in our tables.
    """

    redact_pii: bool = True
    redact_secrets: bool = True
    audit_every_call: bool = True
    do_not_retain_default: bool = False
    send_images: bool = True
    local_only: bool = False
    local_hosts: tuple[LocalHost, ...] = ()

    @field_validator("redact_secrets")
    @classmethod
    def _always(cls, on: bool) -> bool:
        if not on:
            raise ValueError("cannot be switched off, so that no secret leaves; remove the line")
        return on


class ToolSettings(Section):
    """`[llm.tools.NAME]`."""

    timeout: Duration | None = None


class LlmSettings(Section):
    """`[llm]`. `triage_fallback`: when no model answers, triage still gathers evidence.

    `first_look`: a model begins an investigation with the computed picture of all products.
    """

    default_provider: str = "triage"
    fallback_providers: tuple[str, ...] = ()
    triage_fallback: bool = True
    first_look: bool = True
    mode: Literal["normal", "frugal", "local-only"] = "normal"
    max_tool_depth: int = Field(default=8, ge=1, le=32)
    session_idle_ttl: Duration = timedelta(hours=168)
    show_cost: bool = True
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    budget: BudgetSettings = absent_table()
    privacy: PrivacySettings = absent_table()
    tools: dict[str, ToolSettings] = Field(default_factory=dict)

    @property
    def is_local_only(self) -> bool:
        """Whether only hosts declared local may be reached."""
        return self.mode == "local-only" or self.privacy.local_only


class KubernetesSettings(Section):
    """`[kubernetes]`. `namespaces` are the readable ones, the first is the default.

    `product_label` is the label of a Deployment that names its product; empty, it is discovered.
    """

    kind: Literal["cluster", "kubeconfig", "recorded", "none"] = "none"
    kubeconfig: str = ""
    context: str = ""
    namespaces: tuple[str, ...] = ()
    product_label: str = ""


class AdapterSettings(AccessSettings):
    """`[adapters.NAME]`: where a tool of your own asks (`bot/app/backend_kinds.py`)."""

    url: str


class ControlPlaneSettings(AccessSettings):
    """`[control_plane]`. `info_url` holds `{product}`, as in `http://plane/products/{product}/admin/info`."""

    kind: Literal["http", "recorded", "none"] = "none"
    info_url: str = ""


class ConnectionSettings(Section):
    """`[platform.connections.NAME]`: its users (Slack user ids of that workspace, or `*`), and the
    token.
    """

    users: tuple[PersonIdOrAll, ...]
    workspace: AnyWorkspace = ""
    token: Token = SecretStr("")


class PlatformSettings(RouteSettings):
    """`[platform]`. Used with the asker's connection; without one its tools do not exist."""

    kind: Literal["http", "recorded", "none"] = "none"
    url: str = ""
    connections: dict[str, ConnectionSettings] = Field(default_factory=dict)


class PatternsSettings(Section):
    """`[patterns]`. `folder` holds the team's Markdown pages."""

    folder: str = ""


class PluginSettings(Section):
    """`[plugins]`. `folder` holds a YAML manifest per tool, read at start and on SIGHUP."""

    folder: str = ""


class ChannelSettings(Section):
    """One `[[channels]]`. `match` is a glob of names, or `@direct` or `@group`, which no glob is.

    `workspace` empty is the one of `[slack] bot_token`, `*` every one.

    `products` bound what may be proposed, and as `reading` says what tools may read. `ask` are roles
    that may ask over HTTP; without any, those of `confirm`. `backends` is one name for every
    family of `[observe]`, or a table with one for each.
    """

    match: ChannelNames = Field(min_length=1)
    workspace: AnyWorkspace = ""
    session: str = Field(default="{channel}", pattern=r"^(?:[^{}]|\{channel\})+$")
    products: tuple[str, ...] = ()
    reading: Reading = Reading.PRODUCTS
    toolset: str = "investigate"
    confirm: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    backends: Choice = ChosenBackends()
    daily_usd_limit: float = Field(default=0.0, ge=0, le=MOST_USD)


class AdminSettings(Section):
    """`[admins]`."""

    roles: tuple[str, ...] = ()


class AuditSettings(Section):
    """`[audit]`. Without a key the chain finds accidents only; `old_keys` are key ids rotated out."""

    key: SecretStr = SecretStr("")
    key_id: str = Field(default="1", pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=32)
    old_keys: dict[str, SecretStr] = Field(default_factory=dict)
    checkpoint_stdout: bool = True
    checkpoint_file: str = ""
    checkpoint_url: str = ""
    checkpoint_token: Token = SecretStr("")
    checkpoint_access: SinkAccessSettings = absent_table()
    checkpoint_channel: ChannelIdOrNone = ""
    events_url: str = ""
    events_token: Token = SecretStr("")
    events_access: SinkAccessSettings = absent_table()
    events_nats: str = ""
    events_nats_subject: str = "koder.admin.action"
    events_nats_acknowledged: bool = True
    events_nats_user: str = ""
    events_nats_password: SecretStr = SecretStr("")
    events_nats_token: SecretStr = SecretStr("")

    @field_validator("key")
    @classmethod
    def _long_enough(cls, key: SecretStr) -> SecretStr:
        if 0 < len(key.get_secret_value()) < SHORTEST_AUDIT_KEY:
            raise ValueError(
                f"use {SHORTEST_AUDIT_KEY} characters or more, such as `openssl rand -hex 32` prints"
            )
        return key

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        self.events_access.with_token(self.events_token)
        self.checkpoint_access.with_token(self.checkpoint_token)
        return self

    @property
    def events_route(self) -> SinkAccessSettings:
        """How `events_url` is reached."""
        return self.events_access.with_token(self.events_token)

    @property
    def checkpoint_route(self) -> SinkAccessSettings:
        """How `checkpoint_url` is reached."""
        return self.checkpoint_access.with_token(self.checkpoint_token)


class RetentionSettings(Section):
    """`[retention]`, in days; 0 keeps."""

    messages_days: int = Field(default=0, ge=0, le=3650)
    results_days: int = Field(default=0, ge=0, le=3650)


class ReflexFileSettings(Section):
    """`[reflexes]`. `file` is a path beside kortex.toml; its rules join `[[actions]]`."""

    file: str = ""


class ProposalSettings(Section):
    """`[proposals]`. `max_open` in one conversation: more cards are pressed without being read.

    `mention`: a card mentions the user groups and people who may decide, once, when it is posted.
    """

    max_open: int = Field(default=3, ge=1, le=20)
    mention: bool = True


class WindowSettings(Section):
    """One `[[freeze.windows]]`: from when until when which actions may not run."""

    begins: AwareDatetime = Field(alias="from")
    until: AwareDatetime
    reason: str = ""
    actions: Annotated[tuple[NotEmpty, ...], Field(min_length=1)] = ("*",)
    products: Annotated[tuple[NotEmpty, ...], Field(min_length=1)] = ("*",)

    @field_validator("until")
    @classmethod
    def _ends_later(cls, until: datetime, read: ValidationInfo) -> datetime:
        begins = read.data.get("begins")
        if begins is not None and until <= begins:
            raise ValueError("is not after `from`, so nothing would ever be frozen")
        return until


class FreezeSettings(Section):
    """`[freeze]`. `marker` is a file that keeps a freeze while the database cannot be written.

    Empty: beside the SQLite file; with PostgreSQL such a freeze is kept in memory.
    """

    marker: str = ""
    windows: tuple[WindowSettings, ...] = ()


class Settings(Section):
    slack: SlackSettings = absent_table()
    workspaces: dict[TeamId, WorkspaceSettings] = Field(default_factory=dict)
    http: HttpSettings = absent_table()
    oidc: OidcSettings = absent_table()
    page: PageSettings = absent_table()
    database: DatabaseSettings = absent_table()
    turns: TurnSettings = absent_table()
    llm: LlmSettings = absent_table()
    observe: ObserveSettings = absent_table()
    kubernetes: KubernetesSettings = absent_table()
    control_plane: ControlPlaneSettings = absent_table()
    deploys: dict[str, DeployFeedSettings] = Field(default_factory=dict)
    adapters: dict[str, AdapterSettings] = Field(default_factory=dict)
    platform: PlatformSettings = absent_table()
    patterns: PatternsSettings = absent_table()
    plugins: PluginSettings = absent_table()
    mcp: McpSettings = absent_table()
    policy: PolicySettings = absent_table()
    roles: dict[str, RoleSettings] = Field(default_factory=dict)
    channels: tuple[ChannelSettings, ...] = ()
    alerts: tuple[AlertSettings, ...] = ()
    admins: AdminSettings = absent_table()
    audit: AuditSettings = absent_table()
    retention: RetentionSettings = absent_table()
    actions: tuple[ActionSettings, ...] = ()
    reflexes: ReflexFileSettings = absent_table()
    freeze: FreezeSettings = absent_table()
    proposals: ProposalSettings = absent_table()
    otel: OtelSettings = absent_table()

    def secrets(self) -> frozenset[str]:
        """Every configured secret, for masking in all output."""
        return frozenset(s for s in secret_values(self) if s)
