"""Locks hold every requirement to one version, also one that asks for an extra."""

from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

LOCKS = sorted((Path(__file__).parents[2] / "requirements").glob("*.lock"))


def locked(lock: Path) -> dict[str, Requirement]:
    lines = lock.read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line.rstrip("\\ ")) for line in lines if line[:1].isalpha()]
    return {one.name: one for one in pinned}


def asked_for(pins: dict[str, Requirement]) -> list[Requirement]:
    """What the packages of a lock require of each other, as far as they are installed here."""
    here = {each.name.lower().replace("_", "-"): each for each in metadata.distributions()}
    asked = [
        Requirement(line)
        for name, pin in pins.items()
        if name in here
        for line in here[name].requires or ()
        if any(
            (each := Requirement(line).marker) is None or each.evaluate({"extra": extra})
            for extra in ("", *pin.extras)
        )
    ]
    return [one for one in asked if one.name.lower() in pins]


# An installer may look for `name[extra]` apart from `name`, and then meets a release that is newer
# than the lock and has no hash in it (seen of pip 23.2): from that release on nothing installs.
@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_an_extra_requested_by_a_locked_package_is_in_the_lock(lock: Path) -> None:
    pins = locked(lock)

    missing = [
        f"{one.name}[{','.join(sorted(one.extras - pins[one.name.lower()].extras))}]"
        for one in asked_for(pins)
        if not one.extras <= pins[one.name.lower()].extras
    ]

    assert pins
    assert missing == []
