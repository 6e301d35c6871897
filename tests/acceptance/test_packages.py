"""The wheel and the source archive each carry all that an ingest needs."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from acceptance.program import environment
from conftest import REPOSITORY

pytestmark = pytest.mark.slow

CARRIED = (
    *("upstream.toml", "revision.lock.json"),
    *("patches/series", "patches/series.lock.json"),
)
"""What an installed package builds its upstream from; the patches beside them."""

PATCHES = [path.name for path in sorted((REPOSITORY / "patches").glob("*.patch"))]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both packages, made from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [
            sys.executable, "-m", "hatchling", "build",
            "-t", "sdist", "-t", "wheel", "-d", folder,
        ],
        cwd=REPOSITORY, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    (source,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": source}


def test_the_wheel_carries_the_pin_and_the_series(built: dict[str, Path]) -> None:
    """Every patch of the series, the pin and the locks, byte for byte."""
    with zipfile.ZipFile(built["wheel"]) as wheel:
        for name in (*CARRIED, *(f"patches/{patch}" for patch in PATCHES)):
            carried = wheel.read(f"vectorless_rag/_upstream/{name}")
            assert (REPOSITORY / name).read_bytes() == carried


def test_the_source_archive_carries_what_the_two_commands_need(
    built: dict[str, Path],
) -> None:
    """Makefile, scripts, requirements, tests and samples are in it."""
    with tarfile.open(built["sdist"]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    needed = {
        *CARRIED, *(f"patches/{patch}" for patch in PATCHES),
        "Makefile", "Dockerfile", "README.md", "LICENSE", "CONTRIBUTING.md",
        "requirements/dev.txt", "requirements/runtime.txt", "requirements/proofs.txt",
        "scripts/install-pageindex.sh", "tests/conftest.py",
        "tests/samples/sp-intro.pdf",
    }  # fmt: skip

    assert set() == needed - names
    made = ("build/", "data/", "vendor/", ".git/", ".venv/", ".hypothesis/")
    assert not [name for name in names if name.startswith(made)]


def installed(package: Path, folder: Path) -> Path:
    """
    Install *package* alone into a new environment, and return its folder.

    What it depends on is taken from the environment of this test, whose own copy of
    the package is not seen.
    """
    home = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (site,) = home.glob("lib/python3*/site-packages")
    (site / "beside.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "--python", home / "bin" / "python",
            "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
            "--disable-pip-version-check", "--ignore-installed", package,
        ],
        check=True, cwd=folder,
    )  # fmt: skip
    return home


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_a_sample_is_ingested_outside_the_checkout(
    kind: str, built: dict[str, Path], tmp_path: Path, sample: Path
) -> None:
    """Installed from either package, three commands make a tree."""
    home = installed(built[kind], tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(sample, folder / "paper.pdf")
    inherited = environment(folder)
    del inherited["PYTHONPATH"]

    def type_in(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [home / "bin" / "vectorless-rag", *args],
            cwd=folder, text=True, capture_output=True, check=False, timeout=300,
            # The release as it lies here: a test asks no index.
            env={**inherited, "PIP_NO_INDEX": "1",
                 "PIP_FIND_LINKS": str(REPOSITORY / "vendor")},
        )  # fmt: skip

    unbuilt = type_in("ingest", "paper.pdf")
    steps = [type_in("upstream", "build"), type_in("ingest", "paper.pdf"),
             type_in("audit", "verify"), type_in("doctor")]  # fmt: skip
    origin = "import vectorless_rag; print(vectorless_rag.__file__)"
    where = subprocess.run(
        [home / "bin" / "python", "-c", origin],
        cwd=folder, env=inherited, text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip

    assert 10 == unbuilt.returncode
    assert "vectorless-rag upstream build" in unbuilt.stderr
    assert [0] * 4 == [s.returncode for s in steps], [s.stderr for s in steps]
    assert where.startswith(os.fspath(home))
    assert (folder / ".cache" / "vectorless-rag" / "pageindex").is_dir()
