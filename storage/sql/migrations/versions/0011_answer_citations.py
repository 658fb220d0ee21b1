"""Citations know which answer showed them, and by which number."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Links from before open their own quote alone."""
    answer_id = sa.Column("answer_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True)
    op.add_column("citation", answer_id)
    op.add_column("citation", sa.Column("number", sa.Integer(), nullable=True))
    op.create_index(op.f("ix_citation_answer_id"), "citation", ["answer_id"])
