"""A map for a text adventure: the setting by the prompt's words, rooms and ways by a number made of them.

The same words give the same map. Each room is joined to one that is there already, so all can be reached, and the last
one is a dead end: that is where the treasure lies.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

STEPS: Final = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}


@dataclass(frozen=True)
class Setting:
    called_by: frozenset[str]
    goal: str
    treasure: str
    key: str
    rooms: tuple[tuple[str, str], ...]


def adventure_facts(words: Sequence[str]) -> Mapping[str, Any]:
    setting = _setting(words)
    chance = Random(hashlib.sha256(" ".join(words).encode()).digest())
    start, *others = setting.rooms
    rooms = [start, *chance.sample(others, chance.randint(4, len(others)))]
    return {
        "goal": setting.goal,
        "treasure": setting.treasure,
        "key": setting.key,
        "rooms": [{"name": name, "text": text} for name, text in rooms],
        "ways": list(_ways([name for name, _ in rooms], chance)),
        "key_room": chance.randrange(1, len(rooms) - 1),
    }


def _ways(names: Sequence[str], chance: Random) -> Iterator[dict[str, str]]:
    """Each room beside one before it, where the grid is free."""
    places = {names[0]: (0, 0)}
    for name in names[1:]:
        free = [
            (here, direction, (x + dx, y + dy))
            for here, (x, y) in places.items()
            for direction, (dx, dy) in STEPS.items()
            if (x + dx, y + dy) not in places.values()
        ]
        here, direction, place = chance.choice(free)
        places[name] = place
        yield {"here": here, "direction": direction, "there": name}


def _setting(words: Sequence[str]) -> Setting:
    return next((each for each in SETTINGS if each.called_by & set(words)), SETTINGS[0])


SETTINGS: Final = (
    Setting(
        frozenset({"castle", "knight", "dragon", "king", "medieval", "tower"}),
        "a night in an empty castle",
        "crown",
        "iron key",
        (
            ("Gate", "The drawbridge is down, and nobody is on it."),
            ("Courtyard", "Grass grows between the stones."),
            ("Great hall", "The table is laid for forty."),
            ("Kitchen", "The fire is out, the soup is warm."),
            ("Chapel", "A candle burns that nobody lit."),
            ("Library", "One book lies open, face down."),
            ("Stables", "Straw, and the smell of horses."),
            ("Tower", "The wind has the stairs to itself."),
        ),
    ),
    Setting(
        frozenset({"space", "station", "ship", "spaceship", "alien", "planet", "galaxy", "orbit"}),
        "a station that has stopped answering",
        "flight recorder",
        "access card",
        (
            ("Airlock", "A green lamp: there is air."),
            ("Bridge", "All screens show the same star."),
            ("Engine room", "It hums, a little too low."),
            ("Sick bay", "One bed is still warm."),
            ("Greenhouse", "The tomatoes have taken over."),
            ("Cargo bay", "A crate has been opened from inside."),
            ("Cabin", "A diary ends in the middle of a word."),
        ),
    ),
    Setting(
        frozenset({"cave", "dungeon", "mine", "underground", "maze", "labyrinth", "goblin"}),
        "a way down, and back up",
        "lantern of the deep",
        "bone key",
        (
            ("Mouth of the cave", "Behind you is the last daylight."),
            ("Narrow passage", "It is better not to breathe in."),
            ("Echoing hall", "Your steps come back later than they should."),
            ("Underground lake", "The water is perfectly black."),
            ("Crystal grotto", "Your light comes back in pieces."),
            ("Old mine", "The rails end in the rock."),
            ("Bat roost", "The ceiling moves."),
        ),
    ),
    Setting(
        frozenset({"forest", "wood", "woods", "witch", "fairy", "jungle", "island"}),
        "a walk in a wood that is larger inside",
        "silver acorn",
        "wooden key",
        (
            ("Edge of the wood", "The path begins, and looks harmless."),
            ("Clearing", "A ring of mushrooms, and no birds."),
            ("Brook", "It flows uphill here."),
            ("Hollow oak", "Somebody has swept the floor."),
            ("Bramble tunnel", "The thorns lean aside for you."),
            ("Hut", "The kettle is about to whistle."),
            ("Standing stones", "There are twelve. There were eleven."),
        ),
    ),
)
