//! Hand-built BTF for what no kernel's compiler makes, and for each way a member can be nested.

use super::*;

const KIND_INT: u32 = 1;
const KIND_PTR: u32 = 2;
const KIND_FLAG: u32 = 1 << 31;

/// Types in the making; ids are given in order, from 1.
struct Builder {
    types: Vec<u32>,
    strings: Vec<u8>,
}

impl Builder {
    fn new() -> Self {
        Self {
            types: Vec::new(),
            strings: vec![0],
        }
    }

    /// Place of a name; as in a kernel, a name is stored once.
    fn name(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let needle = [b"\0", name.as_bytes(), b"\0"].concat();
        let place = memchr::memmem::find(&self.strings, &needle).map_or_else(
            || {
                self.strings.extend_from_slice(&needle[1..]);
                self.strings.len() - needle.len() + 1
            },
            |at| at + 1,
        );
        u32::try_from(place).unwrap()
    }

    /// A type with its third word and what follows.
    fn add(mut self, name: &str, info: u32, third: u32, rest: &[u32]) -> Self {
        let name = self.name(name);
        self.types.extend([name, info, third]);
        self.types.extend(rest);
        self
    }

    fn int(self) -> Self {
        self.add("int", KIND_INT << 24, 4, &[32])
    }

    /// A struct of 64 bytes; members are name, type and the word for their place.
    fn composite(mut self, name: &str, info: u32, members: &[(&str, u32, u32)]) -> Self {
        let words: Vec<u32> = members
            .iter()
            .flat_map(|(name, type_id, place)| [self.name(name), *type_id, *place])
            .collect();
        let count = u32::try_from(members.len()).unwrap();
        self.add(name, info | count, 64, &words)
    }

    fn structure(self, name: &str, members: &[(&str, u32, u32)]) -> Self {
        self.composite(name, KIND_STRUCT << 24, members)
    }

    fn array(self, of: u32) -> Self {
        self.add("", KIND_ARRAY << 24, 0, &[of, 1, 4])
    }

    /// A function and, before it, its prototype, whose id is `proto`.
    fn function(mut self, name: &str, proto: u32, parameters: &[&str]) -> Self {
        let words: Vec<u32> = parameters
            .iter()
            .flat_map(|parameter| [self.name(parameter), 1])
            .collect();
        let count = u32::try_from(parameters.len()).unwrap();
        self.add("", KIND_FUNC_PROTO << 24 | count, 0, &words).add(
            name,
            KIND_FUNC << 24,
            proto,
            &[],
        )
    }

    fn bytes(&self) -> Vec<u8> {
        let types = u32::try_from(4 * self.types.len()).unwrap();
        let strings = u32::try_from(self.strings.len()).unwrap();
        let header = [1 << 16 | u32::from(MAGIC), 24, 0, types, types, strings];
        let words = header.iter().chain(&self.types);
        words
            .flat_map(|word| word.to_le_bytes())
            .chain(self.strings.iter().copied())
            .collect()
    }

    fn parse(&self) -> Btf {
        Btf::parse(self.bytes()).unwrap()
    }
}

fn offset(btf: &Btf, of: &str, path: &str) -> Option<u32> {
    btf.member(of, path).map(|member| member.offset)
}

/// One of everything that look-ups walk through.
fn sample() -> Builder {
    Builder::new()
        .int() // 1
        .add("number", KIND_TYPEDEF << 24, 1, &[]) // 2
        .structure("", &[("deep", 2, 32)]) // 3
        .composite("", KIND_UNION << 24, &[("first", 1, 0), ("", 3, 64)]) // 4
        .structure("inner", &[("", 4, 96), ("plain", 1, 0)]) // 5
        .add("", KIND_CONST << 24, 5, &[]) // 6
        .add("", KIND_VOLATILE << 24, 6, &[]) // 7
        .add("inner_t", KIND_TYPEDEF << 24, 7, &[]) // 8
        .array(8) // 9
        .add("", KIND_PTR << 24, 5, &[]) // 10
        .structure(
            "outer",
            &[("value", 8, 128), ("list", 9, 640), ("pointer", 10, 0)],
        ) // 11
        .function("__bpf_trace_hook", 12, &["__data", "task", "flags"]) // 12, 13
        .add("btf_trace_hook", KIND_TYPEDEF << 24, 10, &[]) // 14
}

#[test]
fn members_of_unnamed_members_are_found_at_the_sum_of_offsets() {
    let btf = sample().parse();
    assert_eq!(offset(&btf, "inner", "plain"), Some(0));
    assert_eq!(offset(&btf, "inner", "first"), Some(12));
    assert_eq!(offset(&btf, "inner", "deep"), Some(12 + 8 + 4));
    assert_eq!(offset(&btf, "inner", "missing"), None);
    assert_eq!(offset(&btf, "missing", "plain"), None);
    assert_eq!(offset(&btf, "int", "plain"), None);
}

#[test]
fn paths_lead_through_typedefs_qualifiers_and_arrays_but_not_pointers() {
    let btf = sample().parse();
    assert_eq!(offset(&btf, "outer", "value.deep"), Some(16 + 24));
    assert_eq!(offset(&btf, "outer", "list.deep"), Some(80 + 24));
    assert_eq!(offset(&btf, "outer", "pointer"), Some(0));
    assert_eq!(offset(&btf, "outer", "pointer.deep"), None);
    assert_eq!(offset(&btf, "outer", "value.deep.deeper"), None);
    assert_eq!(offset(&btf, "outer", "value."), None);
    assert_eq!(offset(&btf, "outer", ""), None);
}

#[test]
fn arrays_have_the_size_of_their_elements() {
    let btf = sample().parse();
    let member = |path| btf.member("outer", path).unwrap();
    assert!(btf.is_array(member("list")));
    assert!(!btf.is_array(member("value")));
    assert_eq!(btf.element_size(member("list")), Some(64));
    assert_eq!(btf.element_size(member("value.deep")), Some(4));
    assert_eq!(btf.element_size(member("pointer")), None);
}

#[test]
fn bit_fields_keep_their_size_out_of_the_offset() {
    let members = [("wide", 1, 3 << 24 | 0x46), ("", 2, 128)];
    let nested = Builder::new()
        .int()
        .composite(
            "",
            KIND_FLAG | KIND_STRUCT << 24,
            &[("bit", 1, 1 << 24 | 9)],
        )
        .composite("flags", KIND_FLAG | KIND_STRUCT << 24, &members)
        .parse();
    assert_eq!(offset(&nested, "flags", "wide"), Some(8));
    assert_eq!(offset(&nested, "flags", "bit"), Some(16 + 1));
    // Without the flag the whole word is the offset.
    let plain = Builder::new()
        .int()
        .structure("plain", &members[..1])
        .parse();
    assert_eq!(offset(&plain, "plain", "wide"), Some((3 << 24 | 0x46) / 8));
}

#[test]
fn arguments_count_without_the_registration_data() {
    let btf = sample().parse();
    assert!(btf.has_tracepoint("hook"));
    assert!(!btf.has_tracepoint("hoo"));
    assert_eq!(btf.argument("hook", "task"), Some(0));
    assert_eq!(btf.argument("hook", "flags"), Some(1));
    assert_eq!(btf.argument("hook", "__data"), None);
    assert_eq!(btf.argument("hook", "flag"), None);
    assert_eq!(btf.argument("other", "task"), None);
}

#[test]
fn functions_without_parameters_or_prototype_have_no_arguments() {
    let btf = Builder::new()
        .int()
        .function("__traceiter_empty", 2, &[])
        .add("__traceiter_odd", KIND_FUNC << 24, 1, &[])
        .add("__traceiter_far", KIND_FUNC << 24, u32::MAX, &[])
        .parse();
    for tracepoint in ["empty", "odd", "far"] {
        assert_eq!(btf.argument(tracepoint, "task"), None, "{tracepoint}");
    }
}

#[test]
fn a_name_is_not_found_as_the_end_of_a_longer_one() {
    let btf = Builder::new()
        .int()
        .structure("kernel_task", &[("old_pid", 1, 32)])
        .structure("task", &[("pid", 1, 64)])
        .parse();
    assert_eq!(offset(&btf, "task", "pid"), Some(8));
    assert_eq!(offset(&btf, "kernel_task", "pid"), None);
}

#[test]
fn typedefs_in_a_circle_end() {
    let btf = Builder::new()
        .add("a", KIND_TYPEDEF << 24, 2, &[])
        .add("b", KIND_TYPEDEF << 24, 1, &[])
        .array(3)
        .structure("circle", &[("", 1, 0), ("value", 2, 8), ("list", 3, 16)])
        .parse();
    assert_eq!(offset(&btf, "circle", "value"), Some(1));
    assert_eq!(offset(&btf, "circle", "value.more"), None);
    assert_eq!(offset(&btf, "circle", "list.list.list"), None);
    assert_eq!(offset(&btf, "circle", "missing"), None);
}

#[test]
fn structs_that_contain_each_other_end() {
    let btf = Builder::new()
        .int()
        .structure("one", &[("", 3, 8), ("", 2, 8)])
        .structure("two", &[("", 2, 8), ("", 2, 8), ("value", 1, 64)])
        .parse();
    assert_eq!(offset(&btf, "one", "value"), Some(1 + 8));
    assert_eq!(offset(&btf, "one", "missing"), None);
}

#[test]
fn deep_nesting_neither_overflows_the_stack_nor_doubles_with_each_level() {
    let levels = 20_000;
    let mut builder = Builder::new().structure("top", &[("", 2, 8), ("", 2, 8)]);
    for level in 2..levels {
        builder = builder.structure("", &[("", level + 1, 8), ("", level + 1, 8)]);
    }
    let btf = builder.structure("", &[("value", 0, 0)]).parse();
    assert_eq!(offset(&btf, "top", "value"), Some(levels - 1));
    assert_eq!(offset(&btf, "top", "missing"), None);
}

#[test]
fn offsets_beyond_the_number_range_are_not_known() {
    let largest = u32::MAX;
    let mut builder = Builder::new().int();
    for level in 2..12 {
        builder = builder.structure(&format!("s{level}"), &[("", level + 1, largest)]);
    }
    let btf = builder.structure("", &[("value", 1, largest)]).parse();
    assert_eq!(offset(&btf, "s10", "value"), Some(3 * (largest / 8)));
    assert_eq!(offset(&btf, "s2", "value"), None);
}

#[test]
fn references_to_missing_types_and_names_lead_nowhere() {
    let btf = Builder::new()
        .structure("odd", &[("", 77, 0), ("value", 77, 32), ("", u32::MAX, 0)])
        .add("", KIND_STRUCT << 24 | 1, 4, &[u32::MAX, 1, 0])
        .structure("odder", &[("", 2, 0)])
        .parse();
    let value = btf.member("odd", "value").unwrap();
    assert_eq!(value.offset, 4);
    assert_eq!(btf.element_size(value), None);
    assert!(btf.within(value, "more").is_none());
    assert_eq!(offset(&btf, "odder", "value"), None);
}

#[test]
fn all_kinds_of_types_are_stepped_over() {
    let btf = Builder::new()
        .int()
        .add("e", KIND_ENUM << 24 | 2, 4, &[0, 0, 0, 1])
        .add("f", 7 << 24, 0, &[])
        .add("r", KIND_RESTRICT << 24, 1, &[])
        .add("v", KIND_VAR << 24, 1, &[0])
        .add("d", KIND_DATASEC << 24 | 1, 4, &[5, 0, 4])
        .add("float", 16 << 24, 8, &[])
        .add("tag", KIND_DECL_TAG << 24, 1, &[0])
        .add("tag", KIND_TYPE_TAG << 24, 1, &[])
        .add("big", KIND_ENUM64 << 24 | 1, 8, &[0, 0, 0])
        .structure("last", &[("value", 9, 32)])
        .parse();
    let value = btf.member("last", "value").unwrap();
    assert_eq!((value.offset, btf.element_size(value)), (4, Some(4)));
}

#[test]
fn unknown_kinds_are_refused() {
    for kind in [0, 20, 31, 32 + KIND_STRUCT, 64 + KIND_INT] {
        let bytes = Builder::new().int().add("new", kind << 24, 0, &[]).bytes();
        let error = Btf::parse(bytes).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some("no BTF: it has a kind of type that isn't known"),
            "{kind}"
        );
    }
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(
        Btf::parse(Vec::new()),
        Err(BtfError::Format("the header is cut"))
    ));
    let mut swapped = sample().bytes();
    swapped.swap(0, 1);
    let error = Btf::parse(swapped).err().unwrap().to_string();
    assert!(error.contains("magic number"), "{error}");
    let missing = Btf::read(Path::new("/nonexistent/btf")).err().unwrap();
    assert!(missing.to_string().contains("/nonexistent/btf"));
}

#[test]
fn files_cut_at_any_length_are_refused() {
    for whole in [
        sample().bytes(),
        crate::host::btf::fixtures::KERNELS[0].1.to_vec(),
    ] {
        for length in 0..whole.len() {
            assert!(Btf::parse(whole[..length].to_vec()).is_err(), "{length}");
        }
    }
}

/// Whatever a damaged file says, look-ups end and don't panic.
#[test]
fn files_with_any_byte_changed_are_walked_or_refused() {
    let whole = sample().bytes();
    let mut walked = 0;
    for (at, value) in (0..whole.len()).flat_map(|at| [0, 1, 0x7f, 0xff].map(|value| (at, value))) {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let Ok(btf) = Btf::parse(bytes) else { continue };
        walked += 1;
        for path in ["value.deep", "list.deep", "pointer.deep", "missing"] {
            if let Some(member) = btf.member("outer", path) {
                btf.element_size(member);
                btf.is_array(member);
            }
        }
        btf.argument("hook", "flags");
    }
    assert!(walked > whole.len(), "{walked} of {}", 4 * whole.len());
}

#[test]
fn an_enumerator_is_found_by_its_own_name_and_that_of_its_enum() {
    let mut builder = Builder::new().int();
    let (first, second) = (builder.name("one_id"), builder.name("two_id"));
    let btf = builder
        .add("ids", KIND_ENUM << 24 | 2, 4, &[first, 0, second, 7])
        .add("empty", KIND_ENUM << 24, 4, &[])
        .parse();
    assert_eq!(btf.enumerator("ids", "one_id"), Some(0));
    assert_eq!(btf.enumerator("ids", "two_id"), Some(7));
    assert_eq!(btf.enumerator("ids", "two"), None);
    assert_eq!(btf.enumerator("empty", "one_id"), None);
    assert_eq!(btf.enumerator("int", "one_id"), None);
}
