"""EO208: RabbitMQ closes the channel of a consumer that keeps a message too long."""

from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Module
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

DEFAULT: Final = 1800.0


def check(survey: Survey) -> Iterator[Found]:
    """Compare delays, and limits of late tasks, with RabbitMQ's default of half an hour."""
    for send in survey.all_sends:
        delay = survey.delay_of(send)
        if delay is not None and delay[1] >= DEFAULT and _holds(send.module, survey):
            yield send.module.found(
                delay[0],
                f"a worker keeps this message {delay[1]:,.0f} s without acknowledging it; RabbitMQ closes its channel "
                f"after {DEFAULT:,.0f} s (consumer_timeout), and all that it holds is delivered again",
            )
    for task in survey.tasks:
        limit = task.time_limit
        found = task.expression("time_limit")
        late = task.is_late and limit is not None and limit >= DEFAULT
        if late and found is not None and _holds(task.module, survey):
            yield found[0].found(
                found[1],
                f"task {task.short!r} is acknowledged late and may run {limit:,.0f} s; RabbitMQ closes its channel "
                f"after {DEFAULT:,.0f} s (consumer_timeout) and delivers the message again",
            )


def _holds(module: Module, survey: Survey) -> bool:
    """Tell whether the broker is RabbitMQ, without the native delays of its quorum queues."""
    configuration = survey.configuration
    if configuration.broker(module) != "amqp":
        return False
    return bool(configuration.value("task_default_queue_type", module) != "quorum")


RULE = Rule(
    code="EO208",
    name="beyond-consumer-timeout",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="A message is kept longer than RabbitMQ lets a consumer keep it",
    check=check,
)
