//! Records the access of an event: rows of lanes line by line, others address by address.

use super::{Hit, Row};
use crate::{
    form::{Form, is_aligned, part_of_row, same_address},
    lanes,
    shadow::{LINE_BYTES, Record, Shadow},
    site::Kind,
    threads::CtaThreads,
};
use margay_exec::{MemoryEvent, Semantics};

impl Row {
    /// Compares an access with what was recorded, and records it, except for lanes that access their own local memory.
    pub fn access_all(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        context: (&CtaThreads, &[Kind]),
        (e, form): (&MemoryEvent<'_>, Form),
        hits: &mut Vec<Hit>,
    ) {
        let is_local = |address: u64| address.wrapping_sub(e.local.0) < e.local.1;
        let plain = e.order.semantics == Semantics::Weak && !e.order.asynchronous;
        let (all, first) = (e.actor.lanes, e.addresses[e.actor.lanes.trailing_zeros() as usize & 31]);
        match form {
            Form::Row(row) if plain => {
                if !is_local(first) {
                    self.access_strided((shadow, buffer), context, row, hits);
                }
                return;
            }
            Form::Same(_) => {}
            _ => shadow.warm(lanes(all).map(|lane| e.addresses[lane as usize]).filter(|address| !is_local(*address))),
        }
        let shared = form.is_shared(e.access);
        let size = u64::from(e.size);
        let in_line = |address: u64| plain && size <= LINE_BYTES && is_aligned(address, size);
        let mut left = all;
        while left != 0 {
            let lane = left.trailing_zeros();
            let address = e.addresses[lane as usize];
            let part = if plain && form == Form::Lanes { part_of_row(e, left, lane) } else { None };
            if let Some(row) = part.filter(|_| !is_local(address)) {
                self.access_strided((shadow, buffer), context, row, hits);
                left &= !row.lanes;
                continue;
            }
            let group = match form {
                Form::Same(_) if shared => left,
                _ if shared => same_address(e.addresses, left, lane),
                _ => 1 << lane,
            };
            left &= !group;
            match is_local(address) {
                true => {}
                false if in_line(address) => {
                    self.access_same((shadow, buffer), context, group, (address, e.size), hits);
                }
                false => self.access((shadow, buffer), context, group, (address, e.size), hits),
            }
        }
    }
}
