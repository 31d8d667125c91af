"""What several pages ask in the same moment is asked once, and never what one of them may not hear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from rlvitals_dashboard.api import SignInNeeded
from rlvitals_dashboard.language import Language, language
from rlvitals_dashboard.shared_looks import FRESH_S, SharedLooks


class Service:
    """Answers with how often it was asked, once it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()

    async def answer(self) -> int:
        self.asked += 1
        number = self.asked
        await self.may_answer.wait()
        return number

    async def refuse(self) -> int:
        await self.may_answer.wait()
        raise SignInNeeded("this session is over")


async def together(service: Service, *asking: Awaitable[int]) -> list[object]:
    tasks = [asyncio.ensure_future(one) for one in asking]
    await asyncio.sleep(0)
    service.may_answer.set()
    return list(await asyncio.gather(*tasks, return_exceptions=True))


def test_ten_pages_that_ask_the_same_at_once_are_one_question() -> None:
    async def main() -> None:
        looks, service = SharedLooks(), Service()
        answers = await together(service, *(looks.ask(("run", 7), service.answer) for _ in range(10)))
        assert (answers, service.asked) == ([1] * 10, 1)

    asyncio.run(main())


@pytest.mark.parametrize(("later_s", "asked"), [(0.0, 1), (FRESH_S, 1), (FRESH_S + 0.001, 2)])
def test_an_answer_is_given_again_while_it_is_fresh(later_s: float, asked: int) -> None:
    async def main() -> None:
        now = [100.0]
        looks, service = SharedLooks(lambda: now[0]), Service()
        service.may_answer.set()
        await looks.ask("run", service.answer)
        now[0] += later_s
        assert await looks.ask("run", service.answer) == asked

    asyncio.run(main())


@pytest.mark.parametrize("other", [("run", 8), ("another", 7)])
def test_another_version_and_another_run_are_other_questions(other: tuple[str, int]) -> None:
    async def main() -> None:
        looks, service = SharedLooks(), Service()
        service.may_answer.set()
        assert [await looks.ask(what, service.answer) for what in (("run", 7), other)] == [1, 2]

    asyncio.run(main())


def test_who_reads_another_language_is_given_an_answer_in_it() -> None:
    async def main() -> None:
        looks, service = SharedLooks(), Service()
        service.may_answer.set()
        assert await looks.ask("run", service.answer) == 1
        language.set(Language.CHINESE)
        assert await looks.ask("run", service.answer) == 2

    asyncio.run(main())


def test_a_refusal_of_one_visitor_is_not_told_to_another() -> None:
    async def main() -> None:
        looks, service = SharedLooks(), Service()
        mine, yours = await together(service, looks.ask("run", service.refuse), looks.ask("run", service.answer))
        assert isinstance(mine, SignInNeeded)
        assert yours == 1

    asyncio.run(main())


def test_a_visitor_who_leaves_takes_nobodys_answer_away() -> None:
    async def main() -> None:
        looks, service = SharedLooks(), Service()
        first = asyncio.ensure_future(looks.ask("run", service.answer))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(looks.ask("run", service.answer))
        await asyncio.sleep(0)
        first.cancel()
        service.may_answer.set()
        assert (await second, service.asked) == (1, 1)

    asyncio.run(main())


def test_old_answers_are_not_kept() -> None:
    async def main() -> None:
        now = [0.0]
        looks, service = SharedLooks(lambda: now[0]), Service()
        service.may_answer.set()
        for number in range(1000):
            now[0] += FRESH_S / 10
            await looks.ask(number, service.answer)
        assert len(looks._looks) <= 11

    asyncio.run(main())


def test_what_is_kept_is_given_until_its_time_is_over_and_in_its_language_only() -> None:
    now = [0.0]
    looks = SharedLooks(lambda: now[0])
    looks.keep("metrics", ("a", "b"), 10.0)
    now[0] = 9.9
    assert (looks.kept("metrics"), looks.kept("other")) == (("a", "b"), None)
    before = language.set(Language.CHINESE)
    assert looks.kept("metrics") is None
    language.reset(before)
    now[0] = 10.0
    assert looks.kept("metrics") is None
    looks.keep("other", 1, 1.0)
    assert len(looks._kept) == 1
