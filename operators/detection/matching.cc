// bipartite_match, target_assign, mine_hard_examples: match boxes with objects, assign targets, select
// negatives.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/int_list.h"
#include "operators/common/lod.h"
#include "operators/detection/made_rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
bipartite_match: for each sequence of rows of DistMat, repeatedly matches the row and the column with the
largest distance among those not matched yet. Distances below 1e-6 are not matched. With match_type
per_prediction, each remaining column is then matched with the row of its largest distance, if that is at
least dist_threshold. ColToRowMatchIndices[n, j] is the row within sequence n that is matched with column j,
or -1; ColToRowMatchDist is its distance, or 0. Rows without LoD form one sequence.

target_assign: Out[n, j] is row MatchIndices[n, j] of sequence n of X, at column j modulo the columns of X,
with weight 1. Where the index is -1, it is mismatch_value with weight 0. For the columns listed in sequence n
of NegIndices it is mismatch_value with weight 1.

mine_hard_examples: selects, for each image, the eligible columns with the largest losses. With mining_type
max_negative, unmatched columns whose distance is below neg_dist_threshold are eligible; of these,
neg_pos_ratio times the number of matches are selected by ClsLoss and listed in NegIndices. With hard_example,
all columns are eligible; sample_size of them are selected by ClsLoss + LocLoss. NegIndices then lists the
selected columns without a match, and UpdatedMatchIndices keeps only the selected matches.)";

constexpr double kNoDistance = 1e-6;

Status InferBipartiteMatch(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("DistMat", 2));
  const Shape shape = {kUnknownDim, c.ShapeOf("DistMat")[1]};
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("ColToRowMatchIndices", shape));
  return c.SetShape("ColToRowMatchDist", shape);
}

template <typename Device, typename T>
class BipartiteMatchKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    distances_.Prepare(k, "DistMat");
    per_prediction_ = k.Attr<std::string>("match_type") == "per_prediction";
    threshold_ = static_cast<T>(k.Attr<float>("dist_threshold"));
    columns_ = k.Input("DistMat").shape[1];
    indices_.Start(k.Output("ColToRowMatchIndices"), DType::kInt32, {0, columns_});
    of_match_.Start(k.Output("ColToRowMatchDist"), k.Input("DistMat").dtype, {0, columns_});
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const Tensor& distances = std::as_const(k[distances_.operand()]);
    Offsets sequences;
    if (!distances.lod().empty()) {
      PENSTOCK_RETURN_IF_ERROR(distances_.Levels(k, 1, 1).status());
      PENSTOCK_ASSIGN_OR_RETURN(sequences, distances_.Innermost(k));
    }
    const Dim count = distances.lod().empty() ? 1 : sequences.count();
    std::int32_t* indices = indices_.Make(k, count).template Data<std::int32_t>();
    T* of_match = of_match_.Make(k, count).template Data<T>();
    for (Dim n = 0; n < count; ++n, indices += columns_, of_match += columns_) {
      std::fill_n(indices, columns_, -1);
      std::fill_n(of_match, columns_, T{0});
      const Dim first = distances.lod().empty() ? 0 : sequences.begin(n);
      const Dim rows = distances.lod().empty() ? distances.shape()[0] : sequences.length(n);
      const T* const mine = distances.template Data<T>() + first * columns_;
      Match(mine, rows, indices, of_match);
      if (per_prediction_) MatchTheRest(mine, rows, indices, of_match);
    }
    return OkStatus();
  }

 private:
  void Match(const T* distances, Dim rows, std::int32_t* indices, T* of_match) {
    pairs_.clear();
    for (Dim at = 0; at < rows * columns_; ++at) {
      if (distances[at] >= static_cast<T>(kNoDistance)) pairs_.push_back(at);
    }
    // Of equal distances, the first by column, then by row, is taken.
    std::sort(pairs_.begin(), pairs_.end(), [&](Dim a, Dim b) {
      if (distances[a] != distances[b]) return distances[a] > distances[b];
      return std::pair(a % columns_, a) < std::pair(b % columns_, b);
    });
    taken_.assign(static_cast<std::size_t>(rows), false);
    for (const Dim at : pairs_) {
      const Dim row = at / columns_, column = at % columns_;
      if (indices[column] != -1 || taken_[static_cast<std::size_t>(row)]) continue;
      taken_[static_cast<std::size_t>(row)] = true;
      indices[column] = static_cast<std::int32_t>(row);
      of_match[column] = distances[at];
    }
  }
  void MatchTheRest(const T* distances, Dim rows, std::int32_t* indices, T* of_match) const {
    for (Dim column = 0; column < columns_; ++column) {
      if (indices[column] != -1) continue;
      for (Dim row = 0; row < rows; ++row) {
        const T distance = distances[row * columns_ + column];
        const bool is_far = distance >= threshold_ && distance >= static_cast<T>(kNoDistance);
        if (!is_far || !(indices[column] == -1 || distance > of_match[column])) continue;
        indices[column] = static_cast<std::int32_t>(row);
        of_match[column] = distance;
      }
    }
  }

  SequenceInput distances_;
  MadeRows indices_, of_match_;
  bool per_prediction_ = false;
  T threshold_{};
  Dim columns_ = 0;
  std::vector<Dim> pairs_;
  std::vector<bool> taken_;
};

Status InferTargetAssign(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &match = c.ShapeOf("MatchIndices");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 3));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("MatchIndices", 2));
  if (c.HasInput("NegIndices")) {
    const Shape& negatives = c.ShapeOf("NegIndices");
    if (negatives.rank() != 2 || !Compatible(negatives[1], 1))
      return c.Error("shape of NegIndices (", negatives, ") must be [indices, 1]");
  }
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("Out", {match[0], match[1], x[2]}));
  return c.SetShape("OutWeight", {match[0], match[1], 1});
}

template <typename Device, typename T>
class TargetAssignKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(match_);
    negatives_.Prepare(k, "NegIndices");
    k.Bind(out_, weight_);
    mismatch_ = static_cast<T>(k.Attr<std::int32_t>("mismatch_value"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets rows, x_.Innermost(k));
    const Shape& shape = k[x_.operand()].shape();
    const Dim images = k[match_].shape()[0], columns = k[match_].shape()[1], width = shape[2];
    if (rows.count() != images)
      return LodError(x_.what(), " is in ", rows.count(), " sequences; MatchIndices has ", images, " rows");
    const std::int32_t* match = std::as_const(k[match_]).template Data<std::int32_t>();
    const T* const x = std::as_const(k[x_.operand()]).template Data<T>();
    T* out = k[out_].template Data<T>();
    float* weight = k[weight_].template Data<float>();
    for (Dim n = 0; n < images; ++n) {
      for (Dim j = 0; j < columns; ++j, ++match, out += width) {
        *weight++ = *match >= 0 ? 1.0f : 0.0f;
        if (*match < 0) {
          std::fill_n(out, width, mismatch_);
          continue;
        }
        if (*match >= rows.length(n) || shape[1] == 0)
          return InvalidArgument("E-op-index", "target_assign: MatchIndices holds ", *match, "; sequence ", n,
                                 " of X has ", rows.length(n), " rows");
        std::copy_n(x + ((rows.begin(n) + *match) * shape[1] + j % shape[1]) * width, width, out);
      }
    }
    return negatives_ ? AssignNegatives(k) : OkStatus();
  }

 private:
  Status AssignNegatives(KernelRun& k) {
    PENSTOCK_ASSIGN_OR_RETURN(const Offsets negatives, negatives_.Innermost(k));
    const Dim images = k[match_].shape()[0], columns = k[match_].shape()[1],
              width = k[x_.operand()].shape()[2];
    if (negatives.count() != images)
      return LodError(negatives_.what(), " is in ", negatives.count(), " sequences; MatchIndices has ",
                      images, " rows");
    const std::int32_t* const listed = std::as_const(k[negatives_.operand()]).template Data<std::int32_t>();
    for (Dim n = 0; n < images; ++n) {
      for (Dim i = negatives.begin(n); i < negatives.end(n); ++i) {
        if (listed[i] < 0 || listed[i] >= columns)
          return InvalidArgument("E-op-index", "target_assign: NegIndices holds ", listed[i],
                                 "; MatchIndices has ", columns, " columns");
        const Dim at = n * columns + listed[i];
        std::fill_n(k[out_].template Data<T>() + at * width, width, mismatch_);
        k[weight_].template Data<float>()[at] = 1.0f;
      }
    }
    return OkStatus();
  }

  SequenceInput x_, negatives_;
  In<"MatchIndices"> match_;
  Out<"Out"> out_;
  Out<"OutWeight"> weight_;
  T mismatch_{};
};

Status InferMineHardExamples(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("ClsLoss", 2));
  const Shape& shape = c.ShapeOf("ClsLoss");
  // Run checks that all shapes are equal, because a reshape whose shape is a tensor may have produced them.
  for (const char* slot : {"LocLoss", "MatchIndices", "MatchDist"}) {
    if (!c.HasInput(slot)) continue;
    PENSTOCK_RETURN_IF_ERROR(c.RequireRank(slot, 2));
    if (!Compatible(c.ShapeOf(slot)[0], shape[0]))
      return c.Error("images of ", slot, " (", c.ShapeOf(slot), ") must be those of ClsLoss (", shape, ")");
  }
  c.SetLodLevel("NegIndices", 1);
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("NegIndices", {kUnknownDim, 1}));
  return c.SetShape("UpdatedMatchIndices", c.ShapeOf("MatchIndices"));
}

template <typename Device, typename T>
class MineHardExamplesKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(updated_);
    class_loss_ = k.Input("ClsLoss");
    place_loss_ = k.Input("LocLoss");
    distance_ = k.Input("MatchDist");
    match_ = k.Input("MatchIndices");
    hard_ = k.Attr<std::string>("mining_type") == "hard_example";
    ratio_ = k.Attr<float>("neg_pos_ratio");
    threshold_ = static_cast<T>(k.Attr<float>("neg_dist_threshold"));
    sample_ = k.Attr<std::int32_t>("sample_size");
    return negatives_.Prepare(k, "NegIndices", DType::kInt32, {0, 1});
  }
  Status Run(KernelRun& k) override {
    const Shape& shape = k[match_].shape();
    for (const NamedOperand* other : {&class_loss_, &place_loss_, &distance_}) {
      if (*other && k[*other].shape() != shape)
        return InvalidArgument("E-op-value", "mine_hard_examples: shape of ", other->name, " (",
                               k[*other].shape(), ") must be that of ", match_.name, " (", shape, ")");
    }
    const Dim images = shape[0], columns = shape[1];
    const std::int32_t* const match = std::as_const(k[match_]).template Data<std::int32_t>();
    std::int32_t* const updated = k[updated_].template Data<std::int32_t>();
    if (match != updated) std::copy_n(match, images * columns, updated);
    lod_.Start(1);
    listed_.clear();
    for (Dim n = 0; n < images; ++n) {
      const std::size_t before = listed_.size();
      Choose(k, n, columns);
      std::sort(chosen_.begin(), chosen_.end());
      std::int32_t* const mine = updated + n * columns;
      for (const Dim at : chosen_) {
        if (mine[at] < 0 || !hard_) listed_.push_back(static_cast<std::int32_t>(at));
      }
      for (Dim at = 0; hard_ && at < columns; ++at) {
        if (!std::binary_search(chosen_.begin(), chosen_.end(), at)) mine[at] = -1;
      }
      lod_.Add(0, static_cast<Dim>(listed_.size() - before));
    }
    Tensor& out = negatives_.Make(k, static_cast<Dim>(listed_.size()));
    std::ranges::copy(listed_, out.Data<std::int32_t>());
    lod_.Set(out);
    return OkStatus();
  }

 private:
  // Selects the columns of image n with the largest losses.
  void Choose(KernelRun& k, Dim n, Dim columns) {
    const T* const class_loss = std::as_const(k[class_loss_]).template Data<T>() + n * columns;
    const T* const place_loss =
        hard_ && place_loss_ ? std::as_const(k[place_loss_]).template Data<T>() + n * columns : nullptr;
    const std::int32_t* const match = std::as_const(k[match_]).template Data<std::int32_t>() + n * columns;
    const T* const distance = std::as_const(k[distance_]).template Data<T>() + n * columns;
    chosen_.clear();
    Dim matches = 0;
    for (Dim at = 0; at < columns; ++at) {
      if (match[at] != -1) ++matches;
      if (hard_ || (match[at] == -1 && distance[at] < threshold_)) chosen_.push_back(at);
    }
    const auto loss = [&](Dim at) {
      return class_loss[at] + (place_loss == nullptr ? T{0} : place_loss[at]);
    };
    std::sort(chosen_.begin(), chosen_.end(), [&](Dim a, Dim b) {
      const bool first = std::isnan(loss(a)), second = std::isnan(loss(b));  // NaN last
      if (first != second) return second;
      return !first && loss(a) != loss(b) ? loss(a) > loss(b) : a < b;
    });
    const double wanted =
        hard_ ? static_cast<double>(sample_) : static_cast<double>(static_cast<float>(matches) * ratio_);
    if (wanted < static_cast<double>(chosen_.size()))
      chosen_.resize(static_cast<std::size_t>(std::max(wanted, 0.0)));
  }

  NamedOperand class_loss_;
  NamedOperand place_loss_;
  NamedOperand distance_;
  Out<"UpdatedMatchIndices"> updated_;
  NamedOperand match_;
  RowsOutput negatives_;
  MadeLod lod_;
  bool hard_ = false;
  float ratio_ = 1;
  T threshold_{};
  Dim sample_ = 0;
  std::vector<Dim> chosen_;
  std::vector<std::int32_t> listed_;
};

}  // namespace

void RegisterMatching(OpRegistry& ops) {
  ops.Add("bipartite_match")
      .Doc("Matches each column of a distance matrix with a row.", kDoc)
      .Input("DistMat", "[rows, columns]; larger values are better matches", Floats())
      .Output("ColToRowMatchIndices", "[sequences, columns]", Only(DType::kInt32), Apart())
      .Output("ColToRowMatchDist", "[sequences, columns]", SameTypeAs("DistMat"), Apart())
      .Attr("match_type", "bipartite", "whether remaining columns are matched too",
            OneOf({"bipartite", "per_prediction"}))
      .Attr("dist_threshold", 0.5f, "the smallest distance at which a remaining column is matched")
      .Nan("a distance that is NaN is never matched.")
      .InferShape(InferBipartiteMatch)
      .Kernel<Cpu, BipartiteMatchKernel, float, double>()
      .NoGrad();
  ops.Add("target_assign")
      .Doc("Assigns to each box the target of the object that it is matched with.", kDoc)
      .Input("X", "[objects, columns, width], one sequence per image",
             OneOfTypes<float, double, std::int32_t, std::int64_t>())
      .Input("MatchIndices", "[images, boxes]", Only(DType::kInt32))
      .Input("NegIndices", "[indices, 1], one sequence per image", Only(DType::kInt32), Optional())
      .Output("Out", "[images, boxes, width]", SameTypeAs("X"), Apart())
      .Output("OutWeight", "[images, boxes, 1]", Only(DType::kFp32))
      .Attr("mismatch_value", 0, "the target of boxes without an object")
      .InferShape(InferTargetAssign)
      .KernelTypeFrom("X")
      .Kernel<Cpu, TargetAssignKernel, float, double, std::int32_t, std::int64_t>()
      .NoGrad();
  ops.Add("mine_hard_examples")
      .Doc("Selects the boxes without an object that have the largest losses.", kDoc)
      .Input("ClsLoss", "[images, boxes]", Floats())
      .Input("LocLoss", "[images, boxes]", SameTypeAs("ClsLoss"), Optional())
      .Input("MatchIndices", "[images, boxes]", Only(DType::kInt32))
      .Input("MatchDist", "[images, boxes]", SameTypeAs("ClsLoss"))
      .Output("NegIndices", "[indices, 1], one sequence per image", Only(DType::kInt32))
      .Output("UpdatedMatchIndices", "[images, boxes]", Only(DType::kInt32), Apart())
      .Attr("neg_pos_ratio", 1.0f, "the number of negatives per match, for max_negative")
      .Attr("neg_dist_threshold", 0.5f, "negatives have distances below this, for max_negative")
      .Attr("sample_size", 0, "the number of columns to select, for hard_example", AtLeast(0))
      .Attr("mining_type", "max_negative", "which columns are eligible",
            OneOf({"max_negative", "hard_example"}))
      .Nan("a loss that is NaN is the smallest.")
      .InferShape(InferMineHardExamples)
      .KernelTypeFrom("ClsLoss")
      .Kernel<Cpu, MineHardExamplesKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
