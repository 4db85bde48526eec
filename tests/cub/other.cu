// Histograms, differences, loops, transformations, merges, copies of many ranges.
#include "check.cuh"

struct Difference {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const { return T(a - b); }
};
template <class T>
struct Twice {
  T* out;
  const T* in;
  __device__ void operator()(int i) const { out[i] = T(in[i] + in[i]); }
};
struct AddOne {
  template <class T>
  __device__ void operator()(T& v) const { v = T(v + T(1)); }
};
struct Mixed {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const { return T(a + a + b); }
};

template <class T>
void others() {
  check(named<T>("HistogramEven").c_str(), [] {
    auto in = values<T>(size(), 120);
    int bins = 1 + int(below(100));
    Device<T> d(in);
    Device<int> o(bins);
    T low = T(10), high = T(10 + bins);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceHistogram::HistogramEven(t, b, d.p, o.p, bins + 1, low, high, int(in.size()));
    });
    std::vector<int> want(bins);
    for (T x : in)
      if (x >= low && x < high) ++want[int(x - low)];
    return o.host() == want;
  });
  check(named<T>("HistogramRange").c_str(), [] {
    auto in = values<T>(size(), 120);
    std::vector<T> levels;
    for (int at = int(below(20)); at < 100 || levels.size() < 2; at += 1 + int(below(20))) levels.push_back(T(at));
    Device<T> d(in), l(levels);
    int bins = int(levels.size()) - 1;
    Device<int> o(bins);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceHistogram::HistogramRange(t, b, d.p, o.p, bins + 1, l.p, int(in.size()));
    });
    std::vector<int> want(bins);
    for (T x : in) {
      auto at = std::upper_bound(levels.begin(), levels.end(), x) - levels.begin() - 1;
      if (at >= 0 && at < bins) ++want[at];
    }
    return o.host() == want;
  });
  check(named<T>("AdjacentDifference").c_str(), [] {
    auto in = values<T>(size(), 100);
    Device<T> d(in), e(in), o(in.size());
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceAdjacentDifference::SubtractLeftCopy(t, b, d.p, o.p, int(in.size()), Difference{});
    });
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceAdjacentDifference::SubtractRight(t, b, e.p, int(in.size()), Difference{});
    });
    std::vector<T> left(in), right(in);
    for (size_t i = 1; i < in.size(); ++i) left[i] = T(in[i] - in[i - 1]), right[i - 1] = T(in[i - 1] - in[i]);
    return o.host() == left && e.host() == right;
  });
  check(named<T>("For Bulk and ForEach").c_str(), [] {
    auto in = values<T>(size(), 100);
    Device<T> d(in), o(in.size());
    must(cub::DeviceFor::Bulk(int(in.size()), Twice<T>{o.p, d.p}), "Bulk");
    must(cub::DeviceFor::ForEachN(d.p, int(in.size()), AddOne{}), "ForEachN");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> two(in), more(in);
    for (auto& x : two) x = T(x + x);
    for (auto& x : more) x = T(x + T(1));
    return o.host() == two && d.host() == more;
  });
  check(named<T>("Transform").c_str(), [] {
    auto a = values<T>(size(100000), 40), b = values<T>(int(a.size()), 40);
    Device<T> x(a), y(b), o(a.size());
    must(cub::DeviceTransform::Transform(cuda::std::tuple<T*, T*>{x.p, y.p}, o.p, int(a.size()), Mixed{}), "Transform");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> want(a.size());
    std::transform(a.begin(), a.end(), b.begin(), want.begin(), Mixed{});
    return o.host() == want;
  });
  check(named<T>("Merge MergeKeys").c_str(), [] {
    auto a = anything<T>(size(20000)), b = anything<T>(size(20000));
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    Device<T> x(a), y(b), o(a.size() + b.size());
    algorithm([&](void* t, size_t& bytes) {
      return cub::DeviceMerge::MergeKeys(t, bytes, x.p, int(a.size()), y.p, int(b.size()), o.p, cuda::std::less<T>{});
    });
    std::vector<T> want(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), want.begin());
    return o.host() == want;
  });
  auto many = [](auto copy, int unit) {
    auto in = anything<T>(size());
    std::vector<T> want(in.size());
    std::vector<int> at{0};
    while (at.back() < int(in.size()))
      at.push_back(std::min(int(in.size()), at.back() + int(below(below(8) ? 40 : 9000))));
    int n = int(at.size()) - 1;
    Device<T> d(in), o(in.size());
    // The ranges change places.
    std::vector<int> shuffled(n);
    std::iota(shuffled.begin(), shuffled.end(), 0);
    std::shuffle(shuffled.begin(), shuffled.end(), random_bits);
    std::vector<T*> from(n), to(n);
    std::vector<int> lengths(n);
    int place = 0;
    for (int s : shuffled) {
      int length = at[s + 1] - at[s];
      from[s] = d.p + at[s], to[s] = o.p + place, lengths[s] = length * unit;
      std::copy(in.begin() + at[s], in.begin() + at[s + 1], want.begin() + place);
      place += length;
    }
    Device<T*> f(from), g(to);
    Device<int> l(lengths);
    algorithm([&](void* t, size_t& b) { return copy(t, b, f.p, g.p, l.p, n); });
    return o.host() == want;
  };
  check(named<T>("Copy Batched").c_str(), [&] {
    return many([](auto&&... a) { return cub::DeviceCopy::Batched(a...); }, 1);
  });
  check(named<T>("Memcpy Batched").c_str(), [&] {
    return many(
        [](void* t, size_t& b, T** from, T** to, int* lengths, int n) {
          return cub::DeviceMemcpy::Batched(t, b, (void**)from, (void**)to, lengths, n);
        },
        int(sizeof(T)));
  });
}

void all() {
  others<int>();
  others<float>();
  others<double>();
  others<int64_t>();
  others<uint8_t>();
}
