//! Records the access of an event: rows of lanes line by line, others address by address.

use super::{Hit, Row};
use crate::{
    form::{Form, part_of_row, same_address, whole_words},
    lanes,
    shadow::{Record, Shadow},
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
            Form::Row(address, shift) if plain => {
                if !is_local(first) {
                    self.access_row((shadow, buffer), context, (all, shift), address, hits);
                }
                return;
            }
            Form::Same(_) => {}
            _ => shadow.warm(lanes(all).map(|lane| e.addresses[lane as usize]).filter(|address| !is_local(*address))),
        }
        let shared = form.is_shared(e.access);
        let whole = |address: u64| plain && whole_words(e.size).is_some() && address.is_multiple_of(u64::from(e.size));
        let mut left = all;
        while left != 0 {
            let lane = left.trailing_zeros();
            let address = e.addresses[lane as usize];
            let part = if plain && form == Form::Lanes { part_of_row(e, left, lane) } else { None };
            if let Some((group, base, shift)) = part.filter(|_| !is_local(address)) {
                self.access_row((shadow, buffer), context, (group, shift), base, hits);
                left &= !group;
                continue;
            }
            let group = match form {
                Form::Same(_) if shared => left,
                _ if shared => same_address(e, left, lane),
                _ => 1 << lane,
            };
            left &= !group;
            match is_local(address) {
                true => {}
                false if whole(address) => {
                    self.access_same((shadow, buffer), context, group, (address, e.size), hits);
                }
                false => self.access((shadow, buffer), context, group, (address, e.size), hits),
            }
        }
    }
}
