"""Opening, sharing and losing a database, and what is said when one fails."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from fcntl import LOCK_SH, LOCK_UN, flock
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from sqlalchemy import create_engine, inspect

from conftest import REPOSITORY
from strategies_ledger import BUDGETS, attempt, hold, used
from vectorless_rag.errors import Code, VectorlessRagError
from vectorless_rag.ledger.book import Ledger, now_us
from vectorless_rag.ledger.budgets import set_id
from vectorless_rag.ledger.connection import Transaction
from vectorless_rag.ledger.faults import fault
from vectorless_rag.ledger.migrations import NEWEST, ddl_after
from vectorless_rag.ledger.reservations import reserve
from vectorless_rag.ledger.tables import metadata
from vectorless_rag.units import NanoUsd

pytest_plugins = ["ledger_databases"]

PATHS = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY / "tests")])

# Four processes open one empty database as nearly at once as they can.
OPENS_AT_ONCE = """
import os, sys
from vectorless_rag.ledger.book import Ledger

reader, writer = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        os.close(writer)
        os.read(reader, 1)
        Ledger.open(sys.argv[1]).close()
        os._exit(0)
    children.append(child)
os.close(writer)
sys.exit(sum(os.waitpid(child, 0)[1] for child in children))
"""

# A child uses the ledger its parent opened and ends as processes do; the parent
# goes on using it, meanwhile and afterwards.
FORKS = """
import os, sys
from strategies_ledger import attempt, hold, used
from vectorless_rag.ledger.book import Ledger

def work(who):
    for number in range(20):
        ledger.reserve(hold(f"{who}-{number}:1", 10))
        ledger.settle(f"{who}-{number}:1", 7, used())

ledger = Ledger.open(sys.argv[1])
ledger.start_attempt(attempt())
child = os.fork()
if not child:
    work("child")
    sys.exit()
work("parent")
status = os.waitpid(child, 0)[1]
work("after")
assert ledger.budget("run:1").spent == 3 * 20 * 7
assert ledger.check() == []
sys.exit(status)
"""

# A file that may not grow stands for a full disk.
FILLS_THE_DISK = """
import resource, sys
from strategies_ledger import attempt, hold
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.book import Ledger

ledger = Ledger.open(sys.argv[1])
ledger.start_attempt(attempt())
before = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
number = 0
try:
    while True:
        ledger.reserve(hold(f"call-{number}:1", 1))
        number += 1
except VectorlessRagError as error:
    print(error.code, error.detail)
resource.setrlimit(resource.RLIMIT_FSIZE, before)
assert len(ledger.holds("attempt-1")) == number > 0
ledger.reserve(hold(f"call-{number}:1", 1))
assert ledger.check() == []
"""

OPENS_READ_ONLY = """
import os, sys
from vectorless_rag.errors import VectorlessRagError
from vectorless_rag.ledger.book import Ledger

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    Ledger.open(sys.argv[1]).set_budget("run:1", 5)
except VectorlessRagError as error:
    print(error.code, error.detail, flush=True)
# Nobody may write a report of what was run.
os._exit(0)
"""


READS_READ_ONLY = OPENS_READ_ONLY.replace(
    'Ledger.open(sys.argv[1]).set_budget("run:1", 5)',
    """ledger = Ledger.open(sys.argv[1])
    names = [row.attempt_id for row in ledger.attempts("1")]
    print(names, ledger.check(), flush=True)""",
)


HANG_UP = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'ledger'
"""


def run(script: str, url: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, url],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ("", 0) == (done.stderr, done.returncode)
    return done.stdout.strip()


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/ledger.sqlite3"


def refused(step: Callable[[], object]) -> str:
    """The whole message of a ledger that is unavailable."""
    with pytest.raises(VectorlessRagError, match="ledger cannot be opened") as caught:
        step()
    assert Code.LEDGER_UNAVAILABLE is caught.value.code
    assert None is caught.value.__cause__
    return str(caught.value)


def test_tables_are_what_the_statements_expect(url: str) -> None:
    """The migrations make exactly the columns that the code names."""
    Ledger.open(url).close()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with closing(engine.connect()) as connection:
        found = {
            (table, column["name"], column["nullable"])
            for table in inspect(connection).get_table_names()
            for column in inspect(connection).get_columns(table)
        }
    engine.dispose()

    assert {
        (table.name, column.name, column.nullable)
        for table in metadata.tables.values()
        for column in table.columns
    } == found


def test_many_may_open_a_new_database_at_once(url: str) -> None:
    """One of them makes the tables; the others wait and find them."""
    assert "" == run(OPENS_AT_ONCE, url)


def test_fork_opens_its_own_connection(url: str) -> None:
    """Parent and child share a `Ledger` object and neither breaks the other's."""
    assert "" == run(FORKS, url)


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    """Steps of several threads follow each other on the one connection."""
    ledger.start_attempt(attempt())

    def work(thread: int) -> None:
        for number in range(10):
            name = f"call-{thread}-{number}:1"
            ledger.reserve(hold(name, 10))
            ledger.settle(name, NanoUsd(7), used())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 4 * 10 * 7 == ledger.budget(BUDGETS[0]).spent
    assert [] == ledger.check()


def test_attempt_ends_before_or_after_a_hold(url: str) -> None:
    """It waits for a reservation on its way, and then expires it."""
    expired = []
    with Ledger.open(url) as ledger, Ledger.open(url) as other:
        ledger.start_attempt(attempt())
        ledger.reserve(hold("call-1:1", 1))
        ledger.settle("call-1:1", NanoUsd(1), used())
        new = hold("call-2:1", 10)
        ending = threading.Thread(
            target=lambda: expired.append(other.end_attempt("attempt-1", "failed"))
        )

        def step(transaction: Transaction) -> None:
            reserve(transaction, new, set_id(new.budgets), now_us())
            ending.start()
            ending.join(0.5)

        ledger._database.write(step)
        ending.join()

        assert [1] == expired
        assert [] == ledger.check()


def test_record_outlives_the_connection(url: str) -> None:
    """What was held is there for whoever opens the ledger next."""
    with Ledger.open(url) as ledger:
        ledger.start_attempt(attempt())
        ledger.reserve(hold(amount=10))

    with Ledger.open(url) as again:
        assert 10 == again.budget(BUDGETS[0]).reserved


def test_closed_ledger_stays_closed(ledger: Ledger) -> None:
    """Closing twice is fine; using it is not."""
    ledger.close()
    ledger.close()

    assert "it was closed" in refused(ledger.budgets)


def test_newer_tables_are_left_alone(url: str) -> None:
    """An old program does not guess at what a newer one wrote."""
    Ledger.open(url).close()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("update schema_version set version = 99")
    engine.dispose()

    assert f"it is of version 99, newer than {NEWEST}" in refused(
        lambda: Ledger.open(url)
    )


def test_tables_that_are_up_to_date_need_no_step() -> None:
    """A version's own steps are taken once."""
    (only,) = ddl_after(NEWEST, "sqlite")

    assert only.endswith(f"set version = {NEWEST}")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("canary", "no database URL", id="not-a-url"),
        pytest.param("postgresql://b:p@ss:canary@db/r", "%40 for @", id="password"),
        pytest.param("postgresql://b@db:canary/r", "no database URL", id="port"),
        pytest.param("postgresql://b:canary@[::1/r", "no database URL", id="address"),
        pytest.param("mysql://u:canary@h/d", "neither sqlite", id="other-database"),
        pytest.param("nonsense://u:canary@h/d", "neither sqlite", id="no-database"),
        pytest.param("sqlite://", "needs the path of a file", id="no-path"),
        pytest.param("sqlite:///:memory:", "needs the path", id="memory"),
        pytest.param("sqlite:///file:x?uri=true", "needs the path", id="uri"),
        pytest.param(
            "postgresql://u:canary@/d?host=/nonexistent",
            "OperationalError",
            id="no-server",
        ),
        pytest.param(
            "postgresql://u:canary@/d?canary=1", "ProgrammingError", id="no-option"
        ),
    ],
)
def test_useless_address_is_refused(url: str, why: str) -> None:
    """The message says what is wrong and repeats neither address nor password."""
    message = refused(lambda: Ledger.open(url))

    assert why in message
    assert "canary" not in message


def test_postgresql_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has not installed the extra is told its name."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    assert "its driver is missing: the extra 'postgresql'" in refused(
        lambda: Ledger.open("postgresql://u@h/d")
    )


def test_old_sqlite_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tables that check their types need SQLite 3.37."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))

    assert "SQLite before 3.37" in refused(lambda: Ledger.open(sqlite(tmp_path)))


def test_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A file that is no database is not overwritten."""
    path = tmp_path / "ledger.sqlite3"
    path.write_bytes(b"something else, longer than a header" * 100)

    assert "is no SQLite database: SQLITE_NOTADB" in refused(
        lambda: Ledger.open(sqlite(tmp_path))
    )
    assert b"something else, longer than a header" * 100 == path.read_bytes()


def test_damaged_file_is_reported(tmp_path: Path) -> None:
    """Pages overwritten with zeros are damage, and not an empty ledger."""
    with Ledger.open(sqlite(tmp_path)) as ledger:
        ledger.start_attempt(attempt())
        for number in range(50):
            ledger.reserve(hold(f"call-{number}:1", 1))
    path = tmp_path / "ledger.sqlite3"
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)

    assert "the file is damaged: SQLITE_CORRUPT" in refused(
        lambda: Ledger.open(sqlite(tmp_path)).check()
    )


def test_orphaned_row_is_reported(tmp_path: Path) -> None:
    """Whoever turned the foreign keys off is found out."""
    with Ledger.open(sqlite(tmp_path)) as ledger:
        ledger.start_attempt(attempt())
        ledger.reserve(hold())
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as by_hand:
            by_hand.execute("delete from attempts")
            by_hand.commit()

        assert ["the file: a row of holds points nowhere"] == ledger.check()


def test_folder_is_made(tmp_path: Path) -> None:
    """The data folder need not exist yet."""
    Ledger.open(sqlite(tmp_path / "not" / "yet")).close()

    assert (tmp_path / "not" / "yet" / "ledger.sqlite3").exists()


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """The message names the reason and not the place."""
    (tmp_path / "canary").write_text("")
    message = refused(lambda: Ledger.open(sqlite(tmp_path / "canary")))

    assert "its folder: " in message
    assert "canary" not in message


def test_full_disk_loses_nothing(tmp_path: Path) -> None:
    """What was told as done is there; the step that failed left nothing."""
    assert run(FILLS_THE_DISK, sqlite(tmp_path)) in {
        "ledger_unavailable reading or writing failed: SQLITE_IOERR_WRITE",
        "ledger_unavailable no space left: SQLITE_FULL",
    }


def test_read_only_file_is_reported() -> None:
    """Another user's ledger cannot be written, and the reason is given."""
    # Not in pytest's own folder, which is closed to the user that root becomes.
    with TemporaryDirectory() as name:
        folder = Path(name)
        Ledger.open(sqlite(folder)).close()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        said = run(OPENS_READ_ONLY, sqlite(folder))
        folder.chmod(0o755)

    assert said.startswith("ledger_unavailable the file")


def test_read_only_folder_can_be_read() -> None:
    """A copy that is mounted read-only is audited as it stands."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        with Ledger.open(sqlite(folder)) as ledger:
            ledger.start_attempt(attempt("one"))
        (folder / "ledger.sqlite3.lock").unlink()
        folder.chmod(0o555)
        said = run(READS_READ_ONLY, sqlite(folder))
        folder.chmod(0o755)
        files = [path.name for path in folder.iterdir()]

    assert "['one'] []" == said
    assert ["ledger.sqlite3"] == files


def test_read_only_copy_of_a_ledger_in_use_is_refused() -> None:
    """What its log holds cannot be read there, and is not passed over."""
    with TemporaryDirectory() as name, TemporaryDirectory() as copy:
        with Ledger.open(sqlite(Path(name))) as ledger:
            ledger.start_attempt(attempt("one"))
            for path in Path(name).iterdir():
                shutil.copy(path, copy)
        Path(copy).chmod(0o555)
        said = run(READS_READ_ONLY, sqlite(Path(copy)))
        Path(copy).chmod(0o755)

    assert (
        "ledger_unavailable its folder is read-only, and its log is not empty" == said
    )


def test_lock_of_another_program_is_reported(tmp_path: Path) -> None:
    """A program that keeps the file locked makes the ledger unavailable."""
    url = f"{sqlite(tmp_path)}?timeout=0.1"
    with (
        Ledger.open(url) as ledger,
        closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as other,
    ):
        other.execute("begin immediate")

        assert "locked by another program: SQLITE_BUSY" in refused(
            lambda: ledger.set_budget("run:1", NanoUsd(5))
        )
        other.rollback()
        ledger.set_budget("run:1", NanoUsd(5))


def test_writers_queue(tmp_path: Path) -> None:
    """A writer waits for the one before it, in the kernel's order."""
    done = threading.Event()
    with Ledger.open(sqlite(tmp_path)) as ledger:

        def write() -> None:
            ledger.set_budget("run:1", NanoUsd(5))
            done.set()

        with (tmp_path / "ledger.sqlite3.lock").open() as before:
            # Shared with anyone else who asks for less than the whole turn.
            flock(before, LOCK_SH)
            writer = threading.Thread(target=write)
            writer.start()
            waited = not done.wait(0.2)
            flock(before, LOCK_UN)
        writer.join()

        assert waited
        assert 5 == ledger.budget("run:1").limit


def test_step_is_alone_from_its_first_look(tmp_path: Path) -> None:
    """What a step reads before it writes cannot change in between."""

    def step(transaction: Transaction) -> None:
        del transaction
        with (
            closing(sqlite3.connect(tmp_path / "ledger.sqlite3", timeout=0)) as other,
            pytest.raises(sqlite3.OperationalError, match="database is locked"),
        ):
            other.execute("begin immediate")

    with Ledger.open(sqlite(tmp_path)) as ledger:
        ledger._database.write(step)


def test_sqlite_survives_a_loss_of_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is flushed before a step returns holds the step, and references are kept."""
    flushed: list[tuple[int, int]] = []

    def power_is_lost(log: int) -> None:
        kept = tmp_path / f"kept-{len(flushed)}"
        kept.mkdir()
        for path in tmp_path.glob("ledger.sqlite3*"):
            shutil.copy(path, kept)
        live = (tmp_path / "ledger.sqlite3-wal").stat().st_ino
        flushed.append((live, os.fstat(log).st_ino))

    with Ledger.open(sqlite(tmp_path)) as ledger:
        # The last to leave removes the log, if it is not the last.
        Ledger.open(sqlite(tmp_path)).close()
        monkeypatch.setattr(os, "fdatasync", power_is_lost)
        ledger.start_attempt(attempt("one"))
        monkeypatch.undo()
        pragmas = [
            ledger._database.read(partial(Transaction.script, sql=f"pragma {name}"))
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]

    assert [[("wal",)], [(1,)], [(1,)]] == pragmas
    ((live, log),) = flushed
    assert live == log
    with Ledger.open(sqlite(tmp_path / "kept-0")) as ledger:
        assert ["one"] == [row.attempt_id for row in ledger.attempts("1")]


def test_disk_that_fails_at_the_flush_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that may not last is not told as done, and can be taken again."""

    def fail(log: int) -> None:
        del log
        raise OSError(errno.EIO, "SECRET")

    with Ledger.open(sqlite(tmp_path)) as ledger:
        monkeypatch.setattr(os, "fdatasync", fail)
        message = refused(lambda: ledger.start_attempt(attempt("one")))
        monkeypatch.undo()
        ledger.start_attempt(attempt("one"))

    assert "its disk: input/output error" in message


def test_log_that_vanished_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written where nothing could be flushed."""
    monkeypatch.setattr("vectorless_rag.ledger.sqlite._LOG", "-gone")

    message = refused(lambda: Ledger.open(sqlite(tmp_path)))

    assert "its log: no such file or directory" in message


def test_hot_statements_are_compiled_before_the_turn(tmp_path: Path) -> None:
    """No other writer waits for the first request of a process."""
    with Ledger.open(sqlite(tmp_path)) as ledger:
        ledger.start_attempt(attempt("one"))
        ledger.reserve(hold("a:1", 1, attempt_id="one"))
        known = dict(ledger._database._compiled._known)
        ledger.settle("a:1", NanoUsd(1), used())

        assert known == ledger._database._compiled._known


def test_step_that_breaks_a_rule_of_the_tables_is_a_conflict(ledger: Ledger) -> None:
    """The rule is named by the database's code alone."""
    sql = "insert into schema_version values (null)"

    with pytest.raises(VectorlessRagError, match="a rule of the tables") as caught:
        ledger._database.write(lambda t: t.script(sql))
    assert Code.LEDGER_CONFLICT is caught.value.code
    assert "insert" not in str(caught.value)


def test_step_that_raises_changes_nothing(ledger: Ledger) -> None:
    """Whatever cuts a step off, also Ctrl-C, undoes it."""

    def step(transaction: Transaction) -> None:
        transaction.script("insert into budgets values('run:9', null, 0, 0, null)")
        raise KeyboardInterrupt("cut off")

    with pytest.raises(KeyboardInterrupt, match="cut off"):
        ledger._database.write(step)
    assert {} == ledger.budgets()


@pytest.mark.loopback
def test_lost_server_is_called_again(new_postgres: Callable[[], str]) -> None:
    """A connection that the server dropped is opened again, once."""
    url = new_postgres()
    with Ledger.open(url) as ledger, psycopg.connect(url, autocommit=True) as admin:
        ledger.start_attempt(attempt())
        admin.execute(HANG_UP)

        ledger.reserve(hold(amount=10))
        assert 10 == ledger.budget(BUDGETS[0]).reserved


@pytest.mark.loopback
def test_server_that_keeps_hanging_up_is_unavailable(
    new_postgres: Callable[[], str],
) -> None:
    """A step that loses its server twice is given up."""
    with Ledger.open(new_postgres()) as ledger:
        message = refused(
            lambda: ledger._database.write(
                lambda t: t.script("select pg_terminate_backend(pg_backend_pid())")
            )
        )

    assert "the server is shutting down: 57P01" in message


@pytest.mark.parametrize(
    ("attributes", "detail"),
    [
        pytest.param(
            {"sqlite_errorname": "SQLITE_FULL"}, "no space left: SQLITE_FULL", id="full"
        ),
        pytest.param(
            {"sqlite_errorname": "SQLITE_READONLY_DBMOVED"},
            "the file or its folder is read-only: SQLITE_READONLY_DBMOVED",
            id="moved",
        ),
        pytest.param({"sqlite_errorname": "SQLITE_MISUSE"}, "SQLITE_MISUSE", id="new"),
        pytest.param({"sqlstate": "53100"}, "no space left: 53100", id="server-full"),
        pytest.param(
            {"sqlstate": "53300"}, "the server is out of resources: 53300", id="crowd"
        ),
        pytest.param(
            {"sqlstate": "28P01"},
            "the server refused the credentials: 28P01",
            id="password",
        ),
        pytest.param({"sqlstate": None}, "OperationalError", id="no-code"),
    ],
)
def test_faults_are_named_by_their_code(
    attributes: dict[str, str], detail: str
) -> None:
    """The driver's own words, which may quote anything, are dropped."""
    error = sqlite3.OperationalError("canary")
    for name, value in attributes.items():
        setattr(error, name, value)
    found = fault(error)

    assert (Code.LEDGER_UNAVAILABLE, detail) == (found.code, found.detail)
