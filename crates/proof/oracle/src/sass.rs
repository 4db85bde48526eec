//! Symbolic execution of straight-line machine code: which byte of which register or stack slot goes where.
//!
//! Registers are tracked byte by byte: a byte is that of a register at entry, of the caller's outgoing stack area, or
//! loaded from a shared address. The probes write every byte of every formal to a shared address of its own, and load
//! every byte of the return value from one. Only the instructions that ptxas uses for such code are supported; the
//! results of others are unknown.

use std::collections::HashMap;

/// The origin of a byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Byte {
    /// Zero.
    Zero,
    /// A byte of a register at entry.
    Entry {
        /// Number of the register.
        reg: u16,
        /// Which of its four bytes.
        byte: u8,
    },
    /// A byte of the stack, by offset from R1 at entry.
    Stack(i64),
    /// A byte loaded from shared memory.
    Shared(i64),
    /// Unknown.
    Unknown,
}

type Word = [Byte; 4];

/// The effects of a function.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Bytes written to shared addresses.
    pub shared: HashMap<i64, Byte>,
    /// Registers at the return.
    pub at_return: HashMap<u16, Word>,
    /// Bytes stored through a pointer that a register held at entry: (register, offset).
    pub behind: HashMap<(u16, i64), Byte>,
    /// First register of the pair that holds the return address.
    pub return_address: Option<u16>,
    /// Unsupported instructions.
    pub unknown: Vec<String>,
}

/// Splits the output of `cuobjdump -sass` into functions and executes each.
pub fn functions(text: &str) -> HashMap<String, Effects> {
    let mut found = HashMap::new();
    let mut current: Option<(String, Machine)> = None;
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix("Function : ") {
            if let Some((name, machine)) = current.take() {
                found.insert(name, machine.finish());
            }
            current = Some((name.to_string(), Machine::default()));
        } else if let (Some((_, machine)), Some(code)) = (&mut current, instruction(line)) {
            machine.step(code);
        }
    }
    if let Some((name, machine)) = current {
        found.insert(name, machine.finish());
    }
    found
}

/// The instruction on a line `/*0010*/  MOV R1, R2 ;  /* 0x... */`.
fn instruction(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (address, rest) = rest.split_once("*/")?;
    let hex = address.len() == 4 && address.bytes().all(|b| b.is_ascii_hexdigit());
    let (code, _) = rest.split_once(';')?;
    hex.then(|| code.trim())
}

#[derive(Default)]
struct Machine {
    regs: HashMap<u16, Word>,
    /// R1 relative to its value at entry.
    stack: i64,
    /// The function's own frame.
    frame: HashMap<i64, Byte>,
    effects: Effects,
    done: bool,
}

enum Address {
    Stack(i64),
    Shared(i64),
    Behind(u16, i64),
}

fn number(text: &str) -> Option<i64> {
    let (minus, digits) = text.strip_prefix('-').map_or((false, text), |d| (true, d));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if minus { -value } else { value })
}

/// `R12.reuse` is 12, `RZ` is 255.
fn register(text: &str) -> Option<u16> {
    let name = text.split('.').next()?;
    if name == "RZ" { Some(255) } else { name.strip_prefix('R')?.parse().ok() }
}

/// Bytes moved by a memory instruction.
fn width(words: &[&str]) -> u16 {
    match () {
        _ if words.iter().any(|w| matches!(*w, "U8" | "S8")) => 1,
        _ if words.iter().any(|w| matches!(*w, "U16" | "S16")) => 2,
        _ if words.contains(&"64") => 8,
        _ if words.contains(&"128") => 16,
        _ => 4,
    }
}

impl Machine {
    fn word(&self, reg: u16) -> Word {
        if reg == 255 {
            return [Byte::Zero; 4];
        }
        let entry = |byte| Byte::Entry { reg, byte };
        self.regs.get(&reg).copied().unwrap_or([entry(0), entry(1), entry(2), entry(3)])
    }

    fn set(&mut self, reg: u16, word: Word) {
        if reg != 255 {
            self.regs.insert(reg, word);
        }
    }

    fn address(&self, text: &str) -> Option<Address> {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let (base, offset) = match inner.split_once('+') {
            Some((base, offset)) => (base, number(offset)?),
            None if inner.starts_with('R') => (inner, 0),
            None => return Some(Address::Shared(number(inner)?)),
        };
        let base = register(base)?;
        match base {
            1 => Some(Address::Stack(self.stack + offset)),
            255 => Some(Address::Shared(offset)),
            _ => match self.word(base)[0] {
                Byte::Entry { reg, byte: 0 } => Some(Address::Behind(reg, offset)),
                Byte::Zero => Some(Address::Shared(offset)),
                _ => None,
            },
        }
    }

    fn step(&mut self, code: &str) {
        if self.done {
            return;
        }
        let (mnemonic, operands) = code.split_once(' ').unwrap_or((code, ""));
        let words: Vec<&str> = mnemonic.split('.').collect();
        let ops: Vec<&str> = operands.split(',').map(str::trim).collect();
        if self.known(&words, &ops).is_none() {
            self.effects.unknown.push(code.to_string());
            if let Some(reg) = ops.first().and_then(|o| register(o)) {
                self.set(reg, [Byte::Unknown; 4]);
            }
        }
    }

    /// Executes an instruction; `None` if it is not supported.
    fn known(&mut self, words: &[&str], ops: &[&str]) -> Option<()> {
        match *words.first()? {
            "YIELD" | "NOP" | "WARPSYNC" | "BSYNC" | "BSSY" | "BAR" => {}
            "RET" => {
                self.effects.at_return = self.regs.clone();
                self.effects.return_address = ops[0].split(' ').next().and_then(register);
                self.done = true;
            }
            "MOV" | "UMOV" => {
                let word = self.source(ops.get(1)?)?;
                self.set(register(ops[0])?, word);
            }
            "IMAD" if words.contains(&"MOV") => {
                let word = self.source(ops.get(3)?)?;
                self.set(register(ops[0])?, word);
            }
            "CS2R" => {
                let first = register(ops[0])?;
                self.set(first, [Byte::Zero; 4]);
                if !words.contains(&"32") {
                    self.set(first + 1, [Byte::Zero; 4]);
                }
            }
            "IADD3" if ops[0] == "R1" && ops.get(1) == Some(&"R1") => self.stack += number(ops.get(2)?)?,
            "PRMT" => {
                let (a, b, selector) = (self.source(ops.get(1)?)?, self.source(ops.get(3)?)?, number(ops.get(2)?)?);
                let pick = |i: u32| match (selector >> (4 * i)) & 15 {
                    s @ 0..4 => a[s as usize],
                    s @ 4..8 => b[s as usize - 4],
                    _ => Byte::Unknown,
                };
                let word = [pick(0), pick(1), pick(2), pick(3)];
                self.set(register(ops[0])?, word);
            }
            "LDS" | "LDL" => {
                let (first, width) = (register(ops[0])?, width(words));
                let address = self.address(ops.get(1)?)?;
                let byte = |m: &Machine, i: u16| match address {
                    Address::Stack(at) => {
                        let at = at + i64::from(i);
                        m.frame.get(&at).copied().unwrap_or(Byte::Stack(at))
                    }
                    Address::Shared(at) => Byte::Shared(at + i64::from(i)),
                    Address::Behind(..) => Byte::Unknown,
                };
                for w in 0..width.div_ceil(4) {
                    let one = |i: u16| if 4 * w + i < width { byte(self, 4 * w + i) } else { Byte::Zero };
                    let word = [one(0), one(1), one(2), one(3)];
                    self.set(first + w, word);
                }
            }
            "STS" | "STL" => {
                let (from, width) = (register(ops.get(1)?)?, width(words));
                let address = self.address(ops[0])?;
                for i in 0..width {
                    let word = self.word(if from == 255 { 255 } else { from + i / 4 });
                    let (byte, i) = (word[usize::from(i % 4)], i64::from(i));
                    match address {
                        Address::Stack(at) => drop(self.frame.insert(at + i, byte)),
                        Address::Shared(at) => drop(self.effects.shared.insert(at + i, byte)),
                        Address::Behind(reg, at) => drop(self.effects.behind.insert((reg, at + i), byte)),
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn source(&self, text: &str) -> Option<Word> {
        match register(text) {
            Some(reg) => Some(self.word(reg)),
            None => number(text).map(|n| if n == 0 { [Byte::Zero; 4] } else { [Byte::Unknown; 4] }),
        }
    }

    fn finish(self) -> Effects {
        self.effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_followed_through_permutations_and_the_stack() {
        let text = "
		Function : f
        /*0000*/                   IADD3 R1, R1, -0x8, RZ ;         /* 0x0 */
        /*0010*/                   PRMT R3, R5.reuse, 0x7771, RZ ;  /* 0x0 */
        /*0020*/                   LDL.U8 R6, [R1+0x9] ;
        /*0030*/                   STS.U8 [0x2], R3 ;
        /*0040*/                   STS.U8 [RZ], R6 ;
        /*0050*/                   LDS R4, [0x40] ;
        /*0060*/                   STL.U8 [R8+0x3], R4 ;
        /*0070*/                   RET.ABS.NODEC R20 0x0 ;
        /*0080*/                   MOV R4, RZ ;";
        let f = &functions(text)["f"];
        assert_eq!(f.shared[&2], Byte::Entry { reg: 5, byte: 1 });
        assert_eq!(f.shared[&0], Byte::Stack(1));
        assert_eq!(f.at_return[&4][2], Byte::Shared(0x42));
        assert_eq!(f.behind[&(8, 3)], Byte::Shared(0x40));
        assert_eq!(f.return_address, Some(20));
        assert!(f.unknown.is_empty());
    }
}
