"""Calls in flight are bounded, and the bound follows the provider."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectorless_rag.pageindex_runtime.slots import Slots

# What becomes of the calls, in order: answered, or refused for rate.
outcomes = st.lists(st.booleans(), max_size=40)


async def run(slots: Slots, work: Sequence[bool]) -> int:
    """Carry out *work*; return how many were in flight at most."""
    inside = most = 0

    async def one(good: bool) -> None:  # noqa: FBT001
        nonlocal inside, most
        async with slots.turn():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            (slots.answered if good else slots.refused)()
            inside -= 1

    await asyncio.gather(*(one(good) for good in work))
    return most


@given(most=st.integers(1, 6), work=outcomes)
def test_the_bound_holds_and_everybody_gets_in(most: int, work: list[bool]) -> None:
    """No refusal starves a waiter, and no success passes the ceiling."""
    slots = Slots(most)

    assert asyncio.run(run(slots, work)) <= most
    assert 1 <= slots.limit <= most


def test_a_refusal_halves_and_successes_bring_it_back() -> None:
    """Down at once, up step by step."""
    slots = Slots(8)
    slots.refused()
    halved = slots.limit
    for _ in range(40):
        slots.answered()

    assert (4, 8) == (halved, slots.limit)


def test_a_cancelled_waiter_passes_its_turn_on() -> None:
    """Who gives up waiting takes nobody's place."""

    async def scene() -> list[str]:
        slots, seen = Slots(1), []

        async def wait(name: str) -> None:
            async with slots.turn():
                seen.append(name)

        async with slots.turn():
            gone = asyncio.create_task(wait("gone"))
            stays = asyncio.create_task(wait("stays"))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.sleep(0)
        await asyncio.wait_for(stays, 5)
        with pytest.raises(asyncio.CancelledError, match=r"^$"):
            await gone
        return seen

    assert ["stays"] == asyncio.run(scene())


def test_the_most_urgent_goes_first_and_equals_in_order() -> None:
    """Whenever they came; who is in is not put out."""

    async def scene() -> list[str]:
        slots, seen = Slots(1), []

        async def wait(name: str, rank: int) -> None:
            async with slots.turn(rank):
                seen.append(name)

        calls = (("late", 1), ("a", 0), ("b", 0), ("urgent", -1))
        async with slots.turn():
            waiting = [asyncio.create_task(wait(*call)) for call in calls]
            await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*waiting), 5)
        return seen

    assert ["urgent", "a", "b", "late"] == asyncio.run(scene())
