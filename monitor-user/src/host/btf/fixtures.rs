//! Trimmed BTF of kernels, for tests; where it comes from is in `fixtures/README.md`.

use super::Btf;

/// Version and raw BTF, oldest first.
pub(crate) const KERNELS: [(&str, &[u8]); 5] = [
    ("5.10", include_bytes!("fixtures/5.10.btf")),
    ("6.1", include_bytes!("fixtures/6.1.btf")),
    ("6.12", include_bytes!("fixtures/6.12.btf")),
    ("6.18", include_bytes!("fixtures/6.18.btf")),
    ("7.2", include_bytes!("fixtures/7.2.btf")),
];

/// BTF of the kernel of that version.
pub(crate) fn kernel(version: &str) -> Btf {
    let (_, raw) = KERNELS
        .iter()
        .find(|(known, _)| *known == version)
        .unwrap_or_else(|| panic!("no fixture for {version}"));
    Btf::parse(raw.to_vec()).unwrap()
}
