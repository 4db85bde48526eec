//! Virtual registers for the registers of a body: one per scalar, one per element of a vector, assigned at the first occurrence.

use crate::{Func, VReg};
use margay_check::{Body, RegId};
use margay_syntax::Tree;
use std::collections::HashMap;

/// The maximum number of declared registers for which a table is used: a body may declare a billion and name three.
const TABLE: usize = 1 << 22;

/// From registers of the body to virtual ones.
pub(super) struct Registers {
    /// By [`RegId`]: the first virtual register plus 1, or 0.
    table: Vec<u32>,
    /// The same where a table would be too large.
    map: HashMap<RegId, u32>,
    vectors: bool,
    name: String,
}

impl Registers {
    pub fn new(body: &Body) -> Registers {
        let count = body.regs.iter().map(|d| d.first.0 as usize + d.count as usize).max().unwrap_or(0);
        Registers {
            table: if count <= TABLE { vec![0; count] } else { Vec::new() },
            map: HashMap::new(),
            vectors: body.regs.iter().any(|d| d.vector > 1),
            name: String::new(),
        }
    }

    /// The first virtual register of a declared one, and how many it has.
    pub fn get(&mut self, reg: RegId, body: &Body, tree: &Tree, func: &mut Func) -> (VReg, u32) {
        let known = match self.table.get(reg.0 as usize) {
            Some(v) => *v,
            None => self.map.get(&reg).copied().unwrap_or(0),
        };
        if known != 0 {
            let count = if self.vectors { u32::from(body.decl(reg).vector.max(1)) } else { 1 };
            return (VReg(known - 1), count);
        }
        let decl = body.decl(reg);
        let (first, vector) = (func.regs.len() as u32, decl.vector.max(1));
        for i in 0..vector {
            self.name.clear();
            self.name.push_str(tree.str(decl.name));
            if decl.numbered {
                push_number(&mut self.name, reg.0 - decl.first.0);
            }
            if vector > 1 {
                self.name.push('.');
                self.name.push(element_name(i));
            }
            func.regs.push(decl.ty);
            func.reg_names.push(self.name.as_str().into());
        }
        match self.table.get_mut(reg.0 as usize) {
            Some(slot) => *slot = first + 1,
            None => drop(self.map.insert(reg, first + 1)),
        }
        (VReg(first), u32::from(vector))
    }
}

/// Appends a number; large bodies have a million registers to name.
fn push_number(text: &mut String, number: u32) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push((b'0' + (number % 10) as u8) as char);
}

/// `x`, `y`, `z`, `w`.
fn element_name(i: u8) -> char {
    match i {
        0 => 'x',
        1 => 'y',
        2 => 'z',
        _ => 'w',
    }
}
