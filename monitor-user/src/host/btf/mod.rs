//! Looks up members and tracepoint arguments by name in a kernel's BTF.
//!
//! Differences between kernels are decided by what is found here, never by version numbers or by
//! position. The format: <https://docs.kernel.org/bpf/btf.html>. An own walker, since the
//! maintained crates are LGPL or index all 130,000 types; a look-up here finds the name's place in
//! the string table and compares numbers, which takes well under a millisecond.

use std::path::{Path, PathBuf};

use thiserror::Error;

const MAGIC: u16 = 0xeb9f;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_TYPEDEF: u32 = 8;
const KIND_VOLATILE: u32 = 9;
const KIND_CONST: u32 = 10;
const KIND_RESTRICT: u32 = 11;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_TYPE_TAG: u32 = 18;
const KIND_ENUM64: u32 = 19;

/// Why a BTF file couldn't be used.
#[derive(Debug, Error)]
pub enum BtfError {
    /// It can't be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It isn't BTF of this machine's byte order.
    #[error("no BTF: {0}")]
    Format(&'static str),
}

/// A kernel's types.
pub struct Btf {
    data: Vec<u8>,
    /// Place of each type's header in `data`, by type id less one.
    types: Vec<u32>,
    strings: std::ops::Range<usize>,
}

/// A member of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Place in the outermost struct, bytes; of a bit field, the byte in which it begins.
    pub offset: u32,
    type_id: u32,
    /// First bit in that byte and number of bits, of a bit field; else both 0.
    bit_field: (u8, u8),
}

impl Member {
    /// Which bits of its byte a flag has: a bit field that lies in one byte, or else all of them.
    pub fn flag_bits(self) -> Option<u32> {
        match self.bit_field {
            (_, 0) => Some(0xff),
            (first, count) if first + count <= 8 => Some(((1 << count) - 1) << first),
            _ => None,
        }
    }
}

impl Btf {
    /// Reads the BTF in a file, such as `/sys/kernel/btf/vmlinux`.
    ///
    /// # Errors
    /// If the file can't be read or isn't BTF.
    pub fn read(path: &Path) -> Result<Self, BtfError> {
        let data = std::fs::read(path).map_err(|source| BtfError::Read {
            path: path.into(),
            source,
        })?;
        Self::parse(data)
    }

    /// Takes raw BTF.
    ///
    /// # Errors
    /// If it isn't BTF of this machine's byte order, or is cut.
    pub fn parse(data: Vec<u8>) -> Result<Self, BtfError> {
        let cut = BtfError::Format("the header is cut");
        let head = |at: usize| word(&data, at).ok_or(BtfError::Format("the header is cut"));
        let first = data.first_chunk::<2>().ok_or(cut)?;
        if u16::from_ne_bytes(*first) != MAGIC {
            return Err(BtfError::Format(
                "the file doesn't begin with its magic number",
            ));
        }
        let header = head(4)? as usize;
        let section = |offset: u32, length: u32| {
            let start = header.checked_add(offset as usize)?;
            let end = start.checked_add(length as usize)?;
            (end <= data.len()).then_some(start..end)
        };
        let outside = || BtfError::Format("a section lies outside of the file");
        let type_range = section(head(8)?, head(12)?).ok_or_else(outside)?;
        let strings = section(head(16)?, head(20)?).ok_or_else(outside)?;
        let mut types = Vec::with_capacity(type_range.len() / 40);
        let mut at = type_range.start;
        while at < type_range.end {
            let info = word(&data, at + 4).ok_or_else(outside)?;
            let size = record_size(info)
                .ok_or(BtfError::Format("it has a kind of type that isn't known"))?;
            types.push(u32::try_from(at).map_err(|_too_large| outside())?);
            at += size;
        }
        if at != type_range.end {
            return Err(BtfError::Format("the last type is cut"));
        }
        Ok(Self {
            data,
            types,
            strings,
        })
    }

    /// A member of a struct or union; `path` may lead through members (`"se.sum_exec_runtime"`).
    /// Unnamed structs and unions in between are looked through.
    pub fn member(&self, of: &str, path: &str) -> Option<Member> {
        let id = self
            .find(of, KIND_STRUCT)
            .or_else(|| self.find(of, KIND_UNION))?;
        self.member_of(id, path)
    }

    /// A member of the type of `outer`; of an array's first element, if it is one.
    pub fn within(&self, outer: Member, path: &str) -> Option<Member> {
        let inner = self.member_of(self.element(outer.type_id), path)?;
        Some(Member {
            offset: outer.offset.checked_add(inner.offset)?,
            ..inner
        })
    }

    /// Whether a member is an array.
    pub fn is_array(&self, member: Member) -> bool {
        self.kind(self.resolve(member.type_id)) == KIND_ARRAY
    }

    /// Size of a member's type in bytes; of one element for an array. `None` for what has no size of its own.
    pub fn element_size(&self, member: Member) -> Option<u32> {
        let id = self.element(member.type_id);
        matches!(self.kind(id), KIND_STRUCT | KIND_UNION | 1 | KIND_ENUM)
            .then(|| self.word(id, 8))
            .flatten()
    }

    /// Whether the kernel has a struct of this name.
    pub fn has_struct(&self, name: &str) -> bool {
        self.find(name, KIND_STRUCT).is_some()
    }

    /// Whether the kernel has a typedef of this name.
    pub fn has_typedef(&self, name: &str) -> bool {
        self.find(name, KIND_TYPEDEF).is_some()
    }

    /// Number of a function's type: how a program calls a kernel function (kfunc).
    pub fn function(&self, name: &str) -> Option<u32> {
        self.find(name, KIND_FUNC)
    }

    /// Whether the kernel has a tracepoint.
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.has_typedef(&format!("btf_trace_{name}"))
    }

    /// Value of an enumerator by its own name and that of its enum.
    pub fn enumerator(&self, of: &str, name: &str) -> Option<u32> {
        let id = self.find(of, KIND_ENUM)?;
        let entry = (0..self.vlen(id) as usize)
            .map(|n| 12 + 8 * n)
            .find(|&at| self.name_is(self.word(id, at), name))?;
        self.word(id, entry + 4)
    }

    /// Number of a tracepoint's argument, as a `tp_btf` program counts.
    ///
    /// From the functions that the kernel makes for each tracepoint; their first parameter is the
    /// registration's data and doesn't count.
    pub fn argument(&self, tracepoint: &str, name: &str) -> Option<u32> {
        let function = ["__bpf_trace_", "__traceiter_"]
            .iter()
            .find_map(|prefix| self.find(&format!("{prefix}{tracepoint}"), KIND_FUNC))?;
        let proto = self.word(function, 8)?;
        (self.kind(proto) == KIND_FUNC_PROTO).then_some(())?;
        (1..self.vlen(proto))
            .find(|&n| self.name_is(self.word(proto, 12 + 8 * n as usize), name))
            .map(|n| n - 1)
    }

    fn member_of(&self, id: u32, path: &str) -> Option<Member> {
        let (first, rest) = path
            .split_once('.')
            .map_or((path, None), |(first, rest)| (first, Some(rest)));
        let member = self.direct_member(id, first)?;
        match rest {
            None => Some(member),
            Some(rest) => self.within(member, rest),
        }
    }

    /// A member by its own name, in the struct itself or in unnamed members of it.
    ///
    /// With a list of structs to look into and not by recursion, and each struct once: a damaged
    /// file whose structs contain each other then ends the search, not the stack.
    fn direct_member(&self, id: u32, name: &str) -> Option<Member> {
        if name.is_empty() {
            // Every unnamed member would fit.
            return None;
        }
        let mut structs = vec![(self.resolve(id), 0_u32)];
        let mut next = 0;
        while let Some(&(id, base)) = structs.get(next) {
            next += 1;
            for (name_offset, member) in self.members(id) {
                let Some(offset) = base.checked_add(member.offset) else {
                    continue;
                };
                if name_offset == 0 {
                    let inner = self.resolve(member.type_id);
                    if structs.iter().all(|(seen, _)| *seen != inner) {
                        structs.push((inner, offset));
                    }
                } else if self.name_is(Some(name_offset), name) {
                    return Some(Member { offset, ..member });
                }
            }
        }
        None
    }

    /// Members of a struct or union as places of names and members; none of any other type.
    fn members(&self, id: u32) -> impl Iterator<Item = (u32, Member)> + '_ {
        let is_composite = matches!(self.kind(id), KIND_STRUCT | KIND_UNION);
        let count = if is_composite { self.vlen(id) } else { 0 };
        // With the kind flag, the upper byte of the offset is the size of a bit field.
        let has_bit_fields = self.word(id, 4).is_some_and(|info| info >> 31 == 1);
        let mask = if has_bit_fields {
            0x00ff_ffff
        } else {
            u32::MAX
        };
        (0..count as usize).map_while(move |n| {
            let at = 12 + 12 * n;
            let place = self.word(id, at + 8)?;
            let [bits, ..] = (place & !mask).to_be_bytes();
            let member = Member {
                offset: (place & mask) / 8,
                type_id: self.word(id, at + 4)?,
                bit_field: ((place & mask & 7) as u8, bits),
            };
            Some((self.word(id, at)?, member))
        })
    }

    /// Follows typedefs and qualifiers.
    fn resolve(&self, mut id: u32) -> u32 {
        // A chain longer than this isn't one of a compiler.
        for _ in 0..32 {
            match self.kind(id) {
                KIND_TYPEDEF | KIND_VOLATILE | KIND_CONST | KIND_RESTRICT | KIND_TYPE_TAG => {
                    id = self.word(id, 8).unwrap_or(0);
                }
                _ => break,
            }
        }
        id
    }

    fn element(&self, id: u32) -> u32 {
        let id = self.resolve(id);
        if self.kind(id) == KIND_ARRAY {
            self.resolve(self.word(id, 12).unwrap_or(0))
        } else {
            id
        }
    }

    /// First type of that kind and name.
    fn find(&self, name: &str, kind: u32) -> Option<u32> {
        // Names are stored once, so the place of the name identifies it.
        let strings = &self.data[self.strings.clone()];
        let needle: Vec<u8> = [b"\0", name.as_bytes(), b"\0"].concat();
        let place = u32::try_from(memchr::memmem::find(strings, &needle)? + 1).ok()?;
        let index = self.types.iter().position(|at| {
            word(&self.data, *at as usize) == Some(place)
                && word(&self.data, *at as usize + 4).is_some_and(|info| kind_of(info) == kind)
        })?;
        u32::try_from(index + 1).ok()
    }

    fn name_is(&self, offset: Option<u32>, name: &str) -> bool {
        let strings = &self.data[self.strings.clone()];
        offset
            .and_then(|offset| strings.get(offset as usize..))
            .and_then(|rest| rest.strip_prefix(name.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&0))
    }

    fn kind(&self, id: u32) -> u32 {
        self.word(id, 4).map_or(0, kind_of)
    }

    fn vlen(&self, id: u32) -> u32 {
        self.word(id, 4).map_or(0, vlen_of)
    }

    /// The word at a place in a type's record.
    fn word(&self, id: u32, at: usize) -> Option<u32> {
        let start = *self.types.get(id.checked_sub(1)? as usize)? as usize;
        word(&self.data, start + at)
    }
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?
        .first_chunk::<4>()
        .map(|bytes| u32::from_ne_bytes(*bytes))
}

/// Kind of a type, by its info word. Kinds up to 31 are in use; the two bits above were always zero,
/// and a kind that uses them must not pass for another.
fn kind_of(info: u32) -> u32 {
    info >> 24 & 0x7f
}

/// Number of members, parameters or values, by the info word; the upper byte was always zero.
fn vlen_of(info: u32) -> u32 {
    info & 0x00ff_ffff
}

/// Length of a type's record, by its info word.
fn record_size(info: u32) -> Option<usize> {
    let vlen = vlen_of(info) as usize;
    let tail = match kind_of(info) {
        1 | KIND_VAR | KIND_DECL_TAG => 4,
        KIND_ARRAY => 12,
        KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 12 * vlen,
        KIND_ENUM | KIND_FUNC_PROTO => 8 * vlen,
        2 | 7..=12 | 16 | KIND_TYPE_TAG => 0,
        _ => return None,
    };
    Some(12 + tail)
}

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
