"""Which versions the answers of chats cite, and what their messages say of newer ones."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Answers from before keep saying nothing of versions that were replaced until now."""
    op.add_column("outbox", sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("outbox", sa.Column("shown_changes", sa.JSON(), nullable=True))
    op.create_index(op.f("ix_outbox_changed_at"), "outbox", ["changed_at"])
    sources = op.create_table(
        "answer_source",
        sa.Column("inbox_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["inbox_id"], ["inbox.id"], name=op.f("fk_answer_source_inbox_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["version_id"], ["version.id"], name=op.f("fk_answer_source_version_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("inbox_id", "version_id", name=op.f("pk_answer_source")),
    )
    op.create_index(op.f("ix_answer_source_version_id"), "answer_source", ["version_id"])
    connection = op.get_bind()
    outbox = sa.table("outbox", sa.column("inbox_id", sa.Integer), sa.column("answer", sa.JSON))
    known = set(
        connection.execute(sa.select(sa.table("version", sa.column("id", sa.Integer)).c.id)).scalars()
    )
    for inbox_id, answer in connection.execute(sa.select(outbox.c.inbox_id, outbox.c.answer)).all():
        cited = {one.get("version_id") for one in (answer or {}).get("citations", ())} & known
        if cited:
            rows = [{"inbox_id": inbox_id, "version_id": version} for version in sorted(cited)]
            connection.execute(sa.insert(sources), rows)
