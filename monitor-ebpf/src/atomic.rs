//! Changes of map values that no other CPU can come between. In assembly: `core` has none for this target.

/// Adds to a number in a map value. Its old value isn't asked for: 5.10 knows no such instruction.
///
/// # Safety
/// `place` is in a map value.
#[inline(always)]
pub(crate) unsafe fn add(place: *mut i64, value: i64) {
    // SAFETY: see above; the verifier checks the place too.
    unsafe {
        core::arch::asm!(
            "lock *(u64 *)({place} + 0) += {value}",
            place = in(reg) place,
            value = in(reg) value,
            options(nostack),
        );
    }
}

/// Puts a number in the place of another, which is returned. Since 5.12: programs for older kernels must not
/// have it, whether they come to it or not.
///
/// # Safety
/// `place` is in a map value.
#[inline(always)]
pub(crate) unsafe fn exchange(place: *mut i64, value: i64) -> i64 {
    let mut value = value;
    // SAFETY: see above.
    unsafe {
        core::arch::asm!(
            "{value} = xchg_64({place} + 0, {value})",
            place = in(reg) place,
            value = inout(reg) value,
            options(nostack),
        );
    }
    value
}
