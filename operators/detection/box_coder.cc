// box_coder: encodes boxes as offsets from prior boxes, and decodes them.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/detection/boxes.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Let (x, y), w and h be the centre, width and height of a box; px, py, pw and ph those of a prior box; and v
the variances of the prior box.

encode_center_size, for box i of TargetBox and prior box j:
  OutputBox[i, j] = ((x - px) / pw / v0, (y - py) / ph / v1, log|w / pw| / v2, log|h / ph| / v3)

decode_center_size, for t = TargetBox[i, j] and prior box j (prior box i if axis is 1):
  x = v0 * t0 * pw + px, y = v1 * t1 * ph + py, w = exp(v2 * t2) * pw, h = exp(v3 * t3) * ph

The variances come from PriorBoxVar if it is given, otherwise from attribute `variance`, otherwise they are 1.
Without box_normalized, width and height are one larger than the difference of the coordinates, and the centre
of a prior box (but not that of an encoded box) is moved by half a pixel.)";

Status InferBoxCoder(InferContext& c) {
  const Shape &prior = c.ShapeOf("PriorBox"), &target = c.ShapeOf("TargetBox");
  const bool encodes = c.Attr<std::string>("code_type") == "encode_center_size";
  const int axis = c.Attr<std::int32_t>("axis");
  if (prior.rank() != 2 || !Compatible(prior[1], 4))
    return c.Error("shape of PriorBox (", prior, ") must be [boxes, 4]");
  if (c.HasInput("PriorBoxVar") && !Compatible(c.ShapeOf("PriorBoxVar"), prior))
    return c.Error("shape of PriorBoxVar (", c.ShapeOf("PriorBoxVar"), ") must be that of PriorBox, ", prior);
  const std::size_t variances = c.Attr<std::vector<float>>("variance").size();
  if (variances != 0 && variances != 4)
    return c.Error("variance must have 4 values or none, not ", variances);
  c.ShareLod(!encodes && axis == 1 ? "PriorBox" : "TargetBox", "OutputBox");
  if (encodes) {
    if (target.rank() != 2 || !Compatible(target[1], 4))
      return c.Error("shape of TargetBox (", target, ") must be [boxes, 4]");
    return c.SetShape("OutputBox", {target[0], prior[0], 4});
  }
  if (target.rank() != 3 || !Compatible(target[2], 4) || !Compatible(target[axis == 0 ? 1 : 0], prior[0]))
    return c.Error("shape of TargetBox (", target, ") must be [rows, columns, 4] with ", prior[0],
                   axis == 0 ? " columns" : " rows", ", the boxes of PriorBox");
  return c.SetShape("OutputBox", target);
}

template <typename Device, typename T>
class BoxCoderKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(prior_, variances_, target_, out_);
    encodes_ = k.Attr<std::string>("code_type") == "encode_center_size";
    normalized_ = k.Attr<bool>("box_normalized");
    by_row_ = !encodes_ && k.Attr<std::int32_t>("axis") == 1;
    const auto variance = k.Attr<std::vector<float>>("variance");
    for (std::size_t i = 0; i < variance.size(); ++i) variance_[i] = static_cast<T>(variance[i]);
    columns_ = encodes_ ? k[prior_].shape[0] : k[target_].shape[1];
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const prior = std::as_const(k[prior_]).template Data<T>();
    const T* const variances = variances_ ? std::as_const(k[variances_]).template Data<T>() : nullptr;
    const T* const target = std::as_const(k[target_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    for (Dim i = 0; i < k[target_].shape()[0]; ++i) {
      for (Dim j = 0; j < columns_; ++j, out += 4) {
        const Dim of = by_row_ ? i : j;
        const T* const v = variances == nullptr ? variance_ : variances + of * 4;
        const CentredBox<T> p = CentreOf(prior + of * 4, normalized_);
        if (encodes_) {
          Encode(target + i * 4, CentreOf(target + i * 4, normalized_), p, v, out);
        } else {
          Decode(target + (i * columns_ + j) * 4, p, v, out);
        }
      }
    }
    return OkStatus();
  }

 private:
  static void Encode(const T* box, const CentredBox<T>& t, const CentredBox<T>& p, const T* v, T* out) {
    out[0] = ((box[0] + box[2]) / 2 - p.x) / p.width / v[0];
    out[1] = ((box[1] + box[3]) / 2 - p.y) / p.height / v[1];
    out[2] = std::log(std::abs(t.width / p.width)) / v[2];
    out[3] = std::log(std::abs(t.height / p.height)) / v[3];
  }
  void Decode(const T* t, const CentredBox<T>& p, const T* v, T* out) const {
    const T x = v[0] * t[0] * p.width + p.x, y = v[1] * t[1] * p.height + p.y;
    const T width = std::exp(v[2] * t[2]) * p.width, height = std::exp(v[3] * t[3]) * p.height;
    const T less = normalized_ ? T{0} : T{1};
    out[0] = x - width / 2;
    out[1] = y - height / 2;
    out[2] = x + width / 2 - less;
    out[3] = y + height / 2 - less;
  }

  In<"PriorBox"> prior_;
  In<"PriorBoxVar"> variances_;
  In<"TargetBox"> target_;
  Out<"OutputBox"> out_;
  bool encodes_ = true, normalized_ = true, by_row_ = false;
  T variance_[4] = {1, 1, 1, 1};
  Dim columns_ = 0;
};

}  // namespace

void RegisterBoxCoder(OpRegistry& ops) {
  ops.Add("box_coder")
      .Doc("Encodes boxes as offsets from prior boxes, or decodes such offsets.", kDoc)
      .Input("PriorBox", "[boxes, 4]", Floats())
      .Input("PriorBoxVar", "[boxes, 4], the variances of each prior box", SameTypeAs("PriorBox"), Optional())
      .Input("TargetBox", "[boxes, 4] to encode, [rows, columns, 4] to decode", SameTypeAs("PriorBox"))
      .Output("OutputBox", "[rows, columns, 4]", SameTypeAs("PriorBox"), Apart())
      .Attr("code_type", "encode_center_size", "whether to encode or to decode",
            OneOf({"encode_center_size", "decode_center_size"}))
      .Attr("box_normalized", true,
            "whether coordinates are normalised; if not, boxes include their last pixel")
      .Attr("axis", 0,
            "when decoding, the dimension of TargetBox that corresponds to the prior boxes: 0 the columns, 1 "
            "the rows",
            OneOf({"0", "1"}))
      .Attr("variance", std::vector<float>(), "4 variances shared by all prior boxes")
      .InferShape(InferBoxCoder)
      .Kernel<Cpu, BoxCoderKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
