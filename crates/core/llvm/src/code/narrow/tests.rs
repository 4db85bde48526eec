use super::narrow;

/// A function with one block, and what becomes of it.
fn narrowed(arguments: &str, body: &str) -> String {
    narrow(&format!("define void @f({arguments}) {{\nentry:\n{body}  ret void\n}}\n"), 256)
}

#[test]
fn masks_are_words_between_blocks() {
    let text = narrow(
        "define void @f(ptr %p, ptr %q, i1 %c) {
entry:
  %x = load <32 x i32>, ptr %p, align 4, !alias.scope !0
  %small = icmp slt <32 x i32> %x, splat (i32 7)
  br i1 %c, label %other, label %end

other:                                            ; preds = %entry
  %odd = icmp eq <32 x i32> %x, splat (i32 1)
  %both = and <32 x i1> %small, %odd
  br label %end

end:                                              ; preds = %entry, %other
  %mask = phi <32 x i1> [ %small, %entry ], [ %both, %other ]
  %y = select <32 x i1> %mask, <32 x i32> %x, <32 x i32> zeroinitializer
  store <32 x i32> %y, ptr %q, align 4
  ret void
}
",
        32,
    );
    assert!(!text.contains("<32 x"), "{text}");
    for line in [
        "%n1.x = load <8 x i32>, ptr %p1.x, align 4, !alias.scope !0",
        "%b3.small = icmp slt <8 x i32> %n3.x, splat (i32 7)",
        "%w3.small = sext <8 x i1> %b3.small to <8 x i32>",
        "%w0.both = and <8 x i32> %w0.small, %w0.odd",
        "%w2.mask = phi <8 x i32> [ %w2.small, %entry ], [ %w2.both, %other ]",
        "store <8 x i32> %n3.y, ptr %p3.store1, align 4",
    ] {
        assert!(text.contains(&format!("  {line}\n")), "{line} in {text}");
    }
}

#[test]
fn runs_are_ordered_by_pieces() {
    let text = narrowed(
        "ptr %p",
        "  %x = load <32 x float>, ptr %p, align 4
  %y = fmul <32 x float> %x, %x
  %k = getelementptr i8, ptr %p, i64 8
  %z = call <32 x float> @llvm.fma.v32f32(<32 x float> %y, <32 x float> %x, <32 x float> %y)
  store <32 x float> %z, ptr %k, align 4
",
    );
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in {text}"));
    assert!(
        at("%k = ") < at("%n0.x = ") && at("%n1.z = ") < at("%n2.x = ") && at("%n3.z = ") < at("store <8 x float>")
    );
    assert!(text.contains("declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)"), "{text}");
}

#[test]
fn what_is_not_understood_stays_whole() {
    let text = narrowed(
        "<32 x i32> %a",
        "  %b = add <32 x i32> %a, splat (i32 1)
  %c = call <32 x i32> @g(<32 x i32> %b)
  %d = add <32 x i32> %c, %b
  %e = trunc <32 x i32> %d to <32 x i8>
  call void @h(<32 x i8> %e)
",
    );
    for line in [
        "%n0.a = shufflevector <32 x i32> %a, <32 x i32> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>",
        "%c = call <32 x i32> @g(<32 x i32> %b)",
        "%n2.d = add <8 x i32> %n2.c, %n2.b",
        "%e = trunc <32 x i32> %d to <32 x i8>",
    ] {
        assert!(text.contains(&format!("  {line}\n")), "{line} in {text}");
    }
    assert_eq!(text.matches("  %b = ").count(), 1);
}

#[test]
fn lanes_without_threads_have_valid_addresses() {
    let body = "  %at = add <32 x i64> %a, splat (i64 4)
  %x = call <32 x i32> @margay.gather.all.i32(<32 x i64> %at)
  %y = add <32 x i32> %x, splat (i32 1)
  call void @h(<32 x i32> %y)
";
    let text = narrow(&format!("define void @f(<32 x i64> %a) {{\nentry:\n{body}  ret void\n}}\n"), 8);
    let halves = [
        "%l.at = shufflevector <8 x i64> %n0.at, <8 x i64> %n0.at, ",
        "%h.at = shufflevector <8 x i64> %n0.at, <8 x i64> %n0.at, ",
    ];
    assert!(halves.iter().all(|half| text.contains(half)), "{text}");
    assert!(text.contains("%l.y = shufflevector <8 x i32> %n0.y, <8 x i32> zeroinitializer, "), "{text}");
}

#[test]
fn tests_of_masks_need_no_packing() {
    let body = "  %some = icmp ult <32 x i32> %a, splat (i32 3)
  %bits = bitcast <32 x i1> %some to i32
  %none = icmp eq i32 %bits, 0
";
    let text = narrowed("<32 x i32> %a", &format!("{body}  call void @g(i1 %none)\n"));
    assert!(!text.contains("<32 x i1>") && text.contains("%none = icmp eq i8 "), "{text}");
    let text = narrowed("<32 x i32> %a", &format!("{body}  call void @h(i32 %bits, i1 %none)\n"));
    assert!(
        text.contains("%bits = bitcast <32 x i1> %some to i32") && text.contains("%none = icmp eq i32 %bits, 0"),
        "{text}"
    );
}

#[test]
fn tests_that_precede_their_mask_find_its_bits() {
    let body = "  br label %first
then:
  %none = icmp eq i32 %bits, 0
  call void @g(i1 %none)
  ret void
first:
  %some = icmp ult <32 x i32> %a, splat (i32 3)
  %bits = bitcast <32 x i1> %some to i32
  %all = icmp eq i32 %bits, -1
  br i1 %all, label %first, label %then
";
    let text = narrowed("<32 x i32> %a", body);
    assert!(
        text.contains("  %some = icmp slt <32 x i32> ") && text.contains("  %bits = bitcast <32 x i1> %some"),
        "{text}"
    );
}

#[test]
fn pieces_without_threads_are_not_computed() {
    let text = narrow(
        "define void @f(<32 x i32> %a) {
entry:
  %b = mul <32 x i32> %a, %a
  %c = icmp ugt <32 x i32> %b, %a
  %bits = bitcast <32 x i1> %c to i32
  %all = icmp eq i32 %bits, -1
  call void @g(<32 x i32> %b, i1 %all)
  ret void
}
",
        12,
    );
    assert!(text.contains("%n1.b = ") && !text.contains("%n2."), "{text}");
    assert!(text.contains("%h.b = shufflevector <8 x i32> zeroinitializer, <8 x i32> zeroinitializer"), "{text}");
    // Not all of 32 lanes.
    assert!(text.contains("%all = icmp eq i32 %bits, -1"), "{text}");
}

#[test]
fn rows_without_threads_are_stored_as_zeros() {
    let text = narrow(
        "define void @f(<32 x i32> %a, ptr %p) {
entry:
  %b = mul <32 x i32> %a, %a
  store <32 x i32> %b, ptr %p, align 64
  ret void
}
",
        12,
    );
    assert!(text.contains("  store <8 x i32> %n1.b, ptr %p1.store1, align 32\n"), "{text}");
    for k in [2, 3] {
        assert!(text.contains(&format!("  store <8 x i32> zeroinitializer, ptr %p{k}.store1, align ")), "{text}");
    }
}
