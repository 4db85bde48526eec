//! The syntax of tensor maps in arguments: options such as `box=64x32,swizzle=128`, and the array that they describe.
//!
//! ```text
//! box=64x32          elements of a box, in the order of the array's shape (the last one along neighbors in memory)
//! swizzle=128        32, 64, 128, 96, or 128/32, 128/32+8, 128/64 (bytes that stay together)
//! steps=1x2          traversal strides, in the same order
//! fill=nan           elements outside the tensor are NaN
//! type=tf32          the type of elements, where the array's own is not meant: tf32, f32.ftz, b4x16 and so on
//! channels=8,pixels=64,lower=-1x-1,upper=-1x-1    an im2col map instead of a box; corners without the outermost and the last
//!                    dimension
//! ```

use crate::element::Element;
use margay_exec::tensor_map::{SIZE, Tensor};
use margay_isa::Type;

/// Options of a tensor map.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MapOptions {
    bounds: Vec<u32>,
    steps: Vec<u32>,
    swizzle: u32,
    nan: bool,
    data_type: Option<u32>,
    channels: u32,
    pixels: u32,
    lower: Vec<i32>,
    upper: Vec<i32>,
}

/// Names of `CUtensorMapDataType`, by number.
const TYPES: [&str; 16] = [
    "u8",
    "u16",
    "u32",
    "s32",
    "u64",
    "s64",
    "f16",
    "f32",
    "f64",
    "bf16",
    "f32.ftz",
    "tf32",
    "tf32.ftz",
    "b4x16",
    "b4x16_p64",
    "b6x16_p32",
];

/// Names of `CUtensorMapSwizzle`, by number, and one that CUDA lacks.
const SWIZZLES: [&str; 7] = ["0", "32", "64", "128", "128/32", "128/32+8", "128/64"];

fn list<T: std::str::FromStr>(key: &str, text: &str) -> Result<Vec<T>, String> {
    let items: Option<Vec<T>> = text.split('x').map(|n| n.trim().parse().ok()).collect();
    // The object counts from the innermost dimension on.
    let mut items = items.ok_or_else(|| format!("`{key}={text}`: expected numbers such as `64x32`"))?;
    items.reverse();
    Ok(items)
}

impl MapOptions {
    /// Reads options that commas separate.
    pub fn parse(text: &str) -> Result<MapOptions, String> {
        let mut o = MapOptions::default();
        for option in text.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            let (key, value) = option.split_once('=').ok_or_else(|| format!("`{option}`: expected `key=value`"))?;
            let number = || value.parse().map_err(|_| format!("`{option}`: expected a number"));
            let among = |names: &[&str]| names.iter().position(|n| *n == value).map(|n| n as u32);
            match key.trim() {
                "box" => o.bounds = list(key, value)?,
                "steps" => o.steps = list(key, value)?,
                "lower" => o.lower = list(key, value)?,
                "upper" => o.upper = list(key, value)?,
                "channels" => o.channels = number()?,
                "pixels" => o.pixels = number()?,
                "swizzle" => {
                    o.swizzle = among(&SWIZZLES)
                        .ok_or_else(|| format!("`{option}`: expected one of {}", SWIZZLES.join(", ")))?;
                }
                "fill" => o.nan = value == "nan",
                "type" => {
                    let ty =
                        among(&TYPES).ok_or_else(|| format!("`{option}`: expected one of {}", TYPES.join(", ")))?;
                    o.data_type = Some(ty);
                }
                _ => {
                    return Err(format!(
                        "`{key}` is not a tensor map option; expected box, swizzle, steps, fill, type, channels, pixels, lower or upper"
                    ));
                }
            }
        }
        Ok(o)
    }

    /// The object for a dense array in row-major order at a device address.
    pub fn encode(&self, element: Element, shape: &[u64], address: u64) -> Result<[u8; SIZE], String> {
        let data_type = match self.data_type {
            Some(ty) => ty,
            None => data_type(element).ok_or_else(|| format!("`{element}` is not a tensor map type; use `type=`"))?,
        };
        let mut sizes: Vec<u64> = shape.iter().rev().copied().collect();
        let bytes = element.bytes() as u64;
        let strides: Vec<u64> = (1..sizes.len()).map(|d| bytes * sizes[..d].iter().product::<u64>()).collect();
        // Arrays of bytes hold two or more elements of less than a byte.
        if let (Some(first), 13 | 14) = (sizes.first_mut(), data_type) {
            *first *= 2;
        } else if let (Some(first), 15) = (sizes.first_mut(), data_type) {
            *first = *first * 4 / 3;
        }
        let ones = vec![1; sizes.len()];
        let steps = if self.steps.is_empty() { &ones } else { &self.steps };
        let (sizes, strides, swizzle, fill) = (&*sizes, &*strides, self.swizzle, u32::from(self.nan));
        let tensor = Tensor { data_type, address, sizes, strides, steps, interleave: 0, swizzle, fill };
        let map = if self.pixels > 0 {
            tensor.im2col((&self.lower, &self.upper), (self.channels, self.pixels))
        } else {
            tensor.tiled(&self.bounds)
        };
        Ok(map?.encode())
    }
}

/// The number of `CUtensorMapDataType` of an array's elements.
fn data_type(element: Element) -> Option<u32> {
    let Element::Ptx(ty) = element else { return None };
    Some(match ty {
        Type::U8 | Type::S8 | Type::B8 | Type::E4m3 | Type::E5m2 => 0,
        Type::U16 | Type::S16 | Type::B16 => 1,
        Type::U32 | Type::B32 => 2,
        Type::S32 => 3,
        Type::U64 | Type::B64 => 4,
        Type::S64 => 5,
        Type::F16 => 6,
        Type::F32 => 7,
        Type::F64 => 8,
        Type::Bf16 => 9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_the_order_of_the_shape() {
        let o = MapOptions::parse("box=2x16, swizzle=32, fill=nan").unwrap();
        let bytes = o.encode(Element::Ptx(Type::F16), &[5, 24], 4096).unwrap();
        let map = margay_exec::tensor_map::TensorMap::decode(&bytes).unwrap();
        assert_eq!((map.sizes[..2].to_vec(), map.bounds[..2].to_vec()), (vec![24, 5], vec![16, 2]));
        assert_eq!((map.strides[0], map.swizzle, map.nan_fill), (48, 1, true));
        assert!(MapOptions::parse("boks=1").unwrap_err().contains("box, swizzle"));
        assert!(MapOptions::parse("swizzle=31").unwrap_err().contains("128/32"));
    }
}
