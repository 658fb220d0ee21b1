"""Detects which files lie on a network share, where locks, write-ahead logs and change times mean less."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = re.compile(
    r"nfs\d*|cifs|smb\d*|smbfs|afs|ncpfs|ceph|lustre|fuse\.(sshfs|glusterfs|ceph|s3fs|rclone)"
)
# File systems that another program or machine serves; those that only rearrange local disks left out.
_SERVED = re.compile(r"fuse(\.(?!fuse-overlayfs|mergerfs|ntfs|exfat).*)?|9p|virtiofs|davfs|autofs")


def may_hang(path: Path, mounts: str | None = None) -> bool:
    """True if ``path`` lies on a network share or on what another program serves: either may stop answering.

    Blocks for as long as it does not answer. Arguments as for ``is_network_share``.
    """
    kind = _filesystem(path.resolve(), _table() if mounts is None else mounts)
    return bool(_NETWORK.fullmatch(kind) or _SERVED.fullmatch(kind))


def is_network_share(path: Path, mounts: str | None = None) -> bool:
    """True if ``path``, or the nearest folder above it that exists, lies on a network file system.

    Args:
        path: any path; it need not exist yet.
        mounts: the kernel's mount table; by default that of this machine. Without one (not a
            Linux), nothing counts as a share.
    """
    return bool(_NETWORK.fullmatch(_filesystem(path.resolve(), _table() if mounts is None else mounts)))


def _table() -> str:
    return MOUNTS.read_text(encoding="utf-8", errors="replace") if MOUNTS.exists() else ""


def _filesystem(path: Path, mounts: str) -> str:
    """File system type of the mount that ``path`` lies on: the longest mount point, the last of equals."""
    below = f"{path}/"
    return next((kind for point, kind in _mount_points(mounts) if below.startswith(point)), "")


@lru_cache(maxsize=4)
def _mount_points(mounts: str) -> list[tuple[str, str]]:
    """(mount point with a slash at its end, file system type), the longest first, of equals the last one.

    A table is read anew at each scan of each folder, and hardly ever another one.
    """
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        found.append((f"{_unescape(before.split()[4]).rstrip('/')}/", after.split()[0]))
    return sorted(reversed(found), key=lambda one: -len(one[0]))


def _unescape(text: str) -> str:
    """Return the kernel writes blanks in paths as octal escapes."""
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)
