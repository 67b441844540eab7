// lookup_table_dequant: looks up rows of a quantized table by id and converts them to floats.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
A row of W holds two floats, low and high, followed by bytes, four in place of each further float:

Out[i, j] = low + (high - low) / 256 * byte j of row Ids[i]

or zeros where Ids[i] is padding_idx (-1: no padding). An id outside the table is an error.)";

constexpr char kNan[] =
    "The elements of W from column 2 on are bytes, which cannot be NaN; low and high follow the general "
    "rule.";

constexpr Dim kHeader = 2;  // low and high
constexpr Dim kBytes = 4;   // in place of a float

Status InferDequant(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("W", 2));
  const Shape &w = c.ShapeOf("W"), &ids = c.ShapeOf("Ids");
  if (w[1] != kUnknownDim && w[1] < kHeader) return c.Error("W (", w, ") must have at least 2 columns");
  if (ids.rank() == 0 || !Compatible(ids[ids.rank() - 1], 1))
    return c.Error("the last extent of Ids (", ids, ") must be 1");
  c.ShareLod("Ids", "Out");
  const Dim width = w[1] == kUnknownDim ? kUnknownDim : (w[1] - kHeader) * kBytes;
  return c.SetShape("Out", Concat(ids.First(ids.rank() - 1), Shape{width}));
}

class LookupDequantKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(w_, ids_, out_);
    padding_ = k.Attr<std::int64_t>("padding_idx");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const Dim height = k[w_].shape()[0], columns = k[w_].shape()[1], width = (columns - kHeader) * kBytes;
    const float* const w = std::as_const(k[w_]).Data<float>();
    float* out = k[out_].Data<float>();
    for (const std::int64_t id : std::as_const(k[ids_]).Span<std::int64_t>()) {
      if (padding_ != -1 && id == padding_) {
        out = std::fill_n(out, width, 0.0f);
        continue;
      }
      if (id < 0 || id >= height)
        return InvalidArgument("E-op-index", "lookup_table_dequant: id ", id, " is outside the table of ",
                               height, " rows");
      const float* const row = w + id * columns;
      const float low = row[0], step = (row[1] - row[0]) / 256.0f;
      const auto* const bytes = reinterpret_cast<const unsigned char*>(row + kHeader);
      for (Dim j = 0; j < width; ++j) *out++ = step * static_cast<float>(bytes[j]) + low;
    }
    return OkStatus();
  }

 private:
  In<"W"> w_;
  In<"Ids"> ids_;
  Out<"Out"> out_;
  std::int64_t padding_ = -1;
};

}  // namespace

void RegisterLookupTableDequant(OpRegistry& ops) {
  ops.Add("lookup_table_dequant")
      .Doc("Looks up rows of a quantized table by id and converts them to floats.", kDoc)
      .Input("W", "the table, [rows, 2 + width / 4]", Only(DType::kFp32))
      .Input("Ids", "[..., 1], row numbers", Only(DType::kInt64))
      .Output("Out", "[..., width]", SameTypeAs("W"), Apart())
      .Attr("padding_idx", std::int64_t{-1}, "the id that yields zeros; -1: none")
      .InferShape(InferDequant)
      .KernelForAnyType<Cpu, LookupDequantKernel>()
      .Nan(kNan)
      .NoGrad();
}

}  // namespace penstock
