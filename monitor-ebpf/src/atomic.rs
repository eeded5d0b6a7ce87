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

/// Raises a number to another one, if that is higher; gives up if others have raised it four times meanwhile. Since
/// 5.12, as [`exchange`].
///
/// # Safety
/// `place` is in a map value.
#[inline(always)]
pub(crate) unsafe fn raise(place: *mut i64, value: i64) {
    for _ in 0..4 {
        // SAFETY: see above.
        let seen = unsafe { place.read_volatile() };
        if seen >= value {
            return;
        }
        let mut found = seen;
        // SAFETY: see above.
        unsafe {
            core::arch::asm!(
                "r0 = cmpxchg_64({place} + 0, r0, {value})",
                place = in(reg) place,
                value = in(reg) value,
                inout("r0") found,
                options(nostack),
            );
        }
        if found == seen {
            return;
        }
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
