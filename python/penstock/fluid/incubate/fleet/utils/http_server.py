"""KVServer: a small key-value store over HTTP, by which scripts of Fluid exchange addresses before a job starts.

    server = KVServer(8080)
    server.start()
    # PUT, GET and DELETE http://HOST:8080/scope/key
    server.stop()

It authenticates nobody: use it within a network whose machines trust each other.
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.http_server import KVHandler, KVHTTPServer, KVServer

__all__ = ['KVHTTPServer', 'KVHandler', 'KVServer']

facade.make(__name__)
