"""The schema. One row shape per contract type; nothing outside this package sees a row.

SQLite turns NaN into NULL, so every stored number has a ``kind`` beside it (`NumberKind`); ``value`` is 0 where
the kind is not finite. Times are integer microseconds since the Unix epoch, UTC, the same on both databases.
A series is one metric of one attempt of one run; points, rollups and extremes hang on its number, so a point
costs two integers, a double and a byte.
"""

from __future__ import annotations

from enum import IntEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import JSON

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite autoincrements only INTEGER primary keys.
_Id = BigInteger().with_variant(Integer(), "sqlite")


class NumberKind(IntEnum):
    FINITE = 0
    NAN = 1
    POS_INF = 2
    NEG_INF = 3


meta = Table(
    "meta",
    METADATA,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

tokens = Table(
    "tokens",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scopes", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("expires_at", BigInteger),
    Column("last_used_at", BigInteger),
    Column("created_by", String(128), nullable=False, default="", server_default=""),
)

users = Table(
    "users",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    # viewer, operator or admin.
    Column("role", String(16), nullable=False),
    # The hash, with its parameters; None until the person chose one.
    Column("password", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", String(128), nullable=False),
    Column("disabled_at", BigInteger),
    Column("seen_at", BigInteger),
)

entries = Table(
    "entries",
    METADATA,
    # A link that lets somebody in once: a user who was invited, or who holds a token. The digest is of its secret.
    Column("digest", String(64), primary_key=True),
    Column("purpose", String(16), nullable=False),
    Column("subject", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", String(128), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
)

sessions = Table(
    "sessions",
    METADATA,
    # A browser that is signed in. ``kind`` says what ``subject`` is the id of: a user, a token or a share.
    Column("digest", String(64), primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("subject", String(128), nullable=False, index=True),
    Column("agent", String(256), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
)

refused_entries = Table(
    "refused_entries",
    METADATA,
    # Failed sign-ins by whom they were for and from where they came, so that all processes count together.
    Column("number", _Id, primary_key=True, autoincrement=True),
    Column("source", String(128), nullable=False),
    Column("at", BigInteger, nullable=False),
    Index(None, "source", "at"),
)

shares = Table(
    "shares",
    METADATA,
    # A link to one view of one run, for reading, for a while.
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("run", String(128), ForeignKey("runs.id"), nullable=False),
    Column("view", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("created_by", String(128), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
)

retention = Table(
    "retention",
    METADATA,
    # What is kept how long; the project "" is for all that have no line of their own.
    Column("project", String(128), primary_key=True),
    Column("body", JSON, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("changed_by", String(128), nullable=False),
)

runs = Table(
    "runs",
    METADATA,
    Column("id", String(128), primary_key=True),
    Column("project", String(128), nullable=False, index=True),
    Column("name", String(256), nullable=False),
    Column("framework", String(64), nullable=False),
    Column("model", String(256), nullable=False),
    Column("config", JSON, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("capabilities", JSON, nullable=False),
    # The user's own settings that may be changed while it trains: name → bounds, as the client told them.
    Column("knobs", JSON, nullable=False, default=dict, server_default="{}"),
    Column("created_at", BigInteger, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    Column("progress_at", BigInteger),
    Column("last_step", BigInteger),
    Column("phase", String(16), nullable=False),
    # What people say of it; ``tags`` are the trainer's own.
    Column("owner", String(128), nullable=False, default="", server_default=""),
    Column("labels", JSON, nullable=False, default=list, server_default="[]"),
    Column("notes", Text, nullable=False, default="", server_default=""),
    Column("archived_at", BigInteger),
    # A deleted run leaves this row, so that a trainer that still sends is told so.
    Column("deleted_at", BigInteger),
    Column("deleted_by", String(128), nullable=False, default="", server_default=""),
)

attempts = Table(
    "attempts",
    METADATA,
    Column("number", _Id, primary_key=True, autoincrement=True),
    Column("run", String(128), ForeignKey("runs.id"), nullable=False),
    Column("id", String(64), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("first_step", BigInteger),
    Column("last_step", BigInteger),
    UniqueConstraint("run", "id"),
)

writers = Table(
    "writers",
    METADATA,
    Column("attempt", BigInteger, ForeignKey("attempts.number"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("stored_through", BigInteger, nullable=False),
    Column("last_step", BigInteger),
    # When ``last_step`` last grew: a rule waits for the other writers of a step only while they still advance.
    Column("progress_at", BigInteger),
    Column("seen_at", BigInteger, nullable=False),
)

series = Table(
    "series",
    METADATA,
    Column("number", _Id, primary_key=True, autoincrement=True),
    Column("attempt", BigInteger, ForeignKey("attempts.number"), nullable=False),
    Column("metric", String(200), nullable=False),
    Column("missing_reason", Text, nullable=False, default=""),
    Column("missing_step", BigInteger),
    UniqueConstraint("attempt", "metric"),
)

points = Table(
    "points",
    METADATA,
    Column("series", BigInteger, primary_key=True, autoincrement=False),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Float(53), nullable=False),
    Column("kind", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

rollups = Table(
    "rollups",
    METADATA,
    Column("series", BigInteger, primary_key=True, autoincrement=False),
    Column("width", BigInteger, primary_key=True, autoincrement=False),
    Column("bucket", BigInteger, primary_key=True, autoincrement=False),
    Column("low", Float(53)),
    Column("high", Float(53)),
    Column("total", Float(53), nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("last", Float(53)),
    Column("last_step", BigInteger, nullable=False),
    Column("nan", BigInteger, nullable=False),
    Column("pos_inf", BigInteger, nullable=False),
    Column("neg_inf", BigInteger, nullable=False),
    # A step of each kind inside the bucket, so that a mark can be drawn at a true step.
    Column("nan_step", BigInteger),
    Column("pos_inf_step", BigInteger),
    Column("neg_inf_step", BigInteger),
    sqlite_with_rowid=False,
)

extremes = Table(
    "extremes",
    METADATA,
    Column("series", BigInteger, primary_key=True, autoincrement=False),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Float(53), nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("token_id", BigInteger),
    Column("position", BigInteger),
    Column("sample", BigInteger),
    Column("masked", Boolean),
    Column("token", Text),
    sqlite_with_rowid=False,
)

steps = Table(
    "steps",
    METADATA,
    Column("attempt", BigInteger, ForeignKey("attempts.number"), primary_key=True, autoincrement=False),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("time", BigInteger, nullable=False),
    Column("received", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

texts = Table(
    "texts",
    METADATA,
    Column("number", _Id, primary_key=True, autoincrement=True),
    Column("attempt", BigInteger, ForeignKey("attempts.number"), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("sample", BigInteger, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("completion", Text, nullable=False),
    Column("token_ids", LargeBinary, nullable=False),
    Column("reward", Float(53)),
    Column("reward_kind", SmallInteger),
    Column("truncated", Boolean),
    Column("invalid_utf8", Integer),
    Column("why", String(32), nullable=False),
    Column("tokens", JSON(none_as_null=True)),
    Index(None, "attempt", "step"),
)

histograms = Table(
    "histograms",
    METADATA,
    Column("series", BigInteger, primary_key=True, autoincrement=False),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("edges", JSON, nullable=False),
    Column("counts", JSON, nullable=False),
)

events = Table(
    "events",
    METADATA,
    Column("number", _Id, primary_key=True, autoincrement=True),
    Column("attempt", BigInteger, ForeignKey("attempts.number"), nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("step", BigInteger),
    Column("kind", String(32), nullable=False),
    Column("payload", JSON, nullable=False),
    # Phases come several times a step: whoever looks for a checkpoint shall not read them all.
    Index(None, "attempt", "kind"),
)

hook_tables = Table(
    "hook_tables",
    METADATA,
    # The newest table of each writer; ``at`` by the service's clock. All of them are among the events.
    Column("attempt", BigInteger, ForeignKey("attempts.number"), primary_key=True, autoincrement=False),
    Column("writer", String(64), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("step", BigInteger),
    Column("payload", JSON, nullable=False),
)

evaluations = Table(
    "evaluations",
    METADATA,
    # The persisted cursor: all steps of the attempt up to ``step`` have been judged; the rules' memory after it.
    Column("attempt", BigInteger, ForeignKey("attempts.number"), primary_key=True, autoincrement=False),
    Column("step", BigInteger, nullable=False),
    Column("memory", JSON, nullable=False),
)

alerts = Table(
    "alerts",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("run", String(128), ForeignKey("runs.id"), nullable=False),
    Column("attempt", BigInteger, ForeignKey("attempts.number"), nullable=False),
    Column("rule", String(128), nullable=False),
    Column("severity", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("since_step", BigInteger, nullable=False),
    Column("since_time", BigInteger, nullable=False),
    Column("body", JSON, nullable=False),
    Index(None, "run", "state"),
)

transitions = Table(
    "transitions",
    METADATA,
    # The id is made from alert, change and step, so that judging a step twice cannot record it twice.
    Column("id", String(32), primary_key=True),
    Column("alert", String(32), ForeignKey("alerts.id"), nullable=False, index=True),
    Column("run", String(128), ForeignKey("runs.id"), nullable=False, index=True),
    Column("before", String(16), nullable=False),
    Column("after", String(16), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    # The alert as it was at this change; ``alerts`` holds it as it is now.
    Column("body", JSON, nullable=False),
    Column("routed", Boolean, nullable=False, index=True),
)

deliveries = Table(
    "deliveries",
    METADATA,
    # What one channel is to hear of one transition: the news, a reminder, or an escalation; ``message`` is the one
    # that it was put into, once its time had come.
    Column("id", String(32), primary_key=True),
    Column("transition", String(32), ForeignKey("transitions.id"), nullable=False),
    Column("channel", String(128), nullable=False),
    Column("purpose", String(16), nullable=False, default="news"),
    Column("round", Integer, nullable=False, default=0),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("answer", Text, nullable=False),
    Column("delivered_at", BigInteger),
    Column("message", String(32), ForeignKey("messages.id"), index=True),
    UniqueConstraint("transition", "channel", "purpose", "round"),
    Index(None, "channel", "state", "next_at"),
)

messages = Table(
    "messages",
    METADATA,
    # What is sent at once. Its deliveries never change after it was made, so that it goes again as it went before.
    Column("id", String(32), primary_key=True),
    Column("channel", String(128), nullable=False),
    # None where it is about several runs.
    Column("run", String(128)),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("claimed_by", String(64)),
    Column("claimed_until", BigInteger),
    Column("answer", Text, nullable=False),
    Column("delivered_at", BigInteger),
    Index(None, "channel", "state", "next_at"),
    Index(None, "channel", "created_at"),
)

sends = Table(
    "sends",
    METADATA,
    # Each attempt to send a message, with the provider's own words.
    Column("message", String(32), ForeignKey("messages.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False, index=True),
    Column("verdict", String(16), nullable=False),
    Column("answer", Text, nullable=False),
)

silences = Table(
    "silences",
    METADATA,
    Column("id", String(32), primary_key=True),
    # A silence that somebody asked for, or a maintenance window.
    Column("purpose", String(16), nullable=False),
    Column("matchers", JSON, nullable=False),
    Column("starts_at", BigInteger, nullable=False),
    Column("ends_at", BigInteger, nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("who", String(128), nullable=False),
    Column("why", Text, nullable=False),
    # Who ended it before its time.
    Column("ended_by", String(128)),
)

links = Table(
    "links",
    METADATA,
    # A signed link that acts once. The digest is of its secret part, which is nowhere stored.
    Column("digest", String(64), primary_key=True),
    Column("act", String(32), nullable=False),
    Column("subject", String(128), nullable=False),
    # What it acts on as it was when the link was made: it acts on nothing else.
    Column("content", String(64), nullable=False),
    Column("channel", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
    Column("used_by", String(128)),
)

channels = Table(
    "channels",
    METADATA,
    # Channels that were made in the browser or by REST; those of the file are not here.
    Column("name", String(48), primary_key=True),
    Column("body", JSON, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("changed_by", String(128), nullable=False),
)

commands = Table(
    "commands",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("run", String(128), ForeignKey("runs.id"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("alert", String(32)),
    Column("body", JSON, nullable=False),
    Index(None, "run", "state"),
)

audit = Table(
    "audit",
    METADATA,
    Column("number", _Id, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("run", String(128), nullable=False, index=True),
    Column("command", String(32), nullable=False),
    Column("who", String(128), nullable=False),
    Column("what", String(64), nullable=False),
    Column("detail", Text, nullable=False),
    # SHA-256 over the line and the digest of the line before it.
    Column("digest", String(64), nullable=False, server_default=""),
)

voices = Table(
    "voices",
    METADATA,
    # Who approved a command; one that came by a link without a login has no name and never counts as the second.
    Column("command", String(32), ForeignKey("commands.id"), primary_key=True),
    Column("who", String(128), primary_key=True),
    Column("named", Boolean, nullable=False),
    Column("at", BigInteger, nullable=False),
)

policies = Table(
    "policies",
    METADATA,
    # Who may steer, as chosen while the service runs. ``scope`` is "rule", "run" or "project".
    Column("scope", String(16), primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("policy", String(16), nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("changed_by", String(128), nullable=False),
)

steering = Table(
    "steering",
    METADATA,
    # Which KL policy steers a run or a project's runs, and with what settings of its own.
    Column("scope", String(16), primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("kl_policy", String(32), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("changed_by", String(128), nullable=False),
)

steering_memory = Table(
    "steering_memory",
    METADATA,
    # What the KL policy of an attempt remembers after all steps up to ``step``.
    Column("attempt", BigInteger, ForeignKey("attempts.number"), primary_key=True, autoincrement=False),
    Column("kl_policy", String(32), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("memory", JSON, nullable=False),
    Column("decision", JSON, nullable=False),
)

edited_rules = Table(
    "edited_rules",
    METADATA,
    # Every rule document that was put in force by the API; the highest number is. None is ever changed.
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("why", String(500), nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("changed_by", String(128), nullable=False),
)
