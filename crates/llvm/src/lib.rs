//! The SIMD engine: PTX kernels as vector code through LLVM.
mod ffi;
mod ctx;
pub mod emit;
mod machine;

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn an_object_links_and_runs() {
        let context = inkwell::context::Context::create();
        let module = context.create_module("t");
        let i = context.i32_type();
        let f = module.add_function("three", i.fn_type(&[], false), None);
        let b = context.create_builder();
        b.position_at_end(context.append_basic_block(f, "entry"));
        b.build_return(Some(&i.const_int(3, false))).unwrap();
        let object = machine::emit_object(&module, machine::Effort::Light).unwrap();
        let linked = ffi::Linked::object("t", &object).unwrap();
        assert_ne!(linked.address("three").unwrap(), 0);
    }
}
