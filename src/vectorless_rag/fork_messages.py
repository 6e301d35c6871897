"""
What a process and its fork server say to each other.

An order goes over the socket that the two share. It brings a socket of its own along,
over which the server tells what becomes of the child that it started for it.
"""

import array
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LONGEST = 1 << 18
_INT = array.array("i").itemsize

GO = b"go"
"""What a child that was started waits for."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """A child that is to be started."""

    cwd: str

    env: Mapping[str, str]
    """Its whole environment."""

    stdin: int
    output: int
    answer: int
    progress: int

    status: int
    """The socket of the order itself; the others are the child's to keep."""

    @property
    def fds(self) -> tuple[int, ...]:
        """Every descriptor, in the order in which they travel."""
        return self.stdin, self.output, self.answer, self.progress, self.status


def send_order(control: socket.socket, order: Order) -> None:
    """
    Send an order, or nothing.

    Raises:
        OSError: Nobody reads, or not fast enough.
    """
    said = json.dumps({"cwd": order.cwd, "env": dict(order.env)}).encode()
    _send(control, said, order.fds)


def receive_order(control: socket.socket) -> Order | None:
    """Wait for an order; None: there will be no more. Its descriptors are new."""
    said, fds = _receive(control, 5)
    if not said:
        return None
    stdin, output, answer, progress, status = fds
    return Order(
        **json.loads(said),
        stdin=stdin,
        output=output,
        answer=answer,
        progress=progress,
        status=status,
    )


def tell_started(status: socket.socket, pid: int, handle: int) -> None:
    """
    Tell that a child was started.

    Raises:
        OSError: Nobody wants to know any more.
    """
    _send(status, b"%d" % pid, [handle])


def tell_ended(status: socket.socket, exit_status: int) -> None:
    """
    Tell that a child has ended.

    Raises:
        OSError: Nobody wants to know any more.
    """
    _send(status, b"%d" % exit_status, [])


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What a server tells of a child: that it is there, or that it is gone."""

    number: int
    """The child's, or its exit status."""

    handle: int | None
    """Of a child that is there, and of no other, whatever becomes of its number."""


def hear(status: socket.socket) -> Heard | None:
    """Wait for what is told; None: the server is gone, or could not start a child."""
    said, fds = _receive(status, 1)
    if not said:
        return None
    return Heard(number=int(said), handle=fds[0] if fds else None)


def _send(sender: socket.socket, said: bytes, fds: Sequence[int]) -> None:
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
    flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
    sender.sendmsg([said], [rights] if fds else [], flags)


def _receive(receiver: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """Wait for a message. `socket.recv_fds` leaves what arrives to be inherited."""
    fds = array.array("i")
    try:
        said, rights, _, _ = receiver.recvmsg(
            _LONGEST, socket.CMSG_LEN(most * _INT), socket.MSG_CMSG_CLOEXEC
        )
    except ConnectionError:
        return b"", []
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % _INT])
    return said, list(fds)


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends that keep messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors that belong to no object."""
    for fd in fds:
        os.close(fd)
