//! Memory whose size follows from arguments: too little of it is an error, not the end of the process.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed};

use crate::runtime::error::{Error, Result};

mod sealed {
    pub trait Sealed {}
}

/// A number whose zero is made of zero bits. Sealed: [`zeros`] relies on it.
pub trait Number: Copy + sealed::Sealed {}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            impl sealed::Sealed for $number {}
            impl Number for $number {}
        )*
    };
}

numbers!(u8 i16 i32 u32 i64 u64 i128 f32 f64);

/// `length` zeros. Large ones are pages that the system hands out when they are first used: what is never
/// touched costs nothing, as with `vec![0; length]`, which would end the process where memory ends.
///
/// # Errors
/// [`Error::Memory`] if there is no room for them.
pub fn zeros<T: Number>(length: usize) -> Result<Vec<T>> {
    let layout = Layout::array::<T>(length).map_err(|_| Error::Memory)?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) }.cast::<T>();
    if start.is_null() {
        return Err(Error::Memory);
    }
    // SAFETY: `start` comes from the global allocator with the layout of `length` values of T, and zero bits
    // are a value of every `Number`.
    Ok(unsafe { Vec::from_raw_parts(start, length, length) })
}

/// A copy of `values`.
///
/// # Errors
/// [`Error::Memory`] if there is no room for it.
pub fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = with_room(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// An empty vector with room for `length` values.
///
/// # Errors
/// [`Error::Memory`] if there is none.
pub fn with_room<T>(length: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    make_room(&mut values, length)?;
    Ok(values)
}

/// Room for `more` values at the end of `values`, so that adding them can't fail.
///
/// # Errors
/// [`Error::Memory`] if there is none; `values` is as before.
pub fn make_room<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    values.try_reserve(more).map_err(|_| Error::Memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error_and_enough_is_not() {
        for length in [usize::MAX, usize::MAX / 8, 1 << 55] {
            assert_eq!(zeros::<u64>(length), Err(Error::Memory));
            assert_eq!(with_room::<u64>(length), Err(Error::Memory));
            let mut values = vec![7u64];
            assert_eq!(make_room(&mut values, length), Err(Error::Memory));
            assert_eq!(values, [7]);
        }
        assert_eq!(zeros::<u64>(3), Ok(vec![0; 3]));
        assert_eq!(copied(&[1, 2]), Ok(vec![1, 2]));
        assert_eq!(zeros::<u64>(0), Ok(vec![]));
    }
}
