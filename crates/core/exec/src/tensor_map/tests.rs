//! Tensor maps: their encoding, and the memory that copies touch.

use super::*;

fn halves(sizes: &[u64], bounds: &[u32]) -> TensorMap {
    let strides: Vec<u64> = (1..sizes.len()).map(|d| 2 * sizes[..d].iter().product::<u64>()).collect();
    let steps = vec![1; sizes.len()];
    let tensor = Tensor { data_type: 6, address: 4096, sizes, strides: &strides, steps: &steps, ..Tensor::default() };
    tensor.tiled(bounds).unwrap()
}

#[test]
fn encoded_maps_decode_to_themselves() {
    let mut map = halves(&[64, 9, 14, 64], &[8, 4, 2, 1]);
    assert_eq!(TensorMap::decode(&map.encode()), Ok(map.clone()));
    map.im2col = Some(Im2col { channels: 8, pixels: 64, lower: [-1, -1, 0], upper: [-1, -1, 0] });
    assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
    assert!(TensorMap::decode(&[0xff; SIZE]).is_err());
    let misaligned = Tensor { data_type: 6, address: 8, sizes: &[64], steps: &[1], ..Tensor::default() };
    assert!(misaligned.tiled(&[8]).unwrap_err().contains("multiple of 16"));
}

#[test]
fn a_box_across_the_edge_leaves_out_what_lies_outside() {
    // 16 by 3 halves; a box of 8 by 2 at (12, -1): only row 0, columns 12 to 15.
    let plan = halves(&[16, 3], &[8, 2]).plan(2, Access::Tile([12, -1, 0, 0, 0])).unwrap();
    assert_eq!(plan.bytes, 32);
    assert_eq!(plan.spans, [Span { shared: 16, global: 4096 + 24, units: 4 }]);
    assert!(halves(&[16, 3], &[8, 2]).plan(3, Access::Tile([0; 5])).is_err());
}

/// Example 2 of section 5.5.4.1: positions from 0 to size - 3 along W and H, read at an offset of 2.
#[test]
fn pixels_wrap_at_the_corners() {
    let mut map = halves(&[64, 9, 14, 64], &[8, 1, 1, 1]);
    map.im2col = Some(Im2col { channels: 8, pixels: 64, lower: [0, 0, 0], upper: [-2, -2, 0] });
    let plan = map.plan(4, Access::Pixels([0, 4, 7, 7, 0], [2, 2, 0])).unwrap();
    assert_eq!(plan.bytes, 64 * 16);
    let at = |w: u64, h: u64, n: u64| 4096 + 2 * 64 * (w + 9 * (h + 14 * n));
    // W from 4 to 6, then from 0 on the next row; after row 11, row 0 of the next image.
    let (mut w, mut h, mut n) = (4, 7, 7);
    for span in &plan.spans {
        assert_eq!(span.global, at(w + 2, h + 2, n), "({w}, {h}, {n})");
        w += 1;
        if w > 6 {
            (w, h) = (0, h + 1);
        }
        if h > 11 {
            (h, n) = (0, n + 1);
        }
    }
    assert_eq!(plan.spans.len(), 64);
}

#[test]
fn swizzling_as_in_the_tables_of_the_manual() {
    let mut map = halves(&[64, 8], &[64, 8]);
    for (mode, atomicity, row, chunks) in [
        (1, 0, 1, [1, 0, 3, 2, 5, 4, 7, 6]),
        (2, 0, 3, [3, 2, 1, 0, 7, 6, 5, 4]),
        (3, 0, 5, [5, 4, 7, 6, 1, 0, 3, 2]),
        (3, 1, 1, [2, 3, 0, 1, 6, 7, 4, 5]),
        (3, 3, 1, [4, 5, 6, 7, 0, 1, 2, 3]),
    ] {
        (map.swizzle, map.atomicity) = (mode, atomicity);
        for (at, source) in chunks.iter().enumerate() {
            assert_eq!(map.exchange(row * 128 + source * 16).0, row * 128 + at as u64 * 16, "mode {mode}");
        }
    }
}
