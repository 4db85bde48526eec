//! The rows, one file per section of the manual's chapter 9.7, and the [`Opcode`]s that name them.

mod class;
mod control;
mod data;
mod integer;

pub use class::*;

use crate::Op;

macro_rules! ops {
    ($($variant:ident = $path:path;)*) => {
        /// The word before the first dot of an instruction.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        #[allow(missing_docs)]
        pub enum Opcode { $($variant,)* }

        static ROWS: &[&Op] = &[$(&$path,)*];

        impl Opcode {
            /// Every opcode, in the order of the table.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];
        }
    };
}

ops! {
    Add = integer::ADD; Ld = data::LD; St = data::ST; Mov = data::MOV; Bra = control::BRA; Call = control::CALL; Ret = control::RET;
    Exit = control::EXIT;
}

impl Opcode {
    /// The opcode's rows.
    pub fn row(self) -> &'static Op {
        ROWS[self as usize]
    }

    /// The opcode of that name.
    pub fn from_name(name: &str) -> Option<Opcode> {
        use std::{collections::HashMap, sync::LazyLock};
        static BY_NAME: LazyLock<HashMap<&'static str, Opcode>> =
            LazyLock::new(|| Opcode::ALL.iter().map(|op| (op.row().name, *op)).collect());
        BY_NAME.get(name).copied()
    }
}
