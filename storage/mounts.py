"""Detection of network shares, where locks, write-ahead logs and modification times are less reliable."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = re.compile(
    r"nfs\d*|cifs|smb\d*|smbfs|afs|ncpfs|ceph|lustre|fuse\.(sshfs|glusterfs|ceph|s3fs|rclone)"
)
# File systems served by another program or machine, except those that only rearrange local disks.
_SERVED = re.compile(r"fuse(\.(?!fuse-overlayfs|mergerfs|ntfs|exfat).*)?|9p|virtiofs|davfs|autofs")


def may_hang(path: Path, mounts: str | None = None) -> bool:
    """True if ``path`` lies on a network share or a served file system, either of which may hang.

    Blocks while the file system hangs. Arguments as for ``is_network_share``.
    """
    kind = _filesystem(path.resolve(), _table() if mounts is None else mounts)
    return bool(_NETWORK.fullmatch(kind) or _SERVED.fullmatch(kind))


def is_network_share(path: Path, mounts: str | None = None) -> bool:
    """True if ``path``, or its nearest existing parent, lies on a network file system.

    Args:
        mounts: the kernel's mount table; this machine's by default. Without one (not Linux), nothing
            counts as a share.
    """
    return bool(_NETWORK.fullmatch(_filesystem(path.resolve(), _table() if mounts is None else mounts)))


def _table() -> str:
    return MOUNTS.read_text(encoding="utf-8", errors="replace") if MOUNTS.exists() else ""


def _filesystem(path: Path, mounts: str) -> str:
    """Return the file system type of a path's mount: the longest mount point, the last of equal ones."""
    below = f"{path}/"
    return next((kind for point, kind in _mount_points(mounts) if below.startswith(point)), "")


@lru_cache(maxsize=4)
def _mount_points(mounts: str) -> list[tuple[str, str]]:
    """Return (mount point with a slash at its end, file system type), longest first; of equals the last.

    Cached because the table is parsed at each scan of each folder and hardly ever changes.
    """
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        found.append((f"{_unescape(before.split()[4]).rstrip('/')}/", after.split()[0]))
    return sorted(reversed(found), key=lambda one: -len(one[0]))


def _unescape(text: str) -> str:
    """Decode the octal escapes that the kernel writes for blanks in paths."""
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)
