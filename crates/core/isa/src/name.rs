//! Names of operands, as the manual writes them, by which the engines find the operands of a row. A test compares them with the table.

macro_rules! names {
    ($($(#[$doc:meta])* $constant:ident = $name:literal,)*) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        #[cfg(test)]
        const ALL: &[&str] = &[$($name),*];
    };
}

names! {
    /// The lanes that execute a `.sync` instruction together (sections 9.7.9.6 and 9.7.13).
    MEMBERMASK = "membermask",

    /// `cp.async`: the bytes that a thread copies (section 9.7.9.25.3.1).
    CP_SIZE = "cp-size",
    /// `cp.async`: those of them that come from the source; the rest are zeros.
    SRC_SIZE = "src-size",
    /// `cp.async`: whether all of them are zeros.
    IGNORE_SRC = "ignore-src",

    /// Bulk copies: the number of bytes (section 9.7.9.25.4).
    SIZE = "size",
    /// The CTAs of the cluster in which a multicast takes place.
    CTA_MASK = "ctaMask",
    /// `.cp_mask`: which bytes of each 16 are written.
    BYTE_MASK = "byteMask",
    /// `.ignore_oob` (PTX ISA 9.2): the number of bytes at the start that are ignored.
    IGNORE_BYTES_LEFT = "ignoreBytesLeft",
    /// `.ignore_oob`: the number of bytes at the end that are ignored.
    IGNORE_BYTES_RIGHT = "ignoreBytesRight",

    /// Tensor copies: the address of the tensor map (section 9.7.9.27.1.2).
    TENSOR_MAP = "tensorMap",
    /// Tensor copies: the first element's coordinates.
    TENSOR_COORDS = "tensorCoords",
    /// Bulk and tensor copies: the destination.
    DST_MEM = "dstMem",
    /// Bulk and tensor copies: the source.
    SRC_MEM = "srcMem",
    /// The barrier object at which a copy completes.
    MBAR = "mbar",
    /// `.im2col`: offsets, or halos.
    IM2COL_INFO = "im2colInfo",

    /// `tensormap.cp_fenceproxy`: the destination (section 9.7.13.16).
    DST = "dst",
    /// `tensormap.cp_fenceproxy`: the source.
    SRC = "src",
    /// `tensormap.replace`: the field's new value (section 9.7.9.28).
    NEW_VAL = "new_val",
    /// `tensormap.replace`: the dimension.
    ORD = "ord",

    /// Level of detail of a texture (section 9.7.10.3).
    LOD = "lod",
    /// Gradient of the coordinates along x of the screen.
    DPDX = "dPdx",
    /// Gradient of the coordinates along y of the screen.
    DPDY = "dPdy",

    /// `tcgen05`: the number of columns of tensor memory (section 9.7.16.7.1).
    N_COLS = "nCols",
    /// `tcgen05`: an address in tensor memory.
    TADDR = "taddr",
    /// `tcgen05.ld`, `.st`: the columns between the two accesses of `.16x32bx2` (section 9.7.16.8.3).
    IMM_HALF_SPLITOFF = "immHalfSplitoff",
    /// `tcgen05.ld`, `.st`: the lane's registers.
    R = "r",
    /// `tcgen05.cp`: the matrix descriptor of the source (section 9.7.16.9.2).
    S_DESC = "s-desc",

    /// `tcgen05.mma`: the instruction descriptor (section 9.7.16.10.9.1).
    IDESC = "idesc",
    /// `wgmma.mma_async`: A in registers (section 9.7.15.5.2).
    A = "a",
    /// `wgmma.mma_async`: whether D is added.
    SCALE_D = "scale-d",
    /// `wgmma.mma_async`: 1 or -1, by which A is multiplied.
    IMM_SCALE_A = "imm-scale-a",
    /// `wgmma.mma_async`: 1 or -1, by which B is multiplied.
    IMM_SCALE_B = "imm-scale-b",
    /// `wgmma.mma_async`: whether A is transposed in shared memory.
    IMM_TRANS_A = "imm-trans-a",
    /// `wgmma.mma_async`: whether B is transposed in shared memory.
    IMM_TRANS_B = "imm-trans-b",
    /// `wgmma.mma_async.sp`: metadata of the sparse A.
    SP_META = "sp-meta",
    /// `wgmma.mma_async.sp`: which threads hold the metadata.
    SP_SEL = "sp-sel",

    /// `tcgen05.mma`, `wgmma.mma_async`: the matrix descriptor of A in shared memory.
    A_DESC = "a-desc",
    /// `tcgen05.mma`: A in tensor memory.
    A_TMEM = "a-tmem",
    /// `tcgen05.mma`, `wgmma.mma_async`: the matrix descriptor of B in shared memory.
    B_DESC = "b-desc",
    /// `tcgen05.mma`: D in tensor memory.
    D_TMEM = "d-tmem",
    /// `tcgen05.mma.sp`: metadata of the sparse A in tensor memory.
    SP_META_TMEM = "sp-meta-tmem",
    /// `tcgen05.mma`: scale factors of A in tensor memory.
    SCALE_A_TMEM = "scale-A-tmem",
    /// `tcgen05.mma`: scale factors of B in tensor memory.
    SCALE_B_TMEM = "scale-B-tmem",
    /// `tcgen05.mma`: whether D is added.
    ENABLE_INPUT_D = "enable-input-d",
    /// `tcgen05.mma`: the power of two by which the added D is divided.
    SCALE_INPUT_D = "scale-input-d",
    /// `tcgen05.mma`: the lanes of D that stay as they are.
    DISABLE_OUTPUT_LANE = "disable-output-lane",
    /// `tcgen05.mma`: the columns of B that count as zero (section 9.7.16.4.3).
    ZERO_COLUMN_MASK_DESC = "zero-column-mask-desc",
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::{Opcode, Opnd, Role};

    fn contains(operands: &[Opnd], name: &str) -> bool {
        operands.iter().any(|o| o.name == name || matches!(o.role, Role::Group(inner) if contains(inner, name)))
    }

    #[test]
    fn the_table_has_an_operand_of_every_name() {
        let known = |name: &str| Opcode::ALL.iter().any(|op| op.row().forms.iter().any(|f| contains(f.operands, name)));
        let unknown: Vec<&&str> = ALL.iter().filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
