#include "executor/plan/layout_cut.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace penstock::exec {
namespace {

using Capacity = std::int64_t;

// More than any sum of costs, and such that sums of a few do not overflow.
constexpr Capacity kForbidden = std::numeric_limits<Capacity>::max() / 8;
constexpr Capacity kCostMax = Capacity{1} << 40;  // nanoseconds

// A flow network. Vertices on the side of kLast are channels last, those on the side of kPlain are plain. An
// arc from u to v is what it costs that u is channels last and v is plain.
class Network {
 public:
  static constexpr int kLast = 0, kPlain = 1;

  Network() : arcs_of_(2) {}

  int Add() {
    arcs_of_.emplace_back();
    return static_cast<int>(arcs_of_.size()) - 1;
  }

  void Arc(int from, int to, Capacity capacity) {
    arcs_of_[Index(from)].push_back(arcs_.size());
    arcs_.push_back({to, capacity});
    arcs_of_[Index(to)].push_back(arcs_.size());
    arcs_.push_back({from, 0});
  }

  // Saturates the cheapest cut: blocking flows along shortest paths, until there is no path.
  void Cut() {
    while (FindDistances()) {
      next_.assign(arcs_of_.size(), 0);
      while (Push() > 0) {
      }
    }
  }
  // After Cut: whether arcs that are not saturated lead from kLast to the vertex.
  bool IsLast(int vertex) const { return distance_[Index(vertex)] >= 0; }

 private:
  // Arc i ^ 1 is the reverse of arc i; what flows along an arc can be pushed back.
  struct Residual {
    int to;
    Capacity left;
  };

  static std::size_t Index(int vertex) { return static_cast<std::size_t>(vertex); }

  bool FindDistances() {
    distance_.assign(arcs_of_.size(), -1);
    distance_[kLast] = 0;
    std::vector<int> reached = {kLast};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const int from = reached[i];
      for (const std::size_t arc : arcs_of_[Index(from)]) {
        const int to = arcs_[arc].to;
        if (arcs_[arc].left == 0 || distance_[Index(to)] >= 0) continue;
        distance_[Index(to)] = distance_[Index(from)] + 1;
        reached.push_back(to);
      }
    }
    return distance_[kPlain] >= 0;
  }

  // Pushes flow along one path of the distances, and returns how much; 0: there is none. Without recursion:
  // a path may have as many arcs as a program has ops.
  Capacity Push() {
    std::vector<std::size_t> path;
    int at = kLast;
    while (at != kPlain) {
      const std::vector<std::size_t>& arcs = arcs_of_[Index(at)];
      std::size_t& next = next_[Index(at)];
      while (next < arcs.size() && !LeadsOn(at, arcs_[arcs[next]])) ++next;
      if (next < arcs.size()) {
        path.push_back(arcs[next]);
        at = arcs_[path.back()].to;
        continue;
      }
      if (path.empty()) return 0;
      at = arcs_[path.back() ^ 1].to;  // a dead end
      path.pop_back();
      ++next_[Index(at)];
    }
    Capacity flow = kForbidden;
    for (const std::size_t arc : path) flow = std::min(flow, arcs_[arc].left);
    for (const std::size_t arc : path) {
      arcs_[arc].left -= flow;
      arcs_[arc ^ 1].left += flow;
    }
    return flow;
  }
  bool LeadsOn(int from, const Residual& arc) const {
    return arc.left > 0 && distance_[Index(arc.to)] == distance_[Index(from)] + 1;
  }

  std::vector<Residual> arcs_;
  std::vector<std::vector<std::size_t>> arcs_of_;  // by vertex
  std::vector<int> distance_;                      // by vertex: arcs from kLast; -1: not reached
  std::vector<std::size_t> next_;                  // by vertex: the first arc that may still lead on
};

Capacity Rounded(double cost) {
  return cost >= static_cast<double>(kCostMax) ? kCostMax : static_cast<Capacity>(std::llround(cost));
}

}  // namespace

int LayoutCut::AddOp(double plain, double channels_last) {
  ops_.push_back({plain, channels_last});
  return static_cast<int>(ops_.size()) - 1;
}

void LayoutCut::AddValue(int writer, std::vector<int> readers, double copy) {
  values_.push_back({writer, std::move(readers), copy});
}

std::vector<bool> LayoutCut::Choose() const {
  Network network;
  std::vector<int> vertices;
  for (const OpCost& op : ops_) {
    vertices.push_back(network.Add());
    network.Arc(Network::kLast, vertices.back(), Rounded(op.plain));
    network.Arc(vertices.back(), Network::kPlain, Rounded(op.channels_last));
  }
  const auto vertex = [&](int op) {
    return op == kPlain ? Network::kPlain : vertices[static_cast<std::size_t>(op)];
  };
  for (const Value& value : values_) {
    // Whether the value is there channels last, and whether it is there in the plain layout: each costs a
    // copy unless the writer makes it.
    const int last = network.Add(), plain = network.Add();
    network.Arc(last, vertex(value.writer), Rounded(value.copy));
    network.Arc(vertex(value.writer), plain, Rounded(value.copy));
    for (const int reader : value.readers) {
      if (reader != kPlain) network.Arc(vertex(reader), last, kForbidden);
      network.Arc(plain, vertex(reader), kForbidden);
    }
  }
  network.Cut();
  std::vector<bool> channels_last;
  for (const int v : vertices) channels_last.push_back(network.IsLast(v));
  return channels_last;
}

}  // namespace penstock::exec
