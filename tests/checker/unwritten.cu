// Loads of memory that the kernel may or may not write: through two arguments that are one buffer, null pointers, variables, pointers that come
// from memory, and pointers that are chosen or advanced. Loads of what is never written are part of no race.
#define K extern "C" __global__ void
#define T threadIdx.x
#define G (blockIdx.x * blockDim.x + threadIdx.x)

K two_buffers_right(const int* in, int* out) { out[(T + 1) & 127] = in[T]; }
//@ alias=1
K one_buffer_wrong(const int* in, int* out) { out[(T + 1) & 127] = in[T]; }                           //~ race
//@ alias=1
K one_buffer_right(const int* in, int* out) { out[T] = in[T] + 1; }
//@ alias=1 grid=2
K one_buffer_blocks_wrong(const int* in, int* out) { out[G] = in[G ^ 128]; }                          //~ race
//@ grid=2
K two_buffers_blocks_right(const int* in, int* out) { out[G] = in[G ^ 128]; }
//@ alias=2
K third_is_first_wrong(const int* in, int* out, int* sums) {
  out[T] = in[T];                                                                                     //~ race
  atomicAdd(&sums[T & 7], 1);                                                                         //~ race
}
//@ alias=2
K third_is_first_right(const int* in, int* out, int* sums) {
  out[T] = in[T];
  __syncthreads();
  atomicAdd(&sums[T & 7], 1);
}
K third_is_other_right(const int* in, int* out, int* sums) {
  out[T] = in[T];
  atomicAdd(&sums[T & 7], 1);
}
//@ null=2
K null_right(const int* in, int* out, int* copy) {
  if (copy) copy[(T + 1) & 127] = in[T];
  out[T] = in[(T + 1) & 127];
}
//@ null=2
K null_wrong(const int* in, int* out, int* copy) {     // nothing is written through the null pointer, but through the other one
  if (copy) copy[T] = in[T];
  out[T] = in[T];                                                                                     //~ race
  out[T + 1] += 1;                                                                                    //~ race
}
//@ alias=2
K no_null_wrong(const int* in, int* out, int* copy) {
  if (copy) copy[(T + 1) & 127] = in[T];                                                              //~ race
  out[T] = in[(T + 1) & 127];
}

__device__ int table[256];
K variable_wrong(const int* in, int* out) {
  table[(T + 1) & 127] = in[T];                                                                       //~ race
  out[T] = table[T];                                                                                  //~ race
}
K variable_right(const int* in, int* out) {
  table[(T + 1) & 127] = in[T];
  __syncthreads();
  out[T] = table[T];
}
__device__ int* where;
K kept_pointer_wrong(const int* in, int* out) {        // a variable holds a pointer to what is read
  if (T == 0) where = (int*)in;
  __syncthreads();
  where[(T + 1) & 127] = in[T];                                                                       //~ race
}
K kept_pointer_right(const int* in, int* out) {
  if (T == 0) where = out;
  __syncthreads();
  where[(T + 1) & 127] = in[T];
}
K loaded_pointer_wrong(int* in, int* out, int** slots) {   // a buffer holds it
  slots[T] = in;
  __syncthreads();
  int* p = slots[127 - T];
  p[(T + 1) & 127] = in[T];                                                                           //~ race
}
K loaded_pointer_right(int* in, int* out, int** slots) {
  slots[T] = out;
  __syncthreads();
  int* p = slots[127 - T];
  p[(T + 1) & 127] = in[T];
}
K shared_pointer_wrong(int* in, int* out) {            // shared memory holds it
  __shared__ int* slot;
  if (T == 0) slot = in;
  __syncthreads();
  slot[(T + 1) & 127] = in[T];                                                                        //~ race
}
K atomic_through_loaded_wrong(int* in, int* out, int** slots) {
  slots[T] = in;
  __syncthreads();
  out[T] = in[T];                                                                                     //~ race
  atomicAdd(slots[T] + 5, 1);                                                                         //~ race
}
K chosen_wrong(int* in, int* out, int n) {             // one of two arguments
  int* to = n > 3 ? in : out;
  to[(T + 1) & 127] = in[T];                                                                          //~ race
}
K chosen_right(int* in, int* out, int n) {
  int* to = n > 9 ? in : out;
  to[(T + 1) & 127] = in[T];
}
K exchanged_wrong(int* a, int* b, int n) {             // buffers that change their parts
  for (int i = 0; i < n; i++) {
    b[(T + 1) & 127] = a[T] + i;                                                                      //~ race
    int* t = a; a = b; b = t;
  }
}
K exchanged_right(int* a, int* b, int n) {
  for (int i = 0; i < n; i++) {
    b[(T + 1) & 127] = a[T] + i;
    __syncthreads();
    int* t = a; a = b; b = t;
  }
}
K advanced_wrong(int* in, int* out, int n) {           // pointers that walk
  const int* p = in + T;
  int* q = in + 128 + ((T + 1) & 127);
  for (int i = 0; i < n; i++, p += 128, q += 128) *q = *p;                                            //~ race
}
K advanced_right(int* in, int* out, int n) {
  const int* p = in + T;
  int* q = out + 128 + ((T + 1) & 127);
  for (int i = 0; i < n; i++, p += 128, q += 128) *q = *p;
}
struct Node { Node* next; int value; };
K list_wrong(Node* nodes, int* out) {                  // nodes that point to one another
  nodes[T].next = &nodes[(T + 1) & 31];
  __syncthreads();
  out[T] = nodes[T].value;                                                                            //~ race
  nodes[T].next->value = 7;                                                                           //~ race
}
K list_right(Node* nodes, int* out) {
  nodes[T].next = &nodes[(T + 1) & 127];
  __syncthreads();
  out[T] = nodes[T].value;
  __syncthreads();
  nodes[T].next->value = 7;
}
__device__ __noinline__ void put(int* to, int value) { *to = value; }   //~ race called_wrong
K called_wrong(int* in, int* out) { put(&in[(T + 1) & 127], in[T]); }                                 //~ race
K called_right(int* in, int* out) { put(&out[(T + 1) & 127], in[T]); }
K copied_wrong(int* in, int* out) { memcpy(in + ((T + 1) & 127), in + T, 4); }                        //~ race
K heap_object_right(int* in, int* out) {               // what is written is an object of the heap
  int* p = (int*)malloc(8);
  p[1] = in[T];
  out[T] = p[1];
  free(p);
}
