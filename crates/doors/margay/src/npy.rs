//! numpy's `.npy` files, read and written as raw bytes with an element type and a shape.
//!
//! Own code, since margay moves bytes: a reader crate would require a Rust type for every element type and offer none for bytes.

use crate::element::Element;
use std::{fmt, path::Path};

/// An array in memory: elements in C order, little-endian.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    /// Type of the elements.
    pub element: Element,
    /// Extent of each dimension; none for a single element.
    pub shape: Vec<u64>,
    /// All bytes.
    pub data: Vec<u8>,
}

/// Why a file was not read or written.
#[derive(Debug)]
pub enum NpyError {
    /// An error of the operating system.
    Io(std::io::Error),
    /// The file is not an array that margay supports, and why.
    Format(String),
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NpyError::Io(e) => write!(f, "{e}"),
            NpyError::Format(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NpyError {}

impl From<std::io::Error> for NpyError {
    fn from(e: std::io::Error) -> NpyError {
        NpyError::Io(e)
    }
}

const MAGIC: &[u8] = b"\x93NUMPY";

impl Array {
    /// Elements in all.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// True without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of one element.
    pub fn at(&self, index: u64) -> &[u8] {
        let size = self.element.bytes();
        self.data.get(index as usize * size..).and_then(|d| d.get(..size)).unwrap_or(&[])
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Array, NpyError> {
        Array::from_bytes(&std::fs::read(path)?)
    }

    /// Writes a file.
    pub fn save(&self, path: &Path) -> Result<(), NpyError> {
        Ok(std::fs::write(path, self.to_bytes())?)
    }

    /// Reads the contents of a file (format versions 1 to 3).
    pub fn from_bytes(file: &[u8]) -> Result<Array, NpyError> {
        let format = |why: &str| NpyError::Format(why.into());
        let short = || format("the file is truncated");
        let rest = file.strip_prefix(MAGIC).ok_or_else(|| format("it is not a .npy file"))?;
        let (version, rest) = rest.split_at_checked(2).ok_or_else(short)?;
        let width = if version[0] == 1 { 2 } else { 4 };
        let (length, rest) = rest.split_at_checked(width).ok_or_else(short)?;
        let length = length.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b));
        let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
        let header = String::from_utf8_lossy(header);
        let value = |key: &str| field(&header, key).ok_or_else(|| format(&format!("its header has no `{key}`")));

        let descr = value("descr")?;
        let descr = descr.strip_prefix(['\'', '"']).and_then(|d| d.strip_suffix(['\'', '"']));
        let descr = descr.ok_or_else(|| format("its elements are records; only plain element types are supported"))?;
        let element = Element::from_descr(descr).map_err(NpyError::Format)?;
        let shape = value("shape")?;
        let shape: Option<Vec<u64>> = shape
            .trim_matches(['(', ')'])
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty())
            .map(|n| n.trim_end_matches('L').parse().ok())
            .collect();
        let shape = shape.ok_or_else(|| format("its shape is not a list of numbers"))?;
        if value("fortran_order")? == "True" && shape.iter().filter(|n| **n > 1).count() > 1 {
            return Err(format("it is in Fortran order; save `numpy.ascontiguousarray(a)`"));
        }
        let bytes = shape
            .iter()
            .try_fold(element.bytes() as u64, |n, d| n.checked_mul(*d))
            .and_then(|n| usize::try_from(n).ok());
        let data = bytes.and_then(|n| data.get(..n)).ok_or_else(short)?.to_vec();
        Ok(Array { element, shape, data })
    }

    /// The contents of a file (format version 1).
    pub fn to_bytes(&self) -> Vec<u8> {
        let shape = match &self.shape[..] {
            [one] => format!("({one},)"),
            many => format!("({})", many.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
        };
        let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", self.element.descr());
        let unpadded = MAGIC.len() + 4 + header.len() + 1;
        header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
        header.push('\n');
        let mut file = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        file.extend(&self.data);
        file
    }

    /// Type and shape as text: `f32[4,8]`.
    pub fn describe(&self) -> String {
        describe(self.element, &self.shape)
    }
}

/// Type and shape as text: `f32[4,8]`.
pub fn describe(element: Element, shape: &[u64]) -> String {
    format!("{element}[{}]", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
}

/// The value of `'key':` in the header, a Python dictionary of strings, booleans and tuples.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let after = header.split_once(&format!("'{key}'")).or_else(|| header.split_once(&format!("\"{key}\"")))?.1;
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let end = match value.as_bytes().first()? {
        b'(' => value.find(')')? + 1,
        quote @ (b'\'' | b'"') => value[1..].find(*quote as char)? + 2,
        _ => value.find([',', '}'])?,
    };
    Some(value[..end].trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use margay_isa::Type;

    #[test]
    fn written_files_read_back() {
        for (element, shape) in
            [(Type::F16, vec![2, 3]), (Type::S64, vec![]), (Type::U8, vec![5]), (Type::F64, vec![0, 7])]
        {
            let element = Element::Ptx(element);
            let n = shape.iter().product::<u64>();
            let array = Array { element, shape, data: (0..n).flat_map(|i| element.iota(i)).collect() };
            let bytes = array.to_bytes();
            assert_eq!(bytes.len() - array.data.len(), (bytes.len() - array.data.len()).next_multiple_of(64));
            assert_eq!(Array::from_bytes(&bytes).unwrap(), array);
        }
    }

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn unsupported_files_are_errors_that_say_why() {
        let refused = |f: &[u8]| Array::from_bytes(f).unwrap_err().to_string();
        assert!(refused(b"hello").contains("not a .npy file"));
        let big = file("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", &[0; 4]);
        assert!(refused(&big).contains("big-endian"));
        let fortran = file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", &[0; 16]);
        assert!(refused(&fortran).contains("Fortran"));
        let records = file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]);
        assert!(refused(&records).contains("records"));
        let cut = file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", &[0; 8]);
        assert!(refused(&cut).contains("truncated"));
        let huge = file("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999, 9999999999), }", &[]);
        assert!(refused(&huge).contains("truncated"));
    }

    #[test]
    fn one_dimension_has_no_order() {
        let vector = file("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 1), }", &[1, 0, 2, 0]);
        assert_eq!(Array::from_bytes(&vector).unwrap().shape, [2, 1]);
    }
}
