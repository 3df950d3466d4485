//! Just enough arithmetic on non-negative integers of many limbs (least significant limb first).

use std::cmp::Ordering;

/// `value /= divisor`, rounded down.
pub(super) fn divide(value: &mut [u64], divisor: u64) {
    if divisor == 1 {
        return;
    }
    let divisor = u128::from(divisor);
    let mut remainder = 0u128;
    for limb in value.iter_mut().rev() {
        let dividend = (remainder << 64) | u128::from(*limb);
        *limb = (dividend / divisor) as u64;
        remainder = dividend % divisor;
    }
}

/// `value *= factor`; the caller has left room for the carry.
pub(super) fn scale(value: &mut [u64], factor: u64) {
    let mut carry = 0u128;
    for limb in value.iter_mut() {
        let product = u128::from(*limb) * u128::from(factor) + carry;
        *limb = product as u64;
        carry = product >> 64;
    }
    debug_assert_eq!(carry, 0);
}

/// `value += addend`, limb by limb from the bottom; the caller has left room for the carry.
pub(super) fn add(value: &mut [u64], addend: &[u64]) {
    let mut carry = false;
    for (index, limb) in value.iter_mut().enumerate() {
        let (sum, first) = limb.overflowing_add(addend.get(index).copied().unwrap_or(0));
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        *limb = sum;
        carry = first || second;
    }
    debug_assert!(!carry);
}

/// `value -= subtrahend`; the caller knows that the difference is not negative.
pub(super) fn subtract(value: &mut [u64], subtrahend: &[u64]) {
    let mut borrow = false;
    for (index, limb) in value.iter_mut().enumerate() {
        let (difference, first) = limb.overflowing_sub(subtrahend.get(index).copied().unwrap_or(0));
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        *limb = difference;
        borrow = first || second;
    }
    debug_assert!(!borrow);
}

/// `left * right / 2^(64 * dropped)`, rounded down, in as many limbs as `left` has.
pub(super) fn multiply(left: &[u64], right: &[u64], dropped: usize) -> Vec<u64> {
    let mut product = vec![0u64; left.len() + right.len()];
    for (offset, &factor) in right.iter().enumerate() {
        let mut carry = 0u128;
        for (index, &limb) in left.iter().enumerate() {
            let slot = &mut product[offset + index];
            let sum = u128::from(limb) * u128::from(factor) + u128::from(*slot) + carry;
            *slot = sum as u64;
            carry = sum >> 64;
        }
        product[offset + left.len()] = carry as u64;
    }
    product.drain(..dropped);
    product.resize(left.len(), 0);
    product
}

/// `value * 2^bits` for positive `bits`, `value / 2^-bits` rounded down for negative ones.
pub(super) fn shift(value: &mut Vec<u64>, bits: i64) {
    let length = value.len();
    if bits.unsigned_abs() >= 64 * length as u64 {
        value.fill(0);
        return;
    }
    let (limbs, rest) = ((bits.unsigned_abs() / 64) as usize, (bits.unsigned_abs() % 64) as u32);
    let part = |limb: Option<&u64>| limb.copied().unwrap_or(0);
    let shifted = |index: usize| {
        if bits >= 0 {
            let high = index.checked_sub(limbs).and_then(|at| value.get(at));
            let low = index.checked_sub(limbs + 1).and_then(|at| value.get(at));
            (part(high) << rest) | part(low).checked_shr(64 - rest).unwrap_or(0)
        } else {
            let (low, high) = (value.get(index + limbs), value.get(index + limbs + 1));
            (part(low) >> rest) | part(high).checked_shl(64 - rest).unwrap_or(0)
        }
    };
    *value = (0..length).map(shifted).collect();
}

/// Which of two numbers of equal length is larger.
pub(super) fn compare(left: &[u64], right: &[u64]) -> Ordering {
    debug_assert_eq!(left.len(), right.len());
    left.iter().rev().cmp(right.iter().rev())
}

/// The square of a 128-bit number.
pub(super) fn square(value: u128) -> [u64; 4] {
    let limbs = [value as u64, (value >> 64) as u64];
    let mut square = [0; 4];
    square.copy_from_slice(&multiply(&[limbs[0], limbs[1], 0, 0], &limbs, 0));
    square
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_agree_with_128_bit_shifts() {
        let number = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978_u128;
        for bits in -130i64..=130 {
            let expected = if bits >= 0 {
                number.checked_shl(bits as u32).unwrap_or(0)
            } else {
                number.checked_shr(-bits as u32).unwrap_or(0)
            };
            let mut value = vec![number as u64, (number >> 64) as u64];
            shift(&mut value, bits);
            assert_eq!(value, [expected as u64, (expected >> 64) as u64], "{bits}");
        }
    }

    #[test]
    fn carries_and_borrows_run_through_all_limbs() {
        let mut value = [u64::MAX, u64::MAX, 0];
        add(&mut value, &[1]);
        assert_eq!(value, [0, 0, 1]);
        subtract(&mut value, &[1]);
        assert_eq!(value, [u64::MAX, u64::MAX, 0]);
        assert_eq!(square(u128::MAX), [1, 0, u64::MAX - 1, u64::MAX]);
    }

    #[test]
    fn division_and_multiplication_undo_each_other() {
        let mut value = [5, 6, 7, 0];
        scale(&mut value, 1 << 39);
        divide(&mut value, 1 << 39);
        assert_eq!(value, [5, 6, 7, 0]);
        assert_eq!(multiply(&[5, 6, 7], &[0, 1], 1), [5, 6, 7]);
        assert_eq!(compare(&[9, 1], &[0, 2]), Ordering::Less);
    }
}
