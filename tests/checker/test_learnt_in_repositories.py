"""What whole repositories taught, with their templates and deployment files: synthetic cases of it.

The projects and the numbers stand in `docs/explanation/checker-precision.md`.
"""

import sys
from pathlib import Path

from effectonce.checker.options import Options
from effectonce.checker.run import check
from tests.checker.projects import found, lay


def test_a_clause_that_no_error_of_a_broker_comes_to_sends_nothing_again(tmp_path: Path) -> None:
    """A view that updates a row and tells so, or makes it and tells so."""
    lay(
        tmp_path,
        views="""\
            import asyncio

            from celery import shared_task
            from kombu.exceptions import OperationalError

            from shop.models import Order


            @shared_task
            def tell(pk): pass


            def put(pk):
                try:
                    Order.objects.get(pk=pk)
                    tell.delay(pk)
                except (Order.DoesNotExist, asyncio.TimeoutError):
                    tell.delay(pk)
                for _ in range(3):
                    try:
                        tell.delay(pk)
                        break
                    except KeyError:
                        pass


            def insist(pk):
                try:
                    tell.delay(pk)
                except (Order.DoesNotExist, OperationalError):
                    tell.delay(pk)
                try:
                    tell.delay(pk)
                except:
                    tell.delay(pk)
            """,
    )
    assert found(tmp_path, select="EO507") == [("EO507", 29), ("EO507", 33)]


def test_a_retry_after_a_write_that_failed_wants_it_rolled_back(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            from celery import shared_task
            from django.db import IntegrityError, transaction

            from shop.models import Docket


            @shared_task(bind=True)
            def merge(self, number):
                with transaction.atomic():
                    try:
                        Docket.objects.create(number=number)
                    except IntegrityError as error:
                        raise self.retry(exc=error)


            @shared_task(bind=True)
            def ask(self, number):
                with transaction.atomic():
                    Docket.objects.create(number=number)
                    try:
                        look(number)
                    except ValueError as error:
                        raise self.retry(exc=error)
            """,
    )
    assert found(tmp_path, select="EO204") == [("EO204", 23)]


def test_a_folder_whose_name_is_a_template_holds_no_code_yet(tmp_path: Path) -> None:
    (tmp_path / "{{cookiecutter.name}}").mkdir()
    (tmp_path / "{{cookiecutter.name}}" / "tasks.py").write_text("{% if celery %}\nimport celery\n{% endif %}\n")
    assert found(tmp_path) == []


def test_what_cannot_be_parsed_is_said_to_be_of_another_python(tmp_path: Path) -> None:
    lay(tmp_path, tasks="def first[: pass\n")
    (finding,) = check([tmp_path], Options(root=tmp_path))
    assert f"is not Python {sys.version_info[0]}.{sys.version_info[1]}" in finding.message
