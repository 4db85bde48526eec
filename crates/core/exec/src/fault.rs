//! The ways in which an execution stops early, as four kinds that never share a type: the program is wrong ([`Fault`]);
//! the module needs something that margay lacks ([`Unsupported`]); the host ran out of a resource ([`Exhausted`]);
//! margay has a bug ([`Bug`]).

use margay_ir::{FuncId, SourcePlace};
use std::any::Any;

/// Why an execution stopped early.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The device program faulted.
    Fault(Box<Fault>),
    /// margay lacks something that the program needs.
    Unsupported(Unsupported),
    /// The host ran out of memory, threads or time.
    Exhausted(Exhausted),
    /// margay has a bug.
    Bug(Bug),
}

/// The program needs something that margay lacks.
#[derive(Clone, Debug)]
pub struct Unsupported {
    /// The construct: `tcgen05.mma.cta_group::1.kind::f16`.
    pub what: String,
    /// The function that contains it.
    pub func: Option<FuncId>,
    /// Its place in the source.
    pub at: Option<SourcePlace>,
}

/// A fault of the device program, as data.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Thread index in its CTA.
    pub thread: [u32; 3],
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Function and place of the faulting instruction.
    pub at: Option<(FuncId, SourcePlace)>,
    /// Call stack, innermost caller first.
    pub stack: Vec<Frame>,
    /// Further facts: the nearest allocation, who waits where.
    pub notes: Vec<String>,
}

impl Fault {
    /// If the call stack begins with repetitions of some calls, as after a recursion, keeps one of them and notes their number.
    pub fn with_cycle_once(mut self) -> Fault {
        /// The largest number of functions in a cycle.
        const LONGEST: usize = 32;
        /// Fewer repetitions are all kept.
        const LEAST: usize = 3;
        let same = |a: &Frame, b: &Frame| (a.func, a.at) == (b.func, b.at);
        let stack = &self.stack;
        // How often the first `period` calls are repeated.
        let repeated = |period: &usize| {
            let pairs = stack.iter().zip(&stack[*period..]);
            pairs.take_while(|(a, b)| same(a, b)).count() / period
        };
        let cycle = (1..=LONGEST.min(stack.len())).map(|period| (period, repeated(&period)));
        if let Some((period, times)) = cycle.into_iter().find(|(_, times)| *times >= LEAST) {
            self.stack.drain(period..period * (times + 1));
            let calls = if period == 1 { "call below occurs".into() } else { format!("{period} calls below occur") };
            self.notes.push(format!("recursion: the first {calls} {} times in a row", times + 1));
        }
        self
    }

    /// Keeps at most `most` callers of a deep call stack: the innermost ones and the outermost one.
    pub fn with_callers(mut self, most: usize) -> Fault {
        let more = self.stack.len().saturating_sub(most);
        if more > 0 {
            self.stack.drain(most - 1..most - 1 + more);
            self.notes.push(format!("{more} callers before the last one below are left out"));
        }
        self
    }
}

/// A caller in a fault's call stack.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The calling function.
    pub func: FuncId,
    /// The place of the call.
    pub at: SourcePlace,
}

/// A memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whether it is a store.
    pub write: bool,
    /// Address in its space.
    pub address: u64,
    /// Size in bytes.
    pub size: u32,
    /// State space, as in messages: `.shared`.
    pub space: &'static str,
}

/// The kinds of faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// An access outside every allocation or outside its window.
    OutOfBounds(Access),
    /// An access to an allocation that was freed before.
    UseAfterFree(Access),
    /// An address that is not a multiple of the access size.
    Misaligned(Access),
    /// A store to constant or parameter memory.
    ReadOnly(Access),
    /// A `free` of a pointer that `malloc` did not return, or that was freed before.
    BadFree {
        /// The pointer.
        address: u64,
        /// Whether `malloc` had returned it and it was freed since.
        twice: bool,
    },
    /// `trap`
    Trap,
    /// `brkpt`
    Breakpoint,
    /// `__assertfail`: message, file, line, function.
    Assert(String, String, u32, String),
    /// The thread's stack overflowed, or `stackrestore` got a value that `stacksave` did not return.
    Stack(String),
    /// An indirect call or `brx.idx` without a valid target, or of a function with another signature.
    BadTarget(String),
    /// All threads wait.
    Deadlock(String),
    /// A barrier or warp operation used against its rules.
    Barrier(String),
    /// An invalid tensor map or matrix descriptor, or one that the instruction cannot use.
    Descriptor(String),
    /// An invalid handle of a texture, sampler or surface, or one that nothing is bound to.
    BadHandle(String),
    /// A use that the manual leaves undefined: found by a sanitizer, or noted ([`crate::Grid::note_undefined`]).
    Hazard(String),
    /// A call of a function without a body.
    Undefined(String),
}

/// The host ran out of a resource.
#[derive(Clone, Debug)]
pub struct Exhausted(pub String);

/// A bug of margay.
#[derive(Clone, Debug)]
pub struct Bug(pub String);

impl Bug {
    /// The bug of `who` that a caught panic shows.
    pub fn of_panic(who: &str, panic: &(dyn Any + Send)) -> Bug {
        Bug(format!("{who} panicked: {}", panic_message(panic)))
    }
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_stacks_keep_one_cycle_of_a_recursion() {
        let stack = |calls: &[u32]| {
            let frame = |func: &u32| Frame { func: FuncId(*func), at: SourcePlace::default() };
            let stack = calls.iter().map(frame).collect();
            let fault =
                Fault { kind: FaultKind::Trap, thread: [0; 3], cta: [0; 3], at: None, stack, notes: Vec::new() };
            let fault = fault.with_cycle_once();
            (fault.stack.iter().map(|f| f.func.0).collect::<Vec<_>>(), fault.notes.join(";"))
        };
        let twice = "recursion: the first 2 calls below occur 4 times in a row";
        assert_eq!(stack(&[1, 2, 1, 2, 1, 2, 1, 2, 3]), (vec![1, 2, 3], twice.into()));
        assert_eq!(stack(&[1, 2, 1, 2, 1, 2, 1, 2, 1, 3]), (vec![1, 2, 1, 3], twice.into()), "entered in its middle");
        let once = "recursion: the first call below occurs 5 times in a row";
        assert_eq!(stack(&[7, 7, 7, 7, 7]), (vec![7], once.into()));
        assert_eq!(stack(&[1, 2, 1, 2, 1, 2, 3]), (vec![1, 2, 1, 2, 1, 2, 3], String::new()), "short enough");
        assert_eq!(stack(&[]), (Vec::new(), String::new()));
    }
}
