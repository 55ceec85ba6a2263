"""Files that nobody vetted: the checker reports them, goes on, and needs bounded time and memory."""

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from effectonce.checker import source
from tests.checker.projects import found, lay

GOOD = "import stripe\nfrom celery import shared_task\n@shared_task\ndef work(): stripe.Charge.create()\n"
LONGEST = 20.0
HOSTILE: dict[str, Callable[[], str]] = {
    "brackets": lambda: "x = " + "(" * 5000 + ")" * 5000,
    "braces": lambda: "{" * 300,
    "unary": lambda: "x = " + "-" * 50_000 + "1",
    "calls": lambda: "celery" + "()" * 20_000,
    "attributes": lambda: "celery" + ".a" * 20_000,
    "sum": lambda: "x = " + "1+" * 50_000 + "1",
    "elif": lambda: "if a: pass\n" + "elif a: pass\n" * 5000,
    "lambda": lambda: "x = " + "lambda: " * 5000 + "celery",
    "blocks": lambda: "".join(" " * n + "if a:\n" for n in range(150)) + " " * 150 + "celery",
    "zero": lambda: "celery\0",
    "surrogates": lambda: "# celery \\udc80\nx = '\\ud800'",
    "strings": lambda: "x = '" + "celery" * 100_000 + "'",
    "names": lambda: "\n".join(f"a{n} = a{n + 1}" for n in range(20_000)) + "\n# celery",
    "tabs": lambda: "if a:\n\tcelery\n        b",
    "unclosed": lambda: "'''celery",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_little_and_the_others_are_checked(name: str, tmp_path: Path) -> None:
    lay(tmp_path, tasks=GOOD, hostile=HOSTILE[name]())
    began = time.process_time()
    codes = {code for code, _ in found(tmp_path)}
    assert time.process_time() - began < LONGEST
    assert "EO101" in codes
    assert codes <= {"EO101", "EO901"}


@pytest.mark.parametrize("name", ["brackets", "unary", "attributes", "zero", "unclosed"])
def test_what_cannot_be_parsed_is_a_finding(name: str, tmp_path: Path) -> None:
    lay(tmp_path, hostile=HOSTILE[name]())
    assert [code for code, _ in found(tmp_path)] == ["EO901"]


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_bytes(b"# celery\n" * (source.MOST_BYTES // 4))
    tracemalloc.start()
    try:
        assert found(tmp_path) == [("EO901", 1)]
        assert tracemalloc.get_traced_memory()[1] < 3 * source.MOST_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "raw",
    [b"\xff\xfe\x00celery", b"# -*- coding: nonsense -*-\n", b"x = '\x80'  # celery\n"],
    ids=["bom", "name", "byte"],
)
def test_a_file_in_no_known_encoding_is_a_finding(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_bytes(raw)
    assert [code for code, _ in found(tmp_path)] == ["EO901"]


def test_a_file_in_its_declared_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_bytes("# -*- coding: latin-1 -*-\n# caf\u00e9\n".encode("latin-1") + GOOD.encode())
    assert found(tmp_path) == [("EO101", 5)]


def test_a_file_that_may_not_be_read_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "tasks.py").write_text(GOOD)
    assert found(tmp_path) == [("EO101", 3)]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [" + ", ".join([f"*{chr(97 + n)}"] * 9) + "]\n" for n in range(9)
)
YAML = {
    "bomb": "services:\n  worker:\n    command: celery worker\n" + BOMB,
    "flow": "services: " + "[" * 5000,
    "deep": "services:\n" + "".join(" " * n + "a:\n" for n in range(1, 500)) + " " * 500 + "celery: 1\n",
    "dashes": "services:\n  celery: " + "- " * 5000,
    "circle": "services: &a\n  celery: *a\n  worker:\n    <<: *a\n    command: celery worker\n",
    "tag": "services:\n  worker:\n    command: !!python/object/apply:os.system ['celery']\n",
    "unclosed": "services:\n  worker: {command: celery worker",
    "tab": "services:\n\tworker: celery\n",
}


@pytest.mark.parametrize("name", YAML)
def test_hostile_yaml_costs_little_and_the_others_are_checked(name: str, tmp_path: Path) -> None:
    lay(tmp_path, tasks=GOOD, **{"compose.yaml": YAML[name]})
    began = time.process_time()
    codes = {code for code, _ in found(tmp_path)}
    assert time.process_time() - began < LONGEST
    assert "EO101" in codes
    assert codes <= {"EO101", "EO901"}


MANY = 3000
LONG = {
    "sends": (
        "from celery import shared_task\nfrom django.db import transaction\n@shared_task\ndef work(x): pass\n"
        "def save(x):\n    with transaction.atomic():\n        x.save()\n" + "        work.delay(x.pk)\n" * MANY,
        "EO501",
    ),
    "looks": (
        "from celery import shared_task\n@shared_task\ndef work(x):\n"
        + "    if not Row.objects.filter(a=x).exists(): Row.objects.create(a=x)\n" * MANY,
        "EO401",
    ),
    "locks": (
        "import redis\nfrom celery import shared_task\nr = redis.Redis()\n@shared_task\ndef work(x):\n"
        + "    if not r.set('lock', 1, nx=True, ex=5): return\n    r.delete('lock')\n" * MANY,
        "EO302",
    ),
    "deep": (
        "import redis\nfrom celery import shared_task\nr = redis.Redis()\n@shared_task\ndef work(x):\n"
        "    if r.set(" + "+".join(["x"] * 1500) + ", 1, nx=True): return\n",
        "EO305",
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_body_without_end_costs_little_and_is_still_judged(name: str, tmp_path: Path) -> None:
    text, expected = LONG[name]
    lay(tmp_path, tasks=text)
    began = time.process_time()
    codes = {code for code, _ in found(tmp_path)}
    assert time.process_time() - began < LONGEST
    assert expected in codes
