"""Names of Celery and kombu that we rely on beyond their documented ones: a version that changes one fails here.

Each was read in celery 5.7.0 and kombu 5.7.0.
"""

import importlib.util
import inspect
from pathlib import Path

import pytest
import redbeat.schedulers
from amqp import channel as amqp_channel
from celery import Celery, _state, beat, canvas, schedules
from celery.app import amqp, annotations, autoretry, base, task, trace
from celery.backends.base import Backend, DisabledBackend, KeyValueStoreBackend
from celery.worker import WorkController, request
from celery.worker.consumer import consumer, tasks
from kombu.messaging import Producer
from kombu.transport import SQS, pgmq, virtual
from kombu.transport import redis as redis_transport
from kombu.transport.virtual import QoS, Transport
from kombu.utils.objects import cached_property

from effectonce.app.brokers import why_not_renewed


def source(thing: object) -> str:
    return inspect.getsource(thing)  # type: ignore[arg-type]


def test_all_publishing_crosses_one_lazily_made_sender() -> None:
    assert "_create_task_sender" in source(amqp.AMQP.send_task_message.func)
    assert "amqp.send_task_message(" in source(base.Celery.send_task)
    parameters = list(inspect.signature(amqp.AMQP(Celery(set_as_current=False)).send_task_message).parameters)
    assert parameters[:3] == ["producer", "name", "message"]


def test_a_producer_hands_a_prepared_message_on_at_one_point() -> None:
    """The recorder of the outbox stands there, and the relay goes on from there."""
    parameters = list(inspect.signature(Producer._publish).parameters)
    assert parameters[:12] == [
        "self",
        "body",
        "priority",
        "content_type",
        "content_encoding",
        "headers",
        "properties",
        "routing_key",
        "mandatory",
        "immediate",
        "exchange",
        "declare",
    ]
    text = source(Producer.publish)
    assert text.index("self._prepare(") < text.index("return _publish(")
    assert "_publish = self._publish" in text


def test_a_channel_of_rabbitmq_tells_of_confirmations() -> None:
    assert "self.events['basic_ack']" in source(amqp_channel.Channel._on_basic_ack)
    assert "self.events['basic_nack']" in source(amqp_channel.Channel._on_basic_nack)
    assert callable(amqp_channel.Channel._basic_publish)


def test_the_registry_can_be_read_without_finalizing_the_app() -> None:
    app = Celery(set_as_current=False)
    assert app._tasks.get("nothing") is None
    assert not app.finalized


def test_tasks_are_annotated_when_bound_and_the_first_answer_counts() -> None:
    assert "cls.annotate()" in source(task.Task.bind)
    assert "cls.app.annotations" in source(task.Task.annotate)
    assert "annotations" in vars(base.Celery)
    assert "_first_match(anno, task)" in source(annotations.resolve_all)


def test_the_apps_of_a_process_are_known() -> None:
    app = Celery("known", set_as_current=False)
    assert app in set(_state._get_active_apps())


def test_autoretry_keeps_the_body_as_orig_run() -> None:
    assert "task._orig_run, task.run = task.run, run" in source(autoretry.add_autoretry_behaviour)


def test_the_tracer_calls_a_custom_call_and_passes_reject_on() -> None:
    text = source(trace.build_tracer)
    assert "task_has_custom(task, '__call__')" in text
    assert "except Reject:\n            raise" in text


def test_the_result_is_stored_after_the_continuation_went_out() -> None:
    text = source(trace.build_tracer)
    assert text.index("_dispatch_callbacks_and_chain(\n                            retval") < text.index(
        "mark_as_done("
    )
    assert "self.on_chord_part_return(request, state, result)" in source(Backend.mark_as_done)


def test_the_meta_of_a_result_is_made_in_one_place() -> None:
    parameters = list(inspect.signature(Backend._get_result_meta).parameters)
    assert parameters[1:5] == ["result", "state", "traceback", "request"]
    assert "self._get_result_meta(result=result, state=state," in source(KeyValueStoreBackend._store_result)


def test_a_worker_lost_after_success_is_asked_of_the_request() -> None:
    assert "self._success_was_stored()" in source(request.Request.on_failure)
    for overridden in ("execute_using_pool", "on_success"):
        assert f"def {overridden}" in source(request.create_request_cls)


def test_a_retry_sends_itself_and_counts_one_more() -> None:
    text = source(task.Task.retry)
    assert "retries = request.retries + 1" in text
    assert "S.apply_async()" in text


def test_a_context_knows_whether_ignore_result_was_said() -> None:
    assert "'ignore_result' not in req.__dict__" in source(task.get_actual_ignore_result)


def test_the_canvas_has_the_classes_that_refuse_a_shared_key() -> None:
    assert {canvas.group, canvas._chain, canvas._chord} <= {
        kind for kind in vars(canvas).values() if inspect.isclass(kind)
    }


def test_a_consumer_can_be_told_to_pause_from_another_thread() -> None:
    assert "hub.call_soon" in source(consumer.Consumer.call_soon)
    assert "c.task_consumer" in source(tasks.Tasks.start)


def test_a_transport_names_its_driver_without_connecting() -> None:
    assert Transport.driver_type == "N/A"
    assert Celery(broker="redis://nowhere", set_as_current=False).connection_for_read().transport.driver_type == "redis"


def test_there_is_a_task_stack_and_a_disabled_backend() -> None:
    assert _state.get_current_task() is None
    assert issubclass(DisabledBackend, object)


def test_this_kombu_is_one_that_the_keeper_of_visibility_knows() -> None:
    """A new one joins `KNOWN_KOMBU` when the tests below and tests/integration/visibility hold on it."""
    for broker in ("redis://nowhere", "sqs://nowhere", "pgmq://nowhere"):
        assert why_not_renewed(Celery(broker=broker, set_as_current=False)) is None


def test_a_kombu_that_nobody_has_tried_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kombu.__version__", "5.99.0")
    assert "kombu 5.99.0 is not known" in str(why_not_renewed(Celery(broker="redis://nowhere", set_as_current=False)))


def test_sqs_keeps_receipt_and_queue_of_a_message_and_makes_clients_by_queue() -> None:
    """And knows the address of each queue that it consumes."""
    envelope, ack = source(SQS.Channel._envelope_payload), source(SQS.Channel.basic_ack)
    for words in ("'sqs_message': message", "'sqs_queue': q_url", "props['delivery_tag'] = message['ReceiptHandle']"):
        assert words in envelope
    assert "self.sqs(queue=queue).delete_message" in ack
    assert "self.canonical_queue_name(message['routing_key'])" in ack
    assert "str: the SQS queue URL" in source(SQS.Channel._new_queue)
    assert "self._active_queues.append(queue)" in source(virtual.Channel.basic_consume)


def test_pgmq_keeps_queue_number_and_reads_of_a_message_and_its_client_moves_many() -> None:
    envelope = source(pgmq.Channel._pgmq_message_to_python)
    for words in (
        "['pgmq_queue'] = queue_name",
        "['pgmq_msg_id'] = pgmq_message.msg_id",
        "'read_ct': pgmq_message.read_ct",
    ):
        assert words in envelope
    assert "self.pgmq.set_vt(queue, msg_id, 0)" in source(pgmq.Channel.basic_reject)
    assert isinstance(pgmq.Channel.visibility_timeout, cached_property)


def test_what_a_channel_holds_is_what_was_delivered_and_is_not_dirty() -> None:
    text = source(QoS)
    for words in ("self._delivered = OrderedDict()", "self._dirty = set()", "self._quick_ack = self._dirty.add"):
        assert words in text
    assert "super().append(message, delivery_tag)" in source(redis_transport.QoS.append)
    assert "super().ack(delivery_tag)" in source(redis_transport.QoS.ack)


def test_redis_writes_the_time_of_delivery_as_the_score_of_the_tag() -> None:
    text = source(redis_transport.QoS.append)
    assert "zadd_args = [{delivery_tag: time()}]" in text
    assert "pipe.zadd(self.unacked_index_key, *zadd_args)" in text


def test_redis_sweeps_when_asked_to_under_a_mutex_that_expires() -> None:
    text = source(redis_transport.QoS.restore_visible)
    assert list(inspect.signature(redis_transport.QoS.restore_visible).parameters)[1:] == ["start", "num", "interval"]
    for words in ("% (interval or 1)", "time() - self.visibility_timeout", "self.unacked_mutex_expire"):
        assert words in text
    assert redis_transport.Channel.unacked_restore_limit is None
    assert redis_transport.Channel.unacked_mutex_expire == 300


def test_redis_restores_by_tag_wherever_it_restores() -> None:
    for sweep in (redis_transport.QoS.restore_visible, redis_transport.QoS.restore_unacked, redis_transport.QoS.reject):
        assert "self.restore_by_tag(tag" in source(sweep).replace("(delivery_tag", "(tag")
    assert list(inspect.signature(redis_transport.QoS.restore_by_tag).parameters)[1:] == ["tag", "client", "leftmost"]
    assert "self._lookup(exchange, routing_key)" in source(redis_transport.Channel._do_restore_message)


def test_a_redis_channel_makes_a_client_with_its_prefix_and_a_pool() -> None:
    assert "self.Client(**client_kwargs)" in source(redis_transport.Channel._create_client)
    assert "redis.ConnectionPool(**params)" in source(redis_transport.Channel._get_pool)
    assert "ZADD" in redis_transport.GlobalKeyPrefixMixin.PREFIXED_SIMPLE_COMMANDS


def test_a_step_is_told_of_the_shutdown_after_the_pool_has_ended() -> None:
    """And of `stop` at its beginning, while bodies still run."""
    assert "self.consumer.shutdown()" in source(WorkController.on_stopped)


def test_beat_asks_a_scheduler_for_what_ours_gives() -> None:
    service = source(beat.Service)
    for asked in (
        "self.scheduler.tick()",
        "self.scheduler.should_sync()",
        "self.scheduler._do_sync()",
        "scheduler.close()",
    ):
        assert asked in service
    assert (
        "app=self.app,\n            schedule_filename=filename,\n            max_interval=self.max_interval" in service
    )
    assert list(inspect.signature(beat.Scheduler.apply_async).parameters)[:4] == [
        "self",
        "entry",
        "producer",
        "advance",
    ]
    assert "entry.options.copy()" in source(beat.Scheduler.apply_async)
    assert "scheduler.lock_key" in source(redbeat.schedulers.acquire_distributed_beat_lock)


def test_redbeat_writes_last_run_and_score_in_one_place() -> None:
    text = source(redbeat.schedulers.RedBeatSchedulerEntry._next_instance)
    assert "last_run_at=None" in text
    assert "entry.score" in text


def test_crontabs_and_intervals_keep_their_fields() -> None:
    every = schedules.crontab()
    assert all(getattr(every, name) for name in ("minute", "hour", "day_of_week", "day_of_month", "month_of_year"))
    assert schedules.schedule(3).run_every.total_seconds() == 3


def test_the_database_scheduler_reads_again_when_told_and_keeps_what_it_has_to_save() -> None:
    """Read as text: its module wants a configured Django."""
    found = importlib.util.find_spec("django_celery_beat")
    assert found is not None
    assert found.origin is not None
    text = Path(found.origin).with_name("schedulers.py").read_text()
    for name in ("def _get_crontab_exclude_query(self)", "if self._initial_read:", "self._dirty = set()"):
        assert name in text
