"""Switches loopback on in a fresh network namespace, then becomes the given command."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

SET_FLAGS = 0x8914  # SIOCSIFFLAGS of <linux/sockios.h>
UP = 0x1  # IFF_UP of <linux/if.h>

if __name__ == "__main__":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        fcntl.ioctl(door, SET_FLAGS, struct.pack("16sH22x", b"lo", UP))
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  (becoming the command is the point)
