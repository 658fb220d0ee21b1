"""Hook of MkDocs: links that leave docs/ lead to the repository, as they do on GitHub."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\]\(\.\./")


def on_page_markdown(markdown: str, *, config: Any, **_: Any) -> str:
    """Return a page whose links out of docs/ are absolute."""
    return OUTSIDE.sub(f"]({config['repo_url']}/blob/main/", markdown)
