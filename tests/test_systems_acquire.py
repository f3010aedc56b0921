"""Making programs available, against a distribution of the test's own: apt-get and dpkg-deb are scripts here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.systems import acquire, list_systems
from rackscope.systems.acquire import acquire_by_name, cache_folder, list_acquirable
from rackscope.systems.apt import Package
from rackscope.systems.tools import Tool

APT_GET = """#!/bin/sh
# What apt-get does, as far as it is asked: LISTS is "host" unless it is told of a folder.
here={here}
lists=host
for argument; do
    case "$argument" in
        Dir::State::lists=*) lists="${{argument#Dir::State::lists=}}" ;;
        install|download|update) verb="$argument" ;;
    esac
done
echo "$verb" >> $here/calls
if [ -e $here/no-network ] && [ "$verb" != install ]; then
    echo "E: Failed to fetch http://mirror/x  Temporary failure resolving 'mirror'" >&2; exit 100
fi
case "$verb" in
    update)
        /bin/mkdir -p "$lists"; echo new > "$lists/mirror_Packages" ;;
    install)
        if [ $lists = host ] && [ -e $here/no-lists ]; then echo "E: Unable to locate package $verb" >&2; exit 100; fi
        echo "Reading package lists..."
        echo "'http://mirror/m/memcached_9.9-1%2bdeb1_amd64.deb' memcached_9.9-1+deb1_amd64.deb 1000 SHA256:00"
        echo "'http://mirror/libx/libevent_1%3a2.1_amd64.deb' libevent_1%3a2.1_amd64.deb {library_bytes}"
        echo "'http://mirror/a/adduser_3_all.deb' adduser_3_all.deb 1000"
        echo "'http://mirror/p/libperl5_5_amd64.deb' libperl5_5_amd64.deb 1000"
        echo "'http://mirror/c/libc6_2_amd64.deb' libc6_2_amd64.deb 1000" ;;
    download)
        if [ $lists = host ] && [ -e $here/stale ]; then echo "E: Failed to fetch x  404  Not Found" >&2; exit 100; fi
        for argument; do
            case "$argument" in
                *=*) echo "$argument" >> $here/downloads; : > "$(echo "$argument" | /usr/bin/tr -d /:=).deb" ;;
            esac
        done
        # Options hold an equals sign too.
        /bin/rm -f *lists*.deb ;;
esac
"""

DPKG_DEB = """#!/bin/sh
# dpkg-deb --extract FILE FOLDER
[ -e {here}/no-room ] && {{ echo "dpkg-deb: error: No space left on device" >&2; exit 2; }}
/bin/mkdir -p "$3/usr/bin" "$3/usr/lib/triplet"
: > "$3/usr/lib/triplet/libevent.so.2"
printf '#!/bin/sh\\n{answer}\\n' > "$3/usr/bin/memcached"
/bin/chmod 755 "$3/usr/bin/memcached"
"""


class Distribution:
    """A distribution in a folder, with switches for what can go wrong with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.write()

    def write(self, answer: str = "echo memcached 9.9", library_bytes: int = 2000) -> None:
        self._script("apt-get", APT_GET.format(here=self.folder, library_bytes=library_bytes))
        self._script("dpkg-deb", DPKG_DEB.format(here=self.folder, answer=answer))

    def switch(self, name: str) -> None:
        (self.folder / name).write_text("")

    def install(self, name: str, script: str) -> None:
        self._script(name, f"#!/bin/sh\n{script}\n")

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().split() if file.exists() else []

    def _script(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Distribution:
    folder = tmp_path / "distribution"
    folder.mkdir()
    made = Distribution(folder)
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return made


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_fetches_once_and_only_what_the_program_needs(distribution: Distribution):
    said: list[str] = []
    first = acquire_by_name("memcached", fetch=True, progress=said.append)
    assert first.version == "9.9"
    assert first.program.read_text().startswith("#!/bin/sh")
    assert "memcached 9.9-1+deb1" in first.source
    assert first.environment["LD_LIBRARY_PATH"].endswith("/root/usr/lib/triplet")
    # Neither what only an installation needs, nor the C library, which must be the host's own.
    assert distribution.lines("downloads") == ["memcached:amd64=9.9-1+deb1", "libevent:amd64=1:2.1"]
    assert any("downloading 2 packages, 2.93 KiB" in text for text in said)
    calls = distribution.lines("calls")
    assert acquire_by_name("memcached", fetch=True) == first
    assert acquire_by_name("memcached", fetch=False) == first
    assert distribution.lines("calls") == calls
    assert left_in(cache_folder()) == ["memcached"]
    assert left_in(cache_folder() / "memcached") == ["9.9"]


def test_path_comes_first_and_is_not_believed_blindly(distribution: Distribution):
    acquire_by_name("memcached", fetch=True)
    distribution.install("memcached", "echo memcached 1.2.3-mine")
    found = acquire_by_name("memcached", fetch=False)
    assert (found.version, found.source, found.program) == ("1.2.3-mine", "PATH", distribution.programs / "memcached")
    distribution.install("memcached", "echo broken >&2; exit 1")
    said: list[str] = []
    assert acquire_by_name("memcached", fetch=False, progress=said.append).version == "9.9"
    assert "did not tell its version but said, to --version: broken" in said[0]


def test_without_fetch_nothing_is_downloaded(distribution: Distribution):
    with pytest.raises(SystemUnderTestError, match="memcached is not on this machine") as caught:
        acquire_by_name("memcached", fetch=False)
    assert "rackscope get memcached" in caught.value.advice
    assert distribution.lines("calls") == []


@pytest.mark.parametrize("trouble", ["no-lists", "stale"])
def test_lists_that_are_missing_or_old_are_replaced_by_our_own(distribution: Distribution, trouble: str):
    distribution.switch(trouble)
    assert acquire_by_name("memcached", fetch=True).version == "9.9"
    assert distribution.lines("calls").count("update") == 1
    # Ours serve again, for a day.
    shutil.rmtree(cache_folder() / "memcached")
    assert acquire_by_name("memcached", fetch=True).version == "9.9"
    assert distribution.lines("calls").count("update") == 1
    two_days_ago = (cache_folder().parent / "apt-lists").stat().st_mtime - 2 * 86400
    os.utime(cache_folder().parent / "apt-lists", (two_days_ago, two_days_ago))
    shutil.rmtree(cache_folder() / "memcached")
    assert acquire_by_name("memcached", fetch=True).version == "9.9"
    assert distribution.lines("calls").count("update") == 2


@pytest.mark.parametrize(
    ("trouble", "parts"),
    [
        ("no-network", ["Temporary failure resolving 'mirror'", "Is the network (or http_proxy) set up?"]),
        ("no-room", ["No space left on device"]),
    ],
)
def test_a_failed_fetch_says_why_and_leaves_nothing(distribution: Distribution, trouble: str, parts: list[str]):
    distribution.switch(trouble)
    with pytest.raises(SystemUnderTestError) as caught:
        acquire_by_name("memcached", fetch=True)
    for part in [*parts, "packages for memcached could not be fetched", "install memcached yourself"]:
        assert part in str(caught.value)
    assert left_in(cache_folder() / "memcached") == []
    (distribution.folder / trouble).unlink()
    assert acquire_by_name("memcached", fetch=True).version == "9.9"


def test_a_program_that_does_not_run_here_is_not_kept(distribution: Distribution):
    distribution.write(answer="echo libevent.so.2: cannot open; exit 127")
    with pytest.raises(SystemUnderTestError, match=r"fetched but does not run here.*libevent.so.2: cannot open"):
        acquire_by_name("memcached", fetch=True)
    assert left_in(cache_folder() / "memcached") == []


def test_a_download_without_measure_is_refused(distribution: Distribution):
    distribution.write(library_bytes=10**12)
    with pytest.raises(SystemUnderTestError, match="that would be a download of 931 GiB"):
        acquire_by_name("memcached", fetch=True)
    assert distribution.lines("downloads") == []


def test_a_host_without_apt_gets_advice(distribution: Distribution):
    (distribution.programs / "apt-get").unlink()
    with pytest.raises(SystemUnderTestError) as caught:
        acquire_by_name("memcached", fetch=True)
    assert "no apt to fetch it with" in caught.value.what
    assert "Install memcached with this host's package manager" in caught.value.advice


def test_a_cached_program_that_broke_or_is_of_another_machine_is_fetched_again(distribution: Distribution):
    first = acquire_by_name("memcached", fetch=True)
    record = cache_folder() / "memcached/9.9/record.json"
    first.program.write_text("#!/bin/sh\nexit 127\n")
    assert acquire_by_name("memcached", fetch=True) == first
    assert distribution.lines("calls").count("download") == 2
    for damaged in (
        json.dumps({**json.loads(record.read_text()), "machine": "pdp11"}),
        json.dumps({**json.loads(record.read_text()), "record_version": 2}),
        "[]",
        "{",
        "",
    ):
        record.write_text(damaged)
        with pytest.raises(SystemUnderTestError, match="not on this machine"):
            acquire_by_name("memcached", fetch=False)
    assert acquire_by_name("memcached", fetch=True) == first


def test_what_a_killed_fetch_left_is_cleared_away(distribution: Distribution):
    left = cache_folder() / "memcached/.new-x/root/usr/bin"
    left.mkdir(parents=True)
    (left / "memcached").write_text("half")
    assert acquire_by_name("memcached", fetch=True).version == "9.9"
    assert left_in(cache_folder() / "memcached") == ["9.9"]


def test_two_at_once_fetch_once(distribution: Distribution):
    code = (
        "from rackscope.systems.acquire import acquire_by_name; print(acquire_by_name('memcached', fetch=True).version)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in both] == ["9.9\n", "9.9\n"]
    assert distribution.lines("calls").count("download") == 1


def test_a_cache_that_cannot_be_written_is_named(distribution: Distribution, monkeypatch: pytest.MonkeyPatch):
    blocked = distribution.folder / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with pytest.raises(SystemUnderTestError, match=f"memcached cannot be kept in {blocked}") as caught:
        acquire_by_name("memcached", fetch=True)
    assert "XDG_CACHE_HOME" in caught.value.advice


def test_the_cache_is_where_the_specification_says(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/someone")
    for value, expected in (("/x", "/x"), ("relative", "/home/someone/.cache"), ("", "/home/someone/.cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_folder() == Path(expected) / "rackscope/systems"


def test_names_are_systems_and_tools():
    systems = {system.name for system in list_systems()}
    assert systems | {"fio", "libmemcached-tools", "memcaslap", "redis-benchmark"} <= set(list_acquirable())
    assert all(list_acquirable().values())
    with pytest.raises(UsageError) as caught:
        acquire_by_name("memcachd", fetch=True)
    assert "there is nothing to get called 'memcachd'. Did you mean memcached" in str(caught.value)


def test_a_program_is_asked_for_its_version_as_it_wants_to_be(distribution: Distribution):
    distribution.install("odd", '[ "$1" = -v ] && echo odd 3.1')
    asked = acquire.acquire_program(Tool("odd", "odd", r"odd (\S+)", "", version_option="-v"), fetch=False)
    assert asked.version == "3.1"
    said: list[str] = []
    with pytest.raises(SystemUnderTestError, match="odd is not on this machine"):
        acquire.acquire_program(Tool("odd", "odd", r"odd (\S+)", ""), fetch=False, progress=said.append)
    assert "did not tell its version but said, to --version: nothing" in said[0]


def test_the_cache_engine_is_built_in():
    assert acquire_by_name("cache", fetch=True).source == "built in"


def test_package_files_are_read_as_apt_names_them():
    package = Package.parse("redis-tools_5%3a7.0.15-1~deb12u10_amd64.deb", 7)
    assert package == Package("redis-tools", "5:7.0.15-1~deb12u10", "amd64", 7)
    assert package.selector == "redis-tools:amd64=5:7.0.15-1~deb12u10"
    assert Package.parse("adduser_3.134_all.deb", 7).selector == "adduser=3.134"
    with pytest.raises(ValueError, match="unpack"):
        Package.parse("odd.deb", 7)


def test_a_fetch_waits_for_another_only_so_long(distribution: Distribution, monkeypatch: pytest.MonkeyPatch):
    import fcntl

    cache_folder().mkdir(parents=True)
    monkeypatch.setattr(acquire, "_LOCK_SECONDS", 0.0)
    with (cache_folder() / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SystemUnderTestError, match="another rackscope has been fetching"):
            acquire_by_name("memcached", fetch=True)
