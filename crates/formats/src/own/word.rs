//! The widths of column values.

/// An unsigned value of a column.
pub(super) trait Word: Copy + Default {
    /// Its width.
    const BITS: usize;
    /// The low bits of a value.
    fn from_u64(value: u64) -> Self;
    /// The value.
    fn to_u64(self) -> u64;
    /// The low bits of a value, taken as a signed number.
    fn signed(value: u64) -> i64 {
        let unused = 64 - Self::BITS;
        ((value << unused) as i64) >> unused
    }
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const BITS: usize = <$word>::BITS as usize;
            #[inline]
            fn from_u64(value: u64) -> Self {
                value as $word
            }
            #[inline]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}
words!(u16, u32, u64);
