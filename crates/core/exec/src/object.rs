//! Barrier objects (`mbarrier`; manual, section 9.7.13.15), which are opaque to programs: pending arrivals (20 bits), expected arrivals (20),
//! the signed transaction count (21), a bit that marks a valid object, and the phase parity. A *state* is a copy of the object.

use margay_isa::{Mod, Variant};

/// Limit of arrival and transaction counts.
pub const LIMIT: u64 = (1 << 20) - 1;
/// The lowest bit of the expected arrivals.
pub const EXPECTED_AT: u32 = 20;
/// The lowest bit of the transaction count.
pub const TX_AT: u32 = 40;
/// The bits of the transaction count.
pub const TX_MASK: u64 = ((1 << 21) - 1) << TX_AT;
/// Set in valid objects.
pub const VALID: u64 = 1 << 62;
/// The phase parity.
pub const PHASE: u64 = 1 << 63;

/// The kind of an operation on a barrier object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MbarrierKind {
    /// `mbarrier.init`
    Init,
    /// `mbarrier.inval`
    Inval,
    /// `mbarrier.expect_tx`
    Expect,
    /// `mbarrier.complete_tx`
    Complete,
    /// `mbarrier.arrive`, also with `.noComplete`
    Arrive,
    /// `mbarrier.arrive_drop`
    Drop,
    /// `mbarrier.arrive.expect_tx`
    ArriveExpect,
    /// `mbarrier.arrive_drop.expect_tx`
    DropExpect,
    /// `mbarrier.test_wait`, `mbarrier.try_wait`
    Wait,
    /// The same with `.parity`
    WaitParity,
    /// `mbarrier.pending_count`; the operand is the state, and there is no object.
    Pending,
    /// `cp.async.mbarrier.arrive`, which arrives, because the copies are already done. The flag is `.noinc`: the arrival counts.
    AfterCopies(bool),
}

impl MbarrierKind {
    /// The kind of a variant of `mbarrier`.
    pub fn of(variant: &Variant) -> Option<MbarrierKind> {
        let has = |m: Mod| variant.has(m);
        let expects = has(Mod::ExpectTx);
        Some(match () {
            () if has(Mod::Init) => MbarrierKind::Init,
            () if has(Mod::Inval) => MbarrierKind::Inval,
            () if has(Mod::ArriveDrop) && expects => MbarrierKind::DropExpect,
            () if has(Mod::ArriveDrop) => MbarrierKind::Drop,
            () if has(Mod::Arrive) && expects => MbarrierKind::ArriveExpect,
            () if has(Mod::Arrive) => MbarrierKind::Arrive,
            () if expects => MbarrierKind::Expect,
            () if has(Mod::CompleteTx) => MbarrierKind::Complete,
            () if has(Mod::PendingCount) => MbarrierKind::Pending,
            () if (has(Mod::TestWait) || has(Mod::TryWait)) && has(Mod::Parity) => MbarrierKind::WaitParity,
            () if has(Mod::TestWait) || has(Mod::TryWait) => MbarrierKind::Wait,
            () => return None,
        })
    }
}

/// A decoded object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    pub phase: bool,
    pub pending: u64,
    pub expected: u64,
    pub transactions: i64,
}

impl Object {
    pub fn unpack(bits: u64) -> Option<Object> {
        let transactions = ((bits & TX_MASK) << 3) as i64 >> 43;
        let object = Object {
            phase: bits & PHASE != 0,
            pending: bits & LIMIT,
            expected: bits >> EXPECTED_AT & LIMIT,
            transactions,
        };
        (bits & VALID != 0).then_some(object)
    }

    pub fn pack(self) -> u64 {
        let phase = if self.phase { PHASE } else { 0 };
        let transactions = (self.transactions as u64) << TX_AT & TX_MASK;
        phase | VALID | transactions | self.expected << EXPECTED_AT | self.pending
    }

    /// Advances to the next phase if the current one is complete.
    pub fn advance(mut self) -> Object {
        if self.pending == 0 && self.transactions == 0 {
            self.phase = !self.phase;
            self.pending = self.expected;
        }
        self
    }

    pub fn expect(mut self, by: i64) -> Result<Object, &'static str> {
        self.transactions += by;
        if self.transactions.unsigned_abs() > LIMIT {
            return Err("the transaction count exceeds its range of 20 bits");
        }
        Ok(self)
    }

    pub fn arrive(mut self, count: u64) -> Result<Object, &'static str> {
        if count == 0 || count > LIMIT {
            return Err("the count is not between 1 and 1048575");
        }
        self.pending = self.pending.checked_sub(count).ok_or("more arrivals than the phase expects")?;
        Ok(self.advance())
    }

    pub fn drop_one(mut self, count: u64) -> Result<Object, &'static str> {
        self.expected = self.expected.checked_sub(count).ok_or("more threads drop out than participate")?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_end_when_arrivals_and_transactions_are_in() {
        let o = Object { phase: false, pending: 2, expected: 2, transactions: 0 };
        assert_eq!(Object::unpack(o.pack()), Some(o));
        let o = o.expect(64).unwrap().arrive(1).unwrap().arrive(1).unwrap();
        assert!(!o.phase, "64 bytes are missing");
        let o = o.expect(-64).unwrap().advance();
        assert_eq!((o.phase, o.pending), (true, 2));
        // Transactions may complete before they are expected.
        let early = o.expect(-16).unwrap();
        assert_eq!(Object::unpack(early.pack()), Some(early));
        assert!(early.arrive(3).is_err());
        assert!(Object::unpack(0).is_none());
    }

    #[test]
    fn dropping_out_lowers_the_next_phase() {
        let o = Object { phase: false, pending: 2, expected: 2, transactions: 0 };
        let o = o.drop_one(1).unwrap().arrive(1).unwrap();
        assert_eq!((o.phase, o.pending, o.expected), (false, 1, 1));
        let o = o.arrive(1).unwrap();
        assert_eq!((o.phase, o.pending), (true, 1));
    }
}
