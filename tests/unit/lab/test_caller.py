from typing import Any

from effectonce.lab.caller import WINDOW, Caller
from effectonce.lab.orders import Order, Trouble


class Sent:
    def __init__(self, number: int) -> None:
        self.id = str(number)


class Task:
    """Notes what is sent, and answers when told."""

    def __init__(self) -> None:
        self.orders: list[int] = []
        self.states: dict[str, str] = {}

    def delay(self, order: int, *_: Any) -> Sent:
        self.orders.append(order)
        return Sent(len(self.orders))

    def answer(self, state: str = "SUCCESS") -> None:
        self.states = {str(number + 1): state for number in range(len(self.orders))}

    def state_of(self, sent: str) -> str:
        return self.states.get(sent, "PENDING")


def order(number: int, *, gap: float | None) -> Order:
    return Order(number=number, amount=100, seconds=0.0, gap=gap, trouble=Trouble.NONE)


def caller_of(task: Task, orders: list[Order]) -> Caller:
    return Caller({"plain": task}, orders, pause=0, state_of=task.state_of)


def test_a_message_is_repeated_when_the_first_is_done() -> None:
    task = Task()
    caller = caller_of(task, [order(1, gap=None)])
    caller.step()
    caller.step()
    assert task.orders == [1]
    task.answer()
    caller.step()
    assert task.orders == [1, 1]
    assert (caller.repeated_early, caller.repeated_late) == (0, 1)
    assert len(caller.under_way) == 1
    task.answer()
    caller.step()
    assert caller.is_done
    assert caller.answered["plain"] == 2


def test_a_message_is_repeated_soon_whatever_has_become_of_the_first() -> None:
    task = Task()
    caller = caller_of(task, [order(1, gap=0)])
    caller.step()
    caller.step()
    assert task.orders == [1, 1]
    assert (caller.repeated_early, caller.repeated_late) == (1, 0)


def test_every_task_gets_every_order() -> None:
    tasks = {"plain": Task(), "guarded": Task()}
    caller = Caller(tasks, [], pause=0, state_of=lambda _: "PENDING")
    wanted = order(9, gap=0)
    caller.send(wanted)
    assert [task.orders for task in tasks.values()] == [[9], [9]]
    assert not caller.has_answers_for(wanted)


def test_only_so_many_messages_are_under_way() -> None:
    caller = caller_of(Task(), [order(number, gap=None) for number in range(100)])
    for _ in range(100):
        caller.step()
    assert len(caller.under_way) == WINDOW


def test_an_error_is_an_answer_and_is_counted() -> None:
    task = Task()
    caller = caller_of(task, [order(1, gap=0)])
    caller.step()
    task.answer("FAILURE")
    caller.step()
    assert caller.failed["plain"] == 1
