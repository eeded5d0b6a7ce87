//! Facts about the machine: kernel types, CPUs, memory, names.

pub mod btf;
pub mod conditions;
pub mod containers;
pub mod control_groups;
pub mod facts;
pub mod memory_group;
pub mod process_memory;
pub mod rights;
pub mod sigpipe;
pub mod user;
