//! Whole programs from text: lowering, linking, placing, verifying.

mod common;
mod constants;
mod linear;
mod link;
mod lower;
mod place;
mod spin;
mod termination;
mod verify;
mod web;
