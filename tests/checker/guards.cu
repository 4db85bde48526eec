// Loads by threads whose stores have a guard that is false: what Triton makes of a value that several threads hold.
#define K extern "C" __global__ void
#define G(p) __cvta_generic_to_global(p)

K scalar_right(int* g, int n) {                       // tl.store(g, tl.load(g) + 1)
  asm volatile("{ .reg .pred p; .reg .b32 x, t; ld.global.b32 x, [%0]; add.s32 x, x, 1; mov.u32 t, %%tid.x;\n"
               "setp.eq.b32 p, t, 0; @p st.global.b32 [%0], x; }" :: "l"(G(g)) : "memory");
}
K vector_by_and_right(int* g, int n) {                // the guard of the store also depends on the argument
  asm volatile("{ .reg .pred p, q, r; .reg .b32 x, t, h; ld.global.b32 x, [%0]; add.s32 x, x, x; setp.lt.s32 q, %1, %2;\n"
               "mov.u32 t, %%tid.x; and.b32 h, t, 64; setp.eq.b32 p, h, 0; and.pred r, p, q; @r st.global.b32 [%0], x; }"
               :: "l"(G(g + threadIdx.x % 64)), "r"((int)threadIdx.x % 64), "r"(n * 15) : "memory");
}
K sums_right(int* g, int n) {                         // the sum of a row, which a warp computes and four hold
  asm volatile("{ .reg .pred p; .reg .b32 x, y, t, h; ld.global.b32 x, [%0]; shfl.sync.bfly.b32 y, x, 1, 31, -1; add.s32 x, x, y;\n"
               "mov.u32 t, %%tid.x; and.b32 h, t, 96; setp.eq.b32 p, h, 0; @p st.global.b32 [%0], x; }"
               :: "l"(G(g + threadIdx.x % 32)) : "memory");
}
K kept_elsewhere_wrong(int* g, int n) {               // another store uses the value too
  asm volatile("{ .reg .pred p; .reg .b32 x, t; ld.global.b32 x, [%0]; add.s32 x, x, 1; mov.u32 t, %%tid.x;\n"  //~ race
               "setp.eq.b32 p, t, 0; @p st.global.b32 [%0], x; st.global.b32 [%1], x; }"
               :: "l"(G(g)), "l"(G(g + 100 + threadIdx.x)) : "memory");
}
K neighbor_wrong(int* g, int n) {                     // the guard holds for both
  asm volatile("{ .reg .pred p; .reg .b32 x, t; ld.global.b32 x, [%0+4]; mov.u32 t, %%tid.x;\n"  //~ race
               "setp.lt.u32 p, t, 100; @p st.global.b32 [%0], x; }" :: "l"(G(g + threadIdx.x)) : "memory");
}
//@ grid=2
K scalar_of_two_wrong(int* g, int n) {                // two CTAs store it
  asm volatile("{ .reg .pred p; .reg .b32 x, t; ld.global.b32 x, [%0]; add.s32 x, x, 1; mov.u32 t, %%tid.x;\n"  //~ race
               "setp.eq.b32 p, t, 0; @p st.global.b32 [%0], x; }" :: "l"(G(g)) : "memory");
}
K guard_by_value_wrong(int* g, int n) {               // whether it stores depends on what it loads
  asm volatile("{ .reg .pred p; .reg .b32 x; ld.global.b32 x, [%0]; add.s32 x, x, %1;\n"  //~ race
               "setp.eq.b32 p, x, 0; @p st.global.b32 [%0], 1; }" :: "l"(G(g)), "r"((int)threadIdx.x) : "memory");
}
K branch_by_value_wrong(int* g, int n) {
  asm volatile("{ .reg .pred p, q; .reg .b32 x, t; ld.global.b32 x, [%0]; mov.u32 t, %%tid.x; setp.eq.b32 p, t, 0;\n"  //~ race
               "@p st.global.b32 [%0], 5; setp.eq.b32 q, x, 5; @q bra L1; st.global.b32 [%1], t; L1: }"
               :: "l"(G(g)), "l"(G(g + 100 + threadIdx.x)) : "memory");
}
