//! Δ̂ as plain bytes, for nodes whose compression scheme has no codec.
//!
//! ```text
//! 0 | count: u32 | indices: count × u32 | value: f32               one value for all entries
//! 1 | count: u32 | indices: count × u32 | values: count × f32      one for each
//! 2 | values: d × f32                                              all entries
//! ```
//!
//! All numbers are little-endian. The scheme has its own count of bits; these bytes only carry the
//! numbers.

use super::{Coded, Encoded, SparseUpdate, Values};

const SHARED: u8 = 0;
const EACH: u8 = 1;
const DENSE: u8 = 2;

/// Replaces `payload` by the bytes of `update`; empty if the update is silent.
pub fn write(update: &Encoded, payload: &mut Vec<u8>) {
    fn floats(payload: &mut Vec<u8>, values: &[f32]) {
        values.iter().for_each(|value| payload.extend(value.to_le_bytes()));
    }
    payload.clear();
    match update {
        Encoded::Silent => {}
        Encoded::Dense(values) | Encoded::Coded(Coded { values, .. }) => {
            payload.push(DENSE);
            floats(payload, values);
        }
        Encoded::Sparse(SparseUpdate { indices, values }) => {
            payload.push(if matches!(values, Values::Shared(_)) { SHARED } else { EACH });
            payload.extend((indices.len() as u32).to_le_bytes());
            indices.iter().for_each(|index| payload.extend(index.to_le_bytes()));
            match values {
                Values::Shared(value) => floats(payload, &[*value]),
                Values::Each(values) => floats(payload, values),
                Values::Grid(grid) => grid.values().for_each(|value| floats(payload, &[value])),
            }
        }
    }
}

/// The update of `dim` entries in `payload`. Any bytes give a valid update or none.
pub fn read(payload: &[u8], dim: usize) -> Option<Encoded> {
    let (&layout, rest) = payload.split_first()?;
    let words = |bytes: &[u8]| -> Option<Vec<[u8; 4]>> {
        let chunks = bytes.chunks_exact(4);
        chunks
            .remainder()
            .is_empty()
            .then(|| chunks.map(|word| [word[0], word[1], word[2], word[3]]).collect())
    };
    let words = words(rest)?;
    let floats = |words: &[[u8; 4]]| words.iter().map(|word| f32::from_le_bytes(*word)).collect::<Vec<f32>>();
    let update = if layout == DENSE {
        Encoded::Dense(floats(&words))
    } else {
        let (count, rest) = words.split_first()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (indices, values) = rest.split_at_checked(count)?;
        let indices = indices.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let values = match (layout, floats(values)) {
            (SHARED, values) if values.len() == 1 => Values::Shared(values[0]),
            (EACH, values) => Values::Each(values),
            _ => return None,
        };
        Encoded::Sparse(SparseUpdate { indices, values })
    };
    update.check(dim).is_ok().then_some(update)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn update() -> impl Strategy<Value = Encoded> {
        let sparse = |values: Values, indices: Vec<u32>| Encoded::Sparse(SparseUpdate { indices, values });
        let indices = || prop::collection::btree_set(0..20u32, 0..20);
        prop_oneof![
            prop::collection::vec(-1.0..1.0f32, 20).prop_map(Encoded::Dense),
            (indices(), -1.0..1.0f32).prop_map(move |(indices, value)| sparse(
                Values::Shared(value),
                indices.into_iter().collect()
            )),
            indices().prop_map(move |indices| {
                let indices: Vec<u32> = indices.into_iter().collect();
                sparse(Values::Each(indices.iter().map(|&i| i as f32 - 7.5).collect()), indices)
            }),
        ]
    }

    proptest! {
        #[test]
        fn an_update_is_read_back_from_its_bytes(update in update()) {
            let mut payload = vec![9; 3];
            write(&update, &mut payload);
            prop_assert_eq!(read(&payload, 20), Some(update));
        }

        #[test]
        fn any_bytes_give_a_valid_update_or_none(payload in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(update) = read(&payload, 5) {
                prop_assert!(update.check(5).is_ok());
            }
        }
    }

    #[test]
    fn bytes_that_are_cut_or_name_other_entries_are_refused() {
        let mut payload = Vec::new();
        write(&Encoded::Dense(vec![1.0, 2.0]), &mut payload);
        assert!(read(&payload, 2).is_some());
        assert_eq!(read(&payload, 3), None);
        assert_eq!(read(&payload[..payload.len() - 1], 2), None);
        assert_eq!(read(&[], 2), None);
        // Two indices are declared, one is present.
        assert_eq!(read(&[1, 2, 0, 0, 0, 1, 0, 0, 0], 2), None);
    }
}
