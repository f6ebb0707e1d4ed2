"""The verb ``harness data``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from harness.cli.data import data
from harness.errors import UserError


def run(*args: object, ok: bool = True) -> str:
    result = CliRunner().invoke(data, [str(a) for a in args], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert bool(result.exit_code == 0 and not result.return_value) == ok, result.output
    return result.output


SMALL = ("--train", 30, "--test", 20)


def test_make_verify_and_make_again(tmp_path):
    path = tmp_path / "a b"
    assert "synthetic:mnist: made in" in run("make", "mnist", "--to", path, *SMALL)
    assert "already there: 30 train, 20 test; 4 files" in run("make", "mnist", "--to", path, *SMALL)
    assert "all 4 files match" in run("verify", path)
    facts = json.loads(run("make", "mnist", "--to", path, *SMALL, "--json"))
    assert (facts["name"], facts["counts"]) == ("synthetic:mnist", {"train": 30, "test": 20})


def test_verify_names_what_is_wrong(tmp_path):
    run("make", "cifar10", "--layout", "binary", "--to", tmp_path / "c", *SMALL)
    folder = tmp_path / "c" / "cifar-10-batches-bin"
    (folder / "test_batch.bin").unlink()
    content = bytearray((folder / "data_batch_1.bin").read_bytes())
    content[0] ^= 1
    (folder / "data_batch_1.bin").write_bytes(content)
    report = json.loads(run("verify", tmp_path / "c", "--json", ok=False))
    wrong = {f["file"]: f["detail"] for f in report["files"] if f["verdict"] == "wrong"}
    assert wrong == {
        "cifar-10-batches-bin/test_batch.bin": "missing",
        "cifar-10-batches-bin/data_batch_1.bin": "checksum differs",
    }
    assert report["ok"] is False


def test_files_without_any_checksum_are_not_called_verified(tmp_path):
    run("make", "cifar10", "--layout", "binary", "--to", tmp_path / "c", *SMALL)
    (tmp_path / "c" / "harness-dataset.json").unlink()
    assert "NOT verified" in run("verify", tmp_path / "c", ok=False)


def test_a_projects_data_are_its_own_from_any_of_its_directories(tmp_path, monkeypatch):
    (tmp_path / "configs" / "clusters").mkdir(parents=True)
    node = "{cores_per_socket: 2}"
    cluster = f"name: local\nscheduler: local\nnode: {node}\nstorage: {{hpctmp: {{path: sets}}}}\n"
    (tmp_path / "configs" / "clusters" / "local.yml").write_text(cluster)
    (tmp_path / "configs" / "mirrors.yml").write_text("cifar10:\n  files: []\n")
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / "notes")
    run("make", "mnist", *SMALL)
    assert (tmp_path / "sets" / "synthetic-mnist").is_dir()
    with pytest.raises(UserError, match=f"{tmp_path}/configs/mirrors.yml names no mirror of mnist"):
        run("fetch", "mnist")


def test_describe_names_every_set_and_origin():
    text = run("describe")
    assert all(word in text for word in ("digits:mnist", "photos:cifar10", "synthetic:cifar10"))
    facts = json.loads(run("describe", "mnist", "--json"))[0]
    assert facts["samples"] == {"train": 60000, "test": 10000}
    assert facts["names"]["real"] == "mnist"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("make", "mnits"), "did you mean 'mnist'"),
        (("make", "mnist", "--layout", "python", "--to", "x"), "cifar10 only"),
        (("make", "mnist", "--seed", "-1", "--to", "x"), "0 or more"),
        (("verify", "/no/such/place", "--to", "/no/such/place"), "no data set there"),
        (("describe", "imagnet"), "unknown data set format"),
    ],
)
def test_bad_input_is_one_clear_message(args, message):
    with pytest.raises(UserError, match=message):
        run(*args)


def test_login_side_questions_need_no_numpy():
    code = (
        "import sys; import harness.cli.data, harness.datasets.manifest as m, harness.datasets.verify\n"
        "from pathlib import Path\n"
        "m.missing(Path('/nowhere'), 'digits:mnist'); m.missing(Path('/nowhere'), 'mnist')\n"
        "assert not {'numpy', 'PIL', 'sklearn'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_exit_code_of_a_failed_verification_reaches_the_shell(tmp_path):
    run("make", "mnist", "--to", tmp_path / "m", *SMALL)
    (tmp_path / "m" / "t10k-labels-idx1-ubyte.gz").unlink()
    command = [sys.executable, "-m", "harness", "data", "verify", str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "wrong   t10k-labels-idx1-ubyte.gz: missing" in done.stdout


CLUSTER = """
name: here
scheduler: local
node: {cores_per_socket: 1}
storage:
  hpctmp: {path: results/data/hp}
  scratch: {path: $HARNESS_TEST_SCRATCH/data}
"""


def test_a_set_goes_where_the_cluster_keeps_it(tmp_path, monkeypatch):
    (tmp_path / "configs/clusters").mkdir(parents=True)
    (tmp_path / "configs/clusters/here.yml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_TEST_SCRATCH", str(tmp_path / "s"))
    run("make", "mnist", "--cluster", "here", *SMALL)
    assert (tmp_path / "results/data/hp/synthetic-mnist/harness-dataset.json").exists()
    run("make", "mnist", "--cluster", "here", "--storage", "scratch", *SMALL)
    run("verify", "synthetic:mnist", "--cluster", "here", "--storage", "scratch")
    assert (tmp_path / "s/data/synthetic-mnist/harness-dataset.json").exists()
    with pytest.raises(UserError, match="did you mean 'scratch'"):
        run("make", "mnist", "--cluster", "here", "--storage", "scrach", *SMALL)
    monkeypatch.delenv("HARNESS_TEST_SCRATCH")
    with pytest.raises(UserError, match="variable is not set"):
        run("make", "mnist", "--cluster", "here", "--storage", "scratch", *SMALL)


def test_a_tree_is_made_converted_and_staged_from_the_command_line(tmp_path):
    source = tmp_path / "synthetic-imagenet"
    run("make", "imagenet", "--train", 12, "--test", 4, "--classes", 4, "--to", source, "--workers", 1)
    facts = json.loads(run("convert", source, "--encoding", "webdataset", "--shard-samples", 8, "--json"))
    assert facts["path"] == f"{source}.webdataset"
    assert sorted(facts["shards"].values()) == [4, 4, 8]
    text = run("convert", source, "--encoding", "npy", "--side", 8, "--to", tmp_path / "n", "--shard-bytes", "1kb")
    assert "synthetic:imagenet as npy: 16 samples" in text
    assert "checksums matched" in run("stage", tmp_path / "n", tmp_path / "node", "--streams", 2)
    assert "files match" in run("verify", tmp_path / "node")
    assert "16 images left out" not in run("describe", tmp_path / "node")
    text = run("describe", tmp_path / "node")
    assert f"converted from {source} (" in text
    assert re.search(r"in \d+\.\d s of work by \d+ workers, \d+\.\d s elapsed, 0 images left out", text), text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("make", "mnist", "--classes", 3), "--classes is for imagenet only"),
        (("make", "imagenet", "--classes", 1001, "--to", "x"), "has 1 to 1000"),
        (("make", "caltech256", "--test", 3, "--to", "x"), "no test split"),
        (("convert", ".", "--encoding", "lmdb", "--shard-bytes", "12"), "--shard-bytes: '12' is no size"),
        (("stage", "/no/such/place", "x"), "no directory to stage from"),
    ],
)
def test_bad_options_are_one_clear_message(args, message):
    with pytest.raises(UserError, match=message):
        run(*args)


def test_an_interrupted_make_exits_130_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "harness", "data", "make", "imagenet", "--train", "3000", "--workers", "2"]
    command += ["--to", str(tmp_path / "i")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (tmp_path / "i" / "harness-parts.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C in a terminal: to the workers too
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on from here" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "i" / "harness-dataset.json").exists()
