"""The listening socket of ``serve``: bound at once, and either accepting or refusing connections."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from engines.support.ports import free_port

from bot.server_socket import ServerSocket
from storage.errors import SettingsError

HOST = "127.0.0.1"


def test_connections_before_the_server_listens_are_refused(tmp_path: Path) -> None:
    """Shows that a load balancer does not wait for a starting process, but tries another one."""
    port = free_port()
    with ServerSocket(HOST, port, tmp_path) as taken:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port), timeout=5)
        taken.listen()
        socket.create_connection((HOST, port), timeout=5).close()


def test_a_port_in_use_is_refused_at_once(tmp_path: Path) -> None:
    """Shows the error before anything slow starts."""
    port = free_port()
    with ServerSocket(HOST, port, tmp_path) as taken:
        taken.listen()
        with (
            pytest.raises(SettingsError, match=f"port {port} is already in use"),
            ServerSocket(HOST, port, tmp_path),
        ):
            pass


def test_the_later_of_two_starting_servers_is_refused(tmp_path: Path) -> None:
    """Shows the same error if both found the port free."""
    port = free_port()
    with ServerSocket(HOST, port, tmp_path) as first, ServerSocket(HOST, port, tmp_path) as second:
        first.listen()
        with pytest.raises(SettingsError, match=f"port {port} is already in use"):
            second.listen()
