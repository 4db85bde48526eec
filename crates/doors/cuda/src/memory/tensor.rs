//! Tensor maps (CUDA Driver API, "Tensor Map Object Management").

use crate::{
    api::api,
    code::{Code, Outcome},
    driver::driver,
    raw::{In, Out},
};
use margay_exec::tensor_map::{SIZE, Tensor, TensorMap};

/// Writes a tensor map, or reports why its parameters are invalid.
fn put(out: Out<[u8; SIZE]>, map: Result<TensorMap, String>) -> Outcome {
    match map {
        Ok(map) => out.set(map.encode()),
        Err(why) => {
            crate::api::report_error(&format!("margay: invalid tensor map: {why}"));
            Err(Code::INVALID_VALUE)
        }
    }
}

api! {
    12000 fn cuTensorMapEncodeTiled(
        out: Out<[u8; SIZE]>, data_type: u32, rank: u32, address: u64, sizes: In<u64>, strides: In<u64>, bounds: In<u32>,
        steps: In<u32>, interleave: u32, swizzle: u32, _promotion: u32, fill: u32,
    ) {
        driver()?;
        let rank = usize::try_from(rank).ok().filter(|r| (1..=5).contains(r)).ok_or(Code::INVALID_VALUE)?;
        let (sizes, strides) = (sizes.list(rank)?, strides.list(rank - 1)?);
        let (bounds, steps) = (bounds.list(rank)?, steps.list(rank)?);
        let (sizes, strides, steps) = (&*sizes, &*strides, &*steps);
        put(out, Tensor { data_type, address, sizes, strides, steps, interleave, swizzle, fill }.tiled(&bounds))
    }
    12000 fn cuTensorMapEncodeIm2col(
        out: Out<[u8; SIZE]>, data_type: u32, rank: u32, address: u64, sizes: In<u64>, strides: In<u64>, lower: In<i32>,
        upper: In<i32>, channels: u32, pixels: u32, steps: In<u32>, interleave: u32, swizzle: u32, _promotion: u32,
        fill: u32,
    ) {
        driver()?;
        let rank = usize::try_from(rank).ok().filter(|r| (3..=5).contains(r)).ok_or(Code::INVALID_VALUE)?;
        let (sizes, strides, steps) = (sizes.list(rank)?, strides.list(rank - 1)?, steps.list(rank)?);
        let corners = (lower.list(rank - 2)?, upper.list(rank - 2)?);
        let (sizes, strides, steps) = (&*sizes, &*strides, &*steps);
        let tensor = Tensor { data_type, address, sizes, strides, steps, interleave, swizzle, fill };
        put(out, tensor.im2col((&corners.0, &corners.1), (channels, pixels)))
    }
    12000 fn cuTensorMapReplaceAddress(out: Out<[u8; SIZE]>, address: u64) {
        driver()?;
        let map = TensorMap::decode(&out.get()?).map(|map| TensorMap { address, ..map });
        put(out, map)
    }
}
