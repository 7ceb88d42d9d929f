from tabmuxd.cdp.pulse import Pulse


def look(pulse: Pulse, now: float) -> tuple[bool, bool, float]:
    """All that a pulse says at a time."""
    return pulse.ping_due(now), pulse.silent(now), pulse.next_look()


def test_silence() -> None:
    """After an interval without a sign of life Chrome is asked, and silent a timeout later (CON-02)."""
    pulse = Pulse(interval=10, timeout=15, heard_at=100)
    assert look(pulse, 109.9) == (False, False, 110)
    assert look(pulse, 110) == (True, False, 110)
    pulse.ask(110)
    assert look(pulse, 124.9) == (False, False, 125)
    assert look(pulse, 125) == (False, True, 125)


def test_stopped_for_a_moment() -> None:
    """A Chrome that stood still for 6 s is not silent (CON-03)."""
    pulse = Pulse(interval=10, timeout=15, heard_at=100)
    pulse.ask(110)
    assert not pulse.silent(116)
    pulse.heard_at = 116.5
    assert look(pulse, 120) == (False, False, 126.5)


def test_asked_once() -> None:
    """A second question does not put the end of the first off."""
    pulse = Pulse(interval=10, timeout=15, heard_at=100)
    pulse.ask(110)
    pulse.ask(120)
    assert pulse.silent(125)


def test_overslept() -> None:
    """When this process itself stood still, Chrome gets its whole time again (JOB-04)."""
    pulse = Pulse(interval=10, timeout=15, heard_at=100)
    pulse.overslept(105)
    assert not pulse.asking
    pulse.ask(110)
    pulse.overslept(1310)
    assert look(pulse, 1310) == (False, False, 1325)
