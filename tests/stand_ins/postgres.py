"""
Play the image ``postgres``: a real server, set up by the variables that it knows.

It takes ``POSTGRES_USER``, ``POSTGRES_PASSWORD`` and ``POSTGRES_DB``, keeps its data
where that image does, and asks every other machine for the password.
"""

import os
import pwd
import subprocess
import tempfile
from pathlib import Path

DATA = Path("/var/lib/postgresql/data")


def set_up(programs: Path) -> None:
    """Make the data folder with its owner, its password and its database."""
    owner, database = os.environ["POSTGRES_USER"], os.environ["POSTGRES_DB"]
    with tempfile.NamedTemporaryFile("w") as secret:
        secret.write(os.environ["POSTGRES_PASSWORD"])
        secret.flush()
        given = ["--auth-local=trust", "--auth-host=scram-sha-256", "--locale=C"]
        given += ["--encoding=UTF8", "--username", owner, "--pwfile", secret.name]
        subprocess.run([programs / "initdb", "-D", DATA, *given], check=True)
    with (DATA / "pg_hba.conf").open("a", encoding="utf-8") as hosts:
        hosts.write("host all all all scram-sha-256\n")
    subprocess.run(
        [programs / "postgres", "--single", "-D", DATA, "postgres"],
        input=f'CREATE DATABASE "{database}";\n',
        text=True,
        check=True,
    )


def main() -> None:
    """Become the server."""
    programs = Path(__file__).parent / "programs"
    account = pwd.getpwnam("nobody")
    DATA.mkdir(parents=True, exist_ok=True)
    os.chown(DATA, account.pw_uid, account.pw_gid)
    # A server refuses to be root.
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    os.chdir("/")
    if not (DATA / "PG_VERSION").exists():
        set_up(programs)
    server = str(programs / "postgres")
    os.execv(server, [server, "-D", str(DATA), "--listen_addresses=*"])  # noqa: S606


if __name__ == "__main__":
    main()
