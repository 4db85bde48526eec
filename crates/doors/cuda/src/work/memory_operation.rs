//! Stream memory operations (CUDA Driver API, "Stream Memory Operations"): streams that wait for words in memory, and write
//! them. Other streams, other processes or the program itself may write what a stream waits for.

use crate::{
    api::{api, say},
    code::{Code, Outcome},
    context::{Context, PATIENCE},
    handle::Handle,
    memory::DevicePtr,
    raw::In,
    work::{Work, stream::StreamHandle},
};
use bytemuck::AnyBitPattern;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// `CUstreamBatchMemOpParams`: one operation. Its words are read as the operation's type says.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Operation([u64; 6]);

/// `CUstreamBatchMemOpType`
mod kind {
    pub const WAIT_32: u32 = 1;
    pub const WRITE_32: u32 = 2;
    pub const FLUSH: u32 = 3;
    pub const WAIT_64: u32 = 4;
    pub const WRITE_64: u32 = 5;
    pub const BARRIER: u32 = 6;
    pub const REDUCE: u32 = 8;
}

/// `CUstreamAtomicReductionOpType` and `CUstreamAtomicReductionDataType`
mod reduction {
    pub const ADD: u32 = 0;
    pub const AND: u32 = 5;
    pub const OR: u32 = 6;
    pub const UNSIGNED_32: u32 = 0b1110;
    pub const UNSIGNED_64: u32 = 0b10110;
}

/// `CU_STREAM_WAIT_VALUE_FLUSH`: memory is never remote here, so there is nothing to flush.
const FLUSH: u32 = 1 << 30;

/// The action of an operation.
enum OperationKind {
    Wait {
        address: DevicePtr,
        wanted: u64,
        compare: u32,
        bits: u32,
    },
    Write {
        address: DevicePtr,
        value: u64,
        bits: u32,
    },
    Reduce {
        address: DevicePtr,
        value: u64,
        bits: u32,
        with: u32,
    },
    /// Barriers and flushes: the operations of a stream are ordered anyway.
    Nothing,
}

impl Operation {
    fn wait(address: DevicePtr, value: u64, flags: u32, bits: u32) -> Operation {
        let kind = if bits == 32 { kind::WAIT_32 } else { kind::WAIT_64 };
        Operation([kind.into(), address, value, flags.into(), 0, 0])
    }

    fn write(address: DevicePtr, value: u64, bits: u32) -> Operation {
        let kind = if bits == 32 { kind::WRITE_32 } else { kind::WRITE_64 };
        Operation([kind.into(), address, value, 0, 0, 0])
    }

    fn meaning(&self) -> Result<OperationKind, Code> {
        let Operation([first, address, value, flags, ..]) = *self;
        let (kind, narrow) = (first as u32, u64::from(value as u32));
        Ok(match kind {
            kind::WAIT_32 | kind::WAIT_64 => {
                let flags = flags as u32;
                if flags & !(3 | FLUSH) != 0 {
                    return Err(Code::INVALID_VALUE);
                }
                let (wanted, bits) = if kind == kind::WAIT_32 { (narrow, 32) } else { (value, 64) };
                OperationKind::Wait { address, wanted, compare: flags & 3, bits }
            }
            kind::WRITE_32 => OperationKind::Write { address, value: narrow, bits: 32 },
            kind::WRITE_64 => OperationKind::Write { address, value, bits: 64 },
            kind::FLUSH | kind::BARRIER => OperationKind::Nothing,
            kind::REDUCE => {
                // Flags and operation, type of data, address and operand, each pair of words of 32 bits one of 64.
                let Operation([_, pair, address, value, ..]) = *self;
                let bits = match (pair >> 32) as u32 {
                    reduction::UNSIGNED_32 => 32,
                    reduction::UNSIGNED_64 => 64,
                    _ => return Err(Code::INVALID_VALUE),
                };
                match pair as u32 {
                    with @ (reduction::ADD | reduction::AND | reduction::OR) => {
                        OperationKind::Reduce { address, value, bits, with }
                    }
                    _ => return Err(Code::INVALID_VALUE),
                }
            }
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn check(&self, context: &Context) -> Outcome {
        let (address, bits) = match self.meaning()? {
            OperationKind::Wait { address, bits, .. }
            | OperationKind::Write { address, bits, .. }
            | OperationKind::Reduce { address, bits, .. } => (address, bits),
            OperationKind::Nothing => return Ok(()),
        };
        let found = context.device_memory().find(address).ok_or(Code::INVALID_VALUE)?;
        let is_there = match bits {
            32 => found.block.cell::<AtomicU32>(address).is_some(),
            _ => found.block.cell::<AtomicU64>(address).is_some(),
        };
        if is_there { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    fn run(&self, context: &Context) -> Outcome {
        match self.meaning()? {
            OperationKind::Wait { address, wanted, compare, bits } => wait(context, address, wanted, compare, bits),
            OperationKind::Write { address, value, bits } => update(context, address, bits, |_| value),
            OperationKind::Reduce { address, value, bits, with } => update(context, address, bits, |old| match with {
                reduction::AND => old & value,
                reduction::OR => old | value,
                _ => old.wrapping_add(value),
            }),
            OperationKind::Nothing => Ok(()),
        }
    }
}

/// Whether there is memory for all of the operations.
pub fn check(operations: &[Operation], context: &Context) -> Outcome {
    operations.iter().try_for_each(|o| o.check(context))
}

/// Performs operations one after the other.
pub fn run(operations: &[Operation], context: &Context) -> Outcome {
    operations.iter().try_for_each(|o| o.run(context))
}

/// Replaces a word of memory by a function of it, atomically.
fn update(context: &Context, address: DevicePtr, bits: u32, f: impl Fn(u64) -> u64) -> Outcome {
    let memory = context.device_memory();
    memory.writes().mark(address, u64::from(bits / 8));
    let found = memory.find(address).ok_or(Code::INVALID_VALUE)?;
    let done = match bits {
        32 => found.block.cell::<AtomicU32>(address).map(|word| {
            let _ = word.fetch_update(SeqCst, SeqCst, |old| Some(f(old.into()) as u32)); // never fails
        }),
        _ => found.block.cell::<AtomicU64>(address).map(|word| {
            let _ = word.fetch_update(SeqCst, SeqCst, |old| Some(f(old))); // never fails
        }),
    };
    done.ok_or(Code::INVALID_VALUE)
}

fn word(context: &Context, address: DevicePtr, bits: u32) -> Result<u64, Code> {
    let found = context.device_memory().find(address).ok_or(Code::INVALID_VALUE)?;
    let word = match bits {
        32 => found.block.cell::<AtomicU32>(address).map(|word| word.load(SeqCst).into()),
        _ => found.block.cell::<AtomicU64>(address).map(|word| word.load(SeqCst)),
    };
    word.ok_or(Code::INVALID_VALUE)
}

/// The comparison of a wait (`CU_STREAM_WAIT_VALUE_*`).
fn holds(is: u64, wanted: u64, compare: u32, bits: u32) -> bool {
    match compare {
        0 => (is.wrapping_sub(wanted) << (64 - bits)) as i64 >= 0,
        1 => is == wanted,
        2 => is & wanted != 0,
        _ => !(is | wanted) << (64 - bits) != 0,
    }
}

/// Waits for a value in memory. Nobody may ever write it; that is said, since the program may be waiting for this stream.
fn wait(context: &Context, address: DevicePtr, wanted: u64, compare: u32, bits: u32) -> Outcome {
    let (start, mut reported) = (Instant::now(), false);
    loop {
        let is = word(context, address, bits)?;
        if holds(is, wanted, compare, bits) || context.failure().is_some() {
            return Ok(());
        }
        let time = start.elapsed();
        if time > PATIENCE && !std::mem::replace(&mut reported, true) {
            let condition = match compare {
                0 => format!("at least {wanted:#x}"),
                1 => format!("{wanted:#x}"),
                2 => format!("one with a bit of {wanted:#x}"),
                _ => format!("one that lacks a bit outside {wanted:#x}"),
            };
            say(&format!(
                "margay: a stream has waited {} s for a value in memory (`cuStreamWaitValue{bits}`): the word at {address:#x} \
                 is {is:#x}, expected {condition}; if nothing writes it, the stream waits forever",
                time.as_secs(),
            ));
        }
        std::thread::sleep(Duration::from_micros(if time > Duration::from_secs(1) { 1000 } else { 50 }));
    }
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Batch {
    context: Handle<Context>,
    count: u32,
    pad: u32,
    operations: In<Operation>,
    flags: u64,
}

impl Batch {
    /// The work of such a node.
    pub fn work(&self) -> Result<Work, Code> {
        let operations: Arc<[Operation]> = self.operations.list(self.count as usize)?.into();
        for operation in &*operations {
            operation.meaning()?;
        }
        Ok(Work::Memory(operations))
    }

    /// The parameters of a node. They point into its work, and are valid until that changes.
    pub fn of(work: &Work) -> Result<Batch, Code> {
        let Work::Memory(operations) = work else { return Err(Code::INVALID_VALUE) };
        let (count, operations) = (operations.len() as u32, In::list_of(operations));
        Ok(Batch { context: crate::driver::current_handle(), count, pad: 0, operations, flags: 0 })
    }
}

fn submit(stream: StreamHandle, operations: &[Operation]) -> Outcome {
    for operation in operations {
        operation.meaning()?;
    }
    stream.submit(Work::Memory(operations.into()))
}

fn submit_wait(stream: StreamHandle, address: DevicePtr, value: u64, flags: u32, bits: u32) -> Outcome {
    submit(stream, &[Operation::wait(address, value, flags, bits)])
}

fn submit_write(stream: StreamHandle, address: DevicePtr, value: u64, bits: u32) -> Outcome {
    submit(stream, &[Operation::write(address, value, bits)])
}

fn submit_batch(stream: StreamHandle, count: u32, operations: In<Operation>, flags: u32) -> Outcome {
    const LIMIT: u32 = 256; // CUDA Driver API, `cuStreamBatchMemOp`
    if flags != 0 || count > LIMIT {
        return Err(Code::INVALID_VALUE);
    }
    submit(stream, &operations.list(count as usize)?)
}

api! {
    8000 + ptsz fn cuStreamWaitValue32(stream: StreamHandle, address: DevicePtr, value: u32, flags: u32) {
        submit_wait(stream, address, value.into(), flags, 32)
    }
    9000 + ptsz fn cuStreamWaitValue64(stream: StreamHandle, address: DevicePtr, value: u64, flags: u32) {
        submit_wait(stream, address, value, flags, 64)
    }
    8000 + ptsz fn cuStreamWriteValue32(stream: StreamHandle, address: DevicePtr, value: u32, _flags: u32) {
        submit_write(stream, address, value.into(), 32)
    }
    9000 + ptsz fn cuStreamWriteValue64(stream: StreamHandle, address: DevicePtr, value: u64, _flags: u32) {
        submit_write(stream, address, value, 64)
    }
    8000 + ptsz fn cuStreamBatchMemOp(stream: StreamHandle, count: u32, operations: In<Operation>, flags: u32) {
        submit_batch(stream, count, operations, flags)
    }
    11070 + ptsz fn cuStreamWaitValue32_v2(stream: StreamHandle, address: DevicePtr, value: u32, flags: u32) {
        submit_wait(stream, address, value.into(), flags, 32)
    }
    11070 + ptsz fn cuStreamWaitValue64_v2(stream: StreamHandle, address: DevicePtr, value: u64, flags: u32) {
        submit_wait(stream, address, value, flags, 64)
    }
    11070 + ptsz fn cuStreamWriteValue32_v2(stream: StreamHandle, address: DevicePtr, value: u32, _flags: u32) {
        submit_write(stream, address, value.into(), 32)
    }
    11070 + ptsz fn cuStreamWriteValue64_v2(stream: StreamHandle, address: DevicePtr, value: u64, _flags: u32) {
        submit_write(stream, address, value, 64)
    }
    11070 + ptsz fn cuStreamBatchMemOp_v2(stream: StreamHandle, count: u32, operations: In<Operation>, flags: u32) {
        submit_batch(stream, count, operations, flags)
    }
}
