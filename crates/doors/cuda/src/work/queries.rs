//! Queries of the driver by device code, and its changes to graphs (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism"; header
//! `cuda_device_runtime_api.h`). The answers are those that the host would get.

use crate::{
    code::Code,
    context::Context,
    device::{attribute, check},
    module::{Module, function::Function},
    visible::count,
    work::graph,
};
use margay_exec::device::{Change, Driver, Query};
use std::sync::Arc;

/// Answers the threads of a launch of a kernel of a module.
#[derive(Clone, Copy)]
pub struct QueryHandler<'c> {
    /// The context.
    pub context: &'c Context,
    /// The module.
    pub module: &'c Arc<Module>,
}

impl Driver for QueryHandler<'_> {
    fn answer(&self, query: Query<'_>) -> Result<u64, u32> {
        self.find(query).map_err(Code::number)
    }

    fn change(&self, node: u64, change: Change) -> Result<(), u32> {
        graph::change(node, change).map_err(Code::number)
    }
}

impl QueryHandler<'_> {
    fn find(&self, query: Query<'_>) -> Result<u64, Code> {
        let number = |value: i32| value as u32 as u64;
        Ok(match query {
            Query::Limit(limit) => self.context.limit(limit)? as u64,
            Query::CacheConfig => self.context.cache_config().into(),
            Query::Device => number(self.context.device),
            Query::DeviceCount => number(count()),
            Query::DeviceAttribute { attribute: wanted, device } => {
                check(device)?;
                number(attribute(wanted, device).ok_or(Code::INVALID_VALUE)?)
            }
            Query::KernelAttribute { kernel, attribute } => number(self.kernel(kernel)?.attribute(attribute)?),
            Query::Occupancy { kernel, threads, shared } => number(self.kernel(kernel)?.active(threads, shared)?),
        })
    }

    fn kernel(&self, name: &str) -> Result<Arc<Function>, Code> {
        crate::module::function::get(self.module.function(name)?)
    }
}
