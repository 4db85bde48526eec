//! Syntax of other languages: errors name its PTX equivalent.

/// What PTX has instead of a statement of C++ that begins with this word.
pub(super) fn statement(word: &str) -> Option<&'static str> {
    Some(match word {
        "if" => "write a conditional branch as `@%p bra L;`, with `%p` from `setp`",
        "else" | "for" | "while" | "do" | "break" | "continue" => {
            "write loops and conditionals with labels and `@%p bra L;`"
        }
        "goto" => "write `bra L;`",
        "switch" | "case" => "use `brx.idx` with `.branchtargets`, or compare with `setp` and branch",
        "int" | "unsigned" | "float" | "double" | "char" | "short" | "long" | "bool" | "half" | "const" | "auto" => {
            "declare a register: `.reg .s32 %i;`"
        }
        "void" => "declare functions with `.func`",
        "__syncthreads" => "write `bar.sync 0;`",
        "__syncwarp" => "write `bar.warp.sync 0xffffffff;`",
        "__threadfence" => "write `membar.gl;`",
        "__threadfence_block" => "write `membar.cta;`",
        "__shared__" => "declare it: `.shared .align 4 .b8 s[256];`",
        "printf" => "call `vprintf`, with the arguments in a buffer",
        "atomicAdd" => "write `atom.global.add.u32 %r, [%rd], %r1;`",
        "return" => "write `ret;`",
        "asm" => "write only the text of the string, with registers instead of `%0` and `%1`",
        "clock" | "clock64" => "write `mov.u32 %r, %clock;` or `mov.u64 %rd, %clock64;`",
        _ => return None,
    })
}

/// The type of PTX that another language's is.
pub(crate) fn type_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "int" | "i32" | "int32_t" => ".s32",
        "unsigned" | "uint" | "uint32_t" | "size32" => ".u32",
        "float" => ".f32",
        "double" => ".f64",
        "half" | "__half" => ".f16",
        "char" | "i8" | "int8_t" => ".s8",
        "uchar" | "uint8_t" | "byte" => ".u8",
        "short" | "i16" | "int16_t" => ".s16",
        "ushort" | "uint16_t" => ".u16",
        "long" | "i64" | "int64_t" => ".s64",
        "ulong" | "uint64_t" | "size_t" | "ptr" => ".u64",
        "bool" | "i1" => ".pred",
        _ => return None,
    })
}
