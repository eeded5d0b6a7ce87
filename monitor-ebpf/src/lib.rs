//! The event ABI: what the BPF programs write into the ring buffer and read from their settings.
//!
//! Both sides compile this one definition, so that nothing has to be kept in step by hand.
#![no_std]

pub mod abi;
