//! Shared by the tests against a real kernel.
