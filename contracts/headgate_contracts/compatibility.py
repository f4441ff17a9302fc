"""Whether what one version writes, another can read: schema against schema, field by field.

    readable(writer, reader)     every document of the writer is understood by the reader
    breaches(released, today)    that in both directions, and nothing that was promised is gone

The writer is closed: it writes the properties that it has and no others. The reader is open: it ignores what it does
not know. So a field may be added, and nothing else may happen to one. Each breach names the field and the rule.

Owns the rules of the gate. Refuses to be clever: where two patterns or formats differ, nobody here proves that one
contains the other, so that is a breach; so is every word of JSON Schema that it does not know (`schema_words`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from headgate_contracts.schema_words import (
    ALIKE,
    AT_LEAST,
    AT_MOST,
    Part,
    Schema,
    alternatives,
    as_schema,
    fits,
    holds,
    is_same,
    kinds,
    members_of,
    properties_of,
    resolved,
    spelled,
    strange_words,
    values_of,
)

Roots = tuple[Schema, Schema]

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Breach:
    """One field that broke one rule. `when` says which way the reading failed."""

    message: str
    field: str
    rule: str
    when: str = ""

    def __str__(self) -> str:
        when = f" ({self.when})" if self.when else ""
        return f"{self.message}: {self.field or 'the message'}: {self.rule}{when}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where two schemas are compared, and the documents that their references point into."""

    message: str
    field: str
    writer_root: Schema
    reader_root: Schema
    seen: frozenset[tuple[str, int, int]] = frozenset()

    def at(self, name: str) -> _Place:
        return replace(self, field=f"{self.field}.{name}" if self.field else name)

    def breach(self, rule: str) -> Breach:
        return Breach(self.message, self.field, rule)

    def below(self, writer: Schema, reader: Schema, *, as_what: str = "whole") -> _Place | None:
        """The place within these two; none where one refers to itself and the two were met on the way here."""
        pair = (as_what, id(_target(writer, self.writer_root)), id(_target(reader, self.reader_root)))
        return None if pair in self.seen else replace(self, seen=self.seen | {pair})


def breaches(released: Mapping[str, Schema], today: Mapping[str, Schema]) -> list[Breach]:
    """Everything by which today's messages break what was released. A new message breaks nothing."""
    found: list[Breach] = []
    for message, old in released.items():
        if message not in today:
            found.append(Breach(message, "", "the message is gone"))
            continue
        new = today[message]
        found += marked(readable(old, new, message=message), when="a released message, read today")
        found += marked(readable(new, old, message=message), when="today's message, read as released")
        found += gone(old, new, message=message)
    return once(found)


def marked(found: Iterable[Breach], *, when: str) -> list[Breach]:
    """The same, and which way the reading failed."""
    return [replace(each, when=when) for each in found]


def once(found: Iterable[Breach]) -> list[Breach]:
    """Each field and rule once, though it breaks in both directions."""
    return list({(each.message, each.field, each.rule): each for each in found}.values())


def readable(writer: Schema, reader: Schema, *, message: str = "", roots: Roots | None = None) -> list[Breach]:
    """Why the reader would not understand all that the writer writes; empty where it does.

    `roots` are the documents that references point into, where the schemas are parts of larger ones.
    """
    return list(_readable(_Place(message, "", *(roots or (writer, reader))), writer, reader))


def gone(old: Schema, new: Schema, *, message: str = "", roots: Roots | None = None) -> list[Breach]:
    """Fields that were promised and are written no more, wherever they stood."""
    return list(_gone(_Place(message, "", *(roots or (old, new))), old, new))


def _readable(place: _Place, writer: Part, reader: Part) -> Iterator[Breach]:
    writer, reader = as_schema(writer), as_schema(reader)
    below = place.below(writer, reader)
    if below is None:
        return
    wanted = alternatives(reader, below.reader_root)
    for written in alternatives(writer, below.writer_root):
        attempts = [list(_one(below, written, read)) for read in wanted]
        if all(attempts):  # no alternative of the reader takes it
            alike = [attempt for read, attempt in zip(wanted, attempts, strict=True) if kinds(written) & kinds(read)]
            told = attempts if len(wanted) == 1 else alike  # that is the one which the writer means
            none = [place.breach(f"{spelled(written)} is none of the alternatives")]
            yield from told[0] if len(told) == 1 else none


def _one(place: _Place, writer: Schema, reader: Schema) -> Iterator[Breach]:
    strange = strange_words(writer) | strange_words(reader)
    if strange:
        yield place.breach(f"the gate does not know {', '.join(sorted(strange))}: teach it, or say it otherwise")
    elif not kinds(writer) <= kinds(reader):
        yield place.breach(f"type {spelled(writer)} became {spelled(reader)}")
    else:
        yield from _values(place, writer, reader)
        yield from _bounds(place, writer, reader)
        below = place.below(writer, reader, as_what="alternative")
        if below is not None:
            yield from _object(below, writer, reader)
            yield from _array(below, writer, reader)


def _values(place: _Place, writer: Schema, reader: Schema) -> Iterator[Breach]:
    allowed = values_of(reader)
    if allowed is None:
        return
    written = values_of(writer)
    if written is None:
        yield place.breach("any value became one of a closed set")
        return
    strange = [value for value in written if not any(is_same(value, each) for each in allowed)]
    if strange:
        yield place.breach(f"{', '.join(map(str, strange))} is not in the closed set of the reader")


def _bounds(place: _Place, writer: Schema, reader: Schema) -> Iterator[Breach]:
    for word in (*AT_LEAST, *AT_MOST, *ALIKE):
        if word in reader and not _within(word, writer, reader):
            yield place.breach(f"{word} {writer.get(word, 'none')} against {reader[word]}")


def _within(word: str, writer: Schema, reader: Schema) -> bool:
    """Whether all that the writer writes keeps this bound of the reader: its values one by one, else its own bound."""
    values = values_of(writer)
    if values is not None and all(holds(word, reader[word], value) for value in values):
        return True
    if not fits(word, writer):
        return True
    if word in AT_LEAST:
        return word in writer and writer[word] >= reader[word]
    if word in AT_MOST:
        return word in writer and writer[word] <= reader[word]
    return writer.get(word, False) == reader[word]


def _object(place: _Place, writer: Schema, reader: Schema) -> Iterator[Breach]:
    if not fits("properties", writer):
        return
    written, always = properties_of(writer), set(writer.get("required", ()))
    for name in reader.get("required", ()):
        if name not in always:
            word = "may be missing" if name in written else "is not written"
            yield place.at(name).breach(f"the reader requires it, and it {word}")
    for name, schema in written.items():
        yield from _field(place.at(name), schema, reader, name=name, is_always=name in always)
    yield from _map(place, writer, reader)


def _field(place: _Place, schema: Schema, reader: Schema, *, name: str, is_always: bool) -> Iterator[Breach]:
    known = members_of(reader, name)
    if not known and reader.get("additionalProperties") is False:
        yield place.breach("the reader refuses fields that it does not know")
    for read in known:
        yield from _readable(place, schema, read)
    if name in properties_of(reader) and not is_always:
        yield from _same_default(place, schema, properties_of(reader)[name])


def _map(place: _Place, writer: Schema, reader: Schema) -> Iterator[Breach]:
    """Names that are no fields: those of a map. Its values must be what the reader takes under any such name."""
    read = _maps(reader)
    maps = {pattern: values for pattern, values in _maps(writer).items() if values is not False}
    for pattern, values in maps.items():
        yield from _entries(place, pattern, values, read)
        for name in properties_of(reader).keys() - properties_of(writer).keys():
            yield from _readable(place.at(name), values, properties_of(reader)[name])
    if maps and "propertyNames" in reader:
        yield from _readable(place.at("(names)"), writer.get("propertyNames", {}), reader["propertyNames"])


def _entries(place: _Place, pattern: str, values: Part, read: Mapping[str, Part]) -> Iterator[Breach]:
    others = sorted(read.keys() - {"", pattern})
    wanted = read.get(pattern, read.get("", True))
    if others:
        yield place.at("(names)").breach(f"pattern {pattern or 'none'} against {', '.join(others)}")
    elif wanted is False:
        yield place.at("(names)").breach("the reader refuses names that it does not know")
    else:
        yield from _readable(place.at("*"), values, wanted)


def _maps(schema: Schema) -> dict[str, Part]:
    """The schemas of what is no field, by the pattern of its names; "" is any name."""
    found = dict(schema.get("patternProperties", {}))
    rest = schema.get("additionalProperties")
    if rest is None and not found and "properties" not in schema:
        rest = True  # an object of which nothing is said
    return found if rest is None else found | {"": rest}


def _same_default(place: _Place, writer: Schema, reader: Schema) -> Iterator[Breach]:
    """A field that is left out means its default, so both must mean the same."""
    meant = resolved(writer, place.writer_root).get("default", _MISSING)
    understood = resolved(reader, place.reader_root).get("default", _MISSING)
    if meant is not _MISSING and not is_same(meant, understood):
        shown = "nothing" if understood is _MISSING else repr(understood)
        yield place.breach(f"left out it meant {meant!r}, and is understood as {shown}")


def _array(place: _Place, writer: Schema, reader: Schema) -> Iterator[Breach]:
    if not fits("items", writer):
        return
    written, read = writer.get("prefixItems", ()), reader.get("prefixItems", ())
    for number in range(max(len(written), len(read))):
        one = written[number] if number < len(written) else writer.get("items", {})
        other = read[number] if number < len(read) else reader.get("items", {})
        yield from _readable(place.at(f"[{number}]"), one, other)
    if "items" in reader:
        yield from _readable(place.at("[]"), writer.get("items", {}), reader["items"])


def _gone(place: _Place, old: Part, new: Part) -> Iterator[Breach]:
    """An alternative has lost what every alternative of its kind is without; what has no kin any more is told above."""
    old, new = as_schema(old), as_schema(new)
    below = place.below(old, new)
    if below is None:
        return
    after = alternatives(new, below.reader_root)
    for before in alternatives(old, below.writer_root):
        attempts = [list(_lost(below, before, each)) for each in after if kinds(before) & kinds(each)]
        if attempts and all(attempts):
            yield from min(attempts, key=len)


def _lost(above: _Place, old: Schema, new: Schema) -> Iterator[Breach]:
    place = above.below(old, new, as_what="alternative")
    if place is None:
        return
    before, after = properties_of(old), properties_of(new)
    for name, schema in before.items():
        if name not in after:
            yield place.at(name).breach("the field is gone")
        else:
            yield from _gone(place.at(name), schema, after[name])
    if "items" in old and "items" in new:
        yield from _gone(place.at("[]"), old["items"], new["items"])
    for number, (one, other) in enumerate(zip(old.get("prefixItems", ()), new.get("prefixItems", ()), strict=False)):
        yield from _gone(place.at(f"[{number}]"), one, other)
    maps = _maps(new)
    for pattern, values in _maps(old).items():
        if pattern in maps:
            yield from _gone(place.at("*"), values, maps[pattern])


def _target(schema: Schema, root: Schema) -> Schema:
    """What stands for a schema where it is met again: that to which it refers, else itself."""
    return resolved(schema, root, alone=True)
