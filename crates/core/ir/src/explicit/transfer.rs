//! The values of a call: their homes on each side, and the pieces that carry them.

use super::{Carriers, Target};
use crate::{
    Arg, FormalHome, FrameId, Func,
    abi::{Buffer, FuncPlaces, Piece, Place, Plan, Signature, Value},
};
use std::sync::Arc;

/// Where a value lives on one side of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Home {
    /// In registers, one per element (or constants, on the caller's side); the number of bytes of each.
    Elements(u32),
    /// In a variable of the frame, from its beginning.
    Variable(FrameId),
    /// Nowhere: nothing moves on this side.
    Nowhere,
}

/// One value on its way between its home on one side and its places.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transfer {
    /// Bytes in all.
    pub bytes: u32,
    /// Bytes that move at once in memory: the element of a scalar or vector, the words of an array.
    pub unit: u32,
    /// The same in all lanes that call.
    pub uniform: bool,
    /// On this side.
    pub home: Home,
    /// Between the sides. None for an array without size, which does not move: see [`Passed`].
    pub pieces: Vec<Piece>,
}

/// The argument for a formal without size: a copy in the caller's outgoing area, in the thread's local window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Passed {
    /// The variable that is copied there; none if the argument is left out.
    pub var: Option<FrameId>,
    /// Its size.
    pub bytes: u32,
    /// Offset in the outgoing area.
    pub offset: u32,
}

/// The formal without size as its function sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incoming {
    /// Its number among the formals.
    pub formal: u32,
    /// Where the array starts in the caller's outgoing area.
    pub offset: u32,
}

/// A function's own side of its calls.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Interface {
    /// One transfer for each input formal.
    pub args: Vec<Transfer>,
    /// One transfer for each return value.
    pub rets: Vec<Transfer>,
    /// A formal without size.
    pub incoming: Option<Incoming>,
    /// The registers and areas that carry the values.
    pub carriers: Carriers,
}

/// A call site.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sequence {
    /// The callee.
    pub target: Target,
    /// One transfer to the callee for each input formal.
    pub args: Vec<Transfer>,
    /// One transfer back for each return value.
    pub rets: Vec<Transfer>,
    /// The argument for a formal without size, if the callee has one.
    pub passed: Option<Passed>,
    /// Space in the frame for values passed by pointer.
    pub buffers: Vec<Buffer>,
    /// The registers and areas that carry the values.
    pub carriers: Carriers,
}

/// Where an unsized array starts in the outgoing area.
fn start(pieces: &[Piece]) -> u32 {
    match pieces.first().map(|p| p.at) {
        Some(Place::Stack { offset } | Place::Space { offset }) => offset,
        Some(Place::Reg(_) | Place::Behind(_)) | None => 0,
    }
}

fn transfer(value: &Value, home: Home, pieces: &[Piece]) -> Transfer {
    let element = value.ty.bytes().max(1);
    let pieces = if value.is_unsized || value.size == 0 { Vec::new() } else { pieces.to_vec() };
    Transfer {
        bytes: value.size,
        unit: if value.array { 4 } else { element },
        uniform: !value.varying,
        home: if value.is_unsized { Home::Nowhere } else { home },
        pieces,
    }
}

fn elements(value: &Value) -> Home {
    Home::Elements(value.ty.bytes().max(1))
}

/// A function's own side of its calls under a plan.
fn interface(func: &Func, sig: &Signature, plan: &Plan) -> Interface {
    let all = |values: &[Value], homes: &[FormalHome], pieces: &[Vec<Piece>]| -> Vec<Transfer> {
        let one = |((value, home), pieces): ((&Value, &FormalHome), &Vec<Piece>)| {
            let home = match home {
                FormalHome::Regs(_) => elements(value),
                FormalHome::Frame(id) => Home::Variable(*id),
                FormalHome::Kernel(_) => Home::Nowhere,
            };
            transfer(value, home, pieces)
        };
        values.iter().zip(homes).zip(pieces).map(one).collect()
    };
    let formal = sig.params.iter().position(|v| v.is_unsized);
    Interface {
        args: all(&sig.params, &func.params, &plan.args),
        rets: all(&sig.rets, &func.rets, &plan.rets),
        incoming: formal.map(|f| Incoming { formal: f as u32, offset: start(&plan.args[f]) }),
        carriers: Carriers::new(sig, plan),
    }
}

/// A call site under a plan.
fn sequence(func: &Func, call: usize, sig: &Signature, plan: &Plan, target: Target, buffers: Vec<Buffer>) -> Sequence {
    let site = &func.calls[call];
    let all = |values: &[Value], args: &[Arg], pieces: &[Vec<Piece>]| -> Vec<Transfer> {
        let one = |((value, arg), pieces): ((&Value, &Arg), &Vec<Piece>)| {
            let home = match arg {
                Arg::Values(_) => elements(value),
                Arg::Frame(id) => Home::Variable(*id),
                Arg::Omitted => Home::Nowhere,
            };
            transfer(value, home, pieces)
        };
        values.iter().zip(args).zip(pieces).map(one).collect()
    };
    let passed = sig.params.iter().position(|v| v.is_unsized).map(|f| {
        let var = match site.args.get(f) {
            Some(Arg::Frame(id)) => Some(*id),
            Some(Arg::Values(_) | Arg::Omitted) | None => None,
        };
        let bytes = var.map_or(0, |id| func.frame[id.0 as usize].size);
        Passed { var, bytes, offset: start(&plan.args[f]) }
    });
    Sequence {
        target,
        args: all(&sig.params, &site.args, &plan.args),
        rets: all(&sig.rets, &site.rets, &plan.rets),
        passed,
        buffers,
        carriers: Carriers::new(sig, plan),
    }
}

/// Makes the calls of a placed function explicit: its own side, and its call sites with their signatures, targets and buffers.
pub(crate) fn make(
    func: &Func,
    sig: &Signature,
    places: &mut FuncPlaces,
    sites: impl Iterator<Item = (Arc<Signature>, Target, Vec<Buffer>)>,
) {
    if func.kind == margay_check::FuncKind::Device {
        places.interface = interface(func, sig, &places.plan);
    }
    let one = |(i, (sig, target, buffers)): (usize, (Arc<Signature>, Target, Vec<Buffer>))| {
        Arc::new(sequence(func, i, &sig, &places.calls[i], target, buffers))
    };
    places.sequences = sites.enumerate().map(one).collect();
}
