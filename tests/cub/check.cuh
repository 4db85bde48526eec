// What the programs of this folder share: fresh random data, memory on the device, and a count of wrong runs.
//
// A program gets how many times to run each algorithm, and a seed. Each run has a size and data of its own, and its result is compared
// with what the host computes. Sums are of small integers, so that they are exact in every type and order.
#pragma once
#include <cuda_runtime.h>
#include <cub/cub.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

inline int runs = 10, wrong_kinds = 0;
inline std::mt19937_64 random_bits;

inline void must(cudaError_t e, const char* what) {
  if (e != cudaSuccess) {
    std::printf("%s: %s\n", what, cudaGetErrorString(e));
    std::exit(2);
  }
}

inline uint64_t below(uint64_t n) { return random_bits() % n; }

// Mostly several tiles, now and then one or none.
inline int size(int most = 40000) {
  switch (below(8)) {
    case 0: return int(below(3));
    case 1: return int(below(600));
    default: return 1 + int(below(uint64_t(most)));
  }
}

template <class T>
std::vector<T> values(int n, int kinds) {
  std::vector<T> v(n);
  for (auto& x : v) x = T(below(uint64_t(kinds)));
  return v;
}

// Any bits that compare, so no NaN.
template <class T>
std::vector<T> anything(int n) {
  std::vector<T> v(n);
  for (auto& x : v) x = T(int64_t(random_bits())) / T(3);
  return v;
}

// Runs of equal numbers.
template <class T>
std::vector<T> stretches(int n, int longest) {
  std::vector<T> v(n);
  for (int i = 0; i < n;) {
    auto length = 1 + below(uint64_t(longest));
    auto value = T(below(100));
    for (; length > 0 && i < n; --length) v[i++] = value;
  }
  return v;
}

template <class T>
struct Device {
  T* p = nullptr;
  size_t n;
  explicit Device(size_t n) : n(n) {
    must(cudaMalloc(&p, (n + 1) * sizeof(T)), "cudaMalloc");
    must(cudaMemset(p, 0xa5, (n + 1) * sizeof(T)), "cudaMemset");
  }
  explicit Device(const std::vector<T>& v) : Device(v.size()) {
    if (n) must(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  Device(const Device&) = delete;
  ~Device() { cudaFree(p); }
  operator T*() const { return p; }
  std::vector<T> host(size_t count) const {
    std::vector<T> v(count);
    if (count) must(cudaMemcpy(v.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return v;
  }
  std::vector<T> host() const { return host(n); }
  T one() const { return host(1)[0]; }
};

// Calls an algorithm as CUB wants it: once for the size of its temporary memory, once for the work.
template <class F>
void algorithm(F f) {
  void* temporary = nullptr;
  size_t bytes = 0;
  must(f(temporary, bytes), "the size of temporary memory");
  must(cudaMalloc(&temporary, bytes + 1), "cudaMalloc");
  must(cudaMemset(temporary, 0xa5, bytes + 1), "cudaMemset");
  must(f(temporary, bytes), "the algorithm");
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  cudaFree(temporary);
}

// `once` makes data, runs an algorithm, and says whether the result is right.
template <class F>
void check(const char* name, F once) {
  int wrong = 0;
  for (int i = 0; i < runs; ++i) wrong += !once();
  std::printf("%-44s %d of %d wrong\n", name, wrong, runs);
  std::fflush(stdout);
  wrong_kinds += wrong > 0;
}

template <class T> constexpr const char* name_of = "?";
template <> inline constexpr const char* name_of<int> = "int";
template <> inline constexpr const char* name_of<float> = "float";
template <> inline constexpr const char* name_of<double> = "double";
template <> inline constexpr const char* name_of<int64_t> = "int64";
template <> inline constexpr const char* name_of<uint8_t> = "uint8";

template <class T>
std::string named(const char* name) {
  return std::string(name) + " " + name_of<T>;
}

// The larger and the smaller of two.
struct Most {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
struct Least {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};

void all();

int main(int count, char** words) {
  if (count > 1) runs = std::atoi(words[1]);
  random_bits.seed(count > 2 ? std::strtoull(words[2], nullptr, 10) : std::random_device{}());
  all();
  std::printf(wrong_kinds ? "%d algorithms are wrong\n" : "all right\n", wrong_kinds);
  return wrong_kinds != 0;
}
