"""Fetching, against a local server that behaves as badly as real ones do."""

from __future__ import annotations

import hashlib
import http.server
import io
import socket
import tarfile
import threading
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner
from datasets_support import request_of

from harness.cli.data import data
from harness.config.mirror_file import load_mirrors
from harness.datasets import mnist, published
from harness.datasets.download import download
from harness.datasets.fetch import fetch
from harness.datasets.make import make
from harness.datasets.manifest import MANIFEST
from harness.errors import ConfigError, UserError
from harness.model.download import Download, RemoteFile

CONTENT = bytes(range(256)) * 4000


class BadServer(http.server.ThreadingHTTPServer):
    """Serves ``files``; each path's faults are used up one by one: cut, 503, 404, ignore-range, wrong, 416."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[str]] = defaultdict(list)
        self.requests: list[tuple[str, str | None]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: BadServer

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = self.path.strip("/")
        wanted = self.headers.get("Range")
        self.server.requests.append((path, wanted))
        fault = self.server.faults[path].pop(0) if self.server.faults[path] else ""
        if fault.isdigit() or path not in self.server.files:
            self.send_error(int(fault or 404))
            return
        content = self.server.files[path]
        content = b"x" * len(content) if fault == "wrong" else content
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and fault != "ignore-range" else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        body = content[start:]
        self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)


@pytest.fixture
def server():
    with BadServer() as bad:
        thread = threading.Thread(target=bad.serve_forever, args=(0.01,))
        thread.start()
        yield bad
        bad.shutdown()
        thread.join()


def remote(server: BadServer, *paths: str, content: bytes = CONTENT, length: int | None = None) -> RemoteFile:
    for path in paths:
        server.files.setdefault(path, content)
    urls = tuple(server.url(path) for path in paths)
    return RemoteFile(name="file.bin", md5=hashlib.md5(content).hexdigest(), length=length, urls=urls)


def test_a_broken_transfer_goes_on_where_it_stopped(server, tmp_path):
    file = remote(server, "a")
    server.faults["a"] = ["cut", "cut"]
    pauses = []
    assert download(file, tmp_path, sleep=pauses.append).read_bytes() == CONTENT
    half, rest = len(CONTENT) // 2, len(CONTENT) - len(CONTENT) // 2
    ranges = [None, f"bytes={half}-", f"bytes={half + rest // 2}-"]
    assert server.requests == [("a", wanted) for wanted in ranges]
    assert pauses == [1.0, 2.0]
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


def test_an_interrupted_call_is_gone_on_with_by_the_next(server, tmp_path):
    file = remote(server, "a", length=len(CONTENT))
    (tmp_path / ".file.bin.part").write_bytes(CONTENT[:1000])
    download(file, tmp_path)
    download(file, tmp_path)
    assert server.requests == [("a", "bytes=1000-")]


def test_a_server_without_ranges_starts_again_from_the_beginning(server, tmp_path):
    file = remote(server, "a")
    (tmp_path / ".file.bin.part").write_bytes(b"z" * 1000)
    server.faults["a"] = ["ignore-range"]
    assert download(file, tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_moves_on_to_the_next_mirror(server, tmp_path):
    file = remote(server, "bad", "good")
    server.faults["bad"] = ["wrong"]
    assert download(file, tmp_path).read_bytes() == CONTENT
    assert server.requests == [("bad", None), ("good", None)]


def test_a_partial_file_of_other_content_is_thrown_away(server, tmp_path):
    file = remote(server, "a", "b")
    (tmp_path / ".file.bin.part").write_bytes(b"z" * 1000)
    assert download(file, tmp_path).read_bytes() == CONTENT
    assert server.requests == [("a", "bytes=1000-"), ("b", None)]


def test_a_part_longer_than_the_file_and_a_refused_range_start_again(server, tmp_path):
    file = remote(server, "a", length=len(CONTENT))
    (tmp_path / ".file.bin.part").write_bytes(CONTENT + b"more")
    assert download(file, tmp_path).read_bytes() == CONTENT
    (tmp_path / "file.bin").unlink()
    (tmp_path / ".file.bin.part").write_bytes(CONTENT[:10])
    server.faults["a"] = ["416"]
    assert download(file, tmp_path, sleep=lambda s: None).read_bytes() == CONTENT


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server, tmp_path):
    file = remote(server, "busy", "gone", "good")
    server.faults["busy"] = ["503"] * 4
    server.faults["gone"] = ["404"]
    assert download(file, tmp_path, sleep=lambda s: None).read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["busy"] * 4 + ["gone", "good"]


def test_when_no_mirror_helps_all_answers_are_told(server, tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", only_numbers)
    file = remote(server, "wrong", "gone")
    server.faults["wrong"], server.faults["gone"] = ["wrong"], ["404"]
    dead = file.model_copy(update={"urls": (*file.urls, "http://127.0.0.1:9/x", "http://no.such.host.invalid/x")})
    with pytest.raises(UserError) as caught:
        download(dead, tmp_path, sleep=lambda s: None)
    text = str(caught.value)
    assert "/wrong: its file has MD5" in text
    assert "/gone: answered 404" in text
    assert "127.0.0.1:9/x: cannot be reached: Connection refused" in text
    assert "no.such.host.invalid/x: cannot be reached" in text
    assert "login node" in text
    assert not list(tmp_path.glob("file.bin"))


def only_numbers(host, *rest, look_up=socket.getaddrinfo, **named):
    """Names are asked of no server: of what this machine's network says of a made-up one nothing must depend."""
    if host.replace(".", "").isdigit():
        return look_up(host, *rest, **named)
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_fetched_set_is_real_and_whole(server, tmp_path, monkeypatch):
    made = tmp_path / "made"
    make(made, request_of("synthetic:mnist"))
    files = []
    for name in published.MNIST_FILES:
        content = server.files[name] = (made / name).read_bytes()
        md5 = hashlib.md5(content).hexdigest()
        files.append(RemoteFile(name=name, md5=md5, urls=(server.url(name),)))
        monkeypatch.setitem(published.MD5, name, md5)
    server.faults[published.MNIST_TRAIN_IMAGES] = ["cut"]
    manifest = fetch(tmp_path / "real", "mnist", Download(files=tuple(files)), sleep=lambda s: None)
    assert manifest.request.origin == "real"
    assert (mnist.read(tmp_path / "real").name, mnist.read(tmp_path / "real").verified) == ("mnist", True)
    before = len(server.requests)
    fetch(tmp_path / "real", "mnist", Download(files=tuple(files)))
    assert len(server.requests) == before


def test_files_that_are_there_already_are_left_to_their_owner(tmp_path):
    make(tmp_path / "own", request_of("synthetic:mnist"))
    (tmp_path / "own" / MANIFEST).unlink()
    with pytest.raises(UserError, match="holds a mnist already.*harness data verify"):
        fetch(tmp_path / "own", "mnist", Download(files=()))


def tar_of(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def archive_of(server: BadServer, content: bytes) -> Download:
    server.files["a.tar"] = content
    md5 = hashlib.md5(content).hexdigest()
    return Download(files=(RemoteFile(name="a.tar", md5=md5, urls=(server.url("a.tar"),), unpack=True),))


def test_an_archive_is_unpacked_and_removed(server, tmp_path):
    members = {"256_ObjectCategories/001.ak47/001_0001.jpg": b"jpeg", "256_ObjectCategories/056.dog/greg": b"?"}
    manifest = fetch(tmp_path / "set", "caltech256", archive_of(server, tar_of(members)))
    assert manifest.total_files == 2
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == [
        "256_ObjectCategories",
        MANIFEST,
        "harness-files.tsv",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar_of({"../../escape": b"x"}), "cannot be unpacked"),
        (b"<html>please log in</html>", "cannot be unpacked"),
        (tar_of({"other/file": b"x"}), "is no caltech256"),
    ],
)
def test_an_archive_that_is_not_what_it_should_be_is_refused(server, tmp_path, content, message):
    with pytest.raises(UserError, match=message):
        fetch(tmp_path / "set", "caltech256", archive_of(server, content))
    assert not (tmp_path / "escape").exists()
    assert not (tmp_path / "set" / MANIFEST).exists()


def test_the_shipped_list_of_mirrors_names_the_published_files():
    sources = load_mirrors(Path(__file__).parents[3] / "configs/mirrors.yml")
    assert {file.name: file.md5 for file in sources["mnist"].files} == {
        name: published.MD5[name] for name in published.MNIST_FILES
    }
    assert sources["cifar10"].files[0].md5 == "c58f30108f718f92721af3b95e74349a"


def test_a_wrong_list_of_mirrors_is_told_by_line(tmp_path):
    mirrors = tmp_path / "m.yml"
    mirrors.write_text("mnist:\n  files:\n    - name: a\n      md5: abc\n      urls: [ftp://x]\n      unpak: true\n")
    with pytest.raises(ConfigError) as caught:
        load_mirrors(mirrors)
    assert f"{mirrors}:4: md5: 'abc' is not allowed" in str(caught.value)
    assert f"{mirrors}:6: unknown key 'unpak'" in str(caught.value)
    mirrors.write_text(f"mnist:\n  files:\n    - name: a\n      md5: {'0' * 32}\n      urls: [ftp://x]\n")
    with pytest.raises(ConfigError, match="ftp://x"):
        load_mirrors(mirrors)


def test_a_set_that_needs_an_account_says_how_to_get_it(tmp_path):
    mirrors = tmp_path / "m.yml"
    mirrors.write_text(f"mnist:\n  files:\n    - {{name: a, md5: '{'0' * 32}', urls: [http://127.0.0.1:9/a]}}\n")
    for form, message in (("imagenet", "needs an account"), ("mnist", "could not be fetched")):
        arguments = ["fetch", form, "--mirrors", str(mirrors), "--to", str(tmp_path / form)]
        result = CliRunner().invoke(data, arguments, standalone_mode=False)
        assert isinstance(result.exception, UserError)
        assert message in str(result.exception)


def published_by(server: BadServer, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The downloads of a set as its authors give them (name → content), their checksums taken for the published."""
    if form == "caltech256":
        images = {f"256_ObjectCategories/{n:03}.class/{n:03}_0001.jpg": bytes([n]) * 999 for n in range(1, 4)}
        return {"256_ObjectCategories.tar": tar_of(images)}
    made = tmp_path / "made"
    make(made, request_of(f"synthetic:{form}"))
    files = {str(p.relative_to(made)): p.read_bytes() for p in made.rglob("*") if p.is_file() and p.name != MANIFEST}
    for name, content in files.items():
        monkeypatch.setitem(published.MD5, Path(name).name, hashlib.md5(content).hexdigest())
    return {"cifar-10-python.tar.gz": tar_of(files)} if form == "cifar10" else files


@pytest.mark.parametrize("form", ["mnist", "cifar10", "caltech256"])
def test_each_set_comes_whole_through_broken_transfers(form, server, tmp_path, monkeypatch):
    """A mirror that lies, one that breaks off twice, an interruption in the middle; then the command does it."""
    lines = [f"{form}:", "  files:"]
    for name, content in published_by(server, form, tmp_path, monkeypatch).items():
        server.files[f"liar/{name}"] = server.files[f"good/{name}"] = content
        server.faults[f"liar/{name}"], server.faults[f"good/{name}"] = ["wrong"] * 9, ["cut", "503"]
        md5, unpack = hashlib.md5(content).hexdigest(), str(form != "mnist").lower()
        urls = f"[{server.url('liar/' + name)}, {server.url('good/' + name)}]"
        lines.append(f"    - {{name: {name}, md5: '{md5}', length: {len(content)}, unpack: {unpack}, urls: {urls}}}")
    mirrors, target = tmp_path / "mirrors.yml", tmp_path / "a b"
    mirrors.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("harness.datasets.download.time.sleep", lambda _seconds: None)
    words = ["fetch", form, "--mirrors", str(mirrors), "--to", str(target)]
    with monkeypatch.context() as broken:  # Ctrl-C at the second block of bytes
        broken.setattr("harness.datasets.download._copy", interrupted)
        result = CliRunner().invoke(data, words)
        assert result.exit_code != 0 and not (target / MANIFEST).exists()
        assert [p.name for p in target.glob(".*.part")]
    result = CliRunner().invoke(data, words, catch_exceptions=False)
    assert f"{form}: fetched in" in result.output
    assert not list(target.glob(".*.part"))
    assert "match" in CliRunner().invoke(data, ["verify", str(target)], catch_exceptions=False).output
    asked = len(server.requests)
    assert "already there" in CliRunner().invoke(data, words, catch_exceptions=False).output
    assert len(server.requests) == asked


def interrupted(answer, stream, *_):
    stream.write(answer.read(100))
    raise KeyboardInterrupt
