//! Plain accesses of global memory by lanes at addresses of any kind, in short.

use super::{Row, spans::part};
use crate::{
    form::{FEW, Strided},
    lanes as bits,
    shadow::{Kept, LINE, LINE_BYTES, Pattern, Place, Record, Shadow, WORD},
    site::Kind,
};
use margay_exec::LANES;

/// An access by lanes at addresses of any kind, multiples of its size, which is a power of two and no more than that of a line.
#[derive(Clone, Copy)]
pub struct Scattered<'a> {
    pub addresses: &'a [u64; LANES],
    pub size: u32,
    pub lanes: u32,
}

impl Scattered<'_> {
    fn at(&self, lane: u32) -> u64 {
        self.addresses[lane as usize % LANES]
    }

    /// Whether no two lanes certainly access the same address. The lower halves of addresses are enough for almost all.
    pub fn are_distinct(&self) -> bool {
        // Each lane twice, so that a distance from one lane to another wraps around. None accesses an odd address, unless bytes are accessed.
        let mut low = [0u32; 2 * LANES];
        for lane in 0..LANES {
            let active = self.lanes >> lane & 1 == 1;
            let at = if active { self.addresses[lane] as u32 } else { 2 * lane as u32 + 1 };
            (low[lane], low[lane + LANES]) = (at, at);
        }
        let same = |apart: usize| (0..LANES).fold(false, |same, lane| same | (low[lane] == low[lane + apart]));
        !(1..=LANES / 2).fold(false, |any, apart| any | same(apart))
    }

    /// The lanes whose next lane accesses what adjoins.
    fn adjoining(&self) -> u32 {
        let size = u64::from(self.size);
        let adjoins = |lane: usize| self.addresses[lane + 1].wrapping_sub(self.addresses[lane]) == size;
        let all = (0..LANES - 1).fold(0, |all, lane| all | u32::from(adjoins(lane)) << lane);
        all & self.lanes & self.lanes >> 1
    }

    /// The lanes from `first` on, of those in a mask, that access the same address.
    fn same(&self, mask: u32, first: u32) -> u32 {
        let same = |lane: &u32| self.at(*lane) == self.at(first);
        bits(mask >> first << first).take_while(same).fold(0, |group, lane| group | 1 << lane)
    }
}

impl Row {
    /// As [`Row::access_all`], if there is no race and no list is needed, and lanes that write do so at different addresses. If not, returns
    /// false, and the access must be done in full.
    pub fn try_scattered(&self, shadow: &mut Shadow, kinds: &[Kind], e: Scattered<'_>) -> bool {
        let places = Row::warm(shadow, e);
        let adjoining = e.adjoining();
        let mut left = e.lanes;
        while left != 0 {
            let lane = left.trailing_zeros();
            let address = e.at(lane);
            let count = 1 + (adjoining >> lane).trailing_ones();
            let done = if count >= FEW {
                let run = ((u64::MAX >> (64 - count)) as u32) << lane;
                let stride = u64::from(e.size);
                let base = address.wrapping_sub(u64::from(lane) * stride);
                left &= !run;
                self.try_strided(shadow, kinds, Strided { base, stride, size: e.size, lanes: run })
            } else {
                let group = if self.kind.writes { 1 << lane } else { e.same(left, lane) };
                left &= !group;
                self.try_one(shadow, kinds, group, (address, e.size, places[lane as usize % LANES]))
            };
            if !done {
                return false;
            }
        }
        true
    }

    /// As [`Row::access_all`], of an atomic operation by lanes, all at the `same` address or each for itself, if there is no race and no list
    /// is needed. If not, returns false, and the access must be done in full.
    pub fn try_updates(&self, shadow: &mut Shadow, kinds: &[Kind], e: Scattered<'_>, same: bool) -> bool {
        let first = e.at(e.lanes.trailing_zeros());
        if same {
            let place = shadow.place(first);
            return self.try_update(shadow, kinds, e.lanes, (first, e.size, place));
        }
        let places = Row::warm(shadow, e);
        bits(e.lanes).all(|lane| {
            let place = places[lane as usize % LANES];
            self.try_update(shadow, kinds, 1 << lane, (e.at(lane), e.size, place))
        })
    }

    #[inline(always)]
    fn try_update(&self, shadow: &mut Shadow, kinds: &[Kind], lanes: u32, access: (u64, u32, Place)) -> bool {
        shadow.widen(access.2);
        self.try_one(shadow, kinds, lanes, access)
    }

    /// The places of the lanes' lines, of which something was loaded, so that the processor need not wait for each of them.
    #[inline(always)]
    fn warm(shadow: &mut Shadow, e: Scattered<'_>) -> [Place; LANES] {
        let mut places = [Place::default(); LANES];
        let mut warmth = 0u32;
        for lane in bits(e.lanes) {
            let place = shadow.place(e.at(lane));
            warmth = warmth.wrapping_add(shadow.touch(place, e.at(lane)));
            places[lane as usize % LANES] = place;
        }
        std::hint::black_box(warmth);
        places
    }

    /// As [`Row::try_scattered`], of some lanes at one address.
    #[inline(always)]
    fn try_one(
        &self,
        shadow: &mut Shadow,
        kinds: &[Kind],
        lanes: u32,
        (address, size, place): (u64, u32, Place),
    ) -> bool {
        if let Kept::Words(mut cells) = shadow.kept(place) {
            let from = address % WORD;
            let mask = if size < 4 { ((1 << size) - 1) << from } else { 0xf };
            let first = (address / WORD) as u32 % LINE as u32;
            let new = Record::new((self.who(), lanes), self.now, self.site, mask);
            let mut slow = 0u32;
            for k in first..first + size.div_ceil(4) {
                if cells.begin(k, new) {
                    continue;
                }
                let mut cell = cells.get(k);
                match self.fast_word(&mut cell, kinds, lanes, mask) {
                    true => cells.set(k, cell),
                    false => slow |= 1 << (k - first),
                }
            }
            let word = |k: u32| address - from + u64::from(k) * WORD;
            return bits(slow).all(|k| self.repeats(shadow, kinds, (place, word(k)), (lanes, mask)));
        }
        let line = address / LINE_BYTES * LINE_BYTES;
        let span = self.span(part(address - line, size.into()), lanes, Pattern::Same);
        self.try_span_at(shadow, kinds, &span, (place, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        row::Hit,
        threads::{CtaThreads, Threads, WarpMask},
    };
    use margay_exec::{Scope, SyncKind, Tensor};

    const WARPS: u32 = 2;
    const BARRIER: SyncKind = SyncKind::Barrier { id: 0, aligned: true, counted: false };

    fn kind((writes, strong, element): (bool, bool, u32)) -> Kind {
        let (volatile, proxy, cached, tensor, scope) = (false, false, false, Tensor::No, Scope::Gpu);
        Kind { writes, strong, volatile, proxy, cached, tensor, scope, element }
    }

    fn found(hits: &[Hit]) -> Vec<(u64, u32, u32)> {
        let mut all: Vec<_> = hits.iter().map(|h| (h.word, h.lane, h.earlier.site())).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn lanes_at_the_same_address_are_noticed() {
        let mut addresses: [u64; LANES] = std::array::from_fn(|lane| 4096 + 4 * (lane as u64 * 7 % 32));
        let distinct = |addresses: &[u64; LANES], lanes| Scattered { addresses, size: 4, lanes }.are_distinct();
        assert!(distinct(&addresses, u32::MAX));
        for (a, b) in [(0, 1), (0, 31), (3, 19), (30, 31), (2, 27)] {
            let before = addresses[a];
            addresses[a] = addresses[b];
            let without = [1 << a, 1 << b].map(|lane: u32| distinct(&addresses, !lane));
            assert!(!distinct(&addresses, u32::MAX) && without == [true; 2]);
            addresses[a] = before;
        }
    }

    /// In short, lanes at addresses of any kind find the same races as one after the other.
    #[test]
    fn scattered_lanes_are_like_single_ones() {
        let mut state = 11u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below
        };
        let (load, store, atomic) = ((false, false), (true, false), (true, true));
        let ways = [load, store, load, atomic, atomic, store];
        let kinds: Vec<Kind> =
            [4, 8, 1].iter().flat_map(|size| ways.map(|(writes, strong)| kind((writes, strong, *size)))).collect();
        let mut threads = Threads::new();
        let mut ctas = [0, 1].map(|index| CtaThreads::new(index, index, WARPS));
        let (mut short, mut full, mut buffer) = (Shadow::default(), Shadow::default(), Vec::new());
        let (mut done, mut races) = (0, 0);
        for round in 0..60_000 {
            threads.advance();
            let (index, warp) = (random(2), random(WARPS));
            let cta = &mut ctas[index as usize];
            if random(4) == 0 {
                (0..WARPS).for_each(|warp| threads.sync(cta, WarpMask { warp, lanes: u32::MAX }, BARRIER, None));
                threads.complete(cta, 0, true, (&[u32::MAX; WARPS as usize], &[u32::MAX; WARPS as usize]));
                continue;
            }
            // Lists of records stay short, so that none is dropped.
            if round % 32 == 0 {
                [&mut short, &mut full].into_iter().for_each(|shadow| shadow.forget(4096, 4096));
            }
            // Sizes seldom meet.
            let site = if random(20) == 0 { random(kinds.len() as u32) } else { round / 1000 % 3 * 6 + random(6) };
            let (kind, lanes) = (kinds[site as usize], 1 + random(7));
            let size = kind.element;
            let addresses: [u64; LANES] = loop {
                let all = std::array::from_fn(|_| 4096 + u64::from(random(256 / size) * size));
                let e = Scattered { addresses: &all, size, lanes };
                if !kind.writes || kind.strong || e.are_distinct() {
                    break all;
                }
            };
            let e = Scattered { addresses: &addresses, size, lanes };
            let mut row = Row {
                cta: index,
                first: index * WARPS,
                warps: WARPS,
                warp,
                site,
                kind,
                agent: false,
                shared: false,
                now: threads.now,
                begun: 0,
                seen: cta.seen(WarpMask { warp, lanes }),
                published: cta.published(warp),
            };
            let mut hits = [Vec::new(), Vec::new()];
            let context = (&*cta, &kinds[..]);
            let [mine, others] = &mut hits;
            let quick = match kind.strong {
                true => row.try_updates(&mut short, &kinds, e, false),
                false => row.try_scattered(&mut short, &kinds, e),
            };
            for lane in bits(lanes) {
                row.access((&mut full, &mut buffer), context, 1 << lane, (e.at(lane), size), others);
            }
            if !quick {
                threads.advance();
                row.now = threads.now;
                for lane in bits(lanes) {
                    row.access((&mut short, &mut buffer), context, 1 << lane, (e.at(lane), size), mine);
                }
            }
            done += u32::from(quick);
            races += u32::from(!mine.is_empty());
            assert_eq!(found(mine), found(others), "round {round}: site {site}, lanes {lanes:#x}");
        }
        assert!(done > 10_000 && races > 5_000, "{done} {races}");
    }
}
