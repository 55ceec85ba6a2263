"""What real projects taught: synthetic cases of findings that were wrong, and of code that must stay found.

The projects and the numbers stand in `docs/explanation/checker-precision.md`.
"""

from pathlib import Path

from effectonce.checker.options import Options
from effectonce.checker.run import check
from tests.checker.projects import found, lay

SRC = Path(__file__).parents[2] / "src"


def test_a_base_class_that_waits_for_the_commit_makes_every_send_wait(tmp_path: Path) -> None:
    lay(
        tmp_path,
        base="""\
            from celery import Task
            from django.db import transaction


            class AfterCommit(Task):
                def apply_async(self, *args, **kwargs):
                    transaction.on_commit(lambda: super().apply_async(*args, **kwargs))
            """,
        tasks="""\
            from celery import shared_task
            from django.db import transaction

            from base import AfterCommit


            @shared_task(base=AfterCommit)
            def mail(row): pass


            @shared_task
            def other(row): pass


            def save(row):
                with transaction.atomic():
                    row.save()
                    mail.apply_async((row.pk,))
                    other.apply_async((row.pk,))
            """,
    )
    assert found(tmp_path) == [("EO501", 19)]


def test_mail_of_the_projects_own_rows_is_what_its_own_code_does(tmp_path: Path) -> None:
    """`order.send_mail()` may only write a row; where the method is known, its body tells."""
    lay(
        tmp_path,
        tasks="""\
            from celery import shared_task
            from django.db import transaction

            from shop import outbox
            from shop.models import Order


            @shared_task
            def cancel(order_id):
                with transaction.atomic():
                    order = Order.objects.get(pk=order_id)
                    order.save()
                    order.send_mail("cancelled")
                    outbox.send_mail("cancelled")
            """,
        shop____init__="",
        shop__outbox="def send_mail(text):\n    print(text)\n",
    )
    assert found(tmp_path) == []


def test_a_related_manager_is_not_the_model_that_it_hangs_on(tmp_path: Path) -> None:
    lay(
        tmp_path,
        models="from django.db import models\nclass Hook(models.Model):\n    url = models.TextField()\n",
        tasks="""\
            from celery import shared_task

            from models import Hook


            @shared_task
            def call(pk):
                hook = Hook.objects.get(pk=pk)
                hook.retries.update_or_create(entry=1, defaults={"at": 2})
            """,
    )
    assert found(tmp_path) == []


def test_columns_that_the_insert_sets_may_be_the_unique_ones(tmp_path: Path) -> None:
    lay(
        tmp_path,
        models="""\
            from django.db import models


            class Line(models.Model):
                number = models.TextField()
                digest = models.TextField()

                class Meta:
                    unique_together = ("number", "digest")
            """,
        tasks="""\
            from celery import shared_task

            from models import Line


            @shared_task
            def load(number, text):
                known = Line.objects.filter(text=text).exists()
                line = Line(number=number)
                line.digest = str(text)
                if not known:
                    line.save()
            """,
    )
    assert found(tmp_path) == []


def test_a_local_name_that_holds_some_model_is_not_known(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            from celery import shared_task


            @shared_task
            def load(number, model=None):
                Line = model or get_line_model()
                if not Line.objects.filter(number=number).exists():
                    Line.objects.create(number=number)
            """,
    )
    assert found(tmp_path) == []


def test_a_retry_until_the_row_is_there_is_fine_if_every_send_waits_for_the_commit(tmp_path: Path) -> None:
    text = """\
        from celery import shared_task

        from shop.models import Component


        @shared_task(autoretry_for=(Component.DoesNotExist,))
        def sync(pk): print(pk)


        def save(component):
            sync.{send}(component.pk)
        """
    lay(tmp_path, tasks=text.format(send="delay_on_commit"))
    assert found(tmp_path) == []
    lay(tmp_path, tasks=text.format(send="delay"))
    assert found(tmp_path) == [("EO504", 6)]


def test_an_effect_that_is_the_last_statement_is_not_repeated_by_a_later_error(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            from celery import shared_task
            from django.core.mail import send_mail


            @shared_task(autoretry_for=(Exception,))
            def mail(address):
                text = "hello"
                send_mail("Hello", text, None, [address])
            """,
    )
    assert found(tmp_path) == []


def test_a_message_of_the_project_that_is_called_request_is_no_web_request(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            from celery import shared_task


            @shared_task
            def notify(request): print(request)


            def create(request: "NotificationRequest"):
                notify.delay(request)


            def view(request):
                notify.delay(request)
            """,
    )
    assert found(tmp_path) == [("EO505", 13)]


def test_what_all_unique_tasks_lack_is_said_once(tmp_path: Path) -> None:
    task = "@shared_task(base=QueueOnce)\ndef work{n}(): pass\n"
    text = "from celery import shared_task\nfrom celery_once import QueueOnce\n"
    lay(tmp_path, tasks=text + "".join(task.format(n=n) for n in range(5)))
    assert found(tmp_path) == [("EO310", 3)]


def test_a_lock_around_a_part_of_an_unlimited_task_is_not_compared_with_the_whole(tmp_path: Path) -> None:
    text = """\
        from celery import shared_task
        from django.core.cache import cache


        def fetch():
            with cache.lock("status-lock", timeout=60):
                print("fetching")


        @shared_task{options}
        def work():
            fetch()
        """
    lay(tmp_path, tasks=text.format(options=""))
    assert found(tmp_path) == []
    lay(tmp_path, tasks=text.format(options="(time_limit=600)"))
    assert found(tmp_path) == [("EO301", 6)]


def test_a_search_for_a_free_code_is_no_use_of_a_key(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            import secrets

            from celery import shared_task

            from shop.models import Coupon


            @shared_task
            def make(order):
                while True:
                    code = secrets.token_hex(4)
                    if not Coupon.objects.filter(code=code).exists():
                        break
                Coupon.objects.get_or_create(order=order, defaults={"code": code})
            """,
    )
    assert found(tmp_path) == []


def test_a_send_on_commit_by_any_of_its_forms_is_quiet(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            from functools import partial

            from celery import chain, shared_task
            from django.db import transaction


            @shared_task
            def work(pk): print(pk)


            def save(row):
                with transaction.atomic():
                    row.save()
                    work.delay_on_commit(row.pk)
                    transaction.on_commit(lambda: work.delay(row.pk))
                    transaction.on_commit(partial(work.delay, row.pk))
                    transaction.on_commit(chain(work.si(row.pk), work.si(row.pk)).delay)

                    def later():
                        work.delay(row.pk)

                    transaction.on_commit(later)
                work.delay(row.pk)
            """,
    )
    assert found(tmp_path) == []


GUARDED = """\
    from celery import Celery
    from effectonce import MESSAGE, EffectOnce, Exclusive, Leased, Natural, Transactional

    from shop.gateway import gateway
    from shop.tables import Account, Charge

    app = Celery("shop", broker="redis://localhost")
    app.conf.task_acks_late = True
    app.conf.task_time_limit = 7200
    once = EffectOnce(app, ledger="postgresql+psycopg://localhost/shop")


    @app.task(once=Transactional("charge:{order_id}"))
    def charge(order_id, amount):
        once.session.add(Charge(order_id=order_id, amount=amount))
        account = once.session.get(Account, order_id)
        account.balance += amount
        receipt.delay(order_id)
        once.session.commit()


    @app.task(once=Leased("receipt:{order_id}", lease=30), autoretry_for=(Exception,))
    def receipt(order_id):
        effect = once.effect
        effect.step("mail", send_mail, order_id, idempotency_key=effect.idempotency_key("mail"))
        gateway.charge(order_id)


    @app.task(once=Exclusive("sync:{account}"))
    def sync(account):
        Charge.objects.create(account=account)


    @app.task(once=Natural("pay:{order_id}"))
    def pay(order_id):
        Charge.objects.filter(pk=order_id).update(status="paid")


    def go(order_id):
        charge.apply_async((order_id, 5), countdown=100_000, task_id=f"charge-{order_id}")
    """


def test_code_that_is_guarded_by_effectonce_is_quiet(tmp_path: Path) -> None:
    lay(tmp_path, tasks=GUARDED)
    assert found(tmp_path) == []


def test_in_our_own_source_only_what_demo_and_lab_do_on_purpose_is_found() -> None:
    findings = check([SRC], Options(root=SRC))
    assert {(finding.path.name, finding.code) for finding in findings} == {
        ("shop.py", "EO101"),
        ("shop.py", "EO108"),
        ("shop.py", "EO201"),
        ("plain.py", "EO209"),
    }
