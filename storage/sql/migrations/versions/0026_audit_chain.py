"""Each entry of the audit holds the digest of the one before it; a citation's links can be revoked."""

import hashlib
import json
from datetime import UTC

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_audit = sa.table(
    "audit",
    sa.column("id", sa.Integer()),
    sa.column("at", sa.DateTime(timezone=True)),
    *(sa.column(name, sa.String()) for name in ("actor", "action", "channel", "subject")),
    sa.column("is_done", sa.Boolean()),
    *(sa.column(name, sa.String()) for name in ("previous", "digest")),
)
_fact = sa.table("fact", sa.column("name", sa.String()), sa.column("value", sa.String()))


def upgrade() -> None:
    """The entries that are there are chained as they are; no link is revoked."""
    for name in ("previous", "digest"):
        op.add_column("audit", sa.Column(name, sa.String(), nullable=False, server_default=""))
    op.add_column("citation", sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True))
    head, connection = "", op.get_bind()
    for row in connection.execute(sa.select(_audit).order_by(_audit.c.id)).all():
        at = (row.at if row.at.tzinfo else row.at.replace(tzinfo=UTC)).astimezone(UTC)
        when = at.isoformat(timespec="microseconds")
        said = [head, when, row.actor, row.action, row.channel, row.subject, bool(row.is_done)]
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        chained = sa.update(_audit).where(_audit.c.id == row.id).values(previous=head, digest=digest)
        connection.execute(chained)
        head = digest
    if head:
        connection.execute(sa.insert(_fact).values(name="audit head", value=head))
