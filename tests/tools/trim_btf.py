#!/usr/bin/python3
"""Cuts a kernel's BTF down to a few structs and tracepoints, for use as a test fixture.

    trim_btf.py RAW KEEP OUT

RAW is a kernel's BTF: /sys/kernel/btf/vmlinux, or the section .BTF of a vmlinux. KEEP is a text file,
one wish a line, `#` begins a comment:

    struct NAME PATH...   members of a struct; a path may lead through members (se.sum_exec_runtime);
                          `*` is all members
    typedef NAME          a typedef and what it stands for
    enum NAME             an enum with all of its values
    tracepoint NAME       typedef btf_trace_NAME, functions __bpf_trace_NAME and __traceiter_NAME

What is kept is kept as the kernel has it: order of types and members, offsets, sizes, bit fields, and the
unnamed structs and unions between a struct and a member. What is embedded by value is kept whole. A pointer
to a struct that isn't kept leads to a forward declaration. Wishes that the kernel can't fulfil are named on
standard error; that is no failure, since kernels differ. The format: https://docs.kernel.org/bpf/btf.html
"""

import struct
import sys
from dataclasses import dataclass, field

MAGIC = 0xEB9F
INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT = range(1, 12)
FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(12, 20)

HEADER = struct.Struct("=HBBIIIII")
# 32-bit words after the three that all types have: a fixed number, or so many for each entry.
FIXED_WORDS = {INT: 1, ARRAY: 3, VAR: 1, DECL_TAG: 1}
ENTRY_WORDS = {STRUCT: 3, UNION: 3, ENUM: 2, FUNC_PROTO: 2, DATASEC: 3, ENUM64: 3}
# Kinds whose third word is a type, not a size.
MODIFIERS = {TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG}
REFERRING = MODIFIERS | {PTR, FUNC, FUNC_PROTO, VAR, DECL_TAG}
COMPOSITES = {STRUCT, UNION}


@dataclass
class Type:
    """A type's record; `entries` are its members, parameters or enumerators, `words` what else follows."""

    kind: int
    flag: bool
    low: int  # the lower 24 bits of the info word: number of entries, or a function's linkage
    name: str
    third: int
    words: list = field(default_factory=list)
    entries: list = field(default_factory=list)  # tuples of words, the name's place replaced by the name


def parse(raw):
    """All types of a raw BTF, by id; id 0 is void and None."""
    magic, _, _, header, type_at, type_len, string_at, string_len = HEADER.unpack_from(raw)
    if magic != MAGIC:
        sys.exit("the file doesn't begin with BTF's magic number")
    strings = raw[header + string_at : header + string_at + string_len]

    def text(place):
        return strings[place : strings.index(b"\0", place)].decode()

    types = [None]
    at, end = header + type_at, header + type_at + type_len
    while at < end:
        name, info, third = struct.unpack_from("=3I", raw, at)
        at += 12
        kind, low = info >> 24 & 0x7F, info & 0xFFFFFF
        result = Type(kind, bool(info >> 31), low, text(name), third)
        if kind in ENTRY_WORDS:
            size = ENTRY_WORDS[kind]
            for _ in range(low):
                first, *rest = struct.unpack_from(f"={size}I", raw, at)
                result.entries.append((first if kind == DATASEC else text(first), *rest))
                at += 4 * size
        else:
            size = FIXED_WORDS.get(kind, 0)
            result.words = list(struct.unpack_from(f"={size}I", raw, at))
            at += 4 * size
        types.append(result)
    return types


class Trimmer:
    """Collects what is wanted, then writes it."""

    def __init__(self, types):
        self.types = types
        self.by_name = {}
        for number, item in enumerate(types):
            if item and item.name:
                self.by_name.setdefault((item.kind, item.name), number)
        # Ids of structs and unions, with the numbers of the members that are kept.
        self.members = {}
        # Ids of all other types that are kept.
        self.others = set()
        # Ids of structs and unions that only pointers lead to.
        self.forwards = set()

    def resolve(self, number):
        """Follows typedefs, qualifiers and arrays down to what is embedded."""
        while (item := self.types[number]) and (item.kind in MODIFIERS or item.kind == ARRAY):
            number = item.words[0] if item.kind == ARRAY else item.third
        return number

    def find_member(self, number, name):
        """The way to a member as [(struct, member number)...], through unnamed members; None if there is none."""
        item = self.types[number]
        if item is None or item.kind not in COMPOSITES:
            return None
        for index, (entry, type_id, _) in enumerate(item.entries):
            if entry == name:
                return [(number, index)]
            if not entry and (rest := self.find_member(self.resolve(type_id), name)):
                return [(number, index), *rest]
        return None

    def want_struct(self, name, path):
        """Keeps a member of a struct, or all; returns whether it exists."""
        number = self.by_name.get((STRUCT, name))
        if number is None:
            return False
        if path == "*":
            self.keep_whole(number)
            return True
        steps = path.split(".")
        for depth, step in enumerate(steps, 1):
            if (way := self.find_member(number, step)) is None:
                return False
            for owner, index in way:
                self.members.setdefault(owner, set()).add(index)
            owner, index = way[-1]
            type_id = self.types[owner].entries[index][1]
            number = self.resolve(type_id)
            self.reach(type_id, is_embedded=depth == len(steps))
        return True

    def want_tracepoint(self, name):
        """Keeps a tracepoint's typedef and functions; returns whether it exists."""
        keys = [(TYPEDEF, f"btf_trace_{name}"), (FUNC, f"__bpf_trace_{name}"), (FUNC, f"__traceiter_{name}")]
        return self.want(keys)

    def want(self, keys):
        """Keeps types by kind and name; returns whether there is one."""
        found = [self.by_name[key] for key in keys if key in self.by_name]
        for number in found:
            self.reach(number)
        return bool(found)

    def keep_whole(self, number):
        """Keeps all members of a struct and what is embedded in them."""
        entries = self.types[number].entries
        kept = self.members.setdefault(number, set())
        if len(kept) < len(entries) or not entries:
            kept.update(range(len(entries)))
            for _, type_id, _ in entries:
                self.reach(type_id)

    def reach(self, number, is_embedded=True):
        """Keeps a type and what it needs; of a struct only that it exists, unless it is embedded."""
        item = self.types[number]
        if item is None:
            return
        if item.kind in COMPOSITES:
            if is_embedded:
                self.keep_whole(number)
            elif item.name:
                self.forwards.add(number)
            return
        if number in self.others and not is_embedded:
            return
        self.others.add(number)
        if item.kind == ARRAY:
            self.reach(item.words[0], is_embedded)
            self.reach(item.words[1])
        elif item.kind == FUNC_PROTO:
            for _, type_id in item.entries:
                self.reach(type_id)
        if item.kind in REFERRING:
            self.reach(item.third, is_embedded and item.kind != PTR)

    def reach_unnamed(self):
        """Keeps the types between a kept member without a name and its struct."""
        for number in list(self.members):
            for index in self.members[number]:
                entry, type_id, _ = self.types[number].entries[index]
                if not entry:
                    self.reach(type_id, is_embedded=False)

    def write(self):
        """Raw BTF of what is kept, types in their old order."""
        self.reach_unnamed()
        kept = sorted(self.others | self.forwards | set(self.members))
        new_ids = {number: new for new, number in enumerate(kept, 1)}
        strings = {"": 0}
        places = [b"\0"]

        def place(text):
            if text not in strings:
                strings[text] = sum(map(len, places))
                places.append(text.encode() + b"\0")
            return strings[text]

        # A pointer to something without a name that isn't kept leads to void.
        body = b"".join(self.record(number, lambda old: new_ids.get(old, 0), place) for number in kept)
        texts = b"".join(places)
        return HEADER.pack(MAGIC, 1, 0, HEADER.size, 0, len(body), len(body), len(texts)) + body + texts

    def record(self, number, new_id, place):
        """A kept type's record; `new_id` translates type ids, `place` gives a name's place."""
        item = self.types[number]
        kind, flag, low, third, words = item.kind, item.flag, item.low, item.third, list(item.words)
        entries = item.entries
        if kind in COMPOSITES and number not in self.members:
            # The flag of a forward declaration says that it is a union.
            kind, flag, low, third, entries = FWD, kind == UNION, 0, 0, []
        elif kind in COMPOSITES:
            entries = [entries[index] for index in sorted(self.members[number])]
            low = len(entries)
        if kind in REFERRING:
            third = new_id(third)
        if kind == ARRAY:
            words[:2] = map(new_id, words[:2])
        if kind in COMPOSITES or kind == FUNC_PROTO:
            entries = [(name, new_id(type_id), *rest) for name, type_id, *rest in entries]
        flat = [word for name, *rest in entries for word in (place(name), *rest)]
        head = (place(item.name), flag << 31 | kind << 24 | low, third)
        return struct.pack(f"={3 + len(words) + len(flat)}I", *head, *words, *flat)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    raw_path, keep_path, out_path = sys.argv[1:]
    with open(raw_path, "rb") as file:
        trimmer = Trimmer(parse(file.read()))
    with open(keep_path, encoding="utf-8") as file:
        wishes = [line.split("#")[0].split() for line in file]
    for what, name, *paths in filter(None, wishes):
        if what == "tracepoint":
            missing = [] if trimmer.want_tracepoint(name) else [name]
        elif what == "typedef":
            missing = [] if trimmer.want([(TYPEDEF, name)]) else [name]
        elif what == "enum":
            missing = [] if trimmer.want([(ENUM, name)]) else [name]
        elif what == "struct":
            missing = [f"{name} {path}" for path in paths if not trimmer.want_struct(name, path)]
        else:
            sys.exit(f"{keep_path}: neither struct, typedef, enum nor tracepoint: {what}")
        for wish in missing:
            print(f"not in this kernel: {what} {wish}", file=sys.stderr)
    with open(out_path, "wb") as file:
        file.write(trimmer.write())


if __name__ == "__main__":
    main()
