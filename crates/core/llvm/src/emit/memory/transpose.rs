//! Transposes vectors of elements per lane between the order of memory (all elements of a lane, then those of the next) and one vector
//! for each element.
//!
//! With AVX-512, a shuffle of all lanes becomes a few permutations with two sources. For AVX2, LLVM turns the same shuffle into twice as many
//! instructions as a transposition of registers needs, and takes eight times as long to do so. So code for AVX2 spells out the steps: each
//! combines two registers, in one or two instructions of the host.

use super::{PROGRAM, unit::Direction};
use crate::emit::{
    function::{Emitter, affine::Row},
    text::{Elem, Ty, Val, Writer, named},
};

/// Bits of a register of the host.
const REGISTER: u32 = 256;

/// Whose memory holds a row.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    /// The program's, in an alias scope of its own.
    Program,
    /// A buffer on the native stack, aligned for the host's registers.
    Engine,
}

/// The vectors of a row of lanes.
#[derive(Clone, Copy)]
pub(super) struct Vectors {
    pub elem: Elem,
    /// Elements per lane.
    pub count: u32,
    /// Lanes of the row.
    pub width: u32,
}

impl Vectors {
    /// Lanes per register.
    fn lanes(self) -> u32 {
        REGISTER / self.elem.bits()
    }

    /// Whether there is code for them.
    fn known(self) -> bool {
        matches!((self.elem, self.count), (Elem::I32, 2 | 4) | (Elem::I64, 2))
            && self.width.is_multiple_of(self.lanes())
    }

    fn register(self) -> String {
        Ty::lanes(self.elem).part(self.lanes())
    }

    fn shuffle(self, w: &mut Writer, [a, b]: [&Val; 2], picks: &[u32]) -> Val {
        let (ty, picks) = (self.register(), picks.iter().map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", "));
        w.value(a.ty, format_args!("shufflevector {ty} {a}, {ty} {b}, <{} x i32> <{picks}>", self.lanes()))
    }

    /// Splits registers that each hold all elements of some lanes into one register for each element.
    fn apart(self, w: &mut Writer, group: &[Val]) -> Vec<Val> {
        match group {
            [a, b] => {
                let n = self.lanes();
                [0, 1].map(|k| self.shuffle(w, [a, b], &(0..n).map(|l| 2 * l + k).collect::<Vec<_>>())).to_vec()
            }
            [a, b, c, d] => {
                // Lanes 0 and 4, 1 and 5, 2 and 6, 3 and 7.
                let rows = [([a, c], LOWER), ([a, c], UPPER), ([b, d], LOWER), ([b, d], UPPER)];
                let rows = rows.map(|(pair, picks)| self.shuffle(w, pair, &picks));
                self.transposed(w, rows.each_ref()).to_vec()
            }
            _ => Vec::new(),
        }
    }

    /// The reverse of [`Vectors::apart`].
    fn together(self, w: &mut Writer, group: &[Val]) -> Vec<Val> {
        match group {
            [a, b] => {
                let n = self.lanes();
                let picks = |from: u32| (0..n).map(|l| from + l / 2 + l % 2 * n).collect::<Vec<_>>();
                [0, n / 2].map(|from| self.shuffle(w, [a, b], &picks(from))).to_vec()
            }
            [a, b, c, d] => {
                let [e, f, g, h] = &self.transposed(w, [a, b, c, d]);
                let lanes = [([e, f], LOWER), ([g, h], LOWER), ([e, f], UPPER), ([g, h], UPPER)];
                lanes.map(|(pair, picks)| self.shuffle(w, pair, &picks)).to_vec()
            }
            _ => Vec::new(),
        }
    }

    /// Exchanges rows and columns of the words in each half of four registers.
    fn transposed(self, w: &mut Writer, [a, b, c, d]: [&Val; 4]) -> [Val; 4] {
        let (low, high) = ([0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]);
        let [e, f, g, h] = [([a, b], low), ([c, d], low), ([a, b], high), ([c, d], high)]
            .map(|(pair, picks)| self.shuffle(w, pair, &picks));
        let (low, high) = ([0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]);
        [([&e, &f], low), ([&e, &f], high), ([&g, &h], low), ([&g, &h], high)]
            .map(|(pair, picks)| self.shuffle(w, pair, &picks))
    }

    /// Loads the row: by element, its registers. `more` ends the loads.
    fn load(self, w: &mut Writer, pointer: &Val, (align, more): (u32, &str)) -> Vec<Vec<Val>> {
        let (ty, like) = (self.register(), Ty::lanes(self.elem));
        let mut found = vec![Vec::new(); self.count as usize];
        for first in (0..self.width / self.lanes() * self.count).step_by(self.count as usize) {
            let group: Vec<Val> = (first..first + self.count)
                .map(|at| {
                    let p = w.offset_const(pointer, u64::from(at * REGISTER / 8));
                    w.value(like, format_args!("load {ty}, ptr {p}, align {align}{more}"))
                })
                .collect();
            found.iter_mut().zip(self.apart(w, &group)).for_each(|(list, v)| list.push(v));
        }
        found
    }

    /// Stores registers of the row, by element.
    fn store(self, w: &mut Writer, registers: &[Vec<Val>], pointer: &Val, (align, more): (u32, &str)) {
        let ty = self.register();
        for group in 0..(self.width / self.lanes()) as usize {
            let parts: Vec<Val> = registers.iter().map(|list| list[group].clone()).collect();
            for (k, v) in self.together(w, &parts).iter().enumerate() {
                let at = (group * self.count as usize + k) as u64 * u64::from(REGISTER / 8);
                let p = w.offset_const(pointer, at);
                w.line(format_args!("store {ty} {v}, ptr {p}, align {align}{more}"));
            }
        }
    }

    fn helper_name(self, direction: Direction) -> String {
        let verb = match direction {
            Direction::Load => "apart",
            Direction::Store => "together",
        };
        format!("margay.{verb}.{}.{}.{}", self.count, self.width, Ty::scalar(self.elem))
    }

    /// A function that moves a row from the order of memory to vectors of `width` elements, or back.
    fn helper(self, direction: Direction) -> String {
        let mut w = Writer::default();
        let [from, to] = ["%from", "%to"].map(|name| named(Ty::scalar(Elem::Ptr), name));
        // Vectors are `width` elements apart; weak accesses have the alignment of elements.
        let (size, n) = (self.elem.bits() / 8, self.lanes());
        let at = |w: &mut Writer, p: &Val, k: usize, group: usize| {
            w.offset_const(p, u64::from(size) * (k as u64 * u64::from(self.width) + group as u64 * u64::from(n)))
        };
        let ty = self.register();
        let groups = (self.width / n) as usize;
        if direction == Direction::Load {
            for (k, list) in self.load(&mut w, &from, (size, "")).iter().enumerate() {
                for (group, v) in list.iter().enumerate() {
                    let p = at(&mut w, &to, k, group);
                    w.line(format_args!("store {ty} {v}, ptr {p}, align {}", REGISTER / 8));
                }
            }
        } else {
            let lists: Vec<Vec<Val>> = (0..self.count as usize)
                .map(|k| {
                    (0..groups)
                        .map(|group| {
                            let p = at(&mut w, &from, k, group);
                            w.value(Ty::lanes(self.elem), format_args!("load {ty}, ptr {p}, align {}", REGISTER / 8))
                        })
                        .collect()
                })
                .collect();
            self.store(&mut w, &lists, &to, (size, ""));
        }
        format!(
            "define internal void @{}(ptr %from, ptr %to) #1 {{\n{}  ret void\n}}",
            self.helper_name(direction),
            w.body
        )
    }
}

/// The lower halves of two registers, and the upper ones.
const LOWER: [u32; 8] = [0, 1, 2, 3, 8, 9, 10, 11];
const UPPER: [u32; 8] = [4, 5, 6, 7, 12, 13, 14, 15];

impl Emitter<'_> {
    /// The alignment in bytes of rows, and the end of the instructions that access them.
    fn access_to_rows(&self, elem: Elem, owner: Owner) -> (u32, String) {
        match owner {
            Owner::Program => (self.accesses.aligned.unwrap_or(elem.bits() / 8), format!(", {PROGRAM}")),
            Owner::Engine => (REGISTER / 8, String::new()),
        }
    }

    /// Loads a row of vectors, as one vector of `width` lanes for each element.
    pub(super) fn load_vectors(&mut self, vectors: Vectors, pointer: &Val, owner: Owner) -> Vec<Val> {
        let (align, more) = self.access_to_rows(vectors.elem, owner);
        if self.options.mask_registers || !vectors.known() {
            let (ty, all) = (Ty::lanes(vectors.elem), Ty::lanes(vectors.elem).part(vectors.width * vectors.count));
            let all = self.w.value(ty, format_args!("load {all}, ptr {pointer}, align {align}{more}"));
            return self.every(&all, vectors.elem, vectors.count, vectors.width);
        }
        let (ty, whole) = (Ty::lanes(vectors.elem), Ty::lanes(vectors.elem).part(vectors.width));
        let size = vectors.elem.bits() / 8;
        if self.options.lean {
            let buffer = self.w.alloca(&format!("[{} x i8]", vectors.count * vectors.width * size), 64);
            self.w.declared.insert(vectors.helper(Direction::Load));
            self.w
                .line(format_args!("call void @{}(ptr {pointer}, ptr {buffer})", vectors.helper_name(Direction::Load)));
            let list = (0..vectors.count).map(|k| {
                let p = self.w.offset_const(&buffer, u64::from(k * vectors.width * size));
                self.w.value(ty, format_args!("load {whole}, ptr {p}, align 32"))
            });
            return list.collect();
        }
        let found = vectors.load(&mut self.w, pointer, (align, &more));
        found.into_iter().map(|list| self.concat(list, vectors.elem, vectors.lanes())).collect()
    }

    /// Stores a row of vectors.
    pub(super) fn store_vectors(&mut self, values: &[Val], elem: Elem, row: Row, pointer: &Val, owner: Owner) {
        let vectors = Vectors { elem, count: values.len() as u32, width: row.width };
        let (align, more) = self.access_to_rows(elem, owner);
        if let [a, b, c] = values {
            return self.store_triples([a, b, c], elem, row, (pointer, align, &more));
        }
        if self.options.mask_registers || !vectors.known() {
            let (all, whole) = (self.interleave(values, elem, row), Ty::lanes(elem).part(row.width * vectors.count));
            return self.w.line(format_args!("store {whole} {all}, ptr {pointer}, align {align}{more}"));
        }
        let (whole, size, n) = (Ty::lanes(elem).part(row.width), elem.bits() / 8, vectors.lanes());
        if self.options.lean {
            let buffer = self.w.alloca(&format!("[{} x i8]", vectors.count * row.width * size), 64);
            for (k, v) in values.iter().enumerate() {
                let v = self.piece(v, row);
                let p = self.w.offset_const(&buffer, k as u64 * u64::from(row.width * size));
                self.w.line(format_args!("store {whole} {v}, ptr {p}, align 32"));
            }
            self.w.declared.insert(vectors.helper(Direction::Store));
            self.w.line(format_args!(
                "call void @{}(ptr {buffer}, ptr {pointer})",
                vectors.helper_name(Direction::Store)
            ));
            return;
        }
        let registers: Vec<Vec<Val>> = values
            .iter()
            .map(|v| {
                (row.lane() / n..(row.lane() + row.width) / n)
                    .map(|index| self.piece(v, Row { width: n, index }))
                    .collect()
            })
            .collect();
        vectors.store(&mut self.w, &registers, pointer, (align, &more));
    }
}

impl Emitter<'_> {
    /// Stores three elements of each lane, such as a pixel or a point. No shuffle has more than two sources, since LLVM takes apart those of
    /// vectors that no register holds.
    fn store_triples(&mut self, values: [&Val; 3], elem: Elem, row: Row, (pointer, align, more): (&Val, u32, &str)) {
        let register = if self.options.mask_registers { 2 * REGISTER } else { REGISTER };
        let n = (register / elem.bits()).min(row.width);
        let (whole, part) = (Ty::lanes(elem), Ty::lanes(elem).part(n));
        let picks = |pick: &dyn Fn(u32, u32, u32) -> Option<u32>, first: u32| {
            let of = |at: u32| pick(at, row.lane() + (first + at) / 3, (first + at) % 3);
            let one = |pick: Option<u32>| pick.map_or("i32 poison".into(), |lane| format!("i32 {lane}"));
            (0..n).map(|at| one(of(at))).collect::<Vec<_>>().join(", ")
        };
        let [a, b, c] = values;
        for piece in 0..3 * row.width / n {
            let first = piece * n;
            let pair = picks(&|_, lane, k| (k < 2).then_some(lane + 32 * k), first);
            let third = picks(&|_, lane, k| (k == 2).then_some(lane), first);
            let merged = picks(&|at, _, k| Some(if k < 2 { at } else { n + at }), first);
            let mut shuffle = |ty: &str, [a, b]: [&str; 2], picks: &str| {
                self.w.value(whole, format_args!("shufflevector {ty} {a}, {ty} {b}, <{n} x i32> <{picks}>"))
            };
            let lanes = whole.to_string();
            let pair = shuffle(&lanes, [&a.to_string(), &b.to_string()], &pair);
            let third = shuffle(&lanes, [&c.to_string(), "poison"], &third);
            let all = shuffle(&part, [&pair.to_string(), &third.to_string()], &merged);
            let p = self.w.offset_const(pointer, u64::from(first * elem.bits() / 8));
            self.w.line(format_args!("store {part} {all}, ptr {p}, align {align}{more}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the lanes through the shuffles of a text; `v` of a register are its elements.
    fn run(text: &str, known: &mut std::collections::HashMap<String, Vec<u32>>) {
        for line in text.lines() {
            let Some((name, rest)) = line.trim().split_once(" = shufflevector ") else { continue };
            let names: Vec<&str> =
                rest.split_whitespace().filter(|w| w.starts_with('%')).map(|w| w.trim_end_matches(',')).collect();
            let all: Vec<u32> = names.iter().flat_map(|n| known[*n].clone()).collect();
            let picks = rest.rsplit_once('<').unwrap().1.trim_end_matches('>');
            let picks = picks.split(", ").map(|p| p.strip_prefix("i32 ").unwrap().parse::<usize>().unwrap());
            known.insert(name.to_string(), picks.map(|p| all[p]).collect());
        }
    }

    #[test]
    fn vectors_are_taken_apart_and_put_together() {
        for (elem, count) in [(Elem::I32, 2), (Elem::I32, 4), (Elem::I64, 2)] {
            let vectors = Vectors { elem, count, width: 32 };
            let n = vectors.lanes();
            let mut w = Writer::default();
            let group: Vec<Val> = (0..count).map(|k| named(Ty::lanes(elem), format!("%g{k}").as_str())).collect();
            // Element `k` of lane `l` is the number `l * count + k`.
            let mut known = (0..count).map(|k| (format!("%g{k}"), (k * n..(k + 1) * n).collect())).collect();
            let parts = vectors.apart(&mut w, &group);
            let back = vectors.together(&mut w, &parts);
            run(&w.body, &mut known);
            for (k, part) in parts.iter().enumerate() {
                let wanted: Vec<u32> = (0..n).map(|l| l * count + k as u32).collect();
                assert_eq!(known[&part.to_string()], wanted, "{elem:?} {count}");
            }
            for (before, after) in group.iter().zip(&back) {
                assert_eq!(known[&before.to_string()], known[&after.to_string()], "{elem:?} {count}");
            }
        }
    }
}
