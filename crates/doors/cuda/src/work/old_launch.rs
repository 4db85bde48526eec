//! Deprecated launches with one call per setting (CUDA Driver API, "Execution Control \[DEPRECATED\]"); PyCUDA still uses
//! them.

use crate::{
    api::api,
    code::{Code, Outcome},
    handle::Handle,
    module::function::Function,
    raw::Host,
    work::{
        Work,
        launch::{self, Launch},
        stream::StreamHandle,
    },
};

/// The settings of the next launch of a function.
#[derive(Clone, Default)]
pub struct Setting {
    block: [u32; 3],
    shared: u32,
    params: Vec<u8>,
}

/// Maximum size of a kernel's parameters in bytes.
const MAX_PARAMS: usize = 32764;

fn set(function: Handle<Function>, change: impl FnOnce(&mut Setting) -> Outcome) -> Outcome {
    let function = crate::module::function::get(function)?;
    let mut setting = function.setting.lock();
    change(&mut setting)
}

fn put(function: Handle<Function>, offset: i32, bytes: &[u8]) -> Outcome {
    let offset = usize::try_from(offset).map_err(|_| Code::INVALID_VALUE)?;
    let end = offset.checked_add(bytes.len()).filter(|end| *end <= MAX_PARAMS).ok_or(Code::INVALID_VALUE)?;
    set(function, |setting| {
        if setting.params.len() < end {
            setting.params.resize(end, 0);
        }
        setting.params[offset..end].copy_from_slice(bytes);
        Ok(())
    })
}

fn launch(function: Handle<Function>, width: i32, height: i32, stream: StreamHandle) -> Outcome {
    stream.get()?;
    let unsigned = |n: i32| u32::try_from(n).map_err(|_| Code::INVALID_VALUE);
    let of = crate::module::function::get(function)?;
    let Setting { block, shared, mut params } = of.setting.lock().clone();
    params.resize(of.params_size()?, 0);
    let shape = launch::shape([unsigned(width)?, unsigned(height)?, 1], block, shared);
    stream.submit(Work::Kernel(Launch { function: of, shape, params, from: crate::checks::stacks::launch() }))
}

api! {
    2000 fn cuFuncSetBlockShape(function: Handle<Function>, x: i32, y: i32, z: i32) {
        let size = |n: i32| u32::try_from(n).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE);
        let block = [size(x)?, size(y)?, size(z)?];
        set(function, |setting| {
            setting.block = block;
            Ok(())
        })
    }
    2000 fn cuFuncSetSharedSize(function: Handle<Function>, bytes: u32) {
        set(function, |setting| {
            setting.shared = bytes;
            Ok(())
        })
    }
    2000 fn cuParamSetSize(function: Handle<Function>, bytes: u32) {
        set(function, |setting| match bytes as usize {
            size @ ..=MAX_PARAMS => {
                setting.params.resize(size, 0);
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        })
    }
    2000 fn cuParamSeti(function: Handle<Function>, offset: i32, value: u32) {
        put(function, offset, &value.to_ne_bytes())
    }
    2000 fn cuParamSetf(function: Handle<Function>, offset: i32, value: f32) {
        put(function, offset, &value.to_ne_bytes())
    }
    2000 fn cuParamSetv(function: Handle<Function>, offset: i32, from: Host, bytes: u32) {
        if bytes as usize > MAX_PARAMS {
            return Err(Code::INVALID_VALUE);
        }
        put(function, offset, &from.bytes(0, bytes as usize)?)
    }
    2000 fn cuLaunch(function: Handle<Function>) { launch(function, 1, 1, StreamHandle::NULL) }
    2000 fn cuLaunchGrid(function: Handle<Function>, width: i32, height: i32) {
        launch(function, width, height, StreamHandle::NULL)
    }
    2000 fn cuLaunchGridAsync(function: Handle<Function>, width: i32, height: i32, stream: StreamHandle) {
        launch(function, width, height, stream)
    }
}
