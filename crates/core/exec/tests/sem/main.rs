//! Semantics of the pure rows against the manual's words, exact arithmetic and an independent soft-float library.

mod approx;
mod compare;
mod convert;
mod float;
mod harness;
mod integer;
mod moves;
mod table;
mod video;
