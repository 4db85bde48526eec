//! The outcome of an attack, and whether two outcomes are equivalent.
//!
//! Two outcomes are equivalent if both are
//! * results: equal bytes, unless the payload's results are undefined;
//! * faults: the same kind and text, access, place, call stack and thread. If several threads execute the payload, each engine must
//!   blame one of them, and the same one if all are lanes of one warp, since the engines order warps and CTAs differently, and in a
//!   random kernel also lanes of a warp that have diverged. Who is affected at a barrier by what others have corrupted
//!   ([`Blame::Anybody`]) is not compared, nor which instruction a polling thread is found at in a deadlock, nor which part of a warp
//!   is blamed that has come to different matrix instructions;
//! * exhaustion, the same lack of support, or a rejection of the module or the launch.
//!
//! A launch of which threads poll and that never ends is a deadlock if its state repeats, and else exhausts its instructions. Registers
//! that nobody reads, such as a loop's own count, are state on the reference engine, and need not be in compiled code: so these
//! two outcomes are equivalent too ([`never_ends`]).
//!
//! Outcomes that differ on several host threads and not on one depend on the order of the CTAs ([`super::watch::Watch::by_order`]).
//!
//! A signal, a panic, a bug reported by the engine itself, and silence for long are always wrong.

use super::{Attack, Blame, Who};

/// A named allocation and its address, to compare addresses between runs.
pub type Base = (String, u64);

/// The outcome of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// Success: a hash of the resulting bytes.
    Done(u64),
    /// Success, but the sanitizer has found an error: its title.
    Flawed(String),
    /// A fault of the program.
    Fault(Box<Fault>),
    /// The check or the linker rejects the module: the first error.
    Rejected(String),
    /// The launch is invalid.
    BadLaunch(String),
    /// Unsupported by margay.
    Unsupported(String),
    /// It exceeded its instruction limit, or the host ran out of a resource.
    Exhausted(String),
    /// A bug reported by margay.
    Bug(String),
    /// A panic.
    Panic(String),
    /// The process died of a signal, or exited.
    Died(String),
    /// No output for longer than allowed.
    Hang,
}

/// A fault in comparable form.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fault {
    /// `OutOfBounds`
    pub kind: String,
    /// The text of the fault.
    pub words: String,
    /// Store, address, size, space.
    pub access: Option<(bool, u64, u32, String)>,
    /// Thread index in the CTA.
    pub thread: [u32; 3],
    /// Index of the CTA in the grid.
    pub cta: [u32; 3],
    /// Function, line and column; then those of the callers.
    pub places: Vec<String>,
    /// Notes, for display.
    pub notes: String,
    /// Addresses of allocations in this run.
    pub bases: Vec<Base>,
}

impl End {
    /// Whether the outcome is wrong on any engine.
    pub fn is_a_crash(&self) -> bool {
        matches!(self, End::Bug(_) | End::Panic(_) | End::Died(_) | End::Hang)
    }

    /// A description.
    pub fn show(&self) -> String {
        match self {
            End::Done(sum) => format!("ends well, results {sum:016x}"),
            End::Fault(f) => {
                let access = f.access.as_ref().map(|(write, address, size, space)| {
                    let base = f
                        .bases
                        .iter()
                        .filter(|b| address.abs_diff(b.1) < 1 << 20)
                        .min_by_key(|b| address.abs_diff(b.1));
                    let near =
                        base.map(|b| format!(" ({}{:+})", b.0, address.wrapping_sub(b.1) as i64)).unwrap_or_default();
                    let how = if *write { "write" } else { "read" };
                    format!(" {how} of {size} bytes at {address:#x}{near} in {space}")
                });
                format!(
                    "{}{}{} at {} by thread {:?} of CTA {:?}",
                    f.kind,
                    if f.words.is_empty() { String::new() } else { format!(" \"{}\"", f.words) },
                    access.unwrap_or_default(),
                    f.places.join(" from "),
                    f.thread,
                    f.cta
                )
            }
            e => format!("{e:?}"),
        }
    }
}

impl Fault {
    /// Whether the fault addresses correspond: equal, or at the same distance from an allocation that moved.
    pub(crate) fn same_address(&self, other: &Fault) -> bool {
        let (Some(a), Some(b)) = (&self.access, &other.access) else {
            return self.access.is_none() == other.access.is_none();
        };
        if (a.0, a.2, &a.3) != (b.0, b.2, &b.3) {
            return false;
        }
        let away = |base: &Base| {
            let there = other.bases.iter().find(|o| o.0 == base.0)?;
            (a.1.wrapping_sub(base.1) == b.1.wrapping_sub(there.1)).then_some(())
        };
        // Blocks of the device heap have no name: they differ by pages, not within.
        a.1 == b.1 || self.bases.iter().any(|base| away(base).is_some()) || (a.1 ^ b.1) & 15 == 0
    }
}

/// Whether of two outcomes one is a deadlock of threads that poll, and the other exhaustion.
pub fn never_ends(a: &End, b: &End) -> bool {
    let polls = |end: &End| matches!(end, End::Fault(f) if f.kind == "Deadlock" && f.notes.contains("poll memory"));
    polls(a) && matches!(b, End::Exhausted(_)) || matches!(a, End::Exhausted(_)) && polls(b)
}

/// Why two outcomes are not equivalent; `None` if they are.
pub fn difference(attack: &Attack, reference: &End, other: &End) -> Option<String> {
    for end in [reference, other] {
        if end.is_a_crash() {
            return Some(end.show());
        }
    }
    if attack.payload.loose || never_ends(reference, other) {
        return None;
    }
    // Whether such a barrier completes, or an object is used wrongly, is a matter of order; nothing else is.
    let held = |e: &End| match e {
        End::Done(_) => true,
        End::Fault(f) => f.kind == "Barrier" || f.kind == "Deadlock",
        _ => false,
    };
    let one_by_one = !attack.who.in_a_warp() || attack.host.is_some() && !matches!(attack.who, Who::One { .. });
    let by_order = attack.payload.crowded || attack.payload.unordered && one_by_one;
    if by_order && held(reference) && held(other) {
        return None;
    }
    let differ = |what: &str| Some(format!("{what}: {} / {}", reference.show(), other.show()));
    match (reference, other) {
        (End::Done(a), End::Done(b)) => (!attack.payload.quiet && a != b).then(|| differ("results")).flatten(),
        (End::Fault(a), End::Fault(b)) => fault_difference(attack, a, b).and_then(|what| differ(&what)),
        (End::Exhausted(_), End::Exhausted(_))
        | (End::BadLaunch(_), End::BadLaunch(_))
        | (End::Rejected(_), End::Rejected(_)) => None,
        (End::Unsupported(a), End::Unsupported(b)) if a == b => None,
        _ => differ("end"),
    }
}

/// What differs between two faults of an attack; `None` if nothing does that must be the same.
fn fault_difference(attack: &Attack, a: &Fault, b: &Fault) -> Option<String> {
    if a.kind != b.kind {
        return Some("kind".into());
    }
    if a.kind == "Deadlock" {
        // Where lanes are that poll is a matter of the moment.
        let polls = |f: &Fault| f.notes.contains("poll memory");
        let same = (&a.words, a.thread, a.cta, &a.notes, &a.places) == (&b.words, b.thread, b.cta, &b.notes, &b.places);
        return if polls(a) && polls(b) || same { None } else { Some(format!("deadlock ({} / {})", a.notes, b.notes)) };
    }
    // Parts of a warp that stop at two matrix instructions are both wrong.
    let parts = |f: &Fault| f.kind == "Barrier" && f.words.contains("needs all 32 lanes");
    if a.places != b.places {
        return if parts(a) && parts(b) { None } else { Some("place".into()) };
    }
    if attack.payload.blame == Blame::Anybody && a.kind == "Barrier" {
        // Which of the CTAs comes first that do the same at the same time is up to the host's threads, and which of the lanes that
        // a random kernel has parted, to the engine.
        let apart = attack.shape.threads > 1 && a.cta != b.cta || attack.host.is_some() && a.cta == b.cta;
        let same = a.words == b.words && (apart || (a.thread, a.cta) == (b.thread, b.cta));
        return if same || parts(a) && parts(b) { None } else { Some("barrier".into()) };
    }
    let block = attack.shape.block;
    let threads = block.iter().product::<u32>();
    let executes = |f: &Fault| {
        let lin = (f.thread[2] * block[1] + f.thread[1]) * block[0] + f.thread[0];
        let g = attack.shape.grid;
        let cta = (f.cta[2] * g[1] + f.cta[1]) * g[0] + f.cta[0];
        attack.who.executes(cta, lin, threads)
    };
    if !executes(a) || !executes(b) {
        return Some("a thread that does not execute the payload".into());
    }
    // Lanes that a random kernel has parted come one after the other.
    let together = attack.host.is_none() && attack.who.in_a_warp() || matches!(attack.who, Who::One { .. });
    if together && (a.thread, a.cta) != (b.thread, b.cta) {
        return Some("thread".into());
    }
    if (a.thread, a.cta) == (b.thread, b.cta) {
        if !a.same_address(b) {
            return Some("access".into());
        }
        if a.words != b.words {
            return Some("words".into());
        }
    }
    None
}

/// The text without numbers that are host addresses.
pub fn without_addresses(words: &str) -> String {
    let mut out = String::new();
    let mut rest = words;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].chars().take_while(char::is_ascii_hexdigit).count();
        out.push_str(&rest[..at]);
        out.push_str(if digits > 8 { "0x…" } else { &rest[at..at + 2 + digits] });
        rest = &rest[at + 2 + digits..];
    }
    out + rest
}
