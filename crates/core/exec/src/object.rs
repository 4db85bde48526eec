//! Barrier objects (`mbarrier`; manual, section 9.7.13.15), which are opaque to programs: pending arrivals (20 bits), expected arrivals (20),
//! the signed transaction count (21), a bit that marks a valid object, and the phase parity. A *state* is a copy of the object.

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
