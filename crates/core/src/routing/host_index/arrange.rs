//! A cell of its own for every name of a bucket, found without a second try.
//!
//! Names fall into groups by their fingerprint. Each group has a shift that sends its names to cells that nobody else has; the
//! largest group chooses first.

/// The shift of each group.
pub(super) type Shifts = [u8; GROUPS];

/// What no group of an arrangement has.
pub(super) const LOOSE: Shifts = [u8::MAX; GROUPS];

const GROUPS: usize = 16;

/// How many times more cells are tried.
const TRIES: usize = 16;

/// An odd number of no pattern.
const STIRRED: u32 = 0x9e37_79b9;

/// The cell of a fingerprint among so many.
#[inline]
pub(super) fn cell_of(print: u32, shifts: &Shifts, cells: usize) -> usize {
    cell_by(print, shifts[group_of(print)], cells)
}

/// The shifts for some fingerprints, and for each cell whose it is, counted from one. Nothing where that cannot be, because two
/// fingerprints are the same.
pub(super) fn arrange(prints: &[u32]) -> Option<(Shifts, Vec<u32>)> {
    let places = by_group(prints);
    let least = prints.len() + prints.len().div_ceil(16);
    let sizes = std::iter::successors(Some(least), |cells| Some(cells + cells.div_ceil(8)));
    sizes.take(TRIES).find_map(|cells| within(prints, &places, cells))
}

/// The places of some fingerprints, counted from one, by group; the largest group first.
fn by_group(prints: &[u32]) -> Vec<u32> {
    let mut sizes = [0; GROUPS];
    prints.iter().for_each(|print| sizes[group_of(*print)] += 1);
    let mut places: Vec<u32> = (1..).take(prints.len()).collect();
    places.sort_unstable_by_key(|place| {
        let group = group_of(prints[*place as usize - 1]);
        (std::cmp::Reverse(sizes[group]), group)
    });
    places
}

fn within(prints: &[u32], places: &[u32], count: usize) -> Option<(Shifts, Vec<u32>)> {
    let group = |place: u32| group_of(prints[place as usize - 1]);
    let mut shifts = Shifts::default();
    let mut cells = vec![0; count];
    for places in places.chunk_by(|a, b| group(*a) == group(*b)) {
        shifts[group(places[0])] = (0..u8::MAX).find(|shift| settle(prints, places, *shift, &mut cells))?;
    }
    Some((shifts, cells))
}

/// Gives the names of a group their cells, if all are free.
fn settle(prints: &[u32], group: &[u32], shift: u8, cells: &mut [u32]) -> bool {
    for (taken, place) in group.iter().enumerate() {
        let cell = cell_by(prints[*place as usize - 1], shift, cells.len());
        if cells[cell] != 0 {
            // Those before it give theirs back.
            for place in &group[..taken] {
                cells[cell_by(prints[*place as usize - 1], shift, cells.len())] = 0;
            }
            return false;
        }
        cells[cell] = *place;
    }
    true
}

#[inline]
fn group_of(print: u32) -> usize {
    print as usize % GROUPS
}

#[inline]
fn cell_by(print: u32, shift: u8, cells: usize) -> usize {
    let mixed = (print ^ u32::from(shift).wrapping_mul(STIRRED)).wrapping_mul(STIRRED);
    ((u64::from(mixed) * cells as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_print_has_a_cell_of_its_own() {
        for count in 0..120u32 {
            let prints: Vec<u32> = (0..count).map(|n| (n + 77).wrapping_mul(0x2545_f491)).collect();
            let (shifts, cells) = arrange(&prints).unwrap();
            for (print, place) in prints.iter().zip(1..) {
                assert_eq!(cells[cell_of(*print, &shifts, cells.len())], place, "{count}");
            }
            assert_eq!(cells.iter().filter(|cell| **cell > 0).count(), prints.len());
            assert!(shifts.iter().all(|shift| *shift != u8::MAX));
        }
    }

    #[test]
    fn two_of_a_kind_cannot_be_told_apart() {
        assert!(arrange(&[7, 1, 7]).is_none());
    }
}
