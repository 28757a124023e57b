"""Connections inside one thread: bytes arrive in order, after a time that the seed decides."""

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from tests.whole_service.loop import PROCESS, VirtualLoop

HOST = "127.0.0.1"
FIRST_PORT = 40_001
EOF, RESET = "eof", "reset"


class _Name:
    """What a server says of its socket."""

    def __init__(self, port: int) -> None:
        self.port = port

    def getsockname(self) -> tuple[str, int]:
        """The address."""
        return (HOST, self.port)


class Listener(asyncio.AbstractServer):
    """A server of a process."""

    def __init__(self, network: "NetworkLoop", make: Callable[[], Any], port: int) -> None:
        self._network = network
        self.make = make
        self.port = port
        self.context = copy_context()
        self.process = PROCESS.get()
        self.sockets = [_Name(port)]

    def close(self) -> None:
        """Refuse connections from here on."""
        if self._network.listening.get(self.port) is self:
            del self._network.listening[self.port]

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._network.listening.get(self.port) is self

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop."""
        return self._network

    async def start_serving(self) -> None:
        """Nothing: it serves from the start."""

    async def serve_forever(self) -> None:
        """Nothing: it serves from the start."""

    async def wait_closed(self) -> None:
        """Nothing: its connections end with their owners."""


class End(asyncio.Transport):
    """One end of a connection."""

    peer: "End"

    def __init__(
        self, network: "NetworkLoop", protocol: Any, context: Context, ports: tuple[int, int]
    ) -> None:
        super().__init__({"sockname": (HOST, ports[0]), "peername": (HOST, ports[1])})
        self._network = network
        self.protocol = protocol
        self.context = context
        self.process = context.get(PROCESS, "")
        self._arrived: deque[bytes | str] = deque()
        self._due_s = 0.0
        self._waiting = 0
        self._is_paused = self._is_closing = self.is_lost = False

    def soon(self, call: Callable[..., object], *args: Any) -> None:
        """Call something as the process that has this end."""
        self._network.call_soon(call, *args, context=self.context)

    def expect(self, what: bytes | str) -> None:
        """Receive this after a while, and never before what was sent before."""
        now_s = self._network.time()
        self._due_s = max(self._due_s, now_s + self._network.latency_s())
        self._arrived.append(what)
        self._network.call_at(self._due_s, self._receive, context=self.context)

    def _receive(self) -> None:
        if self.is_lost or not self._arrived:
            return
        if self._is_paused:
            self._waiting += 1
            return
        what = self._arrived.popleft()
        if isinstance(what, bytes):
            if not self._is_closing:
                self.protocol.data_received(what)
        elif what == RESET:
            self._lose(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
        elif not self._is_closing and not self.protocol.eof_received():
            self.close()

    def _lose(self, why: Exception | None) -> None:
        if not self.is_lost:
            self.is_lost = self._is_closing = True
            self._network.ends.pop(self, None)
            self.soon(self.protocol.connection_lost, why)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        if not self._is_closing and data:
            self.peer.expect(bytes(data))

    def can_write_eof(self) -> bool:
        """No: nothing here needs it."""
        return False

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self._is_closing

    def close(self) -> None:
        """End the connection after what was sent."""
        if not self._is_closing:
            self._is_closing = True
            self.peer.expect(EOF)
            self._lose(None)

    def abort(self) -> None:
        """End the connection at once."""
        if not self.is_lost:
            self.peer.expect(RESET)
            self._lose(None)

    def vanish(self) -> None:
        """End it with its process, which notices nothing."""
        self.is_lost = self._is_closing = True
        self.peer.expect(RESET)

    def pause_reading(self) -> None:
        """Keep what arrives."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Take what has arrived meanwhile, and go on."""
        self._is_paused = False
        for _ in range(self._waiting):
            self.soon(self._receive)
        self._waiting = 0

    def is_reading(self) -> bool:
        """Whether it takes what arrives."""
        return not self._is_paused

    def get_write_buffer_size(self) -> int:
        """Nothing is kept back."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is kept back."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Let another one receive."""
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The one that receives."""
        found: asyncio.BaseProtocol = self.protocol
        return found


class NetworkLoop(VirtualLoop):
    """The loop with its network."""

    def __init__(self) -> None:
        super().__init__()
        self.listening: dict[int, Listener] = {}
        self.ends: dict[End, None] = {}
        self.latency_s: Callable[[], float] = _none
        self._next_port = FIRST_PORT
        self._ports: dict[tuple[str, int], int] = {}
        self._dialled: dict[int, int] = {}

    def _new_port(self) -> int:
        self._next_port += 1
        return self._next_port - 1

    async def create_server(  # type: ignore[override]  # what is asked for here
        self, factory: Any, *_: Any, **more: Any
    ) -> Listener:
        """Listen on a port of this network; servers that share a socket share a port."""
        given: socket.socket | None = more.get("sock")
        port = self._new_port()
        if given is not None:
            key = (PROCESS.get(), given.getsockname()[1])
            port = self._ports.setdefault(key, port)
            given.close()
        self.listening[port] = made = Listener(self, factory, port)
        return made

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Find the server. Raises ConnectionRefusedError if nobody listens."""
        if address[1] not in self.listening:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens on {address[1]}")
        self._dialled[sock.fileno()] = address[1]

    async def create_connection(  # type: ignore[override]  # what is asked for here
        self, factory: Any, *_: Any, **more: Any
    ) -> tuple[End, Any]:
        """Connect to the server that `sock_connect` found."""
        dialled: socket.socket = more["sock"]
        port = self._dialled.pop(dialled.fileno())
        dialled.close()
        listener = self.listening.get(port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens on {port}")
        context, own_port = listener.context.copy(), self._new_port()
        client = End(self, factory(), copy_context(), (own_port, port))
        server = End(self, context.run(listener.make), context, (port, own_port))
        client.peer, server.peer = server, client
        self.ends |= {client: None, server: None}
        server.soon(server.protocol.connection_made, server)
        client.protocol.connection_made(client)
        return client, client.protocol

    def kill(self, process: str) -> None:
        """Let a process take no further step; its peers see its connections end."""
        super().kill(process)
        for port, listener in list(self.listening.items()):
            if listener.process == process:
                del self.listening[port]
        for end in [end for end in self.ends if end.process == process]:
            del self.ends[end]
            end.vanish()


def _none() -> float:
    return 0.0
