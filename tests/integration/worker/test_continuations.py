"""What goes on from an effect that took place, when the broker or the result backend refuses."""

import pytest
from celery import chain

from tests.integration.worker.harness import Shop

FORGETFUL = ("-I", "tests.integration.worker.forgetful")
PAIRS = pytest.mark.parametrize("pair", ["redis+sqlite"])
POOLS = pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])


def _started(shop: Shop, refusals: str, number: int) -> None:
    (shop.folder / f"refuse-{refusals}").write_text(str(number))
    shop.add(concurrency=1, options=FORGETFUL)


@PAIRS
@POOLS
@pytest.mark.parametrize(("refusals", "number"), [("results", 1), ("publishes", 2)])
def test_what_could_not_go_on_from_an_effect_goes_on_later(shop: Shop, refusals: str, number: int) -> None:
    """A copy of the delivery goes on; where the broker did not take the copy either, the message comes back."""
    _started(shop, refusals, number)
    result = chain(shop.task("charge").si(1), shop.task("mail").si(2)).apply_async()
    assert result.get(timeout=30) == "mailed 2"
    assert result.parent.get(timeout=30) == "charged 1"
    assert len(shop.outside(f"refused-{refusals}")) == number
    assert shop.effects() == {1: 1}
    assert shop.bodies("charge:1") == 1
    assert shop.bodies("mail:2") == 1
