//! Whole programs from text: lowering, linking, placing.

mod common;
mod link;
mod lower;
mod place;
