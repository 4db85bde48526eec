// A struct passed by value to a kernel and to a function, and one returned: what `margay abi` explains.

struct Body {
  char kind;      // 0
  double mass;    // 8: seven bytes of padding before it
  float at[3];    // 16
  short flags;    // 28
};                // 32 bytes, aligned 8

struct Moved {
  float at[3];
  float energy;
};

__device__ __noinline__ Moved move(Body body, float dt) {
  Moved moved;
  for (int i = 0; i < 3; i++) moved.at[i] = body.at[i] + dt * (float)(body.kind + i);
  moved.energy = (float)body.mass * dt * (float)body.flags;
  return moved;
}

extern "C" __global__ void step(Body body, const float *dt, Moved *out) {
  int i = threadIdx.x;
  out[i] = move(body, dt[i]);
}
