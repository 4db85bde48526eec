// Reductions: of all, by key, of segments, of what a function makes.
#include "check.cuh"

struct Square {
  template <class T>
  __host__ __device__ T operator()(T a) const { return T(a * a); }
};

// Segments of random length: where each begins, and where the last ends.
inline std::vector<int> segments(int n) {
  std::vector<int> at{0};
  while (at.back() < n) at.push_back(std::min(n, at.back() + int(below(below(4) ? 50 : 5000))));
  return at;
}

template <class T>
void reductions() {
  check(named<T>("Sum").c_str(), [] {
    auto in = values<T>(size(200000), 7);
    Device<T> d(in), o(1);
    algorithm([&](void* t, size_t& b) { return cub::DeviceReduce::Sum(t, b, d.p, o.p, int(in.size())); });
    return o.one() == std::accumulate(in.begin(), in.end(), T(0), [](T a, T b) { return T(a + b); });
  });
  check(named<T>("Min and Max").c_str(), [] {
    auto in = anything<T>(size(200000) + 1);
    Device<T> d(in), o(2);
    algorithm([&](void* t, size_t& b) { return cub::DeviceReduce::Min(t, b, d.p, o.p, int(in.size())); });
    algorithm([&](void* t, size_t& b) { return cub::DeviceReduce::Max(t, b, d.p, o.p + 1, int(in.size())); });
    auto [least, most] = std::minmax_element(in.begin(), in.end());
    return o.host() == std::vector<T>{*least, *most};
  });
  check(named<T>("ArgMin and ArgMax").c_str(), [] {
    auto in = values<T>(size(100000) + 1, 120);
    Device<T> d(in), value(2);
    Device<int64_t> at(2);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceReduce::ArgMin(t, b, d.p, value.p, at.p, int64_t(in.size()));
    });
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceReduce::ArgMax(t, b, d.p, value.p + 1, at.p + 1, int64_t(in.size()));
    });
    // The first of equal ones.
    auto least = std::min_element(in.begin(), in.end()), most = std::max_element(in.begin(), in.end());
    return value.host() == std::vector<T>{*least, *most} &&
           at.host() == std::vector<int64_t>{least - in.begin(), most - in.begin()};
  });
  check(named<T>("TransformReduce").c_str(), [] {
    auto in = values<T>(size(100000), 4);
    Device<T> d(in), o(1);
    T first = T(below(5));
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceReduce::TransformReduce(t, b, d.p, o.p, int(in.size()), cuda::std::plus<T>{}, Square{}, first);
    });
    T want = first;
    for (T x : in) want = T(want + Square{}(x));
    return o.one() == want;
  });
  check(named<T>("ReduceByKey").c_str(), [] {
    auto in = values<T>(size(), 5);
    auto keys = stretches<int>(int(in.size()), below(2) ? 3000 : 9);
    Device<T> d(in), o(in.size());
    Device<int> k(keys), unique(in.size()), count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceReduce::ReduceByKey(t, b, k.p, unique.p, d.p, o.p, count.p, cuda::std::plus<T>{}, int(in.size()));
    });
    std::vector<int> want_keys;
    std::vector<T> want;
    for (size_t i = 0; i < in.size(); ++i) {
      if (i == 0 || keys[i] != keys[i - 1]) want_keys.push_back(keys[i]), want.push_back(T(0));
      want.back() = T(want.back() + in[i]);
    }
    return count.one() == int(want.size()) && unique.host(want.size()) == want_keys && o.host(want.size()) == want;
  });
  check(named<T>("SegmentedReduce Sum").c_str(), [] {
    auto in = values<T>(size(), 5);
    auto at = segments(int(in.size()));
    int n = int(at.size()) - 1;
    Device<T> d(in), o(n);
    Device<int> from(at);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceSegmentedReduce::Sum(t, b, d.p, o.p, n, from.p, from.p + 1);
    });
    std::vector<T> want;
    for (int s = 0; s < n; ++s)
      want.push_back(std::accumulate(in.begin() + at[s], in.begin() + at[s + 1], T(0), [](T a, T b) { return T(a + b); }));
    return o.host() == want;
  });
}

void all() {
  reductions<int>();
  reductions<float>();
  reductions<double>();
  reductions<int64_t>();
  reductions<uint8_t>();
}
