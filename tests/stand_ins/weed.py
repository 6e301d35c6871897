"""
Play the image ``seaweedfs``: moto, under the two commands that compose.yaml gives.

``server …`` serves S3 on port 8333 to whoever signs with the key of
``AWS_ACCESS_KEY_ID``; ``shell -master=HOST:PORT`` makes the buckets that standard input
asks for. A word that is not known ends it, as it would there.
"""

import argparse
import http.client
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

PORT = 8333
SHELL = "HTTP_X_WEED_SHELL"


def serve() -> None:
    """Serve until the end; nothing is kept."""
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415
        DomainDispatcherApplication,
        create_backend_app,
    )
    from werkzeug.serving import run_simple  # noqa: PLC0415

    behind = DomainDispatcherApplication(create_backend_app)
    signed = f"Credential={os.environ['AWS_ACCESS_KEY_ID']}/"

    def application(
        environ: dict[str, Any], start: Callable[..., Any]
    ) -> Iterable[bytes]:
        healthy = environ["PATH_INFO"] == "/healthz"
        known = signed in environ.get("HTTP_AUTHORIZATION", "") or SHELL in environ
        if healthy or not known:
            start("200 OK" if healthy else "403 Forbidden", [("Content-Length", "0")])
            return [b""]
        answer: Iterable[bytes] = behind(environ, start)
        return answer

    run_simple("0.0.0.0", PORT, application, threaded=True)  # noqa: S104


def make_buckets(host: str, lines: Iterable[str]) -> None:
    """Do what *lines* say on the server of *host*."""
    for line in lines:
        asked = re.fullmatch(r"s3\.bucket\.create -name ([a-z0-9.-]{3,63})\n", line)
        if asked is None:
            sys.exit(f"unknown command: {line}")
        connection = http.client.HTTPConnection(host, PORT)
        # The shell talks to the master, who asks for no key.
        connection.request("PUT", f"/{asked[1]}", headers={"X-Weed-Shell": "yes"})
        status = connection.getresponse().status
        if status != http.client.OK:
            sys.exit(f"{asked[1]}: {status}")
        print("created bucket", asked[1])  # noqa: T201


def main() -> None:
    """Do as the first word says."""
    parser = argparse.ArgumentParser(prog="weed", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("server", allow_abbrev=False, add_help=False)
    server.add_argument("-s3", action="store_true", required=True)
    for word in ("-dir", "-ip", "-ip.bind"):
        server.add_argument(word, required=True)
    shell = commands.add_parser("shell", allow_abbrev=False)
    shell.add_argument("-master", required=True)
    given = parser.parse_args()
    if given.command == "server":
        serve()
    else:
        make_buckets(given.master.partition(":")[0], sys.stdin)


if __name__ == "__main__":
    main()
