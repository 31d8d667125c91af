"""The threads that deliver."""

from __future__ import annotations

from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.dispatch import route
from rlvitals_monitor.notify.dispatcher import Dispatcher
from rlvitals_monitor.store.engine import Store
from tests.monitor.notify.conftest import Opened, channel_to
from tests.monitor.notify.provider import Said
from tests.monitor.planted import NOW, a_transition, plant


def test_a_provider_that_hangs_holds_up_no_other_channel(store: Store, provide: Opened) -> None:
    hanging, sound = provide(Said(hangs=True)), provide()
    channels = Channels(
        items=(channel_to(hanging, timeout_s=30.0), channel_to(sound, name="sound", timeout_s=30.0))
    )
    plant(store, a_transition())
    dispatcher = Dispatcher(store, channels)
    dispatcher.start()
    try:
        with store.begin() as conn:
            route(conn, a_transition(), channels, NOW)
        dispatcher.wake()
        assert len(sound.wait_for(1)) == 1
        assert len(hanging.wait_for(1)) == 1
    finally:
        hanging.hang_up()
        dispatcher.stop()


def test_it_sends_at_once_when_woken(store: Store, provide: Opened) -> None:
    provider = provide()
    channels = Channels(items=(channel_to(provider),))
    plant(store, a_transition())
    dispatcher = Dispatcher(store, channels, look_s=3600.0)
    dispatcher.start()
    try:
        with store.begin() as conn:
            route(conn, a_transition(), channels, NOW)
        dispatcher.wake()
        provider.wait_for(1)
    finally:
        dispatcher.stop()


def test_it_outlives_a_store_that_fails(store: Store, provide: Opened) -> None:
    class Broken(Store):
        fails = True

        def read(self):  # type: ignore[no-untyped-def]
            if self.fails:
                type(self).fails = False
                raise OSError("the disk is away")
            return store.read()

        def begin(self):  # type: ignore[no-untyped-def]
            return store.begin()

    provider = provide()
    channels = Channels(items=(channel_to(provider),))
    plant(store, a_transition())
    with store.begin() as conn:
        route(conn, a_transition(), channels, NOW)
    broken = Broken.__new__(Broken)
    dispatcher = Dispatcher(broken, channels, look_s=0.05)
    dispatcher.start()
    try:
        provider.wait_for(1)
        assert not Broken.fails
    finally:
        dispatcher.stop()


def test_it_may_be_stopped_twice_and_without_a_start(store: Store, provide: Opened) -> None:
    dispatcher = Dispatcher(store, Channels(items=(channel_to(provide()),)))
    dispatcher.stop()
    dispatcher.stop()
