//! The device on which Python's modules run.

use crate::{errors, loans::Loans};
use margay::profile::Profile;
use margay_runtime::Context;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::{
    io::{self, Write},
    sync::Arc,
};

/// The output of kernels, until Python takes it.
#[derive(Clone, Debug, Default)]
pub struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// Takes what there is.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A device: margay's own, or one like a GPU that is described.
#[pyclass(frozen, module = "margay._margay")]
pub struct Device {
    pub context: Arc<Context>,
    pub printed: Printed,
    pub loans: Arc<Loans>,
    profile: Profile,
}

#[pymethods]
impl Device {
    #[new]
    fn new(spec: Option<&str>, threads: Option<usize>) -> PyResult<Device> {
        let profile = match spec {
            Some(spec) => Profile::parse(spec).map_err(errors::value)?,
            None => Profile::from_environment().map_err(errors::value)?,
        };
        if threads == Some(0) {
            return Err(errors::value("threads: a device requires at least one"));
        }
        let made = margay_runtime::Device::with(margay::device_options(threads)).map_err(|e| errors::raise(&e))?;
        let context = made.context();
        let mut limits = context.limits();
        limits.shared_per_block = profile.limits.shared_of_cta;
        context.set_limits(limits);
        let printed = Printed::default();
        context.set_output(Box::new(printed.clone()));
        Ok(Device { context, printed, loans: Arc::default(), profile })
    }

    /// The device's name.
    #[getter]
    fn name(&self) -> String {
        self.profile.name.clone().unwrap_or_else(|| "margay".into())
    }

    /// Major and minor number of the compute capability.
    #[getter]
    fn capability(&self) -> (u32, u32) {
        self.profile.capability
    }

    /// Streaming multiprocessors; for margay's own device, threads of the host.
    #[getter]
    fn multiprocessors(&self) -> u32 {
        self.profile.multiprocessors.unwrap_or(self.threads() as u32)
    }

    /// Memory size in bytes, if the description gives it.
    #[getter]
    fn memory(&self) -> Option<u64> {
        self.profile.memory
    }

    /// Bytes of shared memory that one CTA may have.
    #[getter]
    fn shared_per_block(&self) -> u32 {
        self.profile.limits.shared_of_cta
    }

    /// Threads of the host that run CTAs.
    #[getter]
    fn threads(&self) -> usize {
        self.context.device().threads()
    }

    /// Names of the engines, the default one first.
    #[getter]
    fn engines(&self) -> Vec<&'static str> {
        self.context.device().engine_names()
    }
}
