//! Times as the kernel writes them.

use units::Nanos;

/// Milliseconds.
pub(super) const fn ms(count: u64) -> Nanos {
    Nanos(count * 1_000_000)
}
