// Selection, partition, runs: what is kept is packed by the prefix of how many were kept before.
#include "check.cuh"

struct Below {
  int limit;
  template <class T>
  __host__ __device__ bool operator()(T a) const { return a < T(limit); }
};
struct Odd {
  __host__ __device__ bool operator()(uint8_t a) const { return a & 1; }
};

template <class T>
void selections() {
  check(named<T>("Select If").c_str(), [] {
    auto in = values<T>(size(), 100);
    Below small{int(below(101))};
    Device<T> d(in), o(in.size());
    Device<int> count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceSelect::If(t, b, d.p, o.p, count.p, int(in.size()), small);
    });
    std::vector<T> want;
    std::copy_if(in.begin(), in.end(), std::back_inserter(want), small);
    return count.one() == int(want.size()) && o.host(want.size()) == want;
  });
  check(named<T>("Select If, in place").c_str(), [] {
    auto in = values<T>(size(), 100);
    Below small{int(below(101))};
    Device<T> d(in);
    Device<int> count(1);
    algorithm([&](void* t, size_t& b) { return cub::DeviceSelect::If(t, b, d.p, count.p, int(in.size()), small); });
    std::vector<T> want;
    std::copy_if(in.begin(), in.end(), std::back_inserter(want), small);
    return count.one() == int(want.size()) && d.host(want.size()) == want;
  });
  check(named<T>("Select Flagged").c_str(), [] {
    auto in = anything<T>(size());
    auto flags = values<uint8_t>(int(in.size()), 2);
    Device<T> d(in), o(in.size());
    Device<uint8_t> f(flags);
    Device<int> count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceSelect::Flagged(t, b, d.p, f.p, o.p, count.p, int(in.size()));
    });
    std::vector<T> want;
    for (size_t i = 0; i < in.size(); ++i)
      if (flags[i]) want.push_back(in[i]);
    return count.one() == int(want.size()) && o.host(want.size()) == want;
  });
  check(named<T>("Select FlaggedIf").c_str(), [] {
    auto in = anything<T>(size());
    auto flags = values<uint8_t>(int(in.size()), 200);
    Device<T> d(in), o(in.size());
    Device<uint8_t> f(flags);
    Device<int> count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceSelect::FlaggedIf(t, b, d.p, f.p, o.p, count.p, int(in.size()), Odd{});
    });
    std::vector<T> want;
    for (size_t i = 0; i < in.size(); ++i)
      if (flags[i] & 1) want.push_back(in[i]);
    return count.one() == int(want.size()) && o.host(want.size()) == want;
  });
  check(named<T>("Select Unique").c_str(), [] {
    auto in = stretches<T>(size(), below(2) ? 3000 : 9);
    Device<T> d(in), o(in.size());
    Device<int> count(1);
    algorithm([&](void* t, size_t& b) { return cub::DeviceSelect::Unique(t, b, d.p, o.p, count.p, int(in.size())); });
    std::vector<T> want;
    std::unique_copy(in.begin(), in.end(), std::back_inserter(want));
    return count.one() == int(want.size()) && o.host(want.size()) == want;
  });
  check(named<T>("Select UniqueByKey").c_str(), [] {
    auto keys = stretches<int>(size(), below(2) ? 3000 : 9);
    auto in = anything<T>(int(keys.size()));
    Device<int> k(keys), ko(keys.size()), count(1);
    Device<T> d(in), o(in.size());
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceSelect::UniqueByKey(t, b, k.p, d.p, ko.p, o.p, count.p, int(in.size()));
    });
    std::vector<int> want_keys;
    std::vector<T> want;
    for (size_t i = 0; i < in.size(); ++i)
      if (i == 0 || keys[i] != keys[i - 1]) want_keys.push_back(keys[i]), want.push_back(in[i]);
    return count.one() == int(want.size()) && ko.host(want.size()) == want_keys && o.host(want.size()) == want;
  });
  check(named<T>("Partition If").c_str(), [] {
    auto in = values<T>(size(), 100);
    Below small{int(below(101))};
    Device<T> d(in), o(in.size());
    Device<int> count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DevicePartition::If(t, b, d.p, o.p, count.p, int(in.size()), small);
    });
    // What is kept stands in front in order, the rest behind in the opposite order.
    std::vector<T> want;
    std::copy_if(in.begin(), in.end(), std::back_inserter(want), small);
    size_t kept = want.size();
    std::copy_if(in.rbegin(), in.rend(), std::back_inserter(want), [&](T x) { return !small(x); });
    return count.one() == int(kept) && o.host() == want;
  });
  check(named<T>("Partition Flagged").c_str(), [] {
    auto in = anything<T>(size());
    auto flags = values<uint8_t>(int(in.size()), 2);
    Device<T> d(in), o(in.size());
    Device<uint8_t> f(flags);
    Device<int> count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DevicePartition::Flagged(t, b, d.p, f.p, o.p, count.p, int(in.size()));
    });
    std::vector<T> want;
    for (size_t i = 0; i < in.size(); ++i)
      if (flags[i]) want.push_back(in[i]);
    size_t kept = want.size();
    for (size_t i = in.size(); i-- > 0;)
      if (!flags[i]) want.push_back(in[i]);
    return count.one() == int(kept) && o.host() == want;
  });
  check(named<T>("Partition If, three ways").c_str(), [] {
    auto in = values<T>(size(), 100);
    Below first{int(below(50))}, second{int(50 + below(50))};
    Device<T> a(in), x(in.size()), y(in.size()), z(in.size());
    Device<int> counts(2);
    algorithm([&](void* t, size_t& b) {
      return cub::DevicePartition::If(t, b, a.p, x.p, y.p, z.p, counts.p, int(in.size()), first, second);
    });
    std::vector<T> want[3];
    for (T v : in) want[first(v) ? 0 : second(v) ? 1 : 2].push_back(v);
    return counts.host() == std::vector<int>{int(want[0].size()), int(want[1].size())} &&
           x.host(want[0].size()) == want[0] && y.host(want[1].size()) == want[1] && z.host(want[2].size()) == want[2];
  });
  check(named<T>("RunLengthEncode Encode").c_str(), [] {
    auto in = stretches<T>(size(), below(2) ? 3000 : 9);
    Device<T> d(in), o(in.size());
    Device<int> lengths(in.size()), count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceRunLengthEncode::Encode(t, b, d.p, o.p, lengths.p, count.p, int(in.size()));
    });
    std::vector<T> want;
    std::vector<int> long_;
    for (size_t i = 0; i < in.size(); ++i) {
      if (i == 0 || in[i] != in[i - 1]) want.push_back(in[i]), long_.push_back(0);
      ++long_.back();
    }
    return count.one() == int(want.size()) && o.host(want.size()) == want && lengths.host(want.size()) == long_;
  });
  check(named<T>("RunLengthEncode NonTrivialRuns").c_str(), [] {
    auto in = stretches<T>(size(), below(2) ? 3000 : 3);
    Device<T> d(in);
    Device<int> at(in.size()), lengths(in.size()), count(1);
    algorithm([&](void* t, size_t& b) {
      return cub::DeviceRunLengthEncode::NonTrivialRuns(t, b, d.p, at.p, lengths.p, count.p, int(in.size()));
    });
    std::vector<int> from, long_;
    for (size_t i = 0, end; i < in.size(); i = end) {
      for (end = i + 1; end < in.size() && in[end] == in[i]; ++end) {}
      if (end - i > 1) from.push_back(int(i)), long_.push_back(int(end - i));
    }
    return count.one() == int(from.size()) && at.host(from.size()) == from && lengths.host(from.size()) == long_;
  });
}

void all() {
#ifdef NARROW
  selections<int>();
  selections<float>();
  selections<uint8_t>();
#else
  selections<double>();
  selections<int64_t>();
#endif
}
