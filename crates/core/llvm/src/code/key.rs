//! The cache key of a kernel: a hash of everything that its code depends on, so that equal keys mean equal code.
//!
//! Hashed are the instructions of all functions that the kernel may call, their locations under the ABI, the
//! properties of variables, and where the shared ones lie; names and source positions are not, so a module that was only moved or renamed still hits.

use crate::{code::target, emit::Options};
use margay_exec::SharedLayout;
use margay_ir::{Func, FuncId, Global, Ir, Placed, pass};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A 128-bit hash of a kernel, its callees and the way it is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheKey(pub [u64; 2]);

impl CacheKey {
    /// The key of a kernel under `options`, for this version of the engine on this host.
    pub fn new(ir: &Ir<Placed>, kernel: FuncId, options: &Options) -> CacheKey {
        let mut h = DoubleHash([1, 2].map(|salt: u64| {
            let mut h = DefaultHasher::new();
            salt.hash(&mut h);
            h
        }));
        (env!("CARGO_PKG_VERSION"), env!("MARGAY_ENGINE"), target::host(), target::library()).hash(&mut h);
        options.hash(&mut h);
        // Destructured without `..`, so that adding a field requires a decision whether to hash it.
        let Ir {
            funcs,
            globals,
            address_taken: _,
            func_names: _,
            global_names: _,
            target,
            version,
            address_size,
            thread_block,
            stage,
        } = ir;
        (funcs.len(), target, version, address_size, thread_block, stage.abi).hash(&mut h);
        for global in globals {
            let Global { name: _, space, reference, size, align, init: _, visible: _, external, managed } = &**global;
            (space, reference, size, align, external, managed).hash(&mut h);
        }
        let reached = pass::reached(ir, kernel);
        SharedLayout::new(ir, &reached).hash(&mut h);
        for f in reached.funcs {
            f.hash(&mut h);
            function(ir.func(f), &mut h);
            // A call of an undefined function fails with its name.
            ir.func(f).blocks.is_empty().then_some(&ir.func(f).name).hash(&mut h);
            stage.funcs.get(f.0 as usize).hash(&mut h);
        }
        CacheKey(h.0.map(|h| h.finish()))
    }
}

fn function(func: &Func, h: &mut DoubleHash) {
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
        maxnreg: _,
    } = func;
    (builtin, kind, sig, params, rets, regs, frame).hash(h);
    (blocks, insts, operands, variants, calls).hash(h);
    (noreturn, reqntid, maxntid, reqnctapercluster).hash(h);
}

/// Two hashes of the same data with different salts.
struct DoubleHash([DefaultHasher; 2]);

impl Hasher for DoubleHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0.iter_mut().for_each(|h| h.write(bytes));
    }

    fn finish(&self) -> u64 {
        self.0[0].finish()
    }
}
