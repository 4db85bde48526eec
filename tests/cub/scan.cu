// Scans: decoupled look-back over tiles.
#include "check.cuh"

template <class T>
void scans() {
  check(named<T>("InclusiveSum").c_str(), [] {
    auto in = values<T>(size(), 7);
    Device<T> d(in), o(in.size());
    algorithm([&](void* t, size_t& b) { return cub::DeviceScan::InclusiveSum(t, b, d.p, o.p, int(in.size())); });
    std::vector<T> want(in.size());
    std::partial_sum(in.begin(), in.end(), want.begin(), [](T a, T b) { return T(a + b); });
    return o.host() == want;
  });
  check(named<T>("ExclusiveSum").c_str(), [] {
    auto in = values<T>(size(), 7);
    Device<T> d(in), o(in.size());
    algorithm([&](void* t, size_t& b) { return cub::DeviceScan::ExclusiveSum(t, b, d.p, o.p, int(in.size())); });
    T sum = 0;
    std::vector<T> want;
    for (T x : in) want.push_back(sum), sum = T(sum + x);
    return o.host() == want;
  });
  check(named<T>("InclusiveScan max").c_str(), [] {
    auto in = anything<T>(size());
    Device<T> d(in), o(in.size());
    algorithm([&](void* t, size_t& b) { return cub::DeviceScan::InclusiveScan(t, b, d.p, o.p, Most{}, int(in.size())); });
    std::vector<T> want(in.size());
    std::partial_sum(in.begin(), in.end(), want.begin(), Most{});
    return o.host() == want;
  });
  check(named<T>("ExclusiveScan in place").c_str(), [] {
    auto in = anything<T>(size());
    Device<T> d(in);
    T first = T(below(100));
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceScan::ExclusiveScan(t, b, d.p, d.p, Least{}, first, int(in.size()));
    });
    T sum = first;
    std::vector<T> want;
    for (T x : in) want.push_back(sum), sum = Least{}(sum, x);
    return d.host() == want;
  });
  check(named<T>("InclusiveSumByKey").c_str(), [] {
    auto in = values<T>(size(), 5);
    auto keys = stretches<int>(int(in.size()), below(2) ? 5000 : 20);
    Device<T> d(in), o(in.size());
    Device<int> k(keys);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceScan::InclusiveSumByKey(t, b, k.p, d.p, o.p, int(in.size()));
    });
    std::vector<T> want(in);
    for (size_t i = 1; i < in.size(); ++i)
      if (keys[i] == keys[i - 1]) want[i] = T(want[i - 1] + in[i]);
    return o.host() == want;
  });
  check(named<T>("ExclusiveSumByKey").c_str(), [] {
    auto in = values<T>(size(), 5);
    auto keys = stretches<int>(int(in.size()), below(2) ? 5000 : 20);
    Device<T> d(in), o(in.size());
    Device<int> k(keys);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceScan::ExclusiveSumByKey(t, b, k.p, d.p, o.p, int(in.size()));
    });
    std::vector<T> want(in.size(), T(0));
    for (size_t i = 1; i < in.size(); ++i)
      if (keys[i] == keys[i - 1]) want[i] = T(want[i - 1] + in[i - 1]);
    return o.host() == want;
  });
}

void all() {
  scans<int>();
  scans<float>();
  scans<double>();
  scans<int64_t>();
  scans<uint8_t>();
}
