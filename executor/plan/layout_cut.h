// Chooses one of two layouts for each op such that the ops and the copies between layouts cost least in sum.
//
//   LayoutCut cut;
//   const int conv = cut.AddOp(120, 80);         // in the plain layout, channels last
//   cut.AddValue(LayoutCut::kPlain, {conv}, 10); // a feed that it reads; 10 for a copy in the other layout
//   cut.AddValue(conv, {LayoutCut::kPlain}, 12); // its result, which is fetched
//   cut.Choose()                                 {true}: 80 + 10 + 12 < 120
//
// Source: the choice is a minimum cut, which is exact for two labels (Greig, Porteous and Seheult 1989). The
// maximum flow that finds it is Dinic's (1970).
#pragma once

#include <vector>

namespace penstock::exec {

class LayoutCut {
 public:
  static constexpr int kPlain = -1;  // stands for an op that takes the plain layout only

  // Adds an op with its cost in each layout, at least 0. Returns its number; ops are counted from 0.
  int AddOp(double plain, double channels_last);
  // Adds a value: the op that writes it, the ops that read it, and the cost of a copy in the other layout,
  // which all readers share.
  void AddValue(int writer, std::vector<int> readers, double copy);

  // Returns whether each op computes channels last. Of equal sums it returns the one with the fewest ops
  // channels last.
  std::vector<bool> Choose() const;

 private:
  struct OpCost {
    double plain, channels_last;
  };
  struct Value {
    int writer;
    std::vector<int> readers;
    double copy;
  };
  std::vector<OpCost> ops_;
  std::vector<Value> values_;
};

}  // namespace penstock::exec
