; Lanes of the mask whose access of %bytes bytes lies in none of the device heap's small objects; other lanes are
; arbitrary. Lanes often share one address, as in a call of one object's function: then one scalar read of the table
; takes a tenth of the time.
define internal i32 @margay.no.object(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %bytes) #2 {
  %buffer = alloca <32 x i64>, align 64
  %heap.p = getelementptr i8, ptr %ctx, i64 {heap}
  %heap = load i64, ptr %heap.p, align 8
  %size.p = getelementptr i8, ptr %ctx, i64 {heap_size}
  %size = load i64, ptr %size.p, align 8
  %table.p = getelementptr i8, ptr %ctx, i64 {heap_table}
  %table = load ptr, ptr %table.p, align 8
  %any = icmp ne i64 %size, 0
  br i1 %any, label %compare, label %none
; Addresses in the heap.
compare:
  %heap.one = insertelement <32 x i64> poison, i64 %heap, i32 0
  %heap.all = shufflevector <32 x i64> %heap.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %size.one = insertelement <32 x i64> poison, i64 %size, i32 0
  %size.all = shufflevector <32 x i64> %size.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %offset = sub <32 x i64> %at, %heap.all
  %inside = icmp ult <32 x i64> %offset, %size.all
  %inside.bits = bitcast <32 x i1> %inside to i32
  %in = and i32 %inside.bits, %mask
  %some = icmp ne i32 %in, 0
  br i1 %some, label %search, label %none
; Do they all have the address of the first one?
search:
  store volatile <32 x i64> %offset, ptr %buffer, align 64
  %lane = call i32 @llvm.cttz.i32(i32 %in, i1 true)
  %lead.p = getelementptr i64, ptr %buffer, i32 %lane
  %lead = load i64, ptr %lead.p, align 8
  %lead.one = insertelement <32 x i64> poison, i64 %lead, i32 0
  %lead.all = shufflevector <32 x i64> %lead.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %differ = icmp ne <32 x i64> %offset, %lead.all
  %differ.bits = bitcast <32 x i1> %differ to i32
  %others = and i32 %differ.bits, %mask
  %alike = icmp eq i32 %others, 0
  br i1 %alike, label %one, label %each
one:
  %granule.one = lshr i64 %lead, {granule}
  %entry.p = getelementptr i64, ptr %table, i64 %granule.one
  %entry.one = load i64, ptr %entry.p, align 8
{over_one}
  %all = sext i1 %over.one to i32
  ret i32 %all
; Lanes outside the heap read the entry of its first granule, and are counted as missing it.
each:
  %bytes.one = insertelement <32 x i64> poison, i64 %bytes, i32 0
  %bytes.all = shufflevector <32 x i64> %bytes.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %safe = select <32 x i1> %inside, <32 x i64> %offset, <32 x i64> zeroinitializer
  %granule.each = lshr <32 x i64> %safe, splat (i64 {granule})
  %entries = getelementptr i64, ptr %table, <32 x i64> %granule.each
  %entry.each = call <32 x i64> @llvm.masked.gather.v32i64.v32p0(<32 x ptr> align 8 %entries, <32 x i1> splat (i1 true), <32 x i64> poison)
{over_each}
  %over.bits = bitcast <32 x i1> %over.each to i32
  %outside.bits = xor i32 %inside.bits, -1
  %bad = or i32 %over.bits, %outside.bits
  ret i32 %bad
none:
  ret i32 -1
}
declare <32 x i64> @llvm.masked.gather.v32i64.v32p0(<32 x ptr>, <32 x i1>, <32 x i64>)
