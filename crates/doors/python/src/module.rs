//! Modules and their kernels.

use crate::{
    device::Device,
    errors,
    launch::{self, Arguments},
    loans::Range,
    text,
};
use margay_runtime::{LaunchShape, LoadOptions, SourceText};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// A module that was loaded to a device.
#[pyclass(frozen, module = "margay._margay")]
pub struct Module {
    device: Py<Device>,
    module: Arc<margay_runtime::Module>,
}

/// A kernel of a module.
#[pyclass(frozen, module = "margay._margay")]
pub struct Kernel {
    device: Py<Device>,
    kernel: margay_runtime::Kernel,
}

#[pymethods]
impl Module {
    #[new]
    #[allow(clippy::too_many_arguments)] // `margay.Module` gives all of them
    #[pyo3(signature = (device, texts, verdict, target, version, abi, engine))]
    fn new(
        py: Python<'_>,
        device: Py<Device>,
        texts: Vec<(String, String)>,
        verdict: &str,
        target: Option<&str>,
        version: Option<&str>,
        abi: Option<String>,
        engine: Option<String>,
    ) -> PyResult<Module> {
        let check = text::options(verdict, target, version, false)?;
        let context = device.get().context.clone();
        // Words that are wrong are said before the text is.
        context.device().engine(engine.as_deref()).map_err(|e| errors::raise(&e))?;
        if let Some(abi) = &abi {
            margay_runtime::find_abi(abi).map_err(|e| errors::raise(&e))?;
        }
        let loaded = py.detach(|| {
            let sources: Vec<_> = texts.iter().map(|(name, text)| SourceText { name, text }).collect();
            context.load(&sources, &LoadOptions { check, abi, engine, ..LoadOptions::default() })
        });
        Ok(Module { device, module: Arc::new(loaded.map_err(|e| errors::raise(&e))?) })
    }

    /// Names of all kernels, in order of the text.
    fn kernels(&self) -> Vec<String> {
        self.module.kernel_names().into_iter().map(str::to_owned).collect()
    }

    /// A kernel by name; lowered and placed when it is asked for the first time.
    fn kernel(&self, py: Python<'_>, name: &str) -> PyResult<Kernel> {
        let kernel = py.detach(|| self.module.kernel(name)).map_err(|e| errors::raise(&e))?;
        Ok(Kernel { device: self.device.clone_ref(py), kernel })
    }

    /// Size of a `.global` or `.const` variable in bytes.
    fn variable_size(&self, name: &str) -> PyResult<u64> {
        Ok(self.module.variable(name).map_err(|e| errors::raise(&e))?.size)
    }

    /// The bytes of a variable.
    fn read(&self, name: &str) -> PyResult<Vec<u8>> {
        let variable = self.module.variable(name).map_err(|e| errors::raise(&e))?;
        let mut bytes = vec![0; variable.size as usize];
        self.device.get().context.read(variable.address, &mut bytes).map_err(|e| errors::raise(&e))?;
        Ok(bytes)
    }

    /// Writes the first bytes of a variable.
    fn write(&self, name: &str, bytes: &[u8]) -> PyResult<()> {
        let variable = self.module.variable(name).map_err(|e| errors::raise(&e))?;
        if bytes.len() as u64 > variable.size {
            let (given, size) = (bytes.len(), variable.size);
            return Err(errors::value(format!("`{name}` has {size} bytes, found {given}")));
        }
        self.device.get().context.write(variable.address, bytes).map_err(|e| errors::raise(&e))
    }
}

#[pymethods]
impl Kernel {
    /// Parameters: name, type, whether it is an array, bytes, alignment.
    fn params(&self) -> Vec<(String, String, bool, u32, u32)> {
        let one = |p: &margay_runtime::Param| {
            (p.name.to_string(), p.ty.to_string().trim_start_matches('.').to_owned(), p.array, p.size, p.align)
        };
        self.kernel.params().iter().map(one).collect()
    }

    /// The parameter block's bytes are those of all parameters, one after the other, each as long as it is.
    #[allow(clippy::too_many_arguments)] // `margay.Kernel` gives all of them
    #[pyo3(signature = (grid, block, params, ranges, owner, cluster, shared, seed, cooperative, threads, checks, watch))]
    fn launch(
        &self,
        py: Python<'_>,
        grid: [u32; 3],
        block: [u32; 3],
        params: Vec<Vec<u8>>,
        ranges: Vec<(u64, usize, bool, String)>,
        owner: Py<PyAny>,
        cluster: Option<[u32; 3]>,
        shared: u32,
        seed: u64,
        cooperative: bool,
        threads: Option<usize>,
        checks: Option<&str>,
        watch: bool,
    ) -> PyResult<launch::Ended> {
        let ranges = ranges.into_iter();
        let ranges = ranges.map(|(address, len, readonly, name)| Range { address, len, readonly, name }).collect();
        let arguments = Arguments {
            shape: LaunchShape { cluster, shared, cooperative, ..LaunchShape::new(grid, block) },
            params,
            ranges,
            owner,
            seed,
            threads,
            checks,
            watch,
        };
        launch::run(py, self.device.get(), &self.kernel, arguments)
    }

    /// A description of the kernel and of the work done for it so far, as an object in JSON.
    fn facts(&self) -> String {
        let tiers: Vec<Value> = self.kernel.tiers().iter().map(|t| json!(format!("{t:?}"))).collect();
        json!({
            "engine": self.kernel.engine(),
            "static_shared": self.kernel.static_shared(),
            "fallback": self.kernel.fallback(),
            "single_steps": self.kernel.single_steps(),
            "tiers": tiers,
        })
        .to_string()
    }
}
