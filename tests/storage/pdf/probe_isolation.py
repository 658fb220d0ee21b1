"""Gives up what the PDF process gives up, then tries to take it back: PORT FILE [filter]."""

from __future__ import annotations

import json
import os
import socket
import sys

from storage.pdf import sandbox


def connects(port: int) -> str:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError as error:
        return type(error).__name__
    return "connected"


def reads(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return type(error).__name__


def main() -> None:
    port, path = int(sys.argv[1]), sys.argv[2]
    before = [connects(port), reads(path)]
    if "filter" in sys.argv:
        state = {
            "network": "filter"
            if sandbox._libc.prctl(38, 1, 0, 0, 0) == 0 and sandbox._refuse_sockets()
            else "open"
        }
    else:
        state = sandbox.isolate()
    after = [connects(port), reads(path)]
    print(json.dumps({"before": before, "after": after, "state": state, "root": os.geteuid() == 0}))


if __name__ == "__main__":
    main()
