// The placement plan: every decision of a transpile, as one value that is the same in every process. It can
// be printed, read back, checked and compared by its fingerprint; passes apply it and decide nothing.
//
//   plan {mode="sync", trainers=2, pservers=["10.0.0.1:6174", "10.0.0.2:6174"]}
//   param w : f32[13, 2048] grad=w@GRAD
//     rows [0, 7) on pserver 1
//     rows [7, 13) on pserver 0
//
// Optional parts of the text:
//
//   header   dialect="fluid-1.8"          compat
//            unwritten_parts="removed"    from the user's program (unwritten_parts.h)
//            send_order=[...]             gradients were not placed in the order of the parameters
//            server_mode="sync"           pservers are told another mode than the plan's
//            staleness=3, clip="global"   settings that the plan carries (settings.def), if not the default
//            push_every=100               geo
//   param    sparse                       its gradient is selected rows
//            prefetched                   trainers request single rows instead of the whole
//            mark="@PIECE"                its slices are w@PIECE.block0 and so on, because w.block0 is taken
//            compression="two_bit 0.5"    of its gradient
//   rows     in chunks of 2000            the slice is larger than a chunk
//            sent_to=[1, 0]               compat, see Slice
//
//   table t : f32[10000, 16] grad=t@GRAD rows by id      a distributed table; after the parameters
//            policy="entry count 3, evict unseen 1000"   of its rows (framework/text/row_policy.h)
//   start mean : f32[3] on pserver 1 statistic           last: a variable that no pserver updates
//
// Trainer 0 sends the initial value of a `start` variable to the pserver; all trainers take it from there.
// `statistic`: each trainer writes its own value later.
//
// ranks.h describes plans without pservers. A plan of mode hybrid has `broadcast` and `reduce` lines for
// variables that trainers exchange, and `param` and `table` lines for the others. With exchange=auto, the
// plan begins with `exchange` lines, which give the choice for each parameter and its reason (exchange.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/text/row_policy.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/conventions.h"
#include "transpiler/plan/ranks.h"

namespace penstock::plan {

// Rows [row_begin, row_end) of a parameter and its gradient, held by one pserver.
struct Slice {
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  int pserver = 0;
  // Rows that are merged, updated and versioned together; rows() if the slice is not cut.
  std::int64_t chunk_rows = 0;
  // Compat only, if the user's dispatcher places a gradient elsewhere than its parameter: the pserver to
  // which each trainer sends the gradient, as Fluid does. Empty: the pserver that holds the slice.
  std::vector<int> sent_to;
  std::int64_t rows() const { return row_end - row_begin; }
  friend bool operator==(const Slice&, const Slice&) = default;
};

struct ParamPlacement {
  std::string param;
  std::string grad;  // the variable that trainers send, without suffix
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false;
  bool prefetched = false;
  std::vector<Slice> slices;  // by rows, ascending
  std::string mark;           // inserted before the suffix of slices' names, if a variable has the plain name
  Compression compression;    // of the gradient that trainers send
  bool sliced() const { return slices.size() > 1; }
  Shape ShapeOf(const Slice& slice) const { return shape.rank() == 0 ? shape : shape.WithRows(slice.rows()); }
  std::int64_t BytesOf(const Slice& slice) const {
    return slice.rows() * shape.RowWidth() * static_cast<std::int64_t>(SizeOf(dtype));
  }
  friend bool operator==(const ParamPlacement&, const ParamPlacement&) = default;
};

// A table sharded by id: row r is on pserver r mod the number of pservers. Trainers request the rows of a
// batch and send gradients of rows.
struct TablePlacement {
  std::string table;
  std::string grad;  // selected rows, as trainers compute it
  DType dtype = DType::kFp32;
  Shape shape;
  RowPolicy policy;  // which ids get a row, and which rows are evicted
  // The shape of the largest possible shard.
  Shape ShardShape(int pservers) const { return shape.WithRows((shape[0] + pservers - 1) / pservers); }
  friend bool operator==(const TablePlacement&, const TablePlacement&) = default;
};

// One slice of one parameter, by position.
struct SliceRef {
  int param = 0;
  int slice = 0;
  friend bool operator==(const SliceRef&, const SliceRef&) = default;
};

// A variable whose initial value all trainers take from trainer 0, by way of a pserver.
struct StartValue {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  int pserver = 0;
  bool statistic = false;  // written by trainers: a running statistic, not a frozen parameter
  friend bool operator==(const StartValue&, const StartValue&) = default;
};

struct PlacementPlan {
  Mode mode = Mode::kSync;
  // The mode that pservers are told: ServerModeOf(mode), except where compat reproduces Fluid's
  // inconsistencies.
  ServerMode server_mode = ServerMode::kSync;
  Dialect dialect = Dialect::kDefault;
  bool lacks_unwritten_parts = false;  // such parts of the user's program were removed
  // The settings that the plan carries, each with a member as in TranspileConfig.
#define PENSTOCK_SETTING(...)
#define PENSTOCK_PLAN_SETTING(type, member, initial, ...) type member = initial;
#include "transpiler/plan/settings.def"
  int trainers = 1;
  int push_every = 0;  // geo: steps between two sends of one trainer
  std::vector<std::string> pservers;
  std::vector<ParamPlacement> params;
  // Positions in params: the order in which gradients were placed on pservers.
  std::vector<int> send_order;
  std::vector<TablePlacement> tables;
  std::vector<ExchangeChoice> exchanges;  // for all trained parameters if the plan chose; otherwise empty
  RankPlan ranks;                         // instead of, or in addition to, pservers and params (ranks.h)
  std::vector<StartValue> start_values;   // by name

  const Conventions& conventions() const { return ConventionsOf(dialect); }
  const Slice& slice(SliceRef ref) const { return params[Index(ref.param)].slices[Index(ref.slice)]; }
  const ParamPlacement& param(SliceRef ref) const { return params[Index(ref.param)]; }
  // The slices on a pserver, in the order in which they were placed.
  std::vector<SliceRef> SlicesOn(int pserver) const;
  std::vector<std::string> AddressesOf(const ParamPlacement& param) const;  // one per slice
  // The addresses to which a trainer sends the gradient, one per slice: AddressesOf, except for `sent_to`.
  std::vector<std::string> SendAddressesOf(const ParamPlacement& param, int trainer) const;
  friend bool operator==(const PlacementPlan&, const PlacementPlan&) = default;

 private:
  static std::size_t Index(int i) { return static_cast<std::size_t>(i); }
};

std::string PrintPlan(const PlacementPlan& plan);
// kInvalidArgument E-plan-text names the line.
Result<PlacementPlan> ParsePlan(std::string_view text);

// The hash of the printed form. Processes compare it before they start.
std::uint64_t Fingerprint(const PlacementPlan& plan);

// Checks the plan alone: ranks or slices are valid, slices tile each parameter's rows exactly once and in
// order, pservers exist, names and addresses are unique, the send order is a permutation, each parameter is
// where its `exchange` line says. E-plan-*.
Status ValidatePlan(const PlacementPlan& plan);
// Checks the plan alone and against its program: parameters and gradients are declared there with these
// types, and no variable of the program has a slice's name.
Status ValidatePlan(const PlacementPlan& plan, const Program& main);

}  // namespace penstock::plan
