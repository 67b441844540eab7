// box_decoder_and_assign: decodes the boxes of all classes, and selects that of the best class.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Let p be a prior box, whose width and height are the differences of its coordinates plus one, and t the four
values of a class in TargetBox times PriorBoxVar. The box of the class in DecodeBox has the centre
(t0 * pw + px, t1 * ph + py), the width exp(min(t2, box_clip)) * pw and the height
exp(min(t3, box_clip)) * ph. OutputAssignBox is the box of the class with the largest score, class 0 excluded,
or the prior box if that score is -1 or less.)";

Status InferBoxDecoder(InferContext& c) {
  const Shape &prior = c.ShapeOf("PriorBox"), &target = c.ShapeOf("TargetBox"),
              &score = c.ShapeOf("BoxScore");
  if (prior.rank() != 2 || !Compatible(prior[1], 4))
    return c.Error("shape of PriorBox (", prior, ") must be [boxes, 4]");
  if (c.HasInput("PriorBoxVar") && !Compatible(c.ShapeOf("PriorBoxVar"), Shape{4}))
    return c.Error("shape of PriorBoxVar (", c.ShapeOf("PriorBoxVar"), ") must be [4]");
  if (score.rank() != 2 || !Compatible(score[0], prior[0]))
    return c.Error("shape of BoxScore (", score, ") must be [", prior[0], ", classes]");
  const Dim width = score[1] == kUnknownDim ? kUnknownDim : score[1] * 4;
  if (!Compatible(target, Shape{prior[0], width}))
    return c.Error("shape of TargetBox (", target, ") must be [", prior[0], ", ", width, "]");
  c.ShareLod("PriorBox", "DecodeBox");
  c.ShareLod("PriorBox", "OutputAssignBox");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("DecodeBox", target));
  return c.SetShape("OutputAssignBox", prior);
}

template <typename Device, typename T>
class BoxDecoderKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(prior_, variance_, target_, score_, decoded_, assigned_);
    most_ = static_cast<T>(k.Attr<float>("box_clip"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* prior = std::as_const(k[prior_]).template Data<T>();
    const T* target = std::as_const(k[target_]).template Data<T>();
    const T* score = std::as_const(k[score_]).template Data<T>();
    const T ones[4] = {1, 1, 1, 1};
    const T* const v = variance_ ? std::as_const(k[variance_]).template Data<T>() : ones;
    T* decoded = k[decoded_].template Data<T>();
    T* assigned = k[assigned_].template Data<T>();
    const Dim classes = k[score_].shape()[1];
    for (Dim i = 0; i < k[prior_].shape()[0]; ++i, prior += 4, assigned += 4, score += classes) {
      const T* best = prior;
      T most{-1};
      const T width = prior[2] - prior[0] + 1, height = prior[3] - prior[1] + 1;
      for (Dim c = 0; c < classes; ++c, target += 4, decoded += 4) {
        const T x = v[0] * target[0] * width + prior[0] + width / 2;
        const T y = v[1] * target[1] * height + prior[1] + height / 2;
        const T wide = std::exp(Cut(v[2] * target[2])) * width,
                high = std::exp(Cut(v[3] * target[3])) * height;
        decoded[0] = x - wide / 2;
        decoded[1] = y - high / 2;
        decoded[2] = x + wide / 2 - 1;
        decoded[3] = y + high / 2 - 1;
        if (c == 0 || !(score[c] > most)) continue;
        most = score[c];
        best = decoded;
      }
      std::copy_n(best, 4, assigned);
    }
    return OkStatus();
  }

 private:
  T Cut(T exponent) const { return exponent > most_ ? most_ : exponent; }

  In<"PriorBox"> prior_;
  In<"PriorBoxVar"> variance_;
  In<"TargetBox"> target_;
  In<"BoxScore"> score_;
  Out<"DecodeBox"> decoded_;
  Out<"OutputAssignBox"> assigned_;
  T most_{};
};

}  // namespace

void RegisterBoxDecoder(OpRegistry& ops) {
  ops.Add("box_decoder_and_assign")
      .Doc("Decodes the boxes of all classes and selects the box of the best class.", kDoc)
      .Input("PriorBox", "[boxes, 4]", Floats())
      .Input("PriorBoxVar", "[4], the variances; 1 if absent", SameTypeAs("PriorBox"), Optional())
      .Input("TargetBox", "[boxes, 4 * classes]", SameTypeAs("PriorBox"))
      .Input("BoxScore", "[boxes, classes]", SameTypeAs("PriorBox"))
      .Output("DecodeBox", "[boxes, 4 * classes]", SameTypeAs("PriorBox"), Apart())
      .Output("OutputAssignBox", "[boxes, 4]", SameTypeAs("PriorBox"), Apart())
      .Attr("box_clip", 4.135f, "the upper bound of the exponents")
      .Nan("a score that is NaN is never selected.")
      .InferShape(InferBoxDecoder)
      .Kernel<Cpu, BoxDecoderKernel, float, double>()
      .NoGrad();
}

}  // namespace penstock
