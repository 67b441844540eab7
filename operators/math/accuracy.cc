// accuracy: the fraction of rows whose label is among the top classes.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Correct is the number of rows whose Label occurs in the same row of Indices, Total is the number of rows, and
Accuracy is Correct / Total (0 if there are no rows).)";

Status InferAccuracy(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Indices", 0));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("Label", 0));
  if (!Compatible(c.ShapeOf("Indices")[0], c.ShapeOf("Label")[0])) {
    return c.Error("rows of Indices (", c.ShapeOf("Indices")[0], ") must equal rows of Label (",
                   c.ShapeOf("Label")[0], ")");
  }
  for (const char* out : {"Accuracy", "Correct", "Total"})
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(out, Shape{1}));
  return OkStatus();
}

class AccuracyKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(indices_, label_, accuracy_, correct_, total_);
    if (k[label_].shape.Count() == k[label_].shape[0]) return OkStatus();
    return k.Error("Label (", k[label_].shape, ") must hold one label a row");
  }
  Status Run(KernelRun& k) override {
    return k[label_].dtype() == DType::kInt64 ? Count<std::int64_t>(k) : Count<std::int32_t>(k);
  }

 private:
  template <typename Label>
  Status Count(KernelRun& k) {
    const Label* const label = k[label_].template Data<Label>();
    const std::int64_t* indices = k[indices_].Data<std::int64_t>();
    const Dim rows = k[label_].shape()[0];
    const Dim chosen = k[indices_].shape().RowWidth();
    std::int32_t correct = 0;
    for (Dim r = 0; r < rows; ++r, indices += chosen) {
      bool found = false;
      for (Dim i = 0; i < chosen; ++i) found = found || indices[i] == static_cast<std::int64_t>(label[r]);
      correct += found ? 1 : 0;
    }
    *k[correct_].Data<std::int32_t>() = correct;
    *k[total_].Data<std::int32_t>() = static_cast<std::int32_t>(rows);
    *k[accuracy_].Data<float>() = rows == 0 ? 0.0f : static_cast<float>(correct) / static_cast<float>(rows);
    return OkStatus();
  }

  In<"Indices"> indices_;
  In<"Label"> label_;
  Out<"Accuracy"> accuracy_;
  Out<"Correct"> correct_;
  Out<"Total"> total_;
};

}  // namespace

void RegisterAccuracy(OpRegistry& ops) {
  ops.Add("accuracy")
      .Doc("The fraction of rows whose label is among the predicted classes.", kDoc)
      .Input("Out", "the scores of the predicted classes; not read", Floats())
      .Input("Indices", "the predicted classes of each row (top_k's Indices)", Only(DType::kInt64))
      .Input("Label", "the true class of each row", Integers())
      .Output("Accuracy", "the fraction of correct rows", Only(DType::kFp32))
      .Output("Correct", "the number of correct rows", Only(DType::kInt32))
      .Output("Total", "the number of rows", Only(DType::kInt32))
      .InferShape(InferAccuracy)
      .KernelForAnyType<Cpu, AccuracyKernel>()
      .NoGrad();
}

}  // namespace penstock
