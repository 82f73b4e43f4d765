use super::*;

fn dimensions(decoder: usize, heads: usize) -> Dimensions {
    Dimensions {
        width: heads * 64,
        heads,
        encoder: decoder,
        decoder,
        vocabulary: 51_864,
        bands: 80,
    }
}

#[test]
fn known_heads_are_of_their_model_and_others_of_the_upper_half() {
    for (layers, heads, is_multilingual, known) in KNOWN {
        let found = AlignmentHeads::of(dimensions(layers, heads), is_multilingual);
        assert_eq!((found.heads.len(), found.late), (known.len(), LATE));
        let fits = |(layer, head): &Head| *layer < layers && *head < heads;
        assert!(found.heads.iter().all(fits) && found.heads.is_sorted());
    }
    let other = AlignmentHeads::of(dimensions(3, 2), false);
    assert_eq!(other.heads, [(1, 0), (1, 1), (2, 0), (2, 1)]);
    assert_eq!(other.late, 0);
}

#[test]
fn tokens_begin_where_most_of_the_attention_is() {
    let attention = |rows: &[&str]| -> Vec<f32> {
        let all = rows.iter().flat_map(|row| row.bytes());
        all.map(|byte| f32::from(byte - b'0')).collect()
    };
    let begins = |rows: &[&str]| warp(&attention(rows), rows[0].len());
    assert_eq!(begins(&["99000000", "00990000", "00009999"]), [0, 2, 4]);
    // What stands out does not lead back.
    assert_eq!(begins(&["99000900", "00990000", "00009999"]), [0, 2, 4]);
    // More tokens than positions share them.
    assert_eq!(begins(&["90", "90", "09"]), [0, 0, 1]);
    assert_eq!(begins(&["5", "5", "5"]), [0, 0, 0]);
    // What is no number is no attention, and ends.
    assert_eq!(warp(&[f32::NAN; 12], 4).len(), 3);
}

#[test]
fn silence_that_is_added_is_not_looked_at() {
    // One layer with one head of one number: the position of a token is where its query meets a key.
    let heads = AlignmentHeads {
        heads: vec![(0, 0)],
        late: 3,
        width: 1,
        head_width: 1,
    };
    let begins = |own: &[f32], added: &[f32]| {
        let keys = Floats {
            shape: vec![1, 1, 1, own.len() + added.len()],
            data: [own, added].concat(),
        };
        let queries = vec![vec![0.0, 1.0, -1.0]];
        heads.begins(&queries, &[keys], own.len(), 1)
    };
    let own: Vec<f32> = [[4.0; 20], [-4.0; 20]].concat();
    let alone = begins(&own, &[]).unwrap();
    assert_eq!(alone, [0, 17]);
    assert_eq!(begins(&own, &[9.0; 30]).unwrap(), alone);
    assert_eq!(begins(&[], &[9.0; 30]).unwrap(), [0, 0]);
    assert_eq!(begins(&[1.0], &[]).unwrap(), [0, 0]);
}

#[test]
fn what_is_missing_is_an_error() {
    let heads = AlignmentHeads::of(dimensions(4, 6), false);
    let begins = |queries: &Queries, keys: &[Floats]| heads.begins(queries, keys, 3, 2).is_err();
    let keys = vec![Floats::zeros(&[1, 6, 64, 3]); 8];
    let queries = vec![vec![0.0; 4 * 384]; 4];
    assert!(!begins(&queries, &keys));
    assert!(begins(&queries[..2].to_vec(), &keys) && begins(&queries, &keys[..2]));
    assert!(begins(&vec![vec![0.0; 384]; 4], &keys));
    assert!(begins(&queries, &vec![Floats::zeros(&[1, 6, 64, 2]); 8]));
    assert!(begins(&queries, &vec![Floats::zeros(&[]); 8]));
}
