//! How an attack ended, and whether two engines ended alike.
//!
//! Two ends are alike where both are
//! * results: the same bytes, unless what the blow computes is undefined;
//! * faults: the same kind in the same words, the same access, at the same place, called from the
//!   same places, and of the same thread. Where several threads strike, each engine must name one of them, and the same one if all
//!   of them are lanes of one warp: the engines execute warps and CTAs in orders of their own. Who is named in a deadlock, and who
//!   meets at a barrier what others spoiled ([`Blame::Anybody`]), is not compared;
//! * the machine's end, the same lack of support, or the refusal of the module or the launch.
//!
//! A signal, a panic, a bug that the engine itself reports, and a silence of many seconds are never right.

use super::{Attack, Blame};

/// A base of addresses: its name and where it lay.
pub type Base = (String, u64);

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// A result: its bytes, summed up.
    Done(u64),
    /// A fault of the program.
    Fault(Box<Fault>),
    /// The check or the linker refuses the module: the first error.
    Rejected(String),
    /// No device would launch it.
    BadLaunch(String),
    /// margay does not do that.
    Unsupported(String),
    /// It executed more instructions than it may, or the host ran out of something.
    Exhausted(String),
    /// margay says that it is wrong.
    Bug(String),
    /// It panicked.
    Panic(String),
    /// The process died of a signal, or ended by itself with a code.
    Died(String),
    /// It said nothing for longer than it may.
    Hang,
}

/// A fault as it is compared.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fault {
    /// `OutOfBounds`
    pub kind: String,
    /// Words of it.
    pub words: String,
    /// Written, address, bytes, space.
    pub access: Option<(bool, u64, u32, String)>,
    /// Index in the CTA and of the CTA.
    pub thread: [u32; 3],
    /// Index of the CTA in the grid.
    pub cta: [u32; 3],
    /// Function, line and column, the callers' behind it.
    pub places: Vec<String>,
    /// Further facts, for people.
    pub notes: String,
    /// Where things lay in this run.
    pub bases: Vec<Base>,
}

impl End {
    /// Never right, on whatever engine.
    pub fn is_a_crash(&self) -> bool {
        matches!(self, End::Bug(_) | End::Panic(_) | End::Died(_) | End::Hang)
    }

    /// For people.
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
    /// Whether it is the same address as another run's: equal, or as far from something that lay elsewhere then.
    fn same_address(&self, other: &Fault) -> bool {
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
        // Blocks of the device heap have no name: theirs differ by the page, not within it.
        a.1 == b.1 || self.bases.iter().any(|base| away(base).is_some()) || (a.1 ^ b.1) & 15 == 0
    }
}

/// Why two ends are not alike; `None` where they are.
pub fn difference(attack: &Attack, reference: &End, other: &End) -> Option<String> {
    for end in [reference, other] {
        if end.is_a_crash() {
            return Some(end.show());
        }
    }
    if attack.blow.loose {
        return None;
    }
    let held = |e: &End| match e {
        End::Done(_) => true,
        End::Fault(f) => f.kind == "Barrier" || f.kind == "Deadlock",
        _ => false,
    };
    if attack.blow.crowded && held(reference) && held(other) {
        return None;
    }
    let differ = |what: &str| Some(format!("{what}: {} / {}", reference.show(), other.show()));
    match (reference, other) {
        (End::Done(a), End::Done(b)) => (!attack.blow.quiet && a != b).then(|| differ("results")).flatten(),
        (End::Fault(a), End::Fault(b)) => {
            let in_vain = |f: &Fault| f.kind == "Deadlock" || f.kind == "Barrier";
            if attack.blow.lanes_wait && in_vain(a) && in_vain(b) && a.kind != b.kind {
                return None;
            }
            if a.kind != b.kind {
                return differ("kind");
            }
            if a.kind == "Deadlock" {
                return None;
            }
            // Who meets at a barrier what others spoiled is a matter of order; nothing else is.
            if attack.blow.blame == Blame::Anybody && a.kind == "Barrier" {
                return None;
            }
            if a.places != b.places {
                return differ("place");
            }
            let block = attack.shape.block;
            let threads = block.iter().product::<u32>();
            let strikes = |f: &Fault| {
                let lin = (f.thread[2] * block[1] + f.thread[1]) * block[0] + f.thread[0];
                let g = attack.shape.grid;
                let cta = (f.cta[2] * g[1] + f.cta[1]) * g[0] + f.cta[0];
                attack.who.strikes(cta, lin, threads)
            };
            if !strikes(a) || !strikes(b) {
                return differ("a thread that did not strike");
            }
            if attack.who.in_a_warp() && (a.thread, a.cta) != (b.thread, b.cta) {
                return differ("thread");
            }
            if (a.thread, a.cta) == (b.thread, b.cta) {
                if !a.same_address(b) {
                    return differ("access");
                }
                if a.words != b.words {
                    return differ("words");
                }
            }
            None
        }
        (End::Exhausted(_), End::Exhausted(_))
        | (End::BadLaunch(_), End::BadLaunch(_))
        | (End::Rejected(_), End::Rejected(_)) => None,
        (End::Unsupported(a), End::Unsupported(b)) if a == b => None,
        // See `Blow::lanes_wait`: what the reference engine waits for may still end, and set those free that wait.
        (End::Done(_), End::Fault(f)) if attack.blow.lanes_wait && f.words.contains("waits for lanes") => None,
        _ => differ("end"),
    }
}

/// Words without numbers that are addresses of the host.
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
