"""Detection of network shares and mounts that may hang."""

from __future__ import annotations

from pathlib import Path

from storage.mounts import is_network_share, may_hang


def test_fuse_mounts_may_hang_like_network_shares() -> None:
    """Overlays over local disks do not count."""
    table = "".join(
        f"{number} 1 0:{number} / /mnt/{kind} rw - {kind} x rw\n"
        for number, kind in enumerate(
            ("nfs4", "fuse.bindfs", "fuse", "9p", "fuse.fuse-overlayfs", "fuseblk"), 40
        )
    )
    hanging = [line.split()[4] for line in table.splitlines() if may_hang(Path(line.split()[4]) / "a", table)]
    assert hanging == ["/mnt/nfs4", "/mnt/fuse.bindfs", "/mnt/fuse", "/mnt/9p"]


def test_network_shares_are_distinguished_from_local_disks() -> None:
    """The longest mount point wins; it may contain blanks."""
    table = (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "40 22 0:50 / /mnt/the\\040share rw shared:1 - cifs //server/x rw\n"
        "41 22 0:51 / /mnt/nfs rw - nfs4 server:/x rw\n"
        "42 41 8:2 / /mnt/nfs/local rw - xfs /dev/sdb1 rw\n"
    )
    paths = ["/srv/db", "/mnt/the share/a/b.pdf", "/mnt/nfs/a", "/mnt/nfs/local/a", "/mnt/nfsx"]
    assert [is_network_share(Path(path), table) for path in paths] == [False, True, True, False, False]
