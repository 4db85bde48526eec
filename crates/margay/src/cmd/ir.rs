//! `margay ir`

use super::{Result, device, failure, load};
use crate::{
    args::{IrArgs, Stage},
    exit::Outcome,
    report::{Style, emit},
};
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
    };
    emit(&text.map_err(|e| failure(e, style))?);
    Ok(Outcome::Clean)
}
