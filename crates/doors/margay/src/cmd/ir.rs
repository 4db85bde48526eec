//! `margay ir`: prints a kernel's intermediate representation, LLVM IR or assembly.

use super::{Result, device, failure, kernel_name, load};
use crate::{
    args::{IrArgs, Stage},
    exit::{Failure, Outcome},
    report::{Style, emit},
};
use margay_ir::{Ir, Placed};
use margay_runtime::LoadOptions;

/// Runs the command.
pub fn run(args: &IrArgs, style: Style) -> Result {
    let context = device(Some(1))?.context();
    let options = LoadOptions { abi: Some(args.abi.clone()), ..LoadOptions::default() };
    let module = load(&context, &args.files, &options, style)?;
    let kernel = args.kernel.as_deref();
    let text = match args.stage {
        Stage::Lowered => module.lower(kernel).map(|ir| margay_ir::print(&ir)),
        Stage::Placed => module.place(kernel).map(|ir| margay_ir::print(&ir)),
        Stage::Llvm | Stage::Optimized | Stage::Asm => {
            let kernel = kernel_name(&module, kernel)?;
            let ir = module.place(Some(kernel)).map_err(|e| failure(e, style))?;
            Ok(host_code(&ir, kernel, args)?)
        }
    };
    emit(&text.map_err(|e| failure(e, style))?);
    Ok(Outcome::Clean)
}

#[cfg(feature = "simd")]
fn host_code(ir: &Ir<Placed>, kernel: &str, args: &IrArgs) -> std::result::Result<String, Failure> {
    use crate::args::CodeTier;
    use margay_exec::Effort;
    use margay_llvm::{Form, SimdEngine};
    let effort = match args.tier {
        CodeTier::Light => Effort::Light,
        CodeTier::Full => Effort::Full,
    };
    let form = match args.stage {
        Stage::Asm => Form::Assembly,
        Stage::Optimized => Form::Optimized,
        _ => Form::Emitted,
    };
    let Some(id) = ir.func_names.get(kernel).copied() else {
        return Err(Failure::usage(format!("no kernel `{kernel}`")));
    };
    let func = ir.func(id);
    let block = args.block.or(func.reqntid).unwrap_or([128, 1, 1]);
    SimdEngine.show(ir, id, block, effort, form).map_err(Failure::unsupported)
}

#[cfg(not(feature = "simd"))]
fn host_code(_: &Ir<Placed>, _: &str, _: &IrArgs) -> std::result::Result<String, Failure> {
    Err(Failure::usage("this margay was built without the SIMD engine"))
}
