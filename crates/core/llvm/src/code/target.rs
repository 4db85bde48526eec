//! The host as a target: its CPU, its features, and how much the optimiser is asked to do.

use crate::code::load;
use inkwell::{
    OptimizationLevel,
    module::Module,
    passes::PassBuilderOptions,
    targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine},
};
use std::sync::{LazyLock, Once};

/// How hard to optimise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effort {
    /// For the first launch: cheap scalar passes only.
    Light,
    /// For hot kernels.
    Full,
}

/// CPU name and features of the host, as the cache key needs them.
pub fn host() -> &'static (String, String) {
    static HOST: LazyLock<(String, String)> = LazyLock::new(|| {
        (TargetMachine::get_host_cpu_name().to_string(), TargetMachine::get_host_cpu_features().to_string())
    });
    &HOST
}

/// The version of LLVM, as the cache key needs it.
pub fn version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}

/// Loads LLVM and registers the host's target with it; everything else here needs that first. An error says why there is no LLVM.
pub fn initialize() -> Result<(), String> {
    static INIT: Once = Once::new();
    load::ready()?;
    INIT.call_once(|| Target::initialize_x86(&InitializationConfig::default()));
    Ok(())
}

/// Whether the host has registers for masks of lanes.
pub fn mask_registers() -> bool {
    host().1.split(',').any(|f| f == "+avx512vl")
}

/// Whether the host converts between half and single precision.
pub fn half_floats() -> bool {
    host().1.split(',').any(|f| f == "+f16c")
}

/// Whether the host reads, writes and exchanges 16 bytes at once.
pub fn wide_atomics() -> bool {
    host().1.split(',').any(|f| f == "+cx16")
}

/// A target machine for the host.
pub fn machine(effort: Effort) -> Result<TargetMachine, String> {
    let triple = TargetMachine::get_default_triple();
    let target = Target::from_triple(&triple).map_err(|e| e.to_string())?;
    let (cpu, features) = host();
    let level = match effort {
        Effort::Light => OptimizationLevel::None,
        Effort::Full => OptimizationLevel::Default,
    };
    target
        .create_target_machine(&triple, cpu, features, level, RelocMode::PIC, CodeModel::Small)
        .ok_or_else(|| format!("LLVM has no machine for {triple}"))
}

/// Runs the passes of an effort.
pub fn optimize(module: &Module<'_>, effort: Effort) -> Result<TargetMachine, String> {
    let machine = machine(effort)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let passes = match effort {
        Effort::Light => "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg)",
        Effort::Full => {
            "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg,dse)"
        }
    };
    module.run_passes(passes, &machine, PassBuilderOptions::create()).map_err(|e| e.to_string())?;
    Ok(machine)
}

/// Instructions of the host for an optimised module, as an object.
pub fn emit_object(module: &Module<'_>, machine: &TargetMachine) -> Result<Vec<u8>, String> {
    let buffer = machine.write_to_memory_buffer(module, FileType::Object).map_err(|e| e.to_string())?;
    Ok(buffer.as_slice().to_vec())
}

/// The same as assembly, for people.
pub fn emit_assembly(module: &Module<'_>, machine: &TargetMachine) -> Result<String, String> {
    let buffer = machine.write_to_memory_buffer(module, FileType::Assembly).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(buffer.as_slice()).into_owned())
}
