//! Comparison of an array with a reference.

use crate::{
    element::Number,
    npy::{Array, describe},
};
use std::fmt;

/// How far floats may differ: `|got - wanted| <= absolute + relative * |wanted|`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tolerance {
    /// Factor of the wanted value's magnitude.
    pub relative: f64,
    /// Same unit as the values.
    pub absolute: f64,
}

/// A difference between two arrays.
#[derive(Clone, PartialEq, Debug)]
pub enum Difference {
    /// Shapes: actual and expected, for messages.
    Shape(String, String),
    /// Element types that cannot be compared.
    Type(String, String),
    /// Elements.
    Values {
        /// The number of different elements, and of all.
        count: (u64, u64),
        /// The first ones: index, got, wanted.
        first: Vec<(u64, String, String)>,
        /// Largest absolute difference of finite numbers.
        largest: f64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Shape(got, wanted) => write!(f, "its shape is {got}, expected {wanted}"),
            Difference::Type(got, wanted) => write!(f, "its elements are {got}, expected {wanted}"),
            Difference::Values { count: (n, all), first, largest } => {
                write!(f, "{n} of {all} elements, by up to {largest:e}")?;
                first.iter().try_for_each(|(i, got, wanted)| write!(f, "\n  [{i}] is {got}, expected {wanted}"))
            }
        }
    }
}

/// Compares element by element. NaN equals NaN; numbers of different element types are compared as numbers.
pub fn compare(got: &Array, wanted: &Array, tolerance: Tolerance) -> Result<(), Difference> {
    const SHOWN: usize = 4;
    let same_type = got.element == wanted.element;
    if !(same_type || got.element.is_number() && wanted.element.is_number()) {
        return Err(Difference::Type(got.element.to_string(), wanted.element.to_string()));
    }
    if got.shape != wanted.shape {
        return Err(Difference::Shape(describe(got.element, &got.shape), describe(wanted.element, &wanted.shape)));
    }
    let (mut bad, mut first, mut largest) = (0, Vec::new(), 0f64);
    for i in 0..got.len() {
        let (g, w) = (got.at(i), wanted.at(i));
        if same_type && g == w {
            continue;
        }
        let equal = got.element.is_number() && {
            let (g, w) = (got.element.number(g), wanted.element.number(w));
            let distance = (g.as_f64() - w.as_f64()).abs();
            if distance.is_finite() {
                largest = largest.max(distance);
            }
            close(g, w, tolerance)
        };
        if !equal {
            bad += 1;
            if first.len() < SHOWN {
                first.push((i, got.element.show(g), wanted.element.show(w)));
            }
        }
    }
    if bad == 0 { Ok(()) } else { Err(Difference::Values { count: (bad, got.len()), first, largest }) }
}

/// Whether two numbers are equal within the tolerance.
pub fn close(got: Number, wanted: Number, tolerance: Tolerance) -> bool {
    if let (Number::Int(g), Number::Int(w)) = (got, wanted)
        && tolerance == Tolerance::default()
    {
        return g == w;
    }
    let (g, w) = (got.as_f64(), wanted.as_f64());
    g == w
        || (g.is_nan() && w.is_nan())
        || (w.is_finite() && (g - w).abs() <= tolerance.absolute + tolerance.relative * w.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use margay_isa::Type;

    fn floats(values: &[f32]) -> Array {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Array { element: Element::Ptx(Type::F32), shape: vec![values.len() as u64], data }
    }

    #[test]
    fn tolerance_nan_and_signed_zero() {
        let exact = Tolerance::default();
        let wanted = floats(&[1.0, f32::NAN, 0.0, f32::INFINITY]);
        assert_eq!(compare(&floats(&[1.0, -f32::NAN, -0.0, f32::INFINITY]), &wanted, exact), Ok(()));
        let off = floats(&[1.001, f32::NAN, 0.0, f32::MAX]);
        let Err(Difference::Values { count, first, .. }) = compare(&off, &wanted, exact) else { panic!() };
        assert_eq!((count, first[0].0, first[1].0), ((2, 4), 0, 3));
        assert_eq!(compare(&floats(&[1.001]), &floats(&[1.0]), Tolerance { relative: 0.01, absolute: 0.0 }), Ok(()));
        assert!(matches!(compare(&floats(&[1.0]), &wanted, exact), Err(Difference::Shape(..))));
    }
}
