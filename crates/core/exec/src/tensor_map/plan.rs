//! The memory that bulk tensor copies touch (manual, sections 5.5.3 to 5.5.5).

use super::{Im2col, TensorMap};

/// The elements that an instruction addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The box at these coordinates.
    Tile([i32; 5]),
    /// A column, and four rows of a two-dimensional tensor.
    Rows(i32, [i32; 4]),
    /// Pixels starting at a base, with offsets in dimensions 1 to 3.
    Pixels([i32; 5], [u16; 3]),
    /// Pixels along dimension 1 only.
    Wide([i32; 5], Halo),
}

/// The additional parameters of an access along one dimension (sections 5.5.5.3 and 5.5.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halo {
    /// Number of halo pixels, after all others or after every 32.
    pub pixels: u16,
    /// Offset of the bounding box and of the first pixel.
    pub offset: i16,
    /// `im2col::w::128`: 128 pixels, and a halo after every 32.
    pub grouped: bool,
}

/// Elements that are contiguous in both memories and inside the tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Byte offset in shared memory, before swizzling.
    pub shared: usize,
    /// Address in global memory.
    pub global: u64,
    /// Number of units of packing.
    pub units: usize,
}

/// The memory that an access touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Bytes written to or read from shared memory.
    pub bytes: usize,
    /// Bytes that count towards the transaction: elements without their padding.
    pub counted: usize,
    /// All parts inside the tensor.
    pub spans: Vec<Span>,
}

/// The reason why an access has no plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The program is wrong.
    Invalid(String),
    /// margay cannot do it.
    Unsupported(String),
}

impl TensorMap {
    /// Resolves an access of `rank` dimensions.
    ///
    /// # Errors
    /// The access does not fit the map, or its result is not documented.
    pub fn plan(&self, rank: usize, access: Access) -> Result<Plan, Refusal> {
        let wrong = |what: String| Err(Refusal::Invalid(what));
        if rank != self.rank {
            return wrong(format!("the instruction has {rank} dimensions, but its tensor map has {}", self.rank));
        }
        let mut rows = Vec::new();
        let inner = match (access, self.im2col) {
            (Access::Tile(at), None) => {
                self.tile_rows(at, &mut rows);
                u64::from(self.bounds[0].div_ceil(self.steps[0]))
            }
            (Access::Rows(column, list), None) if rank == 2 => {
                rows.extend(list.map(|r| [column.into(), r.into(), 0, 0, 0]));
                self.bounds[0].into()
            }
            (Access::Pixels(at, offsets), Some(im2col)) => {
                self.pixels(at, offsets, im2col, &mut rows);
                im2col.channels.into()
            }
            (Access::Wide(at, halo), Some(im2col)) => {
                self.wide_pixels(at, halo, im2col, &mut rows)?;
                im2col.channels.into()
            }
            (Access::Tile(_) | Access::Rows(..), _) => {
                return wrong("a tile copy uses an im2col tensor map".into());
            }
            (Access::Pixels(..) | Access::Wide(..), None) => {
                return wrong("an im2col copy uses a tiled tensor map".into());
            }
        };
        let (per, global, shared) = self.element.unit().unwrap_or((1, 1, 1));
        if !inner.is_multiple_of(per) {
            return wrong(format!("rows of {inner} elements, which must be a multiple of {per}"));
        }
        let units = (inner / per) as usize;
        let mut plan =
            Plan { bytes: rows.len() * units * shared, counted: rows.len() * units * global, spans: Vec::new() };
        for (index, row) in rows.iter().enumerate() {
            let outside = (1..self.rank).any(|d| row[d] < 0 || row[d] as u64 >= self.sizes[d]);
            if outside {
                continue;
            }
            let first = (-row[0]).clamp(0, inner as i64) / per as i64;
            let last = (self.sizes[0] as i64 - row[0]).clamp(0, inner as i64) / per as i64;
            if first >= last {
                continue;
            }
            let offset =
                (1..self.rank).fold(0u64, |sum, d| sum.wrapping_add((row[d] as u64).wrapping_mul(self.strides[d - 1])));
            let column = (row[0] / per as i64 + first).wrapping_mul(global as i64) as u64;
            plan.spans.push(Span {
                shared: (index * units + first as usize) * shared,
                global: self.address.wrapping_add(offset).wrapping_add(column),
                units: (last - first) as usize,
            });
        }
        Ok(plan)
    }

    /// First elements of the rows of a box.
    fn tile_rows(&self, at: [i32; 5], rows: &mut Vec<[i64; 5]>) {
        let counts: [u64; 5] = std::array::from_fn(|d| match d {
            0 => 1,
            d if d < self.rank => self.bounds[d].div_ceil(self.steps[d]).into(),
            _ => 1,
        });
        for i in 0..counts.iter().product::<u64>() {
            let mut rest = i;
            let mut row = at.map(i64::from);
            for d in 1..self.rank {
                row[d] += (rest % counts[d]) as i64 * i64::from(self.steps[d]);
                rest /= counts[d];
            }
            rows.push(row);
        }
    }

    /// First elements of the pixels: W runs fastest and wraps to its lower corner, then H, D and N (section 5.5.4).
    fn pixels(&self, at: [i32; 5], offsets: [u16; 3], m: Im2col, rows: &mut Vec<[i64; 5]>) {
        let spatial = self.rank - 2;
        let mut base = at.map(i64::from);
        for _ in 0..m.pixels {
            let mut row = base;
            (0..spatial).for_each(|s| row[s + 1] += i64::from(offsets[s]));
            rows.push(row);
            for d in 1..self.rank {
                if d > spatial {
                    base[d] += 1;
                    break;
                }
                base[d] += i64::from(self.steps[d]);
                let last = self.sizes[d] as i64 - 1 + i64::from(m.upper[d - 1]);
                if base[d] <= last {
                    break;
                }
                base[d] = m.lower[d - 1].into();
            }
        }
    }

    /// First elements of pixels along W, wrapping to its lower corner in the next image: the bounding box is one pixel
    /// high and deep (section 5.5.5). A halo continues along W. Only figures of the manual define its contents beyond
    /// the box, so it must lie inside.
    fn wide_pixels(&self, at: [i32; 5], halo: Halo, m: Im2col, rows: &mut Vec<[i64; 5]>) -> Result<(), Refusal> {
        let (count, group) = if halo.grouped { (128, 32) } else { (m.pixels, m.pixels) };
        let (offset, step, images) = (i64::from(halo.offset), i64::from(self.steps[1]), self.rank - 1);
        let first = i64::from(m.lower[0]) + offset;
        let last = self.sizes[1] as i64 - 1 + i64::from(m.upper[0]) + offset;
        let mut base = at.map(i64::from);
        base[1] += offset;
        for i in 1..=count {
            rows.push(base);
            if i % group == 0 {
                for h in 1..=i64::from(halo.pixels) {
                    let mut row = base;
                    row[1] += h * step;
                    if row[1] > last {
                        let what = format!("a halo of {} pixels across the edge of the bounding box", halo.pixels);
                        return Err(Refusal::Unsupported(what));
                    }
                    rows.push(row);
                }
            }
            base[1] += step;
            if base[1] > last {
                base[1] = first;
                base[images] += 1;
            }
        }
        Ok(())
    }
}
