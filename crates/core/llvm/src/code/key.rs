//! What a kernel's code follows from, as one number: two kernels with the same number have the same code.
//!
//! The instructions of all that the kernel reaches, their places under the ABI, and what is known of variables go in; names and
//! places in the source stay out, so a module that was only moved or renamed finds its code again.

use crate::{code::target, emit::Options};
use margay_ir::{Func, FuncId, Global, Ir, Placed, pass::reachable};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A number of 128 bits for a kernel, what it reaches, and how it is to be compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheKey(pub [u64; 2]);

impl CacheKey {
    /// Of a kernel under options, for this version of the engine on this host.
    pub fn new(ir: &Ir<Placed>, kernel: FuncId, options: &Options) -> CacheKey {
        let mut h = Twice([1, 2].map(|salt: u64| {
            let mut h = DefaultHasher::new();
            salt.hash(&mut h);
            h
        }));
        (env!("CARGO_PKG_VERSION"), env!("MARGAY_ENGINE"), target::host(), target::library()).hash(&mut h);
        options.hash(&mut h);
        // The whole of it: a new field must be looked at.
        let Ir { funcs, globals, func_names: _, global_names: _, target, version, address_size, thread_block, stage } =
            ir;
        (funcs.len(), target, version, address_size, thread_block, stage.abi).hash(&mut h);
        for global in globals {
            let Global { name: _, space, reference, size, align, init: _, visible: _, external, managed } = &**global;
            (space, reference, size, align, external, managed).hash(&mut h);
        }
        for f in reachable(ir, kernel) {
            f.hash(&mut h);
            function(ir.func(f), &mut h);
            // A call of a function that is not there fails with its name.
            ir.func(f).blocks.is_empty().then_some(&ir.func(f).name).hash(&mut h);
            stage.funcs.get(f.0 as usize).hash(&mut h);
        }
        CacheKey(h.0.map(|h| h.finish()))
    }
}

fn function(func: &Func, h: &mut Twice) {
    let Func {
        name: _,
        builtin,
        kind,
        sig,
        param_names: _,
        ret_names: _,
        params,
        rets,
        regs,
        reg_names: _,
        frame,
        blocks,
        insts,
        operands,
        types: _,
        variants,
        calls,
        places: _,
        source: _,
        noreturn,
        reqntid,
        maxntid,
        reqnctapercluster,
    } = func;
    (builtin, kind, sig, params, rets, regs, frame).hash(h);
    (blocks, insts, operands, variants, calls).hash(h);
    (noreturn, reqntid, maxntid, reqnctapercluster).hash(h);
}

/// Two hashes of the same.
struct Twice([DefaultHasher; 2]);

impl Hasher for Twice {
    fn write(&mut self, bytes: &[u8]) {
        self.0.iter_mut().for_each(|h| h.write(bytes));
    }

    fn finish(&self) -> u64 {
        self.0[0].finish()
    }
}
