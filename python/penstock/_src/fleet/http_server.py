"""KVServer: a small key-value store over HTTP, by which scripts of Fluid exchange addresses before a job starts.

    server = KVServer(8080)
    server.start()
    # PUT, GET and DELETE http://HOST:8080/scope/key
    server.stop()

It authenticates nobody: use it within a network whose machines trust each other.
"""

from __future__ import annotations

import http.server
import numbers
import threading
from typing import TYPE_CHECKING

from penstock._src.base.errors import program_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Thread
    from typing import Any


_VALUE_BYTES_MAX = 1 << 20
_VALUES_MAX = 1 << 16


class KVHandler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of a KVHTTPServer.

    Example:
        from penstock.fluid.incubate.fleet.utils.http_server import KVHandler, KVHTTPServer
        KVHTTPServer(0, KVHandler).server_close()
    """

    timeout = 60  # of a connection that sends nothing
    server: KVHTTPServer

    def do_GET(self) -> None:
        """Sends the value of a key; 404 if there is none."""
        key = self._key()
        if key is None:
            return
        with self.server.kv_lock:
            value = self.server.kv.get(key[0], {}).get(key[1])
        self.send_status_code(404) if value is None else self._send(200, value)

    def do_PUT(self) -> None:
        """Sets the value of a key."""
        key = self._key()
        if key is None:
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _VALUE_BYTES_MAX:
            self.send_status_code(413 if length.isdigit() else 411)
            return
        value = self.rfile.read(int(length))
        with self.server.kv_lock:
            full = sum(len(values) for values in self.server.kv.values()) >= _VALUES_MAX
            if not full:
                self.server.kv.setdefault(key[0], {})[key[1]] = value
        self.send_status_code(507 if full else 200)

    def do_DELETE(self) -> None:
        """Counts a key as deleted; its value stays, as in Fluid."""
        key = self._key()
        if key is None:
            return
        with self.server.delete_kv_lock:
            self.server.delete_kv.setdefault(key[0], set()).add(key[1])
        self.send_status_code(200)

    def _key(self) -> list[str] | None:
        parts = self.path.split("/")
        if len(parts) == 3 and parts[1] and parts[2]:
            return parts[1:]
        self.send_status_code(400)
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing.

        Args:
            format (str): as in Python's http.server.
            *args (object): as in Python's http.server.
        """

    def send_status_code(self, code: int) -> None:
        """Sends an answer without a body.

        Args:
            code (int): the status.
        """
        self._send(code, b"")

    def _send(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class KVHTTPServer(http.server.ThreadingHTTPServer):
    """The HTTP server of a KVServer.

    Args:
        port (int): where it listens; 0: a free one.
        handler (type): KVHandler.

    Raises:
        penstock.ProgramError: `port` is not an int (E-argument-type).
        OSError: the port is not free.

    Example:
        from penstock.fluid.incubate.fleet.utils.http_server import KVHandler, KVHTTPServer
        KVHTTPServer(0, KVHandler).server_close()
    """

    daemon_threads = True

    def __init__(self, port: int, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        if not isinstance(port, numbers.Integral):
            raise program_error("E-argument-type", f"KVHTTPServer: port must be an int, not {port!r}")
        super().__init__(("", port), handler)
        self.kv: dict[str, dict[str, bytes]] = {}
        self.kv_lock: threading.Lock = threading.Lock()
        self.delete_kv: dict[str, set[str]] = {}
        self.delete_kv_lock: threading.Lock = threading.Lock()

    def get_deleted_size(self, key: str) -> int:
        """Counts the deleted keys of a scope.

        Args:
            key (str): the scope.

        Returns:
            int: their number.
        """
        with self.delete_kv_lock:
            return len(self.delete_kv.get(key, ()))


class KVServer:
    """A key-value store over HTTP.

    Args:
        port (int): where it listens; 0: a free one.
        size (dict | None): {scope: number of keys}; when so many keys of each scope are deleted, it should stop.

    Example:
        from penstock.fluid.incubate.fleet.utils.http_server import KVServer
        server = KVServer(0)
        server.start()
        server.stop()
    """

    def __init__(self, port: int, size: Mapping[str, int] | None = None) -> None:
        self.http_server = KVHTTPServer(port, KVHandler)
        self.listen_thread: Thread | None = None
        self.size = dict(size or {})

    def start(self) -> None:
        """Answers requests in a thread of its own until `stop`."""
        self.listen_thread = threading.Thread(target=self.http_server.serve_forever, daemon=True)
        self.listen_thread.start()

    def stop(self) -> None:
        """Ends the server."""
        if self.listen_thread is not None:
            self.http_server.shutdown()
            self.listen_thread.join()
        self.http_server.server_close()

    def should_stop(self) -> bool:
        """Tells whether as many keys as `size` states have been deleted.

        Returns:
            bool: whether they have.
        """
        return all(self.http_server.get_deleted_size(scope) >= count for scope, count in self.size.items())

    shoud_stop = should_stop  # Fluid's spelling
