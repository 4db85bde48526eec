// Sorts: by digits, by merging, of segments.
#include "check.cuh"

template <class T>
std::vector<T> keys_of(int n) {
  return below(3) ? anything<T>(n) : values<T>(n, 100);
}

inline std::vector<int> segments(int n) {
  std::vector<int> at{0};
  while (at.back() < n) at.push_back(std::min(n, at.back() + int(below(below(4) ? 60 : 6000))));
  return at;
}

// Positions in the order of stably sorted keys.
template <class T, class Less>
std::vector<int> order(const std::vector<T>& keys, int from, int to, Less less) {
  std::vector<int> at(to - from);
  std::iota(at.begin(), at.end(), from);
  std::stable_sort(at.begin(), at.end(), [&](int a, int b) { return less(keys[a], keys[b]); });
  return at;
}

template <class T>
std::vector<T> picked(const std::vector<T>& v, const std::vector<int>& at) {
  std::vector<T> out;
  for (int i : at) out.push_back(v[i]);
  return out;
}

inline std::vector<int> counted(int n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

template <class T>
void sorts() {
  check(named<T>("RadixSort SortKeys").c_str(), [] {
    auto in = keys_of<T>(size());
    Device<T> d(in), o(in.size());
    algorithm([&](void* t, size_t& b) { return cub::DeviceRadixSort::SortKeys(t, b, d.p, o.p, int(in.size())); });
    return o.host() == picked(in, order(in, 0, int(in.size()), std::less<T>{}));
  });
  check(named<T>("RadixSort SortKeysDescending").c_str(), [] {
    auto in = keys_of<T>(size());
    Device<T> d(in), o(in.size());
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceRadixSort::SortKeysDescending(t, b, d.p, o.p, int(in.size()));
    });
    return o.host() == picked(in, order(in, 0, int(in.size()), std::greater<T>{}));
  });
  check(named<T>("RadixSort SortPairs").c_str(), [] {
    auto in = keys_of<T>(size());
    auto items = counted(int(in.size()));
    Device<T> d(in), o(in.size());
    Device<int> v(items), w(items.size());
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceRadixSort::SortPairs(t, b, d.p, o.p, v.p, w.p, int(in.size()));
    });
    auto at = order(in, 0, int(in.size()), std::less<T>{});
    return o.host() == picked(in, at) && w.host() == at;
  });
  check(named<T>("RadixSort SortPairs, double buffer").c_str(), [] {
    auto in = keys_of<T>(size());
    auto items = counted(int(in.size()));
    Device<T> d(in), o(in.size());
    Device<int> v(items), w(items.size());
    cub::DoubleBuffer<T> keys(d.p, o.p);
    cub::DoubleBuffer<int> values(v.p, w.p);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceRadixSort::SortPairsDescending(t, b, keys, values, int(in.size()));
    });
    auto at = order(in, 0, int(in.size()), std::greater<T>{});
    return (keys.selector ? o : d).host() == picked(in, at) && (values.selector ? w : v).host() == at;
  });
  check(named<T>("MergeSort SortKeys").c_str(), [] {
    auto in = keys_of<T>(size());
    Device<T> d(in);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceMergeSort::SortKeys(t, b, d.p, int(in.size()), cuda::std::less<T>{});
    });
    return d.host() == picked(in, order(in, 0, int(in.size()), std::less<T>{}));
  });
  check(named<T>("MergeSort StableSortPairs").c_str(), [] {
    auto in = keys_of<T>(size());
    auto items = counted(int(in.size()));
    Device<T> d(in);
    Device<int> v(items);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceMergeSort::StableSortPairs(t, b, d.p, v.p, int(in.size()), cuda::std::greater<T>{});
    });
    auto at = order(in, 0, int(in.size()), std::greater<T>{});
    return d.host() == picked(in, at) && v.host() == at;
  });
  auto by_segments = [](auto sort) {
    auto in = keys_of<T>(size());
    auto items = counted(int(in.size()));
    auto at = segments(int(in.size()));
    Device<T> d(in), o(in);
    Device<int> v(items), w(items), from(at);
    int n = int(at.size()) - 1;
    algorithm([&](void* t, size_t& b) {
      return sort(t, b, d.p, o.p, v.p, w.p, int(in.size()), n, from.p, from.p + 1);
    });
    std::vector<int> all;
    for (int s = 0; s < n; ++s)
      for (int i : order(in, at[s], at[s + 1], std::less<T>{})) all.push_back(i);
    return o.host() == picked(in, all) && w.host() == all;
  };
  check(named<T>("SegmentedSort StableSortPairs").c_str(), [&] {
    return by_segments([](auto&&... a) { return cub::DeviceSegmentedSort::StableSortPairs(a...); });
  });
  check(named<T>("SegmentedRadixSort SortPairs").c_str(), [&] {
    return by_segments([](auto&&... a) { return cub::DeviceSegmentedRadixSort::SortPairs(a...); });
  });
}

void all() {
#ifdef NARROW
  sorts<int>();
  sorts<float>();
  sorts<uint8_t>();
#else
  sorts<double>();
  sorts<int64_t>();
#endif
}
