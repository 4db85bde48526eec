//! Call and jump targets and the stack: which functions a call may enter, and the texts of the faults, for both engines.

use crate::{Access, AccessKind, FaultKind, Image};
use margay_ir::{CallSite, FrameRole, Func, FuncId, explicit};
use std::ops::Range;

impl Image {
    /// The function at the target address of an indirect call; a fault if there is none or the call site does not admit
    /// it.
    pub fn target(&self, site: &CallSite, address: u64) -> Result<FuncId, FaultKind> {
        let Some(id) = self.function_at(address) else {
            return Err(FaultKind::BadTarget(format!("an indirect call to {address:#x}, which is not a function")));
        };
        let func = self.ir.func(id);
        if let Err(why) = explicit::admits(site, id, func) {
            return Err(FaultKind::BadTarget(format!("an indirect call to `{}`, {why}", func.name)));
        }
        match func.builtin {
            None if func.blocks.is_empty() => Err(FaultKind::Undefined(func.name.to_string())),
            _ => Ok(id),
        }
    }

    /// The fault of a call whose callee's frame does not fit into the thread's stack.
    pub fn stack_full(&self, callee: FuncId) -> FaultKind {
        let (func, places) = (self.ir.func(callee), &self.ir.stage.funcs[callee.0 as usize]);
        FaultKind::Stack(format!("the call to `{}` needs {} bytes of stack", func.name, places.frame_size))
    }
}

/// The fault of a `brx.idx` whose index exceeds its table of `targets` targets.
pub fn jump_beyond(index: u32, targets: usize) -> FaultKind {
    FaultKind::BadTarget(format!("`brx.idx` with index {index}; the table has {targets} targets"))
}

/// The fault of an `alloca` of `size` bytes at address `at` that does not fit into the thread's local window, and its
/// note.
pub fn alloca_beyond(size: u64, at: u64, local_size: u32) -> (FaultKind, String) {
    let what = format!("`alloca` of {size} bytes exceeds the thread's stack");
    (FaultKind::Stack(what), format!("the stack ends at {local_size:#x}; {at:#x} are in use"))
}

/// What a thread does that accesses `size` bytes at an offset in its local window, outside of what the variables of functions occupy.
pub fn local_beyond(func: &Func, access: AccessKind, (offset, size): (u64, u32), occupied: Range<u64>) -> String {
    let verb = if access.writes() { "writes" } else { "reads" };
    let arrays: Vec<_> = func.frame.iter().filter(|v| v.role == FrameRole::Local).collect();
    let what = match &arrays[..] {
        // nvcc merges all arrays of a function into one variable.
        [one] if one.name.starts_with("__local_depot") => {
            format!("the function's local variables ({} bytes)", one.size)
        }
        [one] => format!("`{}` ({} bytes)", one.name, one.size),
        _ => "the function's local variables".to_owned(),
    };
    let named = matches!(&arrays[..], [one] if !one.name.starts_with("__local_depot"));
    let edge = |name: &str| if named { format!("the {name} of {what}") } else { what.clone() };
    match occupied.start.checked_sub(offset).filter(|before| *before > 0) {
        Some(before) => format!("{verb} {size} bytes that begin {before} bytes before {}", edge("start")),
        None => {
            let past = (offset + u64::from(size)).saturating_sub(occupied.end);
            format!("{verb} {size} bytes that end {past} bytes past {}", edge("end"))
        }
    }
}

/// The fault of a `stackrestore` of a value outside `bottom..=top`, the end of the frame and of the stack; and its
/// note.
pub fn restore_beyond(value: u64, bottom: u64, top: u64) -> (FaultKind, String) {
    let what = format!("`stackrestore` of {value:#x}, which no `stacksave` of this function returned");
    (FaultKind::Stack(what), format!("the value must be between {bottom:#x} and {top:#x}"))
}

/// The fault of an access by name that leaves its `.param` variable of `bytes` bytes, and its note. If the variable has no size of
/// its own, these are the bytes that the call passed.
pub fn parameter_beyond(access: Access, bytes: u32, passed: bool) -> (FaultKind, String) {
    let note = match passed {
        true => format!("the call passed {bytes} bytes through the unsized parameter"),
        false => format!("the variable has {bytes} bytes"),
    };
    (FaultKind::OutOfBounds(access), note)
}

/// The note that goes with [`Image::stack_full`]: size of the thread's local window, and number of calls in progress.
pub fn stack_note(local_size: u32, depth: u32) -> String {
    format!("the stack of {local_size} bytes is full after {depth} nested calls")
}
