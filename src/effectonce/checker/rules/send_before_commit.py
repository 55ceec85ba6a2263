"""EO501: a task that is sent inside a transaction runs before the rows are there, or without them."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.sends import Send, is_after_commit
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, exclusive, writes_before
from effectonce.checker.walk import Kind, Step

_WORD: Final = re.compile(r"\w+")


def check(survey: Survey) -> Iterator[Found]:
    """Look for sends between a write and the end of its transaction, here or one call further."""
    for function, sends in survey.senders:
        early = _given_to_on_commit(function)
        for send in sends if not survey.is_guarded(function) else ():
            message = _wrong(send, function, early)
            if message is not None:
                yield function.found(send.step.call, message)
    senders = {function.name: sends for function, sends in survey.senders}
    words = {function.node.name for function, _ in survey.senders}
    concerned = set(survey.project.modules)
    for module in survey.project.loaded:
        text = module.source.text
        if "atomic" in text and (module in concerned or not words.isdisjoint(_WORD.findall(text))):
            for function in module.functions.values():
                yield from _further(function, senders, survey)


def _wrong(send: Send, function: Function, early: set[int]) -> str | None:
    if send.waits_for_commit:
        return None
    if id(send.step.node) in early:
        return (
            "on_commit is given what this call returns, so the task is sent now, before the commit; give it a callable"
        )
    frame = atomic_frame(send.step)
    if frame is None or send.is_deferred:
        return None
    write = next(writes_before(send.step, frame, function), None)
    if write is None:
        return None
    return (
        f"the task is sent inside the transaction that writes in line {write.call.lineno}: a worker may run it before "
        "the commit, and a rollback does not take it back"
    )


def _given_to_on_commit(function: Function) -> set[int]:
    """The calls whose *results* are given to `on_commit`, by the identity of their nodes."""
    return {id(argument) for step in function.calls if is_after_commit(step.name) for argument in step.call.args}


def _further(function: Function, senders: dict[str, list[Send]], survey: Survey) -> Iterator[Found]:
    """A call inside a transaction of a function that sends at once."""
    for step in function.calls:
        frame = atomic_frame(step) if step.frame is not None else None
        if frame is None:
            continue
        called = survey.project.called(step.name, function)
        if called is None or called.name not in senders or called.is_task or called is function:
            continue
        send = next((each for each in senders[called.name] if _sends_at_once(each, called)), None)
        write = next(writes_before(step, frame, function), None)
        if send is not None and write is not None:
            yield function.found(
                step.call,
                f"{called.node.name!r} sends a task ({called.module.source.path.name}:{send.step.call.lineno}) "
                f"inside the transaction that writes in line {write.call.lineno}, and may run before the commit",
            )


def _sends_at_once(send: Send, called: Function) -> bool:
    if send.is_deferred or send.step.inside(Kind.IF, Kind.ELSE, Kind.EXCEPT):
        return False
    return not any(is_after_commit(step.name) and _same(step, send.step) for step in called.calls)


def _same(one: Step, other: Step) -> bool:
    return any(node is other.node for node in ast.walk(one.call)) or exclusive(one, other)


RULE = Rule(
    code="EO501",
    name="send-before-commit",
    severity=Severity.ERROR,
    family=Family.SENDING,
    summary="A task is sent inside the transaction whose rows it needs",
    check=check,
)
