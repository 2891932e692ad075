//! A cell of its own for every name of a bucket, found without a second try.
//!
//! Names fall into groups by their fingerprint. Each group has a shift that sends its names to cells that nobody else has; the
//! largest group chooses first.

/// The shift of each group.
pub(super) type Shifts = [u8; GROUPS];

const GROUPS: usize = 16;

/// Cells beyond so many for each name are not tried.
const WIDEST: usize = 16;

/// The cell of a fingerprint among so many, a power of two.
pub(super) fn cell_of(print: u32, shifts: &Shifts, cells: usize) -> usize {
    cell_by(print, shifts[group_of(print)], cells)
}

/// The shifts for some fingerprints, and for each cell whose it is, counted from one. Nothing where that cannot be, because two
/// fingerprints are the same.
pub(super) fn arrange(prints: &[u32]) -> Option<(Shifts, Vec<u32>)> {
    let least = (prints.len() + prints.len().div_ceil(7)).next_power_of_two();
    let sizes = std::iter::successors(Some(least), |cells| Some(cells * 2));
    sizes.take_while(|cells| *cells <= least * WIDEST).find_map(|cells| within(prints, cells))
}

fn within(prints: &[u32], count: usize) -> Option<(Shifts, Vec<u32>)> {
    let mut groups: [Vec<u32>; GROUPS] = Default::default();
    for (print, place) in prints.iter().zip(1..) {
        groups[group_of(*print)].push(place);
    }
    let mut order: Vec<usize> = (0..GROUPS).filter(|group| !groups[*group].is_empty()).collect();
    order.sort_by_key(|group| std::cmp::Reverse(groups[*group].len()));
    let mut shifts = Shifts::default();
    let mut cells = vec![0; count];
    for group in order {
        shifts[group] = (0..=u8::MAX).find(|shift| settle(prints, &groups[group], *shift, &mut cells))?;
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

fn group_of(print: u32) -> usize {
    print as usize % GROUPS
}

fn cell_by(print: u32, shift: u8, cells: usize) -> usize {
    let mixed = (print ^ u32::from(shift).wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    (mixed >> 16) as usize & (cells - 1)
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
        }
    }

    #[test]
    fn two_of_a_kind_cannot_be_told_apart() {
        assert!(arrange(&[7, 1, 7]).is_none());
    }
}
